// Every small combination of heads and widths: it is computed with the shapes that follow, or
// refused by the rule that the shapes of the parameters make necessary. The numbers are checked by
// evaluate_test.cpp.
#include "tests/support/planned.hpp"

namespace widths_test {
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

}  // namespace
}  // namespace widths_test
