// Masks of 0 and 1, from formats and types without booleans.
#pragma once

#include <string>
#include <vector>

#include "cli/question/operand_specs.hpp"
#include "cli/request/request.hpp"
#include "io/read/input_file.hpp"
#include "io/read/number_array.hpp"

namespace attn::cli {

/// Does not guess whether a mask of 0 and 1 is boolean if its format or type cannot specify it.
class MaskKinds {
public:
    MaskKinds(const Request& request, Operands& operands)
        : request_(request), operands_(operands) {}

    /// Stores a mask as an operand; `file` is null for a mask in the request. Errors: kind usage if
    /// the mask may be boolean or additive.
    void take(const OperandSpec& rule, io::NumberArray read, const io::InputFile* file = nullptr);

    /// Call this after all masks are taken. It does nothing if one of them is boolean. With
    /// mask_true, masks of 0 and 1 become boolean. Without it, they stay additive; returns notes on
    /// those with a 1.
    std::vector<std::string> resolve();

private:
    struct Taken {
        const OperandSpec* rule;
        std::string file;  // empty for a mask in the request
    };
    std::string place_of_mask(const Taken& mask) const;
    void check_polarity(const io::NumberArray& read, const Taken& mask) const;

    const Request& request_;
    Operands& operands_;
    std::vector<Taken> taken_;  // masks of 0 and 1
};

}  // namespace attn::cli
