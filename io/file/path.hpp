// Paths of files: their parts, and the kind of file that they lead to. Nothing here reads a file.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace attn::io {

/// The suffix of a file's name with its dot, in lower case: ".json", also of result.json.2.
/// A path that ends with a slash has "/". Numbers, versions and dates do not count, so that part.1,
/// run.v2 and run.2024-05-31 have none.
std::string suffix_of_name(const std::string& path);

/// The last part of a path: "model" of "models/model" and of "models/model/".
std::string last_part(const std::string& path);

/// `name` in a folder.
std::string path_in(const std::string& folder, const std::string& name);

/// `name` in the folder of a file.
std::string path_beside(const std::string& file, const std::string& name);

bool path_exists(const std::string& path);
bool is_folder(const std::string& path);

/// Whether the name of this existing file need not specify a format: it is empty, as from mktemp,
/// or is not a regular file.
bool is_empty_or_special(const std::string& path);

/// Whether two paths lead to the same file, which need not exist yet.
bool is_same_file(const std::string& a, const std::string& b);

// The folders that models are kept in.

/// The first of these files that a folder has. A folder of Hugging Face's cache,
/// models--ORGANISATION--NAME, has those of the snapshot that refs/main names, or of its only one.
/// Empty: there is none. Errors: kind io if there are several snapshots.
std::string file_of_model(const std::string& folder, std::span<const std::string_view> names);

}  // namespace attn::io
