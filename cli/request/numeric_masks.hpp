// Masks of 0 and 1, as formats without booleans write them.
#pragma once

#include <string>
#include <vector>

#include "cli/request/operand_rules.hpp"
#include "cli/request/request.hpp"
#include "io/read/input_file.hpp"
#include "io/read/number_array.hpp"

namespace attn::cli {

/// Where a format or type cannot say that a mask of 0 and 1 is boolean, it is not guessed.
class NumericMasks {
public:
    NumericMasks(const Request& request, Operands& operands)
        : request_(request), operands_(operands) {}

    /// Makes an operand of a mask, of the request itself or of a file. Errors: usage, where the
    /// mask could be either.
    void take(const OperandRule& rule, io::NumberArray read, const io::InputFile* file = nullptr);

    /// Once all are taken: where a polarity is named and no mask of true and false is there to
    /// explain it, those of 0 and 1 are boolean. Gives notes on those that stay numbers.
    std::vector<std::string> resolve();

private:
    struct Taken {
        const OperandRule* rule;
        std::string file;  // its name, or empty
    };
    std::string place_of_mask(const Taken& mask) const;
    void check_polarity(const io::NumberArray& read, const Taken& mask) const;

    const Request& request_;
    Operands& operands_;
    std::vector<Taken> taken_;  // of 0 and 1
};

}  // namespace attn::cli
