// The table of operands: their keys, the modes that take them, and the fields of their elements.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "cli/args/option.hpp"
#include "core/layer/operands.hpp"

namespace attn::cli {

/// The fields of a mask, the only operand that may be boolean.
struct MaskFields {
    Array<double> Operands::*values;
    bool Operands::*is_boolean;
};

/// The axis that the labels in an operand's file name.
enum class LabelsOf { none, queries, keys };

/// An operand from a file of its own or from the request.
struct OperandSpec {
    const char* key;
    Modes modes;
    bool required;
    RealArray Operands::*reals;
    const MaskFields* mask;  ///< instead of `reals`
    std::size_t lowest_rank, highest_rank;
    bool nonfinite;  ///< masks have infinities; masked keys and values may be anything
    LabelsOf labels = LabelsOf::none;
};

std::span<const OperandSpec> operand_rules();

bool is_operand(std::string_view key, Mode mode);

}  // namespace attn::cli
