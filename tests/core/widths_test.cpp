// Every small combination of heads and widths: it is computed as a plain formula has it, or
// refused by the rule that the shapes of the parameters make necessary.
#include <doctest/doctest.h>

#include <cmath>

#include "core/base/torch_random.hpp"
#include "core/layer/layer.hpp"
#include "tests/support/planned.hpp"
#include "tests/support/sample.hpp"
#include "tests/support/support.hpp"

namespace widths_test {

using namespace attn;

namespace {

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

using Matrix = std::vector<std::vector<double>>;

Matrix matrix_of(const Array<double>& array) {
    Matrix rows(array.shape()[0], std::vector<double>(array.shape()[1]));
    for (std::size_t i = 0; i < rows.size(); ++i)
        for (std::size_t j = 0; j < rows[i].size(); ++j)
            rows[i][j] = array.data()[i * rows[i].size() + j];
    return rows;
}

/// x W^T
Matrix product(const Matrix& x, const Matrix& w) {
    Matrix y(x.size(), std::vector<double>(w.size()));
    for (std::size_t i = 0; i < x.size(); ++i)
        for (std::size_t j = 0; j < w.size(); ++j)
            for (std::size_t k = 0; k < x[i].size(); ++k) y[i][j] += x[i][k] * w[j][k];
    return y;
}

/// Causal attention of all heads, side by side.
Matrix attention(const Combination& c, const Matrix& q, const Matrix& k, const Matrix& v) {
    const std::size_t width = c.query_width() / c.heads, value_width = c.value_width() / c.heads;
    Matrix result(q.size(), std::vector<double>(c.value_width()));
    for (std::size_t head = 0; head < c.heads; ++head) {
        const std::size_t shared = head / (c.heads / c.key_heads());
        for (std::size_t i = 0; i < q.size(); ++i) {
            std::vector<double> weights(i + 1);
            double total = 0;
            for (std::size_t j = 0; j <= i; ++j) {
                double score = 0;
                for (std::size_t n = 0; n < width; ++n)
                    score += q[i][head * width + n] * k[j][shared * width + n];
                total += weights[j] = std::exp(score / std::sqrt(static_cast<double>(width)));
            }
            for (std::size_t j = 0; j <= i; ++j)
                for (std::size_t n = 0; n < value_width; ++n)
                    result[i][head * value_width + n] +=
                        weights[j] / total * v[j][shared * value_width + n];
        }
    }
    return result;
}

Matrix array_in(const test::Answered& result, const std::string& name) {
    for (const NamedArray& array : result.arrays)
        if (array.name == name) return matrix_of(std::get<Array<double>>(array.values));
    throw std::runtime_error("no array " + name);
}

void check_numbers(const Combination& c, const Settings& settings, const Operands& operands) {
    ThreadPool workers(1);
    const test::Answered answer = test::answer_of(settings, operands, workers);
    const Matrix x = array_in(answer, "inputs");
    Matrix expected =
        attention(c, product(x, array_in(answer, "W_query")), product(x, array_in(answer, "W_key")),
                  product(x, array_in(answer, "W_value")));
    if (c.projects_out()) expected = product(expected, array_in(answer, "W_out"));
    const Matrix computed = array_in(answer, "context_vectors");
    REQUIRE(computed.size() == tokens);
    REQUIRE(computed.front().size() == c.result_width());
    REQUIRE(expected.front().size() == c.result_width());
    double worst = 0;
    for (std::size_t i = 0; i < tokens; ++i)
        for (std::size_t j = 0; j < c.result_width(); ++j)
            worst = std::max(worst, std::abs(computed[i][j] - expected[i][j]));
    CHECK(worst < 1e-12);
}

void check_combination(const Combination& c, const Operands& operands, std::size_t& computed) {
    Settings settings;
    settings.mode = Mode::multihead;
    settings.dtype = Dtype::float64;
    settings.heads = c.heads;
    settings.kv_heads = c.kv_heads;
    settings.d_k = c.d_k;
    settings.d_v = c.d_v;
    settings.d_out = c.d_out;
    settings.out_proj = c.out_proj;
    if (c.projects_out()) settings.out_bias = false;
    settings.emit = {"inputs", "W_query", "W_key", "W_value", "context_vectors"};
    if (c.projects_out()) settings.emit.emplace_back("W_out");
    if (!c.is_valid()) {
        CHECK(test::error_of([&] { test::plan_of(settings, operands); }) != "");
        return;
    }
    ++computed;
    check_numbers(c, settings, operands);
}

}  // namespace

TEST_CASE("widths: heads x d_k x d_v x d_out x output projection: computed, or refused by rule") {
    Operands operands;
    Array<double> inputs = Array<double>::from_shape({tokens, d_in});
    TorchGenerator generator(11);
    for (double& value : inputs) value = static_cast<double>(generator.uniform<float>(-2, 2));
    operands.inputs = std::move(inputs);
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

}  // namespace widths_test
