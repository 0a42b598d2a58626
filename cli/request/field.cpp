#include "cli/request/field.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "cli/args/names.hpp"
#include "io/read/json_document.hpp"
#include "io/read/number_array.hpp"
#include "io/text/number_text.hpp"
#include "io/text/text.hpp"
#include "io/transformer/model_config.hpp"

namespace attn::cli {
namespace {

using nlohmann::json;

bool is_within(double number, const Limits& limits) {
    return number >= limits.lowest && number <= limits.highest;
}

/// 2.0 becomes the integer 2, as in JSON Schema. Any other value is unchanged.
json as_integer(const json& value) {
    constexpr double exact = 0x1p53;
    if (!value.is_number_float()) return value;
    const auto number = value.get<double>();
    if (number != std::floor(number) || std::abs(number) > exact) return value;
    return number < 0 ? json(static_cast<std::int64_t>(number))
                      : json(static_cast<std::uint64_t>(number));
}

/// An integer if the entire text is one, otherwise the text.
json integer_in(const std::string& text) {
    if (const auto number = io::number_of_text<std::uint64_t>(text)) return *number;
    const auto number = io::number_of_text<std::int64_t>(text);
    return number ? json(*number) : json(text);
}

/// Null for text that is not JSON.
json json_in(const std::string& text) {
    try {
        const std::string object = "{\"value\":" + text + "}";
        const io::Source source{"", object};
        const io::JsonDocument document(source);
        return document.members().size() == 1 ? document.read_value(document.members()[0]) : json();
    } catch (const Error&) {
        return {};
    }
}

/// The comma-separated parts, or the values of a JSON list if the text starts like a list of
/// strings. Null if the text is empty or is not such JSON.
json list_of(const std::string& text) {
    if (text.empty()) return {};
    return text.starts_with("[\"") ? json_in(text) : json(split_list(text));
}

/// The number if the entire text is one; null if it is not, or exceeds float64's range.
json number_in(const std::string& text) {
    const io::ParsedNumber number = io::parse_loose_number(text);
    if (number.length == 0 || number.length != text.size() || !std::isfinite(number.value))
        return {};
    const json whole = integer_in(text);
    return whole.is_number() ? whole : json(number.value);
}

bool is_element(const json& number, const Limits&, const std::vector<std::uint64_t>&) {
    return number.is_number_unsigned();
}
bool is_element(const json& number, const Limits& limits, const std::vector<std::int64_t>&) {
    return number.is_number_integer() &&
           is_within(static_cast<double>(number.get<std::int64_t>()), limits);
}
bool is_element(const json& number, const Limits& limits, const std::vector<double>&) {
    return number.is_number() &&
           (std::isfinite(number.get<double>()) || number.get<double>() == limits.lowest);
}

/// -Infinity, which is a string in JSON; null for other texts.
json infinity_in(const std::string& text) {
    if (text != "-Infinity" && text != "-inf") return {};
    return -std::numeric_limits<double>::infinity();
}

}  // namespace

std::string take(bool& field, const json& value, const Limits&) {
    if (!value.is_boolean()) return "not a boolean; expected true or false";
    field = value.get<bool>();
    return {};
}

std::string take(std::uint64_t& field, const json& value, const Limits& limits) {
    const json number = as_integer(value);
    const bool fits = number.is_number_unsigned() &&
                      is_within(static_cast<double>(number.get<std::uint64_t>()), limits);
    if (!fits) {
        const auto text = [](double limit) {
            return std::to_string(static_cast<std::uint64_t>(limit));
        };
        return std::string(number.is_number() ? "out of range" : "not an integer") +
               "; expected an integer " +
               (std::isinf(limits.highest)
                    ? "of at least " + text(limits.lowest)
                    : "from " + text(limits.lowest) + " to " + text(limits.highest));
    }
    field = number.get<std::uint64_t>();
    return {};
}

std::string take(Seed& field, const json& value, const Limits&) {
    const json number = as_integer(value);
    if (!number.is_number_integer()) return "not a seed; expected an integer from -2^63 to 2^64-1";
    const bool negative = !number.is_number_unsigned() && number.get<std::int64_t>() < 0;
    field = {negative ? static_cast<std::uint64_t>(number.get<std::int64_t>())
                      : number.get<std::uint64_t>(),
             negative};
    return {};
}

std::string take(double& field, const json& value, const Limits& limits) {
    const std::string expected = std::string("; expected ") + limits.expected;
    if (!value.is_number()) return "not a number" + expected;
    if (!is_within(value.get<double>(), limits)) return "out of range" + expected;
    field = value.get<double>();
    return {};
}

std::string take(std::string& field, const json& value, const Limits&) {
    if (!value.is_string() || value.get<std::string>().empty())
        return "not a string; expected a non-empty string";
    field = value.get<std::string>();
    return {};
}

std::string take(std::vector<std::string>& field, const json& value, const Limits& limits) {
    const json list = value.is_string() ? list_of(value.get_ref<const std::string&>()) : value;
    if (list.size() > limits.longest)
        return "a list of " + std::to_string(list.size()) + " names; expected at most " +
               std::to_string(limits.longest);
    const bool strings = list.is_array() && !list.empty() &&
                         std::ranges::all_of(list, [](const json& v) { return v.is_string(); });
    if (!strings) return std::string("not a list of ") + limits.expected;
    field = list.get<std::vector<std::string>>();
    return {};
}

std::string take(TensorShapes& field, const json& value, const Limits&) {
    if (!value.is_object()) return "not an object; expected {\"tensor\": [rows, columns]}";
    for (const auto& [tensor, shape] : value.items()) field[tensor] = shape.dump();
    return {};
}

template <class T>
std::string take(std::vector<T>& field, const json& value, const Limits& limits) {
    std::vector<T> list;
    const auto add = [&](const json& number) {
        if (list.size() == limits.longest || !is_element(number, limits, field)) return false;
        list.push_back(number.get<T>());
        return true;
    };
    const auto add_part = [&](const std::string& part) {
        const json infinity = infinity_in(part);
        return add(infinity.is_null() ? number_in(part) : infinity);
    };
    const auto add_element = [&](const json& element) {
        return add(element.is_string() ? infinity_in(element.get_ref<const std::string&>())
                                       : element);
    };
    const bool good = value.is_string()  ? std::ranges::all_of(split_list(value), add_part)
                      : value.is_array() ? std::ranges::all_of(value, add_element)
                                         : add(value);
    if (!good || list.size() < limits.shortest)
        return std::string("not a valid list; expected ") + limits.expected;
    field = std::move(list);
    return {};
}

template std::string take(std::vector<std::uint64_t>&, const json&, const Limits&);
template std::string take(std::vector<std::int64_t>&, const json&, const Limits&);
template std::string take(std::vector<double>&, const json&, const Limits&);

std::string take_token(Request& request, const json& value, const Limits& limits) {
    const std::string text = value.is_string() ? value.get<std::string>() : std::string();
    if (value.is_string() && text.empty())
        return "no token; expected an integer from 0, or the label of a token";
    const std::size_t sign = text.starts_with('-') ? 1 : 0;
    const bool is_integer = text.find_first_not_of("0123456789", sign) == std::string::npos;
    if (value.is_string() && (!is_integer || text.size() == sign)) {
        request.token_label = text;
        return {};
    }
    std::string problem =
        take(request.settings.token, value.is_string() ? integer_in(text) : value, limits);
    if (problem.empty()) request.token_label.clear();
    return problem;
}

std::string take(StoredType& field, const json& value, const Limits&) {
    return io::parse_stored_type(value.is_string() ? value.get<std::string>() : "", field);
}

std::string take(io::ColorScale& field, const json& value, const Limits&) {
    const auto scale =
        io::color_scale_of(value.is_string() ? value.get<std::string>() : value.dump());
    if (!scale) return std::string("invalid value; expected ") + io::color_scale_expected;
    field = *scale;
    return {};
}

std::string take_init(Request& request, const json& value, const Limits&) {
    const std::vector<std::string> parts =
        split_list(value.is_string() ? value.get<std::string>() : value.dump());
    const InitRow* const row = find_row(init_rows, &InitRow::name, std::string_view(parts[0]));
    if (row == nullptr) return "unknown value; expected " + argument_of(*find_option("init"));
    std::vector<double> numbers;
    for (std::size_t i = 1; i < parts.size(); ++i)
        if (const json number = number_in(parts[i]); number.is_number())
            numbers.push_back(number.get<double>());
    if (numbers.size() + 1 != parts.size() || numbers.size() < row->fewest ||
        numbers.size() > row->most)
        return "other numbers than " + parts[0] + " takes; expected " + std::string(row->form);
    request.settings.init = row->init;
    request.settings.init_numbers = std::move(numbers);
    return {};
}

void append_init(std::string& json, const Request& request) {
    std::string text(row_of(request.settings.init).name);
    for (const double number : request.settings.init_numbers) text += "," + io::number_text(number);
    io::append_json(json, text);
}

std::string take_rope_scaling(Request& request, const json& value, const Limits& limits) {
    json given = value;
    std::vector<double> list;
    std::string problem = given.is_object() ? "" : take(list, given, limits);
    if (!list.empty()) given = std::move(list);
    RopeScaling scaling;
    if (problem.empty()) problem = io::read_rope_scaling(given, false, scaling);
    if (problem.empty())
        request.settings.rope_scaling = std::make_shared<const RopeScaling>(std::move(scaling));
    return problem;
}

void append_rope_scaling(std::string& out, const Request& request) {
    if (request.settings.rope_scaling != nullptr) out += request.settings.rope_scaling->text;
}

std::string take_size(Request& request, const json& value, const Limits& limits) {
    constexpr std::pair<std::string_view, double> units[] = {
        {"", 1},         {"B", 1},        {"kB", 1e3},    {"KB", 1e3},
        {"MB", 1e6},     {"GB", 1e9},     {"TB", 1e12},   {"KiB", 0x1p10},
        {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}};
    const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
    const io::ParsedNumber number = io::parse_json_number(text);
    std::string_view unit = std::string_view(text).substr(number.length);
    unit.remove_prefix(std::min(unit.find_first_not_of(' '), unit.size()));
    for (const auto& [name, bytes] : units)
        if (number.length != 0 && unit == name && is_within(number.value * bytes, limits)) {
            request.max_output = number.value * bytes;
            return {};
        }
    return std::string("not a size; expected ") + limits.expected;
}

std::string take_rows(Request& request, const json& value, const Limits& limits) {
    json range = value;
    if (value.is_string()) {
        const auto numbers = two_numbers(value.get_ref<const std::string&>(), ':');
        range = json::array();
        if (numbers) range = {numbers->first, numbers->second};
    }
    std::vector<std::uint64_t> rows;
    if (!range.is_array() || !take(rows, range, limits).empty())
        return "not a range of rows; expected A:B, integers from 0, as in 0:4 for the first four";
    request.settings.rows = std::move(rows);
    return {};
}

// append_field() appends a field of each type as JSON.

void append_field(std::string& out, const Seed& seed) {
    if (seed.negative)
        io::append_json(out, static_cast<std::int64_t>(seed.bits));
    else
        io::append_json(out, seed.bits);
}

void append_field(std::string& out, const TensorShapes& shapes) {
    out += '{';
    for (const auto& [tensor, shape] : shapes) {
        if (out.back() != '{') out += ',';
        io::append_json_string(out, tensor);
        (out += ':') += shape;
    }
    out += '}';
}

std::size_t index_of_name(std::string_view (*name)(std::size_t), const json& value) {
    std::size_t index = 0;
    while (!name(index).empty() && value != name(index)) ++index;
    return index;
}

std::string store(Request& request, const Option& option, const json& value) {
    const Field& field = option.field;
    if (value.is_string() && !option.repeats &&
        value.get_ref<const std::string&>().find('\0') != std::string::npos)
        return "a zero character; expected none";
    if (field.kind == FieldKind::operand) {
        if (field.set != nullptr) {
            std::string problem = field.set(request, value, option.limits);
            if (problem.empty()) request.operand_files.erase(option.key);
            if (problem.empty() || !value.is_string()) return problem;
        }
        if (!value.is_string() || value.get<std::string>().empty())
            return is_operand(option.key, request.settings.mode)
                       ? "not an array or a path; expected one of them"
                       : "not a path; expected the name of a file with the array";
        if (std::string_view(option.key) == "mask" && value == "causal")
            return "not a mask's file; expected attn causal, or --causal";
        request.operand_files[option.key] = value.get<std::string>();
        return {};
    }
    const bool is_unknown =
        field.kind == FieldKind::choice && field.name(index_of_name(field.name, value)).empty();
    if (is_unknown) {
        const auto names = names_of(field);
        return "unknown value; expected " + argument_of(option) +
               (value.is_string() ? hint_for_value(option.key, value.get<std::string>(),
                                                   {names.begin(), names.end()})
                                  : "");
    }
    if (value.is_array() && field.kind == FieldKind::text)
        return about_texts(option.key, request.document ? request.document->name : "",
                           concat(" --mode ", row_of(request.settings.mode).name));
    std::string error = field.set(request, value, option.limits);
    if (error.empty() || !value.is_string()) return error;
    if (names_of(field).empty())
        return error + hint_for_value(option.key, value.get<std::string>(), {});
    // Forms such as "normal,MEAN,STD" are found by their names.
    std::vector<std::string> names;
    for (const std::string_view form : names_of(field))
        names.emplace_back(form.substr(0, form.find_first_of(",[")));
    const std::string word = split_list(value.get<std::string>())[0],
                      hint = hint_for_value(option.key, word, names);
    return hint == "; did you mean " + word + "?" ? error : error + hint;
}

void append_value(std::string& out, const Option& option, const Request& request) {
    if (option.field.append != nullptr) return option.field.append(out, request);
    const auto path = request.operand_files.find(option.key);
    if (path != request.operand_files.end()) io::append_json(out, path->second);
}

json value_of(const Option& option, const std::string& text) {
    switch (option.field.kind) {
        case FieldKind::boolean: return text == "true";
        case FieldKind::integer:
        case FieldKind::seed: return integer_in(text);
        case FieldKind::number: {
            const io::ParsedNumber number = io::parse_loose_number(text);
            return !text.empty() && number.length == text.size() ? json(number.value) : json(text);
        }
        case FieldKind::shapes: return json_in(text);
        case FieldKind::arrays:
        case FieldKind::parameters: return text.starts_with('{') ? json_in(text) : json(text);
        default: return text;
    }
}

std::vector<std::string> word_list(const std::string& text) {
    const json list = list_of(text);
    const bool has_words =
        list.is_array() && std::ranges::all_of(list, [](const json& x) { return x.is_string(); });
    return has_words ? list.get<std::vector<std::string>>() : std::vector<std::string>{};
}

}  // namespace attn::cli
