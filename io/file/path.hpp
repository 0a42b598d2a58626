// Paths of files: their parts, and what stands at their end. Nothing here reads a file.
#pragma once

#include <string>

namespace attn::io {

/// The suffix of a file's name with its point, in lower case: ".json", of result.json.2 too.
/// Numbers, versions and dates are passed over, so that part.1, run.v2 and run.2024-05-31 have
/// none.
std::string suffix_of_name(const std::string& path);

/// The last part of a path: "model" of "models/model" and of "models/model/".
std::string last_part(const std::string& path);

/// `name` in a folder.
std::string path_in(const std::string& folder, const std::string& name);

/// `name` beside a file, in the same folder.
std::string path_beside(const std::string& file, const std::string& name);

bool path_exists(const std::string& path);
bool is_folder(const std::string& path);

/// Whether something is there that a name need say nothing about: an empty file, as mktemp leaves
/// it, or no regular file.
bool is_empty_or_special(const std::string& path);

/// Whether two paths lead to one place, which need not be there yet.
bool is_same_place(const std::string& a, const std::string& b);

}  // namespace attn::io
