// Every operand of a question, one row each: where it is a key, its ranks, what it may hold.
#pragma once

#include <algorithm>
#include <span>

#include "core/plan/settings.hpp"

namespace attn {

/// The axis that the labels in an operand's file name.
enum class LabelsOf { none, queries, keys };

/// What a question does with an operand.
enum class OperandKind {
    tokens,  ///< what attends and is attended to: the inputs, or queries, keys and values
    cache,   ///< of earlier tokens: has the axes of its array, or those that the result shows
    result,  ///< has the shape of the context vectors: what the loss takes
    gate,    ///< of linear attention, for each token; or constants in its place
    mask  ///< boolean, or added to the scores, and of float64; others have the computation's type
};

struct OperandRow {
    const char* key;  ///< in requests and results, and its flag
    Modes modes;      ///< where a file or a key of its own gives it: the inputs are INPUT
    OperandKind kind;
    std::size_t lowest_rank, highest_rank;
    bool nonfinite = true;  ///< masks have infinities; masked keys and values may be anything
    LabelsOf labels = LabelsOf::none;
    std::vector<double> LinearSettings::*constants = nullptr;  ///< of a gate
    std::string_view array = key;                              ///< that records it as it is given
    bool may_be_absent = false;                                ///< another one is in its place then

    constexpr bool is_tokens() const { return kind == OperandKind::tokens; }
    constexpr bool is_mask() const { return kind == OperandKind::mask; }
    /// `projects`: the request has inputs, so that only a context is required.
    constexpr bool is_required(bool projects) const {
        return is_tokens() && !may_be_absent && !(projects && (modes & in(Mode::cross)) == 0);
    }
};

namespace operand_detail {

constexpr Modes bare = in(Mode::sdpa) | in(Mode::linear), linear = in(Mode::linear),
                attends = every_mode & ~linear;
using enum LabelsOf;
using enum OperandKind;

/// In the order in which they are read.
inline constexpr OperandRow rows[] = {
    {"inputs", 0, tokens, 2, 3, false},
    {"context", in(Mode::cross), tokens, 2, 3, false, keys},
    {"value_input", in(Mode::cross), tokens, 2, 3, false, none, nullptr, "value_input", true},
    {"query", bare, tokens, 2, 4, false, queries},
    {"key", bare, tokens, 2, 4, true, keys},
    {"value", bare, tokens, 2, 4},
    {"past_key", attends, cache, 2, 4},
    {"past_value", attends, cache, 2, 4},
    {"decay", linear, gate, 1, 4, true, none, &LinearSettings::decay},
    {"beta", linear, gate, 1, 4, true, none, &LinearSettings::beta},
    {"past_state", linear, cache, 2, 4},
    {"mask", attends, mask, 1, 4, true, none, nullptr, "attn_mask"},
    {"key_padding_mask", attends, mask, 1, 2},
    {"grad_output", every_mode, result, 2, 4, false},
    {"target", every_mode, result, 2, 4, false},
};

}  // namespace operand_detail

inline constexpr std::span operand_rows(operand_detail::rows);

/// Whether a key of its own gives the operand in this mode.
constexpr bool is_operand(std::string_view key, Mode mode) {
    return std::ranges::any_of(operand_rows, [&](const OperandRow& row) {
        return row.key == key && (row.modes & in(mode)) != 0;
    });
}

/// The index of a row of operand_rows. A string literal is looked up, and checked, at compile time.
struct OperandId {
    std::size_t index;

    // NOLINTNEXTLINE(google-explicit-constructor): implicit from a row of the table
    constexpr OperandId(const OperandRow& row)
        : index(static_cast<std::size_t>(&row - operand_rows.data())) {}
    constexpr const OperandRow& row() const { return operand_rows[index]; }
    friend bool operator==(OperandId, OperandId) = default;
    /// Does not compile without such a row: nothing past the table is a constant.
    consteval OperandId(const char* key) : index(0) {
        while (operand_rows[index].key != std::string_view(key)) ++index;
    }
};

/// The masks, in the order of their rows.
inline constexpr auto mask_operands = [] {
    constexpr auto count = std::ranges::count_if(operand_rows, &OperandRow::is_mask);
    std::array<const OperandRow*, static_cast<std::size_t>(count)> masks{};
    auto next = masks.begin();
    for (const OperandRow& row : operand_rows)
        if (row.is_mask()) *next++ = &row;
    return masks;
}();

/// A value for each operand.
template <class T>
class ByOperand {
public:
    constexpr T& operator[](OperandId operand) { return values_[operand.index]; }
    constexpr const T& operator[](OperandId operand) const { return values_[operand.index]; }

    friend bool operator==(const ByOperand&, const ByOperand&) = default;

private:
    std::array<T, operand_rows.size()> values_{};
};

}  // namespace attn
