// The one error type of the program: where, what was found, what was expected.
#pragma once

#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

namespace attn {

/// The parts one after the other; integers in decimal digits.
template <class... Parts>
std::string concat(const Parts&... parts) {
    std::string text;
    const auto append = [&text]<class Part>(const Part& part) {
        if constexpr (std::is_integral_v<Part> && !std::is_same_v<Part, char>)
            text += std::to_string(part);
        else
            text += part;
    };
    (append(parts), ...);
    return text;
}

enum class ErrorKind { usage, input, shape, io, unsupported };

/// An error that the user can fix. `location()` is a flag or a location in a file; `what()` is
/// "what was found; what was expected", of parts as those of `concat`.
class Error : public std::runtime_error {
public:
    template <class... Parts>
    Error(ErrorKind kind, std::string location, const Parts&... message)
        : std::runtime_error(without_zeros(concat(message...))), kind_(kind),
          location_(std::move(location)) {}

    ErrorKind kind() const noexcept { return kind_; }
    const std::string& location() const noexcept { return location_; }

private:
    /// what() is a C string, which a zero byte in a hostile name would truncate.
    static std::string without_zeros(std::string text) {
        for (std::size_t at = 0; (at = text.find('\0', at)) != std::string::npos;)
            text.replace(at, 1, "\\x00");
        return text;
    }

    ErrorKind kind_;
    std::string location_;
};

/// An error whose `location()` is the bare key of a setting or operand (`heads`). cli replaces it
/// by the flag or the key of the request that set it.
class SettingError : public Error {
    using Error::Error;
};

}  // namespace attn
