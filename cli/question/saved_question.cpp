#include "cli/question/layer_source.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "core/plan/operand_shapes.hpp"
#include "io/file/source.hpp"

namespace attn::cli {
namespace {

using io::member;
using nlohmann::json;

const ModeRow& mode_in(const io::ResultHead& head) {
    const std::string& location = head.location;
    if (head.mode == "model")
        fail_in_result(location,
                       "is a result of attn model, of several layers and without their parameters; "
                       "expected that of one layer, as attn multihead --weights MODEL --layer N "
                       "--emit all writes");
    const ModeRow* row = mode_named(head.mode);
    if (row == nullptr && !head.mode.empty())
        fail_in_result(location, "has mode " + io::shortened(head.mode) +
                                     "; expected a result of " + listed_modes());
    if (row == nullptr || !head.has_config())
        fail_in_result(location,
                       "is not a result of attn, which has a mode and a config; expected one, "
                       "or a mode before INPUT, as in attn explain ",
                       row != nullptr ? row->name : "self", " ", io::shortened(location));
    return *row;
}

/// The array of a result. Errors: kind input if it is missing, or is not stored as computed.
void require_array(const io::InputFile& file, const io::ResultHead& head, const std::string& name) {
    const io::FileArray array = io::array_in(file, name);
    if (!array)
        fail_in_result(file.location,
                       "has no array " + name +
                           ", which its question needs; expected a result with it, as "
                           "--emit all writes");
    const json precision = member(*head.config, "precision");
    if (file.document && !precision.is_null())
        fail_in_result(file.location, name + " is rounded, by precision " + precision.dump() +
                                          ", and the question needs every digit; expected a result "
                                          "without --precision");
    const io::StoredArray* const stored = array.stored;
    const bool is_integer = name == "token_ids";
    if (stored == nullptr || is_integer) return;
    const bool is_computed =
        stored->type == NumberType::float32 || stored->type == NumberType::float64 ||
        (stored->type && member(*head.config, "dtype") == row_of(*stored->type).name);
    if (stored->words || !is_computed || !member(*head.config, "store").is_null())
        fail_in_result(stored->location(), "is stored as " + stored->type_name +
                                               ", and the question needs every digit; expected a "
                                               "result without --store");
}

/// The type of the result's numbers, if the request computes in a finer one.
std::optional<NumberType> widened_type(const Request& request, const io::ResultHead& head) {
    const json name = member(*head.config, "dtype");
    for (const auto& [type, its_name] : dtype_names)
        if (name == its_name && request.has("dtype") &&
            row_of(request.settings.dtype).unit < row_of(result_type(type)).unit)
            return result_type(type);
    return std::nullopt;
}

/// The digits that a finer type would read are not in the result.
[[noreturn]] void refuse_rounded(const Request& request, const std::string& location,
                                 const std::string& name, NumberType type) {
    throw setting_error(
        request, "dtype",
        concat(location, " holds ", name, " rounded to ", row_of(type).name, "; expected --dtype ",
               row_of(type).name, ", or the question's own input and flags instead of the result"));
}

RealArray read_saved(const Input& input, const std::string& name, NumberType dtype) {
    io::ArrayRules rules = io::ArrayRules::anything(4);
    rules.dtype = dtype;
    return io::array_in(input.file, name).read_reals(rules, nullptr);
}

/// Leaves out where a result's inputs came from, which another source replaces.
void leave_out_source(json& config, bool keeps_embedding) {
    config.erase("tokens");
    for (const char* key : settings_of_inputs) config.erase(key);
    if (keeps_embedding) return;
    for (const char* key : {"vocab_size", "embed_dim", "embed_seed"}) config.erase(key);
}

/// Whether flags ask for another loss than a result's, or for none.
bool replaces_loss(const Request& request) {
    const Settings& s = request.settings;
    return (request.keeps_flag("backward") && !s.backward) || request.keeps_flag("target") ||
           request.keeps_flag("grad_output") || (request.keeps_flag("loss") && s.loss != Loss::mse);
}

}  // namespace

void take_settings(Request& request) {
    const io::InputFile& file = *request.result;
    const io::ResultHead head(file);
    json asked = *head.config;
    const json weights = member(asked, "weights");
    if (head.has_layout())
        asked = asked_config(head, weights.is_string() ? weights.get<std::string>() : "");
    leave_out_source(asked, request.text.has_value());
    asked.erase("context_tokens");
    if (replaces_loss(request)) asked.erase("loss");
    apply_settings_of_result(request, asked);
}

Request request_of_result(const io::ResultHead& head, Request request) {
    const ModeRow& mode = mode_in(head);
    request.settings.mode = mode.mode;
    // Asked before the config, whose members have locations as flags have.
    const bool keeps_tokens = request.keeps_flag("tokens"),
               keeps_context_tokens = request.keeps_flag("context_tokens");
    request = with_config(std::move(request), *head.config, head.location);
    if (head.tokens && !keeps_tokens) request.tokens = *head.tokens;
    if (head.context_tokens && !keeps_context_tokens) request.context_tokens = *head.context_tokens;
    return request;
}

Request with_config(Request request, const json& config, const std::string& location) {
    const ModeRow& mode = row_of(request.settings.mode);
    for (const auto& [key, value] : config.items()) {
        if (key == "mode" && value != mode.name)
            fail_in_result(location, "config.mode is ", io::shortened(value.dump()),
                           ", and mode is ", mode.name, "; expected the same");
        if (key == "mode" || key == "id" || value.is_null()) continue;
        // Only settings of the computation: a result must not name files that are written.
        const Option* option = find_option(key);
        const bool is_label = key == "tokens" || key == "context_tokens";
        if (option == nullptr || (option->modes & in(mode.mode)) == 0 ||
            ((option->use & in_config) == 0 && !is_label))
            fail_in_result(location, "config has \"", io::shortened(key), "\", which mode ",
                           mode.name, " does not have; expected the config of a result");
        if (request.has(key) && !request.of_batch) continue;
        const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
        apply_value(request, key, value, location + ": " + key + " " + io::shortened(text));
    }
    return request;
}

void take_question(Request& request, Input& input) {
    io::InputFile& file = input.file;
    io::ResultHead head(file);
    const io::ResultHead given = head;
    const bool has_own_weights = request.keeps_flag("weights");
    const json all_operands = member(*head.layout, "operands");
    const bool has_norms = all_operands.contains("norm") || all_operands.contains("head_norms");
    const json layer = member(*head.config, "layer");
    if (request.keeps_flag("layer") && layer.is_number_integer() && request.layer != layer)
        throw setting_error(request, "layer",
                            file.location + " holds the settings and parameters of layer " +
                                layer.dump() +
                                "; expected that, or --weights MODEL without --config");
    const auto is_given = [&](const char* key) { return request.keeps_flag(key); };
    const json path = member(*head.config, "weights");
    const std::optional<NumberType> widens = widened_type(request, head);
    const auto first_of_model = std::ranges::find_if(settings_of_model, is_given);
    const char* const of_its_model = first_of_model != settings_of_model.end() ? *first_of_model
                                     : widens && path.is_string()              ? "dtype"
                                                                               : nullptr;
    const bool asks_model = of_its_model != nullptr;
    const bool has_other_source = std::ranges::any_of(
        std::array{"example", "text", "rand", "randn", "token_ids", "query"}, is_given);
    std::vector<std::string> followers;
    if (all_operands.is_object()) {
        const bool opens_model = has_norms || has_own_weights || asks_model;
        const std::string model = path.is_string() ? path.get<std::string>() : std::string();
        const json asked = asked_config(head, model);
        json config = request.locations.empty()      ? *head.config
                      : opens_model || model.empty() ? asked
                                                     : asked_config(head, "");
        config.update(asked);
        for (const auto& [key, value] : config.items())
            if (!asked.contains(key) && !request.has(key)) followers.push_back(key);
        head.config = std::make_shared<const json>(std::move(config));
    }
    if (has_other_source) {
        json config = *head.config;
        leave_out_source(config, request.text.has_value());
        head.config = std::make_shared<const json>(std::move(config));
        head.tokens.reset();
    }
    const bool has_other_loss = replaces_loss(request);
    if (has_other_loss) {
        json config = *head.config;
        config.erase("loss");
        head.config = std::make_shared<const json>(std::move(config));
    }
    request = request_of_result(head, std::move(request));
    for (const std::string& key : followers)
        if (const auto found = request.locations.find(key); found != request.locations.end())
            found->second.follows = true;
    request.has_mode = true;
    // A file of flags has paths relative to its folder, and a result those of its command.
    const json weights = member(*head.config, "weights");
    if (weights.is_string() && !has_own_weights)
        apply_value(request, "weights", weights, file.location + ": weights");
    apply_deferred(request);
    check_defaults(request);
    const std::string passed_on(io::passed_on_key);
    if (const io::JsonMember* meta = file.document ? file.document->find(passed_on) : nullptr)
        request.meta = file.document->copied(*meta);
    else if (const json other = io::head_member(file, passed_on.c_str()); !other.is_null())
        request.meta = other.dump();
    const json operands = member(*head.layout, "operands");
    if (!operands.is_object())
        fail_in_result(file.location,
                       "has no layout, which lists its operands; expected a result of this version "
                       "of attn, without --bare");
    input.holds_operands = true;
    input.layout = head.layout;
    request.array_names["mask"] = "attn_mask";  // `mask` is that of the joined masks
    const bool has_other_ids = is_given("token_ids");
    const bool is_from_settings =
        request.example || request.text || has_other_ids || !request.settings.drawn_shape().empty();
    const bool has_ids = operands.contains("token_ids") && !is_from_settings;
    const bool is_other = asks_model && of_its_model != std::string_view("layer");
    if (is_other && !request.has_file("weights") && operands.contains("W_query"))
        throw setting_error(request, of_its_model,
                            file.location +
                                " holds parameters without their model; expected no such flag, or "
                                "--weights MODEL");
    const json boolean = member(*head.layout, "boolean");
    const auto take = [&](const std::string& key, const std::string& array) {
        require_array(file, given, array);
        if (widens && std::find(boolean.begin(), boolean.end(), key) == boolean.end())
            refuse_rounded(request, file.location, array, *widens);
        request.locations[key] = Location(file.location + ":" + array);
    };
    for (const OperandRow& row : operand_rows) {
        const std::string key = row.key;
        const bool is_source = key == "inputs" || key == "query" || key == "key" || key == "value";
        if (!operands.contains(key) || request.keeps_flag(key) || (is_source && is_from_settings))
            continue;
        if (key == "inputs" && has_ids) continue;
        if (row.kind == OperandKind::result && has_other_loss) {
            if (io::array_in(file, key)) request.ignore_arrays.push_back(key);
            continue;
        }
        take(key, std::string(row.array));
        if (key == "inputs" && file.arrays) file.array = key;
    }
    if (has_ids) {
        require_array(file, given, "token_ids");
        request.locations["token_ids"] = Location(file.location + ":token_ids");
        if (!has_norms) require_array(file, given, "inputs");
        for (const double id : read_saved(input, "token_ids", NumberType::float64).take<double>()) {
            if (!(id >= 0 && id < 0x1p53 && id == std::trunc(id)))
                fail_in_result(file.location,
                               "token_ids holds a number that is not an id; expected "
                               "integers from 0");
            request.token_ids.push_back(static_cast<std::uint64_t>(id));
        }
    }
    if (!operands.contains("W_query") || has_own_weights) return;
    if (asks_model && request.has_file("weights")) return;
    input.holds_parameters = !has_norms;
    if (has_norms && !request.has_file("weights"))
        fail_in_result(file.location,
                       "its layer has norms, whose parameters a result does not hold; expected the "
                       "request that it was computed from");
    if (has_norms) return;
    if (widens) refuse_rounded(request, file.location, "W_query", *widens);
    for (const auto& [name, shape] : operands.items())
        if (name.starts_with("W_") || name.starts_with("b_")) require_array(file, given, name);
    request.locations.try_emplace("weights", file.location);
}

AnyLayerWeights SavedLayer::read_weights(const Request& request) const {
    const auto shapes =
        shapes_of_layout(*input_.layout, request.settings.mode, input_.file.location).weights;
    if (!shapes)
        fail_in_result(input_.file.location, "layout.operands has no W_query; expected its shape");
    return read_layer_weights(
        *shapes, request.settings.dtype, [&](const std::string& name, Shape expected) {
            RealArray values = read_saved(input_, name, request.settings.dtype);
            const bool has_groups = values.dimension() == expected.size();
            if (!has_groups && expected.front() == 1) expected.erase(expected.begin());
            if (values.shape() != expected)
                fail_in_result(input_.file.location, name, " has shape ",
                               shape_text(values.shape()), "; expected ", shape_text(expected),
                               ", as its layout makes it");
            return values;
        });
}

Array<double> SavedLayer::embed_token_ids(const Request& request, std::size_t) const {
    Array<double> inputs = read_saved(input_, "inputs", NumberType::float64).take<double>();
    if (inputs.dimension() != 2 || inputs.shape(0) != request.token_ids.size())
        fail_in_result(input_.file.location, "inputs have shape " + shape_text(inputs.shape()) +
                                                 ", and there are " +
                                                 std::to_string(request.token_ids.size()) +
                                                 " token_ids; expected a row of inputs for each");
    return inputs;
}

LayerSource::Labels SavedLayer::token_labels(const Request& request) const {
    return {request.tokens, ""};
}

}  // namespace attn::cli
