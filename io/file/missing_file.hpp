// A file that is not there.
#pragma once

#include <string>

namespace attn::io {

/// What an error says of a path that leads to no file: which file was probably meant. Looks at no
/// more than the first thousands of names in the file's folder.
std::string about_missing_file(const std::string& path);

}  // namespace attn::io
