// The one error type of the program: where, what was found, what was expected.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

namespace attn {

enum class ErrorKind { usage, input, shape, io, unsupported };

/// An error that the person at the keyboard can mend. `where()` is a flag, a place in a file or,
/// from core, the bare name of a setting (`heads`), which cli turns into the flag or the key that
/// set it. `what()` is "what was found; what was expected".
class Error : public std::runtime_error {
public:
    Error(ErrorKind kind, std::string where, const std::string& message)
        : std::runtime_error(message), kind_(kind), where_(std::move(where)) {}

    ErrorKind kind() const noexcept { return kind_; }
    const std::string& where() const noexcept { return where_; }

private:
    ErrorKind kind_;
    std::string where_;
};

}  // namespace attn
