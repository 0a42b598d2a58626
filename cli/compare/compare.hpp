// `attn compare A B`: how far two results, or two arrays, are apart.
#pragma once

#include <optional>
#include <string>

#include "core/base/difference.hpp"

namespace attn::cli {

struct CompareRequest {
    std::string a, b;  ///< paths, or - for standard input
    Tolerance tolerance;
    std::optional<Dtype> dtype;  ///< empty: as the results say, else float32
    bool json = false;
};

/// Writes the comparison to standard output; true where every array of each side has a partner of
/// its shape within the tolerance. Errors: kinds input and io.
bool compare(const CompareRequest& request);

}  // namespace attn::cli
