// The evaluator against attn's own results, in float64 and float32, over generated questions.
#include "core/check/evaluate.hpp"
#include "core/check/their_array.hpp"
#include "core/layer/layer.hpp"
#include "tests/support/drawn_layer.hpp"

namespace evaluate_test {
namespace {

using namespace attn;

/// How near errors come to their bounds, over many questions: by array, the largest of each.
using Ratios = std::map<std::string, std::vector<double>>;

std::vector<double> numbers_in(const AnyArray& values) {
    return std::visit(
        [](const auto& array) { return std::vector<double>(array.begin(), array.end()); }, values);
}

std::string text_of(double x) {
    std::ostringstream text;
    text.precision(17);
    text << x;
    return text.str();
}

/// The largest error of an array as a multiple of its bound.
double largest_ratio(Candidate& exact, const Plan& plan, const NamedArray& array,
                     std::string& where) {
    const ArrayId id = *find_array(array.name);
    const std::vector<double> theirs = numbers_in(array.values);
    const std::array<std::size_t, 4> extent = shape_of_all_axes(plan, id);
    REQUIRE(theirs.size() == extent[0] * extent[1] * extent[2] * extent[3]);
    double largest = 0;
    std::size_t at = 0;
    for (std::size_t b = 0; b < extent[0]; ++b)
        for (std::size_t h = 0; h < extent[1]; ++h)
            for (std::size_t row = 0; row < extent[2]; ++row) {
                const Numbers& ours = exact.row(id, b, h, row);
                REQUIRE(ours.value.size() == extent[3]);
                for (std::size_t i = 0; i < extent[3]; ++i, ++at) {
                    const double x = ours.value[i], y = theirs[at];
                    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
                    const double apart = std::abs(x - y);
                    const double ratio = std::isnan(apart)           ? 1e300
                                         : std::isinf(ours.error[i]) ? 0
                                                                     : apart / ours.error[i];
                    if (!(ratio <= largest)) {
                        largest = ratio;
                        where = array.name + " " + std::to_string(b) + " " + std::to_string(h) +
                                " " + std::to_string(row) + " " + std::to_string(i) + ": " +
                                text_of(y) + ", exactly " + text_of(x) + ", within " +
                                text_of(ours.error[i]);
                    }
                }
            }
    return largest;
}

/// attn's own arrays lie within the bounds of their type.
void check_result(const test::DrawnLayer& layer, const Problem& problem, NumberType dtype,
                  const char* kernel, Ratios& ratios) {
    const test::DrawnLayer asked = layer.in(dtype);
    PlanOptions options;
    options.kernel = kernel;
    options.emit = test::arrays_of(asked, kernel);
    const Plan plan = make_plan(asked.settings, shapes_of(asked.operands), options);
    ThreadPool pool(1);
    const Result result = compute(plan, Operands(asked.operands), pool);
    const Evaluator evaluator(problem, dtype);
    Candidate exact(evaluator, problem.asked, true);
    for (const NamedArray& array : result.arrays) {
        if (!Evaluator::has(*find_array(array.name))) continue;
        std::string where;
        const double ratio = largest_ratio(exact, plan, array, where);
        CHECK_MESSAGE(ratio <= 1, layer.words, " ", row_of(dtype).name, " ", std::string(kernel),
                      " ", where);
        ratios[array.name].push_back(ratio);
    }
}

double median_of(std::vector<double> numbers) {
    std::nth_element(numbers.begin(),
                     numbers.begin() + static_cast<std::ptrdiff_t>(numbers.size() / 2),
                     numbers.end());
    return numbers[numbers.size() / 2];
}

TEST_CASE("evaluator: attn's arrays are within the bounds of their type, and the bounds are near") {
    std::map<NumberType, Ratios> ratios;
    for (std::uint32_t seed = 1; seed <= test::cases(150); ++seed) {
        const test::DrawnLayer layer = test::drawn_layer(seed);
        ThreadPool pool(1);
        const Plan plan = make_plan(layer.settings, shapes_of(layer.operands));
        const Problem problem = exact_question(plan, layer.operands, pool);
        for (NumberType dtype : {NumberType::float64, NumberType::float32})
            for (const char* kernel : {"reference", "generic", "auto"})
                if (kernel != std::string("generic") ||
                    layer.settings.mask_method == MaskMethod::neg_inf)
                    check_result(layer, problem, dtype, kernel, ratios[dtype]);
    }
    if (test::one_in > 1) return;  // a median of a few cases says little
    // The largest error of an array of a question, as a multiple of its bound.
    for (const char* name : {"queries", "keys", "values", "scores", "attention_weights",
                             "logsumexp", "head_outputs", "context_vectors"}) {
        const double median = median_of(ratios[NumberType::float32][name]);
        CHECK_MESSAGE(median > 0.005, name, " ", median);
        CHECK_MESSAGE(median < 0.5, name, " ", median);
    }
}

}  // namespace
}  // namespace evaluate_test
