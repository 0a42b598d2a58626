// Prints data/schema/request.json, the JSON Schema of a request, made from the tables of options,
// modes and arrays. Schemas of results take the names of arrays from it. A test compares them.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "cli/args/args.hpp"
#include "cli/args/names.hpp"
#include "cli/model/model.hpp"
#include "cli/request/request_builder.hpp"
#include "core/operator/arrays.hpp"
#include "core/plan/settings.hpp"
#include "io/read/examples.hpp"
#include "io/text/text.hpp"

namespace {

using namespace attn;
using json = nlohmann::ordered_json;

constexpr const char* array_ref = "array.json";

json names_of_modes() {
    json names = json::array();
    for (const ModeRow& row : mode_rows) names.push_back(row.name);
    names.push_back(cli::model_command.name);
    return names;
}

/// The names of arrays of every mode, and of those that models have as well.
json names_of_arrays() {
    json arrays = json::array(), of_models = json::array();
    for (const ArrayRow& row : all_arrays)
        if (row.from != From::trace) arrays.push_back(row.name);
    for (const cli::ModelArray& row : cli::model_arrays()) of_models.push_back(row.name);
    for (const std::string& name : cli::arrays_of_stacks()) of_models.push_back(name);
    return {{"array", {{"enum", arrays}}}, {"model_array", {{"enum", of_models}}}};
}

/// Of a number within the option's limits.
json number_schema(const cli::Limits& limits, bool whole) {
    constexpr double most = std::numeric_limits<double>::max();
    json schema{{"type", whole ? "integer" : "number"}};
    if (limits.lowest == std::numeric_limits<double>::denorm_min())
        schema["exclusiveMinimum"] = 0;
    else if (limits.lowest > -most)
        schema["minimum"] = limits.lowest;
    if (limits.highest < most)
        schema["maximum"] = limits.highest;
    else if (whole)
        schema["maximum"] = std::numeric_limits<std::uint64_t>::max();
    for (const char* key : {"minimum", "maximum"})
        if (schema.contains(key) && schema[key].is_number_float() &&
            schema[key] == std::floor(schema[key].get<double>()))
            schema[key] = schema[key].get<std::int64_t>();
    return schema;
}

/// A list; a string is a list in a flag's form; one number is a list of one.
json list_schema(const json& item, const cli::Limits& limits, bool one_is_enough) {
    json list{{"type", "array"}, {"minItems", limits.shortest}, {"items", item}};
    if (limits.longest < 1000) list["maxItems"] = limits.longest;
    json any{list, {{"type", "string"}, {"minLength", 1}}};
    if (one_is_enough && limits.shortest == 1) any.push_back(item);
    return {{"anyOf", any}};
}

json list_of(const json& items) {
    return {{"type", "array"}, {"items", items}};
}

json example_schema() {
    json names = json::array();
    std::istringstream all{std::string(io::example_names)};
    for (std::string name; std::getline(all, name, '|');) names.push_back(name);
    return {{"enum", names}};
}

json strings_schema(const cli::Option& option) {
    json item{{"type", "string"}, {"minLength", 1}};
    if (std::strcmp(option.key, "emit") == 0)
        item = {
            {"anyOf",
             {{{"$ref", "#/$defs/array"}}, {{"$ref", "#/$defs/model_array"}}, {{"const", "all"}}}}};
    if (std::string_view(option.key).ends_with("tokens")) item = {{"type", "string"}};
    return list_schema(item, option.limits, false);
}

json field_schema(const cli::Option& option) {
    using enum cli::FieldKind;
    const json path{{"type", "string"}, {"minLength", 1}};
    switch (option.field.kind) {
        case word: {
            const json whole{{"type", "integer"}};
            return {{"anyOf", {path, whole, list_of(whole)}}};
        }
        case no_value: return {{"type", "boolean"}};
        case choice: return {{"enum", cli::names_of(option.field)}};
        case operand: {
            if (std::strcmp(option.key, "text_file") == 0) return path;
            json inside{{"$ref", array_ref}};
            if (std::strcmp(option.key, "weights") == 0)
                inside = {{"type", "object"}, {"additionalProperties", {{"$ref", array_ref}}}};
            json any{inside, path};
            if (option.field.set != nullptr) any.push_back({{"type", "number"}});
            return {{"anyOf", any}};
        }
        case boolean: return {{"type", "boolean"}};
        case integer: return number_schema(option.limits, true);
        case seed:
            return {{"type", "integer"},
                    {"minimum", std::numeric_limits<std::int64_t>::min()},
                    {"maximum", std::numeric_limits<std::uint64_t>::max()}};
        case number: {
            const json one = number_schema(option.limits, false);
            if (option.limits.shortest == 1) return one;
            json any = list_schema(one, option.limits, false)["anyOf"];  // of two or more
            any.insert(any.begin(), one);
            return {{"anyOf", any}};
        }
        case string: return std::strcmp(option.key, "example") == 0 ? example_schema() : path;
        case text: return path;
        case strings: return strings_schema(option);
        case token: return {{"anyOf", json{number_schema(option.limits, true), path}}};
        case integers:
            return list_schema({{"type", "integer"}, {"minimum", 0}}, option.limits, true);
        case signed_integers:
            return list_schema(number_schema(option.limits, true), option.limits, true);
        case numbers: return list_schema({{"type", "number"}}, option.limits, true);
        case parameters: {
            json schema = list_schema({{"type", "number"}}, option.limits, true);
            schema["anyOf"].push_back({{"type", "object"}});
            return schema;
        }
        case arrays:
            return {{"type", "object"},
                    {"additionalProperties", {{"anyOf", json{{{"type", "array"}}, path}}}}};
        case shapes: {
            const json size{{"type", "integer"}, {"minimum", 0}};
            return {{"type", "object"},
                    {"additionalProperties", {{"type", "array"}, {"items", size}}}};
        }
    }
    return {};
}

/// null means a missing key.
json or_null(json schema, const std::string& about) {
    if (schema.contains("enum")) {
        schema["enum"].push_back(nullptr);
    } else if (schema.contains("type")) {
        schema["type"] = json{schema["type"], "null"};
    } else {
        schema["anyOf"].push_back({{"type", "null"}});
    }
    if (!about.empty()) schema["description"] = about;
    return schema;
}

/// The keys of mode model: those of the table, its own, and those that are not flags.
std::vector<const cli::Option*> model_keys() {
    const cli::CommandRow& command = cli::model_command;
    std::vector<const cli::Option*> keys;
    for (const cli::Option& option : command.keys) keys.push_back(&option);
    for (const cli::Option& option : command.own)
        if ((option.use & cli::as_key) != 0) keys.push_back(&option);
    for (const cli::Option& option : cli::options())
        if ((option.use & cli::as_key) != 0 && cli::takes(command, option)) keys.push_back(&option);
    return keys;
}

/// A request of this mode has no other keys.
json keys_of_mode(std::string_view mode, const json& names) {
    return {{"if", {{"properties", {{"mode", {{"const", mode}}}}}, {"required", {"mode"}}}},
            {"then", {{"propertyNames", {{"enum", names}}}}}};
}

/// Other programs' names of arrays and settings, each with its key.
std::vector<std::pair<std::string_view, std::string_view>> other_names() {
    std::vector<std::pair<std::string_view, std::string_view>> names;
    for (const cli::NameRow& row : cli::all_other_names)
        if (row.table == "input")
            for (const std::string_view name : io::split_text(row.names, ' '))
                if (!name.empty()) names.emplace_back(name, row.of);
    return names;
}

json request_schema() {
    const json path{{"type", "string"}, {"minLength", 1}};
    json keys;
    keys["mode"] = {{"enum", names_of_modes()}};
    keys["id"] = {{"type", {"string", "integer", "null"}},
                  {"description", "given back in the answer"}};
    keys["meta"] = {{"description", "any value, given back in the answer as it is"}};
    json of_model{"mode", "id", "meta"}, by_mode = json::array();
    for (const cli::Option* option : model_keys()) of_model.push_back(option->key);
    keys["inputs"] = {{"anyOf", json{{{"$ref", array_ref}}, path}},
                      {"description", "(tokens, d_in) or (batch, tokens, d_in), or a file"}};
    for (const ModeRow& row : mode_rows) {
        json names{"mode", "id", "meta", "inputs"};
        for (const cli::Option& option : cli::options())
            if ((option.use & cli::as_key) != 0 && (option.modes & in(row.mode)) != 0)
                names.push_back(option.key);
        for (const auto& [name, key] : other_names())
            if (!cli::key_meant(name, row.mode, 0).empty()) names.push_back(name);
        by_mode.push_back(keys_of_mode(row.name, names));
    }
    by_mode.push_back(keys_of_mode(cli::model_command.name, of_model));
    for (const cli::Option& option : cli::options())
        if ((option.use & cli::as_key) != 0)
            keys[option.key] = or_null(field_schema(option), option.help);
    for (const auto& [name, key] : other_names())
        keys[name] =
            or_null(field_schema(*cli::find_option(key)), "the same as " + std::string(key));
    for (const cli::Option* option : model_keys())
        if (!keys.contains(option->key))
            keys[option->key] = or_null(field_schema(*option), option->help);
    return {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
            {"title", "A request to attn"},
            {"type", "object"},
            {"properties", keys},
            {"additionalProperties", false},
            {"allOf", by_mode},
            {"$defs", names_of_arrays()}};
}

}  // namespace

int main() {
    std::puts(request_schema().dump(1).c_str());
}
