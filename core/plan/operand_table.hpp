// Every operand of a question, one row each: where it is a key, its ranks, what it may hold.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "core/plan/settings.hpp"

namespace attn {

/// The axis that the labels in an operand's file name.
enum class LabelsOf { none, queries, keys };

/// Which shapes an operand may have: a function of core/plan/sizes.cpp says it, or those of the
/// axes of its array, all of them or without the batch and heads that the result leaves out.
enum class ShapeRule { own, axes };

struct OperandRow {
    const char* key;  ///< in requests and results, and its flag
    Modes modes;      ///< where a file or a key of its own gives it: the inputs are INPUT
    bool required;    ///< in a mode that starts from inputs or operands: without inputs
    std::size_t lowest_rank, highest_rank;
    bool nonfinite;  ///< masks have infinities; masked keys and values may be anything
    LabelsOf labels = LabelsOf::none;
    ShapeRule shape = ShapeRule::own;
    std::vector<double> LinearSettings::*constants = nullptr;  ///< in place of the array
    std::string_view array = key;                              ///< that records it as it is given

    /// May be boolean or additive, and is of float64; other operands are of the computation's type.
    constexpr bool is_mask() const { return std::string_view(key).ends_with("mask"); }
    /// `projects`: the request has inputs, so that only a context is required.
    constexpr bool is_required(bool projects) const {
        return required && !(projects && (modes & in(Mode::cross)) == 0);
    }
};

namespace operand_detail {

constexpr Modes bare = in(Mode::sdpa) | in(Mode::linear), linear = in(Mode::linear),
                attends = every_mode & ~linear;
using enum LabelsOf;
using enum ShapeRule;

}  // namespace operand_detail

/// In the order in which they are read.
inline constexpr auto operand_rows = [] {
    using namespace operand_detail;
    return std::to_array<OperandRow>({
        {"inputs", 0, true, 2, 3, false},
        {"context", in(Mode::cross), true, 2, 3, false, keys},
        {"query", bare, true, 2, 4, false, queries},
        {"key", bare, true, 2, 4, true, keys},
        {"value", bare, true, 2, 4, true},
        {"past_key", attends, false, 2, 4, true, none, axes},
        {"past_value", attends, false, 2, 4, true, none, axes},
        {"decay", linear, false, 1, 4, true, none, own, &LinearSettings::decay},
        {"beta", linear, false, 1, 4, true, none, own, &LinearSettings::beta},
        {"past_state", linear, false, 2, 4, true, none, axes},
        {"mask", attends, false, 1, 4, true, none, own, nullptr, "attn_mask"},
        {"key_padding_mask", attends, false, 1, 2, true},
    });
}();

/// Whether a key of its own gives the operand in this mode.
constexpr bool is_operand(std::string_view key, Mode mode) {
    return std::ranges::any_of(operand_rows, [&](const OperandRow& row) {
        return row.key == key && (row.modes & in(mode)) != 0;
    });
}

/// The index of a row. A string literal is looked up, and checked, at compile time.
struct OperandId {
    std::size_t index;

    constexpr explicit OperandId(std::size_t row_index) : index(row_index) {}
    friend bool operator==(OperandId, OperandId) = default;
    consteval OperandId(const char* key) : index(0) {
        while (operand_rows.at(index).key != std::string_view(key)) ++index;
    }
};

/// A value for each operand.
template <class T>
class ByOperand {
public:
    constexpr T& operator[](OperandId operand) { return values_[operand.index]; }
    constexpr const T& operator[](OperandId operand) const { return values_[operand.index]; }
    T& operator[](const OperandRow& row) { return values_[index_of(row)]; }
    const T& operator[](const OperandRow& row) const { return values_[index_of(row)]; }

    friend bool operator==(const ByOperand&, const ByOperand&) = default;

private:
    static std::size_t index_of(const OperandRow& row) {
        return static_cast<std::size_t>(&row - operand_rows.data());
    }

    std::array<T, operand_rows.size()> values_{};
};

}  // namespace attn
