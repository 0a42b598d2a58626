// A file that is not there.
#pragma once

#include <string>

#include "core/base/error.hpp"

namespace attn::io {

/// Its words do not depend on what else is there, so that a batch answers the same anywhere;
/// `about_missing_file` of its `where()` says more to a person.
class MissingFile : public Error {
public:
    explicit MissingFile(const std::string& path)
        : Error(ErrorKind::io, path, "no such file; expected one that is there") {}
};

/// What an error says of a path that leads to no file: which file was probably meant. Looks at no
/// more than the first thousands of names in the file's folder.
std::string about_missing_file(const std::string& path);

}  // namespace attn::io
