// Properties of whole layers; every small combination of heads and widths, whose numbers are
// checked by evaluate_test.cpp; the table of arrays, row by row; estimated costs against the sizes
// of products; how many words a text may have, which tests/fuzz/text.cpp draws.
#include "core/layer/embedding.hpp"
#include "core/operator/shown_axes.hpp"
#include "tests/support/drawn_layer.hpp"
#include "tests/support/planned.hpp"
#include "tests/support/support.hpp"

namespace layer_test {
namespace {

using namespace attn;

constexpr std::size_t tokens = 3, d_in = 4, max_width = 5;

using Width = std::optional<std::uint64_t>;

struct Combination {
    std::size_t heads = 1;
    Width kv_heads, d_k, d_v, d_out;
    std::optional<bool> out_proj;

    std::size_t key_heads() const { return kv_heads.value_or(heads); }
    bool projects_out() const { return out_proj.value_or(true); }
    std::size_t query_width() const { return d_k.value_or(d_out.value_or(d_in)); }
    std::size_t value_width() const { return d_v.value_or(d_out.value_or(d_in)); }
    std::size_t result_width() const {
        return projects_out() ? d_out.value_or(d_in) : value_width();
    }
    /// Heads cut queries and values into equal parts; without W_out the values are the result.
    bool is_valid() const {
        const bool has_d_out = projects_out() || d_out.value_or(value_width()) == value_width();
        return heads % key_heads() == 0 && query_width() % heads == 0 &&
               value_width() % heads == 0 && has_d_out;
    }
};

void check_combination(const Combination& c, const Operands& operands, std::size_t& computed) {
    Settings settings;
    settings.mode = Mode::multihead;
    settings.dtype = NumberType::float64;
    settings.heads = c.heads;
    settings.kv_heads = c.kv_heads;
    settings.d_k = c.d_k;
    settings.d_v = c.d_v;
    settings.d_out = c.d_out;
    settings.out_proj = c.out_proj;
    if (c.projects_out()) settings.out_bias = false;
    settings.emit = {"W_query", "W_key", "W_value", "context_vectors"};
    if (c.projects_out()) settings.emit.emplace_back("W_out");
    if (!c.is_valid()) {
        CHECK(test::error_of([&] { test::plan_of(settings, operands); }) != "");
        return;
    }
    ++computed;
    const test::Answered answer = test::answer_of(settings, operands);
    // Of parameters (outputs, inputs).
    const auto shape_in = [&](const char* name) {
        return test::shape_of_values(answer.array(name));
    };
    CHECK(shape_in("W_query") == Shape{c.query_width(), d_in});
    CHECK(shape_in("W_key") == Shape{c.query_width() / c.heads * c.key_heads(), d_in});
    CHECK(shape_in("W_value") == Shape{c.value_width() / c.heads * c.key_heads(), d_in});
    CHECK(shape_in("context_vectors") == Shape{tokens, c.result_width()});
    if (c.projects_out()) CHECK(shape_in("W_out") == Shape{c.result_width(), c.value_width()});
}

TEST_CASE("widths: heads x d_k x d_v x d_out x output projection: computed, or refused by rule") {
    Operands operands;
    operands["inputs"] = test::random_array({tokens, d_in}, 2, 11);
    std::vector<Width> widths{std::nullopt};
    for (std::uint64_t width = 1; width <= max_width; ++width) widths.emplace_back(width);
    test::Sample sample;
    std::size_t computed = 0, all = 0;
    for (std::size_t heads = 1; heads <= 4; ++heads)
        for (const Width& kv_heads : std::vector<Width>{{}, {1}, {2}, {3}})
            for (const Width& d_k : widths)
                for (const Width& d_v : widths)
                    for (const Width& d_out : widths)
                        for (const std::optional<bool> out_proj :
                             {std::optional<bool>(), {true}, {false}}) {
                            if (!sample.takes()) continue;
                            const Combination c{heads, kv_heads, d_k, d_v, d_out, out_proj};
                            CAPTURE(heads);
                            CAPTURE(kv_heads.value_or(0));
                            CAPTURE(d_k.value_or(0));
                            CAPTURE(d_v.value_or(0));
                            CAPTURE(d_out.value_or(0));
                            CAPTURE(c.projects_out());
                            check_combination(c, operands, computed);
                            ++all;
                        }
    MESSAGE("computed ", computed, " of ", all);
    CHECK(computed > all / 10);
    CHECK(computed < all / 2);
}

/// Keys of each query in the arrays that have an axis of them.
constexpr std::uint64_t top = 2;

bool needs_top(const ArrayRow& row) {
    return row.name == "top_keys" || row.name == "top_weights";
}

/// Operands are written in the shape in which they are given.
std::vector<std::size_t> shape_of_operand(const Operands& operands, const ArrayRow& row) {
    return operands[*std::ranges::find(operand_rows, row.name, &OperandRow::array)].shape();
}

TEST_CASE("arrays: each is written under its name, with the axes and sizes of its row") {
    ArraySet seen;
    for (std::uint32_t seed = 1; seed <= test::cases(100); ++seed) {
        test::DrawnLayer layer = test::drawn_layer(seed);
        if (const Shape inputs = layer.operands["inputs"].shape(); inputs.size() != 0) {
            layer.operands.weights.reset();
            layer.settings.init = Init::linear;  // others have parameters of other axes
            if (seed % 2 == 0) layer.operands.token_ids.assign(inputs[1], 3);
            if (seed % 2 == 1) layer.operands["value_input"] = layer.operands["context"];
        }
        INFO(layer.words);
        layer.settings.backward = true;
        if (seed % 3 != 0) {  // the others have the default loss
            Settings forward = layer.settings;
            forward.emit = {"context_vectors"};
            const Shape shape =
                test::shape_of_values(test::answer_of(forward, layer.operands).arrays.at(0));
            Array<float> ones = Array<float>::from_shape(shape);
            ones.fill(1);
            layer.operands[seed % 3 == 1 ? OperandId("target") : OperandId("grad_output")] = ones;
        }
        const Plan plan = test::plan_of(layer.settings, layer.operands);
        for (std::size_t place = 0; place < emitted_arrays.size(); ++place) {
            const ArrayId id(place);
            if (!plan.has(id.row())) continue;
            Settings settings = layer.settings;
            settings.emit = {std::string(id.row().name)};
            if (needs_top(id.row())) settings.top = top;
            const Plan plan_of_row = test::plan_of(settings, layer.operands);
            INFO(id.row().name);
            const NamedArray array = test::answer_of(settings, layer.operands).arrays.at(0);
            CHECK(array.name == id.row().name);
            seen.add(id);
            if (id.base().row().is_operand()) {
                CHECK(test::shape_of_values(array) ==
                      shape_of_operand(layer.operands, id.base().row()));
                CHECK(array.axes.size() == test::shape_of_values(array).size());
                continue;
            }
            std::vector<std::string_view> axes;
            std::vector<std::size_t> sizes;
            for (std::size_t axis = 0; axis < id.row().axes.size(); ++axis)
                if (plan.shown.shows(id, axis)) {
                    axes.push_back(axis_name(id.row().axes[axis], plan.shown.separate_heads));
                    sizes.push_back(plan_of_row.size_of<std::uint64_t>(id.row().axes[axis]));
                }
            CHECK(array.axes == axes);
            CHECK(test::shape_of_values(array) == sizes);
        }
    }
    if (test::one_in == 1) CHECK(seen.size() == emitted_arrays.size());
}

TEST_CASE("arrays: the manual names each that can be emitted, and no step of a walk") {
    const std::string manual = test::manual_text();
    for (const ArrayRow& row : all_arrays) {
        INFO(row.name);
        const std::string name = "`" + std::string(row.name) + "`";
        CHECK((manual.find(name) != std::string::npos) == (row.from != From::trace));
    }
}

TEST_CASE("cost: the arithmetic of drawn layers and operators is that of their products") {
    for (std::uint32_t seed = 1; seed <= 300; ++seed) {
        const test::DrawnLayer layer = test::drawn_layer(seed);
        const Plan plan = test::plan_of(layer.settings, layer.operands);
        if (plan.config.mode == Mode::linear) continue;
        CAPTURE(layer.words);
        // Scores and weights of the rows that are computed; all rows are projected.
        std::size_t products = plan.heads * plan.rows * plan.kv_len * (plan.d_k + plan.d_v);
        const std::size_t new_keys = plan.kv_len - plan.past_len;
        if (plan.projects)
            products += plan.q_len * plan.d_in * plan.heads * plan.d_k +
                        new_keys * plan.d_context * plan.kv_heads * (plan.d_k + plan.d_v);
        if (plan.has(ArrayId("W_out").row()))
            products += plan.rows * plan.heads * plan.d_v * plan.d_out;
        CHECK(measure(plan).flops == 2 * static_cast<double>(plan.batch * products));
    }
}

TEST_CASE("words: there are at most two million") {
    std::string text;
    for (std::size_t i = 0; i < max_words; ++i) text += "a ";
    CHECK(split_words(text).ids.size() == max_words);
    CHECK_THROWS_AS(split_words(text + "a"), Error);
}

Operands random_inputs(const Shape& shape) {
    Operands operands;
    operands["inputs"] = test::random_array(shape, 2, 4);
    return operands;
}

Settings settings_of(Mode mode, std::vector<std::string> emit) {
    Settings settings;
    settings.mode = mode;
    settings.dtype = NumberType::float64;
    settings.seed = {123, false};
    settings.emit = std::move(emit);
    return settings;
}

TEST_CASE("init none: queries, keys and values are the input, unscaled") {
    const Operands operands = random_inputs({4, 3});
    Settings settings =
        settings_of(Mode::self, {"queries", "keys", "values", "scaled_scores", "scores"});
    settings.init = Init::none;
    const test::Answered result = test::answer_of(settings, operands);
    for (const char* name : {"queries", "keys", "values"})
        CHECK(result.numbers(name) == operands["inputs"].in<double>());
    CHECK(result.numbers("scaled_scores") == result.numbers("scores"));
    CHECK(result.settings.scale == 1.0);
}

TEST_CASE("dropout seed: dropout has a generator of its own, the weights stay") {
    const Operands operands = random_inputs({6, 3});
    Settings settings = settings_of(Mode::causal, {"dropout_mask", "W_query"});
    settings.dropout = 0.5;
    const test::Answered shared = test::answer_of(settings, operands);
    settings.dropout_seed = Seed{123, false};
    settings.dropout_skip = 3 * 9 * 2;  // as many draws as the three weights take
    const test::Answered own = test::answer_of(settings, operands);
    CHECK(shared.numbers("dropout_mask") == own.numbers("dropout_mask"));
    CHECK(shared.numbers("W_query") == own.numbers("W_query"));
    settings.dropout_skip = 0;
    CHECK(test::answer_of(settings, operands).numbers("dropout_mask") !=
          own.numbers("dropout_mask"));
}

TEST_CASE("resolve: heads that exceed the memory are refused") {
    Operands operands = random_inputs({4, 6});
    Settings settings = settings_of(Mode::causal, {"context_vectors"});
    settings.heads = 2;
    CHECK(test::error_of([&] { test::plan_of(settings, operands); }) ==
          "heads: mode causal has one head; expected attn multihead or attn cross");
    settings.mode = Mode::multihead;
    settings.out_proj = false;
    operands.weights = test::answer_of(settings, operands).weights;
    settings.style = Style::wrapper;
    CHECK(test::error_of([&] { test::plan_of(settings, operands); }) ==
          "style: the weights are one projection of all heads; expected --style split");
    settings.heads = 1;
    CHECK(test::answer_of(settings, operands).shapes.d_k == 6);
}

}  // namespace
}  // namespace layer_test
