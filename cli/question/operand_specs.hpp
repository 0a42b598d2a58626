// The table of operands: their keys, the modes that take them, and the fields of their elements.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

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
    bool required;  ///< in a mode that starts from inputs or operands: without inputs
    RealArray Operands::*reals;
    const MaskFields* mask;  ///< instead of `reals`
    std::size_t lowest_rank, highest_rank;
    bool nonfinite;  ///< masks have infinities; masked keys and values may be anything
    LabelsOf labels = LabelsOf::none;
    std::vector<double> LinearSettings::*constants = nullptr;  ///< in place of the array

    /// `projects`: the request has inputs, so that only a context is required.
    bool is_required(bool projects) const {
        return required && !(projects && (modes & in(Mode::cross)) == 0);
    }
};

std::span<const OperandSpec> operand_rules();

bool is_operand(std::string_view key, Mode mode);

}  // namespace attn::cli
