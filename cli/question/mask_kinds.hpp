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

    /// Stores a mask as an operand; `file` is null for a mask in the request.
    void take(const OperandSpec& rule, io::NumberArray read, const io::InputFile* file = nullptr);

    /// Call this after all masks are taken. Errors: kind usage for a mask of 0 and 1 that neither
    /// mask_kind nor mask_true, where no other mask is boolean, takes for one or the other.
    void resolve();

private:
    struct Taken {
        const OperandSpec* rule;
        std::string file;  // empty for a mask in the request
        bool is_0_or_1;
    };
    std::string place_of_mask(const Taken& mask) const;

    const Request& request_;
    Operands& operands_;
    std::vector<Taken> taken_;  // masks of numbers
};

}  // namespace attn::cli
