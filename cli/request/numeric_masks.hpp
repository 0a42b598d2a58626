// Masks of 0 and 1, as formats without booleans write them.
#pragma once

#include <vector>

#include "cli/request/operand_rules.hpp"
#include "cli/request/request.hpp"
#include "io/read/number_array.hpp"

namespace attn::cli {

/// Where a format or type cannot say that a mask of 0 and 1 is boolean, it is not guessed.
class NumericMasks {
public:
    NumericMasks(Request& request, Operands& operands) : request_(request), operands_(operands) {}

    /// Makes an operand of a mask. `cannot_say`: the format has no booleans. Errors: usage, where
    /// the mask could be either.
    void take(const OperandRule& rule, io::NumberArray read, bool cannot_say = false);

    /// Once all are taken: where a polarity is named and no mask of true and false is there to
    /// explain it, those of 0 and 1 are boolean.
    void settle();

private:
    void check_polarity(const io::NumberArray& read, const OperandRule& rule) const;

    Request& request_;
    Operands& operands_;
    std::vector<const OperandRule*> taken_;  // of 0 and 1
};

}  // namespace attn::cli
