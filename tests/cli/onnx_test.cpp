// ONNX's own conformance cases of its Attention, LinearAttention and FlexAttention operators, every
// array that they print, by the reference and by every fused kernel. See tests/make_onnx_golden.py.
#include "core/kernels/dispatch.hpp"
#include "io/read/result_view.hpp"
#include "tests/support/answers.hpp"

namespace onnx_test {
namespace {

using namespace attn;
using nlohmann::json;

/// `file` is that of the cases, without its suffix.
std::string path_of(const std::string& file, const json& name) {
    return test::data_path(file + ".npz") + ":" + name.get<std::string>();
}

/// Scores after their modifiers are what only the reference writes down.
bool is_written_by(const std::string& kernel, const json& array) {
    return kernel == "reference" || kernel == "auto" ||
           (array != "capped_scores" && array != "biased_scores");
}

/// The case's request with its operands as FILE:NAME.
json request_of(const std::string& file, const json& one, const std::string& kernel) {
    json request = one["request"];
    json emit = json::array();
    for (const json& array : request["emit"])
        if (is_written_by(kernel, array)) emit.push_back(array);
    request["emit"] = emit;
    for (const char* key :
         {"query", "key", "value", "mask", "past_key", "past_value", "past_state", "decay", "beta"})
        if (request.contains(key)) request[key] = path_of(file, request[key]);
    request["kernel"] = kernel;
    return request;
}

/// Whether all elements are as near as the tolerance says.
bool are_close(const json& got, const Array<double>& expected, double tolerance) {
    const std::vector<double> values = test::flat(got);
    return std::equal(
        values.begin(), values.end(), expected.begin(), expected.end(), [&](double a, double b) {
            return a == b || std::abs(a - b) <= tolerance * std::max(1.0, std::abs(b));
        });
}

void check_cases(const std::string& file, std::size_t count) {
    const json cases = test::load_data(file + ".json")["cases"];
    REQUIRE(cases.size() == count);
    std::map<std::string, Array<double>> expected;
    std::vector<std::string> kernels{"reference", "auto"};
    for (const kernels::Kernel* kernel : kernels::supported()) kernels.emplace_back(kernel->name);
    ThreadPool workers(1);
    test::Sample sample, of_kernels(3);
    std::vector<std::pair<std::string, json>> asked;
    std::string requests;
    for (const std::string& kernel : kernels)
        for (const json& one : cases) {
            const bool is_chosen = kernel == "reference" || kernel == "auto";
            if (!is_chosen && one["request"].contains("prob_mod")) continue;  // no fused kernel
            if (!(is_chosen ? sample : of_kernels).takes()) continue;
            asked.emplace_back(kernel, one);
            requests += request_of(file, one, kernel).dump() + "\n";
            for (const std::string name : one["expected"])
                if (!expected.contains(name)) {
                    const io::ResultView view(io::open_result(path_of(file, name)),
                                              io::ResultView::Scope::named);
                    expected[name] = view.read(view.arrays().front(), workers).values;
                }
        }
    const auto outcome = test::run_attn({"batch", "-"}, requests);
    INFO(outcome.err);
    REQUIRE(outcome.code == 0);

    const std::vector<json> answers = test::answers_in(outcome.out);
    REQUIRE(answers.size() == asked.size());
    for (std::size_t i = 0; i < asked.size(); ++i)
        for (const auto& item : asked[i].second["expected"].items()) {
            const std::string kernel = asked[i].first, array = item.key(), name = item.value();
            if (!is_written_by(kernel, array)) continue;
            CAPTURE(kernel);
            CAPTURE(name);
            CHECK(are_close(answers[i][array], expected[name], asked[i].second["rtol"]));
        }
}

TEST_CASE("onnx: all cases of its three operators, by the reference and every kernel") {
    check_cases("golden/onnx_attention", 93);
    check_cases("golden/onnx_linear", 14);
    check_cases("golden/onnx_flexattention", 11);
}

}  // namespace
}  // namespace onnx_test
