// Whether masks of 0 and 1 are boolean or additive.
#pragma once

#include <string>
#include <vector>

#include "cli/question/operand_specs.hpp"
#include "cli/request/request.hpp"
#include "io/read/input_file.hpp"
#include "io/read/number_array.hpp"

namespace attn::cli {

/// Takes booleans for a boolean mask, and asks for the kind of a mask of the numbers 0 and 1.
class MaskKinds {
public:
    /// `layout`: of a result whose question is asked again, which holds booleans as 1 and 0, and
    /// lists the masks that are boolean; or null.
    MaskKinds(const Request& request, Operands& operands, const nlohmann::json* layout)
        : request_(request), operands_(operands), layout_(layout) {}

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
    const nlohmann::json* layout_;
    std::vector<Taken> taken_;  // masks of numbers
};

}  // namespace attn::cli
