// Stores the values of options in a request, and reads them back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "cli/args/option.hpp"
#include "cli/request/request.hpp"
#include "core/plan/settings.hpp"
#include "io/text/json_text.hpp"

namespace attn::cli {

/// Shapes as JSON, by tensor.
using TensorShapes = std::map<std::string, std::string>;

// take() stores a value, in the form of a request's key, in a field of each type. It returns an
// empty string, or the error and leaves the field unchanged.
std::string take(bool& field, const nlohmann::json& value, const Limits& limits);
std::string take(std::uint64_t& field, const nlohmann::json& value, const Limits& limits);
std::string take(Seed& field, const nlohmann::json& value, const Limits& limits);
std::string take(double& field, const nlohmann::json& value, const Limits& limits);
std::string take(std::string& field, const nlohmann::json& value, const Limits& limits);
std::string take(TensorShapes& field, const nlohmann::json& value, const Limits& limits);
std::string take(std::vector<std::string>& field, const nlohmann::json& value,
                 const Limits& limits);
std::string take(std::vector<std::uint64_t>& field, const nlohmann::json& value,
                 const Limits& limits);
std::string take(std::vector<std::int64_t>& field, const nlohmann::json& value,
                 const Limits& limits);
std::string take(std::vector<double>& field, const nlohmann::json& value, const Limits& limits);
template <class T>
std::string take(std::optional<T>& field, const nlohmann::json& value, const Limits& limits) {
    T taken{};
    std::string problem = take(taken, value, limits);
    if (problem.empty()) field = std::move(taken);
    return problem;
}

// append_field() appends a field as JSON, or nothing if it is not given.
void append_field(std::string& out, const Seed& seed);
void append_field(std::string& out, const TensorShapes& shapes);
template <class T>
void append_field(std::string& out, const T& field) {
    io::append_json(out, field);
}
template <class T>
void append_field(std::string& out, const std::vector<T>& list) {
    if (!list.empty()) io::append_json(out, list);
}
template <class T>
void append_field(std::string& out, const std::optional<T>& field) {
    if (field) append_field(out, *field);
}

namespace field_detail {

template <class T>
inline constexpr FieldKind kind = FieldKind::word;
template <class T>
inline constexpr FieldKind kind<std::optional<T>> = kind<T>;
template <>
inline constexpr FieldKind kind<bool> = FieldKind::boolean;
template <>
inline constexpr FieldKind kind<std::uint64_t> = FieldKind::integer;
template <>
inline constexpr FieldKind kind<Seed> = FieldKind::seed;
template <>
inline constexpr FieldKind kind<double> = FieldKind::number;
template <>
inline constexpr FieldKind kind<std::string> = FieldKind::string;
template <>
inline constexpr FieldKind kind<std::vector<std::string>> = FieldKind::strings;
template <>
inline constexpr FieldKind kind<std::vector<std::uint64_t>> = FieldKind::integers;
template <>
inline constexpr FieldKind kind<std::vector<std::int64_t>> = FieldKind::signed_integers;
template <>
inline constexpr FieldKind kind<std::vector<double>> = FieldKind::numbers;
template <>
inline constexpr FieldKind kind<TensorShapes> = FieldKind::shapes;

template <auto... path>
using TypeAt = std::remove_cvref_t<decltype((std::declval<Request&>().*....*path))>;

}  // namespace field_detail

/// The member of a request at the end of a path: field_of<&Request::settings, &Settings::d_out>.
template <auto... path>
inline constexpr Field field_of{
    .kind = field_detail::kind<field_detail::TypeAt<path...>>,
    .set = [](Request& request, const nlohmann::json& value,
              const Limits& limits) { return take((request.*....*path), value, limits); },
    .append = [](std::string& json,
                 const Request& request) { append_field(json, (request.*....*path)); }};

/// An index, or the label of a token, which is not an integer.
std::string take_token(Request& request, const nlohmann::json& value, const Limits& limits);
inline constexpr Field token_field{.kind = FieldKind::token,
                                   .set = take_token,
                                   .append = field_of<&Request::settings, &Settings::token>.append};

/// The type that numbers are stored in, as text.
std::string take_store(Request& request, const nlohmann::json& value, const Limits& limits);
inline constexpr Field store_field{.kind = FieldKind::string,
                                   .set = take_store,
                                   .append = [](std::string& json, const Request& request) {
                                       if (request.store)
                                           append_field(json, io::text_of(*request.store));
                                   }};

/// A range of rows: "A:B", or a list of both; B is excluded.
std::string take_rows(Request& request, const nlohmann::json& value, const Limits& limits);
inline constexpr Field rows_field{.kind = FieldKind::integers,
                                  .set = take_rows,
                                  .append = field_of<&Request::settings, &Settings::rows>.append};

/// The index of the name that the value is, or of the empty name after the last one.
std::size_t place_of_name(std::string_view (*name)(std::size_t), const nlohmann::json& value);

/// Stores a value in the form of a request's key. Returns what is wrong with it and what was
/// expected, or an empty string.
std::string store(Request& request, const Option& option, const nlohmann::json& value);

/// Appends the value for `config` as JSON, or nothing if it is not given.
void append_value(std::string& out, const Option& option, const Request& request);

/// A flag's text as the value that its key would have. Text that does not fit stays a string, which
/// `store` rejects.
nlohmann::json value_of(const Option& option, const std::string& text);

/// A list of words in the syntax of --tokens: comma-separated, or JSON. Empty if it is neither.
std::vector<std::string> word_list(const std::string& text);

/// The comma-separated parts of a list, as on the command line, without surrounding blanks.
std::vector<std::string> split_list(const std::string& text);

}  // namespace attn::cli
