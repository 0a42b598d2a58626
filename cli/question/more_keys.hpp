// A key and a value that all queries see, besides those of the tokens: bias_k and bias_v of
// torch.nn.MultiheadAttention.
#pragma once

#include <string>

#include "cli/request/request.hpp"
#include "core/layer/operands.hpp"
#include "io/model/find_layer.hpp"
#include "io/read/array_file.hpp"

namespace attn::cli {

/// Refuses weights in a result whose layer has more: norms of queries and keys, or these keys. A
/// result does not hold them. Errors: kind input.
void check_saved_parts(const io::ArrayFile& file);

/// Refuses --save-weights for a layer with such a part, by its name; empty: it has none. Errors:
/// kind usage.
void check_can_save(const Request& request, const std::string& part);

/// The key and value take the place of a cache, since they come before the others. Errors: kind
/// usage for settings that depend on their position.
void check_more_keys(const Request& request, const io::ArrayFile& file,
                     const io::ModelLayer& layer);

/// Reads them as the cache of the operands, which are complete otherwise.
void read_more_keys(const Request& request, const io::ArrayFile& file, const io::ModelLayer& layer,
                    Operands& operands);

}  // namespace attn::cli
