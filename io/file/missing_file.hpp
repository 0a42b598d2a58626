// Errors for missing files.
#pragma once

#include <string>

#include "core/base/error.hpp"

namespace attn::io {

/// Its message does not depend on the other files, so that a batch answers the same everywhere;
/// `about_missing_file` of its `where()` gives users a suggestion.
class MissingFile : public Error {
public:
    explicit MissingFile(const std::string& path) : Error(ErrorKind::io, path, "file not found") {}
};

/// The same for a path of weights.
class MissingModel : public MissingFile {
public:
    using MissingFile::MissingFile;
};

/// The error message for a path without a file, with the file that was probably meant. Reads at
/// most a few thousand names of the folder.
std::string about_missing_file(const std::string& path);

/// The same for weights, which may be named as a public model is.
std::string about_missing_model(const std::string& path);

}  // namespace attn::io
