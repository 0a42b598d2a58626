// How an option is built from its kind of value: the check, the way in and the way out of each
// kind.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "cli/request/options.hpp"
#include "io/text/json_text.hpp"

namespace attn::cli {

using nlohmann::json;

/// Gives the field of a request that an option is bound to.
template <class Field>
using Access = Field& (*)(Request&);

template <class Field>
void write_field(std::string& out, const Field& field) {
    io::append_json(out, field);
}
inline void write_field(std::string& out, const Seed& seed) {
    if (seed.negative)
        io::append_json(out, static_cast<std::int64_t>(seed.bits));
    else
        io::append_json(out, seed.bits);
}
template <class Field>
void write_field(std::string& out, const std::optional<Field>& field) {
    if (field) write_field(out, *field);
}

/// 2.0 is the whole number 2, as in JSON Schema; any other number stays what it is.
inline json as_integer(const json& value) {
    constexpr double exact = 0x1p53;
    if (!value.is_number_float()) return value;
    const auto number = value.get<double>();
    if (number != std::floor(number) || std::abs(number) > exact) return value;
    return number < 0 ? json(static_cast<std::int64_t>(number))
                      : json(static_cast<std::uint64_t>(number));
}

/// Parts of a list written with commas, as on the command line, without the blanks round them.
inline std::vector<std::string> split_list(const std::string& text) {
    std::vector<std::string> parts;
    for (std::size_t from = 0; from <= text.size();) {
        const std::size_t comma = std::min(text.find(',', from), text.size());
        std::string part = text.substr(from, comma - from);
        part.erase(0, part.find_first_not_of(' '));
        part.erase(part.find_last_not_of(' ') + 1);
        parts.push_back(std::move(part));
        from = comma + 1;
    }
    return parts;
}

/// What every option has, without its ways in and out.
inline Option describe(std::string name, std::string group, Modes modes, Kind kind,
                       std::string argument, std::string help) {
    Option option;
    option.name = std::move(name);
    option.key = option.name;
    std::replace(option.key.begin(), option.key.end(), '-', '_');
    option.key_in_config = ",\"" + option.key + "\":";
    option.group = std::move(group);
    option.modes = modes;
    option.kind = kind;
    option.argument = std::move(argument);
    option.help = std::move(help);
    return option;
}

template <class Field>
Option make(std::string name, std::string group, Modes modes, Kind kind, std::string argument,
            std::string help, Access<Field> access) {
    Option option = describe(std::move(name), std::move(group), modes, kind, std::move(argument),
                             std::move(help));
    option.write = [access](std::string& out, const Request& request) {
        // The accessor only ever hands out a reference; reading through it is const.
        const Field& field = access(const_cast<Request&>(request));
        write_field(out, field);
    };
    return option;
}

template <class Field>
Option boolean(std::string name, std::string group, Modes modes, std::string help,
               Access<Field> access) {
    Option option =
        make(std::move(name), std::move(group), modes, Kind::boolean, "", std::move(help), access);
    option.store = [access](Request& request, const json& value) -> std::string {
        if (!value.is_boolean()) return "not a boolean; expected true or false";
        access(request) = value.get<bool>();
        return {};
    };
    return option;
}

template <class Field>
Option negated(std::string name, std::string group, Modes modes, std::string help,
               Access<Field> access) {
    Option option = boolean(std::move(name), std::move(group), modes, std::move(help), access);
    option.negated_in = option.modes;
    return option;
}

template <class Field>
Option whole(std::string name, std::string group, Modes modes, std::string help,
             Access<Field> access, std::uint64_t lowest,
             std::uint64_t highest = std::numeric_limits<std::uint64_t>::max()) {
    Option option =
        make(std::move(name), std::move(group), modes, Kind::whole, "N", std::move(help), access);
    option.store = [access, lowest, highest](Request& request, const json& value) -> std::string {
        const json number = as_integer(value);
        const bool fits = number.is_number_unsigned() && number.get<std::uint64_t>() >= lowest &&
                          number.get<std::uint64_t>() <= highest;
        if (!fits) {
            const bool open = highest == std::numeric_limits<std::uint64_t>::max();
            return std::string(number.is_number() ? "out of range" : "not a whole number") +
                   "; expected a whole number " +
                   (open ? "of at least " + std::to_string(lowest)
                         : "from " + std::to_string(lowest) + " to " + std::to_string(highest));
        }
        access(request) = number.get<std::uint64_t>();
        return {};
    };
    return option;
}

template <class Field>
Option seed(std::string name, std::string group, Modes modes, std::string help,
            Access<Field> access) {
    Option option =
        make(std::move(name), std::move(group), modes, Kind::seed, "N", std::move(help), access);
    option.store = [access](Request& request, const json& value) -> std::string {
        const json number = as_integer(value);
        if (!number.is_number_integer())
            return "not a seed; expected a whole number from -2^63 to 2^64-1";
        Seed& stored = [&]() -> Seed& {
            if constexpr (std::is_same_v<Field, Seed>)
                return access(request);
            else
                return access(request).emplace();
        }();
        const bool negative = !number.is_number_unsigned() && number.get<std::int64_t>() < 0;
        stored = {negative ? static_cast<std::uint64_t>(number.get<std::int64_t>())
                           : number.get<std::uint64_t>(),
                  negative};
        return {};
    };
    return option;
}

template <class Field>
Option real(std::string name, std::string group, Modes modes, std::string argument,
            std::string help, Access<Field> access, double lowest, double highest,
            const std::string& expected) {
    Option option = make(std::move(name), std::move(group), modes, Kind::real, std::move(argument),
                         std::move(help), access);
    option.store = [=](Request& request, const json& value) -> std::string {
        if (!value.is_number()) return "not a number; expected " + expected;
        const auto number = value.get<double>();
        if (!(number >= lowest && number <= highest)) return "out of range; expected " + expected;
        access(request) = number;
        return {};
    };
    return option;
}

/// A choice among the names of an enumeration; its argument in help is a|b|c.
template <class E, std::size_t N, class Field>
Option choice(std::string name, std::string group, Modes modes, std::string help,
              const Names<E, N>& names, Access<Field> access) {
    std::string list;
    for (const auto& [value, text] : names) list += (list.empty() ? "" : "|") + std::string(text);
    Option option =
        describe(std::move(name), std::move(group), modes, Kind::text, list, std::move(help));
    if constexpr (std::is_same_v<Field, E>)
        option.help += " (default " + std::string(names[0].second) + ")";
    option.store = [&names, access, list](Request& request, const json& value) -> std::string {
        for (const auto& [candidate, text] : names)
            if (value == text) {
                access(request) = candidate;
                return {};
            }
        return "unknown; expected " + list;
    };
    option.write = [&names, access](std::string& out, const Request& request) {
        const Field& field = access(const_cast<Request&>(request));
        if constexpr (std::is_same_v<Field, E>)
            write_field(out, name_of(names, field));
        else if (field)
            write_field(out, name_of(names, *field));
    };
    return option;
}

template <class Field>
Option text(std::string name, std::string group, Modes modes, std::string argument,
            std::string help, Access<Field> access) {
    Option option = make(std::move(name), std::move(group), modes, Kind::text, std::move(argument),
                         std::move(help), access);
    option.store = [access](Request& request, const json& value) -> std::string {
        if (!value.is_string() || value.get<std::string>().empty())
            return "not a text; expected a string that is not empty";
        access(request) = value.get<std::string>();
        return {};
    };
    return option;
}

inline Option list(std::string name, std::string group, Modes modes, std::string help,
                   Access<std::vector<std::string>> access) {
    Option option =
        describe(std::move(name), std::move(group), modes, Kind::text, "LIST", std::move(help));
    option.write = [access](std::string& out, const Request& request) {
        const std::vector<std::string>& names = access(const_cast<Request&>(request));
        if (!names.empty()) write_field(out, names);
    };
    option.store = [access](Request& request, const json& value) -> std::string {
        const bool strings =
            value.is_array() && !value.empty() &&
            std::all_of(value.begin(), value.end(), [](const json& v) { return v.is_string(); });
        if (strings)
            access(request) = value.get<std::vector<std::string>>();
        else if (value.is_string() && !value.get<std::string>().empty())
            access(request) = split_list(value.get<std::string>());
        else
            return "not a list of names; expected one name or more";
        return {};
    };
    return option;
}

/// Numbers parted by commas, or a JSON list of them; `fits` says which numbers may stand there.
template <class T>
Option numbers(std::string name, std::string group, Modes modes, std::string argument,
               std::string help, Access<std::vector<T>> access, std::size_t longest,
               const std::function<bool(const json&)>& fits, const std::string& expected) {
    Option option = describe(std::move(name), std::move(group), modes, Kind::text,
                             std::move(argument), std::move(help));
    option.store = [=](Request& request, const json& value) -> std::string {
        json list = value;
        if (value.is_string()) {
            list = json::array();
            for (const std::string& part : split_list(value.get<std::string>()))
                list.push_back(json::accept(part) ? json::parse(part) : json(part));
        } else if (!value.is_array()) {
            list = json::array({value});
        }
        const bool good =
            !list.empty() && list.size() <= longest && std::all_of(list.begin(), list.end(), fits);
        if (!good) return "not such a list; expected " + expected;
        access(request) = list.get<std::vector<T>>();
        return {};
    };
    option.write = [access](std::string& out, const Request& request) {
        const std::vector<T>& list = access(const_cast<Request&>(request));
        if (!list.empty()) write_field(out, list);
    };
    return option;
}

/// A key of `config` that says which shapes were found, by name; as a request's key it must fit.
inline Option shapes(std::string name, std::string group, Modes modes,
                     Access<std::optional<std::map<std::string, std::string>>> access) {
    Option option = describe(std::move(name), std::move(group), modes, Kind::text, "",
                             "shapes that the tensors must have (default any)");
    option.is_flag = false;
    option.store = [access](Request& request, const json& value) -> std::string {
        if (!value.is_object()) return "not an object; expected {\"tensor\": [rows, columns]}";
        auto& shapes = access(request).emplace();
        for (const auto& [tensor, shape] : value.items()) shapes[tensor] = shape.dump();
        return {};
    };
    option.write = [access](std::string& out, const Request& request) {
        const auto& shapes = access(const_cast<Request&>(request));
        if (!shapes) return;
        out += '{';
        for (const auto& [tensor, shape] : *shapes) {
            if (out.back() != '{') out += ',';
            io::append_json_string(out, tensor);
            (out += ':') += shape;
        }
        out += '}';
    };
    return option;
}

/// An operand that has a file of its own; a request may also hold it as an array.
inline Option operand(std::string name, std::string group, Modes modes, std::string help) {
    Option option =
        describe(std::move(name), std::move(group), modes, Kind::text, "FILE", std::move(help));
    option.store = [key = option.key](Request& request, const json& value) -> std::string {
        if (!value.is_string() || value.get<std::string>().empty())
            return "not an array or a path; expected one of them";
        request.operand_files[key] = value.get<std::string>();
        return {};
    };
    return option;
}

inline Option flag_only(Option option) {
    option.is_key = false;
    option.write = nullptr;
    return option;
}

/// Says where the input comes from, so that it is no part of `config`.
inline Option not_in_config(Option option) {
    option.write = nullptr;
    return option;
}

}  // namespace attn::cli
