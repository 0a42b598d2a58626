// Properties of whole layers.
#include "tests/support/planned.hpp"

namespace layer_test {
namespace {

using namespace attn;

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
