// Formulas: bounds hold their values, and masks by formulas are the same however kernels ask for
// them.
#include <doctest/doctest.h>

#include "core/base/error.hpp"
#include "core/operator/expression_rule.hpp"
#include "tests/support/dice.hpp"

namespace attn::test {
namespace {

ExpressionArrays arrays() {
    const auto array = [](std::vector<std::size_t> shape, auto value) {
        Array<double> made = Array<double>::from_shape(shape);
        for (std::size_t i = 0; i < made.size(); ++i) made.data()[i] = value(i);
        return std::make_shared<const Array<double>>(std::move(made));
    };
    return {{"doc", array({64}, [](std::size_t i) { return static_cast<double>(i / 9); })},
            {"t", array({3, 5}, [](std::size_t i) { return std::sin(static_cast<double>(i)); })}};
}

/// A random formula. Indices are within their arrays.
std::string formula(Dice& dice, int depth) {
    const auto any = [&](auto... texts) {
        const std::string all[] = {texts...};
        return all[dice.below(sizeof...(texts))];
    };
    if (depth == 0 || dice.below(6) == 0)
        return any("q", "k", "q - k", "b", "h", "kv_len", "3", "7", "0.25", "-1.5", "doc[k]",
                   "doc[abs(q)]", "t[h, k % 5]", "doc[abs(q - k)]");
    const std::string x = formula(dice, depth - 1), y = formula(dice, depth - 1);
    switch (dice.below(5)) {
        case 0: return "(" + x + ") " + any("+", "-", "*", "/", "//", "%") + " (" + y + ")";
        case 1: return "(" + x + ") " + any("<", "<=", ">", ">=", "==", "!=") + " (" + y + ")";
        case 2: return "(" + x + ") " + any("&&", "||") + " (" + y + ")";
        case 3: return any("min(", "max(") + x + ", " + y + ")";
        default:
            return any("!(", "-(", "abs(", "floor(", "exp(", "log(", "sqrt(", "tanh(") + x + ")";
    }
}

constexpr std::size_t queries = 20, keys = 40, heads = 3;

ExpressionSizes sizes_of(Dice& dice) {
    const auto offset = static_cast<std::int64_t>(dice.below(24)) - 4;
    return {2, heads, queries, keys, offset, dice.below(2) == 0};
}

Block block_of(Dice& dice) {
    const std::size_t q = dice.below(queries), k = dice.below(keys);
    return {dice.below(2),           dice.below(heads), q, 1 + dice.below(queries - q), k,
            1 + dice.below(keys - k)};
}

}  // namespace

TEST_CASE("expression: bounds of a block hold all values, and coverage is that of its pairs") {
    Dice dice(58);
    std::size_t known = 0;
    for (int i = 0; i < 3000; ++i) {
        const std::string text = formula(dice, 1 + static_cast<int>(dice.below(4)));
        const Expression expression = parse_expression("mask_mod", text, {}, arrays());
        const ExpressionSizes sizes = sizes_of(dice);
        const Block block = block_of(dice);
        CAPTURE(text);
        const ExpressionRule rule(expression, sizes);
        const Coverage coverage = rule.cover(block);
        known += coverage == Coverage::some ? 0 : 1;
        Mask mask;
        add_expression(mask, expression, sizes, "allowed_by_formulas");
        std::vector<std::uint64_t> seen(block.keys, ~std::uint64_t{0});
        mask.block_unseen(block, 0, seen.data());
        const KeyRange range = mask.range(block);
        for (std::size_t q = 0; q < block.queries; ++q)
            for (std::size_t k = 0; k < block.keys; ++k) {
                const std::size_t query = block.first_query + q, key = block.first_key + k;
                const bool allows = rule.allows(block.batch, block.head, query, key);
                if (coverage != Coverage::some) CHECK(allows == (coverage == Coverage::all));
                CHECK(mask.allows(block.batch, block.head, query, key) == allows);
                CHECK((seen[k] >> q & 1) == (allows ? 1 : 0));
                if (allows) CHECK((key >= range.first && key < range.end));
            }
    }
    CHECK(known > 500);  // of masks that depend on few variables most blocks are known
}

TEST_CASE("expression: bounds of a score hold the formula's values of all scores in its range") {
    Dice dice(59);
    for (int i = 0; i < 3000; ++i) {
        const std::string inner = formula(dice, 2);
        const std::string text = i % 2 == 0 ? "score * 0.5 + (" + inner + ")"
                                            : "(score > 0.3 ? score : " + inner + ") - abs(score)";
        const Expression expression =
            parse_expression("score_mod", text, Variable::score, arrays());
        ExpressionSizes sizes = sizes_of(dice);
        sizes.in_float32 = false;
        const Block at = block_of(dice);
        const double low = static_cast<double>(dice.below(200)) / 100 - 1, width = 0.25;
        const NumberRange range =
            ranges_of(expression, sizes, {at.batch, at.head, at.first_query, 1, at.first_key, 1},
                      {{low, low + width}, 0})
                .back();
        CAPTURE(text);
        for (double part : {0.0, 0.1, 0.5, 0.9, 1.0}) {
            double value = low + part * width;
            compute_row(expression, sizes, {at.batch, at.head, at.first_query}, at.first_key,
                        std::span(&value, 1));
            const bool is_inside = std::isnan(value)
                                       ? range.nan
                                       : range.nan || (value >= range.low && value <= range.high);
            CHECK(is_inside);
        }
    }
}

TEST_CASE("expression: bands are recognised in every way that they are written") {
    const ExpressionSizes sizes{1, 1, 8, 8, 0, true};
    for (const char* text : {"q >= k", "k <= q", "k - q < 1", "!(0 > 1) && q - k > -1", "-k >= -q",
                             "0 <= q + 3 - k - 3", "q + kv_len >= k + kv_len"}) {
        Mask mask;
        add_expression(mask, parse_expression("mask_mod", text, {}, {}), sizes,
                       "allowed_by_formulas");
        CAPTURE(text);
        CHECK(dynamic_cast<const BandRule*>(mask.rules().back().rule.get()) != nullptr);
    }
}

TEST_CASE("expression: depth, length and size are bounded") {
    const auto refused = [](const std::string& text) {
        CHECK_THROWS_AS(parse_expression("mask_mod", text, {}, {}), SettingError);
    };
    refused(std::string(longest_expression + 1, ' ') + "1");
    refused(std::string(2000, '(') + "1" + std::string(2000, ')'));
    refused(std::string(2000, '-') + "1");
    refused(std::string(2000, '!') + "1");
    std::string sum = "1", choice;
    for (std::size_t i = 0; i < 1000; ++i) sum += "+1";
    for (std::size_t i = 0; i < 300; ++i) choice += "1?1:";
    refused(sum);
    refused(choice + "1");
}

}  // namespace attn::test
