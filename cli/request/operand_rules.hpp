// The table of operands: what they are called, which modes take them, and where their numbers go.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "cli/args/option.hpp"
#include "core/layer/operands.hpp"

namespace attn::cli {

/// Where a mask goes, of which true and false are taken.
struct MaskFields {
    Array<double> Operands::*values;
    bool Operands::*is_boolean;
};

/// What the labels in an operand's file name.
enum class LabelsOf { none, queries, keys };

/// An operand that may have a file of its own or stand in the request.
struct OperandRule {
    const char* key;
    Modes modes;
    bool required;
    RealArray Operands::*reals;
    const MaskFields* mask;  ///< in their stead
    std::size_t lowest_rank, highest_rank;
    bool nonfinite;  ///< masks hold infinities, and blocked keys and values may hold anything
    LabelsOf labels = LabelsOf::none;
};

std::span<const OperandRule> operand_rules();

bool is_operand(std::string_view key, Mode mode);

}  // namespace attn::cli
