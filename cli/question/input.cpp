#include "cli/question/input.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "cli/question/operand_specs.hpp"
#include "cli/request/schemas.hpp"
#include "core/base/error.hpp"
#include "io/file/path.hpp"

namespace attn::cli {
namespace {

/// The error for an input of sdpa that is not a request. One matrix is not enough, but a layer's
/// result may have all three operands.
std::string about_operator_input(const Request& request, const Input& opened) {
    const io::InputFile& input = opened.file;
    const auto holds = [&](const char* name) {
        return input.arrays ? input.arrays->find(name) != nullptr
                            : input.holds_object() && input.document->find(name);
    };
    const std::string file = input.name == "<stdin>" ? "FILE" : input.name;
    std::string flags;
    std::size_t found = 0;
    for (const auto& [flag, names] : {std::pair(" --query ", std::array{"queries", "queries"}),
                                      {" --key ", {"present_key", "keys"}},
                                      {" --value ", {"present_value", "values"}}}) {
        const auto name = std::find_if(names.begin(), names.end(), holds);
        if (name == names.end()) continue;
        flags += flag + file + ":" + *name;
        ++found;
    }
    if (request.document && opened.arrays.members.contains("inputs"))
        return "a matrix of inputs; sdpa has no projections, expected query, key and value";
    if (found == 3) return "a layer's result, no request; expected" + flags;
    return "one matrix, and sdpa takes three; expected --query, --key and --value, or a request "
           "with them (attn self takes one matrix)";
}

/// Standard input can be read only once.
void check_standard_input(const Request& request) {
    std::size_t from_stdin = io::split_data_path(request.input).file == "-" ? 1 : 0;
    for (const auto& [key, path] : request.operand_files)
        if (io::split_data_path(path).file == "-") ++from_stdin;
    if (from_stdin > 1)
        throw Error(ErrorKind::usage, "-", "standard input named twice; expected it once");
}

bool reads_input(const Request& request) {
    return !request.input.empty() || !request.names_input();
}

/// Uses a result of attn in a binary format: its context vectors become the inputs of this layer.
void take_result(RequestBuilder& builder, Input& input) {
    const io::ArrayFile& file = *input.file.arrays;
    if (file.metadata == nullptr) return;
    const nlohmann::json& head = *file.metadata;
    if (!head.contains("schema") || head["schema"] != schemas::result) return;
    if (file.find("context_vectors") != nullptr) input.file.array = "context_vectors";
    builder.request.is_next_layer = true;
    input.arrays.has_own_inputs = file.find("inputs") != nullptr;
    if (!head.contains("tokens")) return;
    builder.apply_tokens(head["tokens"], file.name);
    input.arrays.one_row_of_many = file.config().contains("token");
}

/// Uses a file that is not a request: a matrix, a result, or the operands of sdpa.
void take_arrays(RequestBuilder& builder, Input& input) {
    const io::InputFile& file = input.file;
    const Request& request = builder.request;
    if (!request.has_mode)
        throw Error(ErrorKind::usage, file.place,
                    "no mode; a matrix requires --mode, one of " + listed_modes());
    builder.apply_deferred();
    if (request.of_batch) check_defaults(request);
    const ModeRow& mode = row_of(request.settings.mode);
    auto& locations = builder.request.locations;
    if (mode.projects || !file.arrays) {
        locations["inputs"] = file.place;
        if (file.arrays && file.array.empty()) take_result(builder, input);
        return;
    }
    for (const io::StoredArray& array : file.arrays->arrays)
        if (is_operand(array.name, mode.mode) && !request.has(array.name)) {
            locations[array.name] = array.place();
            input.stored_operands[array.name] = &array;
        }
    const bool holds_query = input.stored_operands.contains("query") || request.has("query");
    if (input.stored_operands.empty() || !holds_query) locations["inputs"] = file.place;
}

}  // namespace

bool is_array_of(Mode mode, const io::JsonDocument& document, const io::JsonMember& member) {
    return document.holds_array(member) && (member.key == "inputs" || is_operand(member.key, mode));
}

Input input_of_line(const Request& request, io::InputFile line) {
    Input input{std::move(line), {}, {}, true};
    const io::JsonDocument& document = *input.file.document;
    for (const io::JsonMember& member : document.members())
        if (is_array_of(request.settings.mode, document, member))
            input.arrays.members[member.key] = &member;
    return input;
}

RequestWithInput open_request(const Request& flags, std::optional<io::InputFile> line) {
    check_standard_input(flags);
    std::optional<Input> input;
    if (line)
        input = Input{std::move(*line), {}, {}, true};
    else if (reads_input(flags))
        input = Input{io::open_input_file(flags.input.empty() ? "-" : flags.input,
                                          flags.input_format, flags.access),
                      {},
                      {},
                      false};
    RequestBuilder builder{flags};
    if (input && input->file.holds_object() && input->file.array.empty()) {
        builder.request.document = input->file.source;
        input->arrays =
            apply_document(builder, *input->file.document, input->file.place, is_operand);
    } else if (input) {
        take_arrays(builder, *input);
    }
    builder.apply_environment();
    return {std::move(builder.request), std::move(input)};
}

void check_sources(const RequestWithInput& asked) {
    const Request& request = asked.request;
    const ModeRow& mode = row_of(request.settings.mode);
    const char* source = nullptr;
    for (const char* key : {"inputs", "example", "text", "token_ids"}) {
        if (!request.has(key)) continue;
        if (source != nullptr)
            throw Error(ErrorKind::usage, location_of(request, key),
                        "conflicts with " + location_of(request, source) + "; expected one input");
        source = key;
    }
    if (!mode.projects && request.has("inputs"))
        throw Error(ErrorKind::usage, location_of(request, "inputs"),
                    about_operator_input(request, *asked.input));
    const bool reads_tokens = reads_input(request) || mode.context;
    for (const char* key : {"input_format", "csv_header", "csv_labels", "csv_comments"})
        if (request.has(key) && !reads_tokens)
            throw Error(ErrorKind::usage, location_of(request, key),
                        "requires INPUT, a file of tokens");
    const bool text = request.text || request.example == "sentence";
    for (const char* key : {"vocab_size", "embed_dim", "embed_seed"})
        if (request.has(key) && !text)
            throw Error(ErrorKind::usage, location_of(request, key), "requires --text");
}

}  // namespace attn::cli
