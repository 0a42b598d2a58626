// Paths of files: their parts, and the kind of file that they lead to. Nothing here reads a file.
#pragma once

#include <string>

namespace attn::io {

/// The suffix of a file's name with its dot, in lower case: ".json", also of result.json.2.
/// Numbers, versions and dates do not count, so that part.1, run.v2 and run.2024-05-31 have none.
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
bool is_same_place(const std::string& a, const std::string& b);

}  // namespace attn::io
