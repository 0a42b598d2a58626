// The settings of a tokenizer's parts, with their locations in errors.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/base/error.hpp"

namespace attn::io {

/// A value of a JSON document. It must not outlive the document.
class Setting {
public:
    Setting(const nlohmann::json& value, std::string location)
        : value_(&value), location_(std::move(location)) {}

    /// "tokenizer.json: /decoder/type".
    const std::string& location() const { return location_; }
    const nlohmann::json& value() const { return *value_; }

    /// Always throws kind input, with the location and the problem.
    template <class... Parts>
    [[noreturn]] void fail(const Parts&... message) const {
        throw Error(ErrorKind::input, location_, message...);
    }

    bool is_object() const { return value_->is_object(); }

    /// Whether the member exists and is not null.
    bool has(const char* key) const;

    /// A member. Errors: kind input if there is none.
    Setting at(const char* key) const;

    /// The items of a list. Errors: kind input if it is not a list.
    std::vector<Setting> items() const;

    /// Errors: kind input if the value has another type.
    std::string string() const;
    bool boolean() const;
    std::uint64_t whole(std::uint64_t most) const;
    double number() const;
    std::string character() const;

    /// A member, or the default if there is none.
    std::string string(const char* key, std::string_view otherwise) const {
        return has(key) ? at(key).string() : std::string(otherwise);
    }
    bool boolean(const char* key, bool otherwise) const {
        return has(key) ? at(key).boolean() : otherwise;
    }

    /// Errors: kind unsupported for members with other names, unless they are null or false.
    void allow(std::initializer_list<std::string_view> keys) const;

    /// The value of "type". Errors: kind input if there is none.
    std::string type() const { return at("type").string(); }

    /// Throws kind unsupported: the type is unknown.
    [[noreturn]] void fail_type(std::string_view supported) const;

private:
    const nlohmann::json* value_;
    std::string location_;
};

}  // namespace attn::io
