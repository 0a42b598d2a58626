// The families of published models, in the order of help.
#pragma once

#include <span>
#include <string>

#include "io/model/family.hpp"

namespace attn::io {

std::span<const Family* const> all_families();

/// The family of this name, or null.
const Family* find_family(std::string_view name);

/// The family whose names models of this type have, or null.
const Family* family_of_type(std::string_view model_type);

/// A list of family names: `between` two of them, but `last` before the last one.
std::string names_of(std::span<const Family* const> families, std::string_view between,
                     std::string_view last);

namespace families {
/// The family whose names drawn parameters get: nn.MultiheadAttention for its initialiser,
/// otherwise the notebooks.
extern const Family mha, notebook;
}  // namespace families

}  // namespace attn::io
