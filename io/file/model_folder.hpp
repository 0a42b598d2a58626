// The folders that models are kept in.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace attn::io {

/// The first of these files that a folder has. A folder of Hugging Face's cache,
/// models--ORGANISATION--NAME, has those of the snapshot that refs/main names, or of its only one.
/// Empty: there is none. Errors: kind io if there are several snapshots.
std::string file_of_model(const std::string& folder, std::span<const std::string_view> names);

}  // namespace attn::io
