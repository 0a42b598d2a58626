// Prints the JSON Schema of a request or of a result, made from the tables of options, modes and
// arrays: attn_make_schema request|result. They are in data/schema; a test compares them.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "cli/args/args.hpp"
#include "cli/model/model.hpp"
#include "cli/request/request.hpp"
#include "core/layer/mask_rows.hpp"
#include "core/operator/arrays.hpp"
#include "core/plan/modes.hpp"
#include "io/read/examples.hpp"

namespace {

using namespace attn;
using json = nlohmann::ordered_json;

constexpr const char* draft = "https://json-schema.org/draft/2020-12/schema";
constexpr const char* array_ref = "array.json";

json names_of_modes() {
    json names = json::array();
    for (const ModeRow& row : mode_rows) names.push_back(row.name);
    return names;
}

json names_of_all_modes() {
    json names = names_of_modes();
    names.push_back(cli::model_command.name);
    return names;
}

json names_of_arrays() {
    json names = json::array();
    for (const ArrayRow& row : all_arrays)
        if (row.from != From::trace) names.push_back(row.name);
    return names;
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
    const std::string all(io::example_names);
    for (std::size_t from = 0; from < all.size();) {
        const std::size_t bar = std::min(all.find('|', from), all.size());
        names.push_back(all.substr(from, bar - from));
        from = bar + 1;
    }
    return {{"enum", names}};
}

json strings_schema(const cli::Option& option) {
    json item{{"type", "string"}, {"minLength", 1}};
    if (std::strcmp(option.key, "emit") == 0) {
        json names = names_of_arrays();
        for (const cli::ModelArray& row : cli::model_arrays()) names.push_back(row.name);
        for (const std::string& name : cli::arrays_of_stacks()) names.push_back(name);
        names.push_back("all");
        item = {{"enum", names}};
    }
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
        case number: return number_schema(option.limits, false);
        case string: return std::strcmp(option.key, "example") == 0 ? example_schema() : path;
        case strings: return strings_schema(option);
        case token: return {{"anyOf", json{number_schema(option.limits, true), path}}};
        case integers:
            return list_schema({{"type", "integer"}, {"minimum", 0}}, option.limits, true);
        case signed_integers:
            return list_schema(number_schema(option.limits, true), option.limits, true);
        case numbers: return list_schema({{"type", "number"}}, option.limits, true);
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

json request_schema() {
    const json path{{"type", "string"}, {"minLength", 1}};
    json keys;
    keys["mode"] = {{"enum", names_of_all_modes()}};
    keys["id"] = {{"type", {"string", "integer", "null"}},
                  {"description", "given back in the answer"}};
    keys["meta"] = {{"description", "any value, given back in the answer as it is"}};
    keys["inputs"] = {{"anyOf", json{{{"$ref", array_ref}}, path}},
                      {"description", "(tokens, d_in) or (batch, tokens, d_in), or a file"}};
    const json common{"mode", "id", "meta", "inputs"};
    json by_mode = json::array();
    for (const ModeRow& row : mode_rows) {
        json names = common;
        for (const cli::Option& option : cli::options())
            if ((option.use & cli::as_key) != 0 && (option.modes & cli::in(row.mode)) != 0)
                names.push_back(option.key);
        by_mode.push_back(
            {{"if", {{"properties", {{"mode", {{"const", row.name}}}}}, {"required", {"mode"}}}},
             {"then", {{"propertyNames", {{"enum", names}}}}}});
    }
    json of_model{"mode", "id", "meta"};
    for (const cli::Option* option : model_keys()) of_model.push_back(option->key);
    by_mode.push_back({{"if",
                        {{"properties", {{"mode", {{"const", cli::model_command.name}}}}},
                         {"required", {"mode"}}}},
                       {"then", {{"propertyNames", {{"enum", of_model}}}}}});
    for (const cli::Option& option : cli::options())
        if ((option.use & cli::as_key) != 0)
            keys[option.key] = or_null(field_schema(option), option.help);
    for (const cli::Option* option : model_keys())
        if (!keys.contains(option->key))
            keys[option->key] = or_null(field_schema(*option), option->help);
    return {{"$schema", draft},   {"title", "A request to attn"},  {"type", "object"},
            {"properties", keys}, {"additionalProperties", false}, {"allOf", by_mode}};
}

/// An object with all of these members and no others.
json object_of(const json& members) {
    json names = json::array();
    for (const auto& [name, schema] : members.items()) names.push_back(name);
    return {{"type", "object"},
            {"properties", members},
            {"required", names},
            {"additionalProperties", false}};
}

/// How the arrays of a result are laid out (cli/output/head.hpp).
json layout_schema() {
    json masks = json::array(), arrays = json::object();
    for (const MaskRow& row : mask_rows()) masks.push_back(row.key);
    for (const json& name : names_of_arrays())
        arrays[name.get<std::string>()] = list_of({{"type", "string"}});
    const json count{{"type", "integer"}, {"minimum", 0}};
    const json shape = list_of({{"type", "integer"}, {"minimum", 1}});
    json layout = object_of(
        {{"queries", {{"type", "integer"}, {"minimum", 1}}},
         {"first_query", count},
         {"past_len", count},
         {"offset", list_of({{"type", "integer"}})},
         {"masks", list_of({{"enum", masks}})},
         {"boolean", list_of({{"enum", masks}})},
         {"operands", {{"type", "object"}, {"additionalProperties", shape}}},
         {"axes", {{"type", "object"}, {"properties", arrays}, {"additionalProperties", false}}}});
    layout["properties"]["heads"] = {{"type", "array"}, {"minItems", 1}, {"items", count}};
    return layout;
}

const json id_schema{{"type", {"string", "integer"}}};

void add_arrays(json& members) {
    for (const json& name : names_of_arrays())
        members[name.get<std::string>()] = {{"$ref", array_ref}};
}

/// Arrays of layers are lists with an entry for each layer, null if it has no such array.
void add_model_arrays(json& members) {
    const json lists = list_of({{"anyOf", {{{"$ref", array_ref}}, {{"type", "null"}}}}});
    json names = names_of_arrays();
    for (const cli::ModelArray& row : cli::model_arrays()) {
        if (row.of_layers)
            names.push_back(row.name);
        else
            members[std::string(row.name)] = {{"$ref", array_ref}};
    }
    members["encoder_last_hidden_state"] = {{"$ref", array_ref}};
    for (const std::string prefix : {"", "encoder_", "decoder_"})
        for (const json& name : names) members[prefix + name.get<std::string>()] = lists;
}

json counts_schema() {
    return list_of({{"type", "integer"}, {"minimum", 0}});
}

json bare_schema() {
    json members{{"id", id_schema}, {"meta", json::object()}}, of_model = members;
    add_arrays(members);
    of_model["layer_numbers"] = of_model["generated"] = counts_schema();
    of_model["generated_text"] = {{"type", "string"}};
    add_model_arrays(of_model);
    return {{"$schema", draft},
            {"title", "A result of attn, written with --bare"},
            {"type", "object"},
            {"minProperties", 1},
            {"if", {{"required", {"layer_numbers"}}}},
            {"then", {{"properties", of_model}, {"additionalProperties", false}}},
            {"else", {{"properties", members}, {"additionalProperties", false}}}};
}

/// The config, shapes and layout of one attention of a model; the config has only settings of the
/// attention, and an attention without a softmax has only axes.
json attention_schema() {
    json config = json::object();
    for (const char* key : {"d_k", "d_v"}) config[key] = {{"type", "integer"}, {"minimum", 1}};
    for (const cli::Option& option : cli::options())
        if ((option.use & cli::as_saved) != 0) config[option.key] = field_schema(option);
    json layout = layout_schema();
    layout["required"] = {"axes"};
    layout["properties"]["axes"] = {{"type", "object"},
                                    {"additionalProperties", list_of({{"type", "string"}})}};
    return {
        {"type", "object"},
        {"properties",
         {{"config", {{"type", "object"}, {"properties", config}, {"additionalProperties", false}}},
          {"shapes", {{"$ref", "#/$defs/shapes"}}},
          {"layout", layout}}},
        {"required", {"layout"}},
        {"additionalProperties", false}};
}

/// A layer, or those of an encoder and a decoder.
json layer_schema() {
    json parts;
    for (const char* part : {"encoder", "decoder", "cross"})
        parts[part] = {{"$ref", "#/$defs/attention"}};
    return {{"anyOf",
             {{{"$ref", "#/$defs/attention"}},
              {{"type", "object"}, {"properties", parts}, {"additionalProperties", false}}}}};
}

/// The members of a result before its arrays that all modes have.
json head_members(const json& mode) {
    json members;
    members["schema"] = {{"const", cli::schemas::result}};
    members["id"] = id_schema;
    members["meta"] = json::object();
    members["mode"] = mode;
    for (const char* labels : {"tokens", "context_tokens"})
        members[labels] = {{"type", "array"}, {"minItems", 1}, {"items", {{"type", "string"}}}};
    members["config"] = {{"$ref", "request.json"}, {"required", {"mode"}}};
    return members;
}

json model_result_schema() {
    json members = head_members({{"const", cli::model_command.name}});
    members["decoder_tokens"] = members["context_tokens"];
    members.erase("context_tokens");
    members["layer_numbers"] = members["generated"] = counts_schema();
    members["generated_text"] = {{"type", "string"}};
    members["layers"] = {{"type", "object"},
                         {"patternProperties", {{"^[0-9]+$", {{"$ref", "#/$defs/layer"}}}}},
                         {"additionalProperties", false}};
    add_model_arrays(members);
    return {{"properties", members},
            {"required", {"schema", "mode", "config", "layer_numbers", "layers"}},
            {"additionalProperties", false}};
}

json result_schema() {
    const json size{{"type", "integer"}, {"minimum", 0}};
    json sizes;
    for (const char* name :
         {"batch", "heads", "kv_heads", "q_len", "kv_len", "d_in", "d_k", "d_v", "d_out"})
        sizes[name] = size;
    json members = head_members({{"$ref", "#/$defs/mode"}});
    members["shapes"] = {{"$ref", "#/$defs/shapes"}};
    members["layout"] = {{"$ref", "#/$defs/layout"}};
    add_arrays(members);
    return {{"$schema", draft},
            {"title", "A result of attn"},
            {"type", "object"},
            {"if",
             {{"properties", {{"mode", {{"const", cli::model_command.name}}}}},
              {"required", {"mode"}}}},
            {"then", {{"$ref", "#/$defs/model"}}},
            {"else",
             {{"properties", members},
              {"required", {"schema", "mode", "config", "shapes"}},
              {"additionalProperties", false}}},
            {"$defs",
             {{"mode", {{"enum", names_of_modes()}}},
              {"shapes", object_of(sizes)},
              {"layout", layout_schema()},
              {"attention", attention_schema()},
              {"layer", layer_schema()},
              {"model", model_result_schema()}}}};
}

}  // namespace

int main(int argc, char** argv) {
    const std::string which = argc == 2 ? argv[1] : "";
    const std::map<std::string, json (*)()> makers{
        {"request", request_schema}, {"result", result_schema}, {"bare", bare_schema}};
    if (const auto make = makers.find(which); make != makers.end())
        return std::puts(make->second().dump(1).c_str()), 0;
    return std::fputs("attn_make_schema request|result|bare\n", stderr), 2;
}
