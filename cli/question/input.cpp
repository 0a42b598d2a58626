#include "cli/question/question.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "cli/question/layer_source.hpp"
#include "cli/question/operands.hpp"

namespace attn::cli {
namespace {

bool holds(const io::InputFile& file, const char* name) {
    return file.arrays ? file.arrays->find(name) != nullptr
                       : file.holds_object() && file.document->find(name);
}

/// The error for an input of sdpa that is not a request. One matrix is not enough, but a layer's
/// result may have all three operands.
std::string about_operator_input(const Input& opened) {
    const std::string file = opened.file.name == "<stdin>" ? "FILE" : opened.file.name;
    std::string flags;
    std::size_t found = 0;
    for (const auto& [flag, names] : {std::pair(" --query ", std::array{"queries", "queries"}),
                                      {" --key ", {"present_key", "keys"}},
                                      {" --value ", {"present_value", "values"}}}) {
        const auto name = std::ranges::find_if(
            names, [&](const char* array) { return holds(opened.file, array); });
        if (name == names.end()) continue;
        flags += flag + file + ":" + *name;
        ++found;
    }
    if (opened.member("inputs") != nullptr)
        return "a matrix of inputs; sdpa has no projections, expected query, key and value";
    if (found == 3) return "a layer's result, no request; expected" + flags;
    return "one matrix, and sdpa takes three; expected --query, --key and --value, or a request "
           "with them (attn self takes one matrix)";
}

bool reads_input(const Request& request) {
    return !request.input.empty() || !request.names_input();
}

/// Uses a result of attn: its context vectors become the inputs of this layer. Their labels come
/// with them, instead of a batch's own.
void take_result(Request& request, Input& input) {
    io::InputFile& file = input.file;
    if (!holds(file, "context_vectors")) {
        for (const io::StoredArray& array :
             file.arrays ? file.arrays->arrays : std::vector<io::StoredArray>())
            if (array.name.starts_with("context_vectors."))
                throw Error(ErrorKind::input, file.place, "has context_vectors of each layer",
                            "; expected ", file.place, ":", array.name, ", or another layer's");
        throw Error(ErrorKind::input, file.place,
                    "a result without context_vectors; expected it among its arrays (--emit)");
    }
    file.array = "context_vectors";
    if (io::ResultHead(file).tokens && !request.keeps_flag("tokens")) {
        request.locations.erase("tokens");
        request.tokens.clear();
    }
    request.is_next_layer = true;
    input.has_own_inputs = holds(file, "inputs");
}

bool is_array_of_objects(const io::InputFile& file) {
    if (!file.source || file.document) return false;
    const std::string_view text = file.source->text;
    const std::size_t first = text.find_first_not_of(" \t\r\n");
    if (first == text.npos || text[first] != '[') return false;
    const std::size_t second = text.find_first_not_of(" \t\r\n", first + 1);
    return second != text.npos && text[second] == '{';
}

/// Uses a file that is not a request: a matrix, a result, or the operands of sdpa.
void take_arrays(Request& request, Input& input) {
    const io::InputFile& file = input.file;
    if (is_array_of_objects(file))
        throw Error(ErrorKind::input, file.place,
                    "an array of objects; expected one request, or attn batch with one per line, "
                    "as jq -c '.[]' writes them");
    const bool is_earlier = is_result(file);
    if (!request.has_mode)
        throw Error(ErrorKind::usage, file.place,
                    std::string("no mode; ") + (is_earlier ? "the next layer" : "a matrix") +
                        " requires " + (request.of_batch ? "--mode" : "a mode before INPUT") +
                        ", one of " + listed_modes());
    apply_deferred(request);
    check_defaults(request);
    if (is_earlier && file.document) {
        if (const io::JsonMember* id = file.document->find("id"))
            apply_id(request, *file.document, *id);
        if (const io::JsonMember* meta = file.document->find(std::string(io::passed_on_key)))
            request.meta = file.document->copied(*meta);
    }
    const ModeRow& mode = row_of(request.settings.mode);
    const bool holds_queries = !is_earlier && file.array.empty() && holds(file, "query");
    if (mode.projects(holds_queries) || !file.arrays) {
        request.locations["inputs"] = file.place;
        if (mode.projects(false) && is_earlier) take_result(request, input);
        return;
    }
    for (const io::StoredArray& array : file.arrays->arrays)
        if (!is_earlier && is_operand(array.name, mode.mode) && !request.has(array.name)) {
            request.locations[array.name] = array.place();
            input.holds_operands = true;
        }
    if (!input.holds_operands || !request.has("query")) request.locations["inputs"] = file.place;
}

/// Refuses arrays of a result without what they were computed from.
void refuse_arrays_alone(const io::InputFile& file) {
    if (!file.array.empty() || is_result(file) || holds(file, "mode") ||
        !(holds(file, "context_vectors") || holds(file, "attention_weights")))
        return;
    throw Error(ErrorKind::usage, file.place,
                "arrays without the question that they answer, as --bare writes them; expected the "
                "request that they were computed from, or a result with its settings, as --emit "
                "all writes");
}

}  // namespace

bool is_result(const io::InputFile& file) {
    return file.array.empty() && io::schema_of(file) == schemas::result;
}

bool is_array_of(Mode mode, const io::JsonDocument& document, const io::JsonMember& member) {
    return holds_elements(document, member) &&
           (member.key == "inputs" || is_operand(member.key, mode));
}

const io::JsonMember* Input::member(const std::string& key) const {
    const io::JsonMember* const found =
        holds_operands && file.document ? file.document->find(name_of(key)) : nullptr;
    if (found == nullptr) return nullptr;
    // In a request a list of numbers may be constants, which a result has in its config.
    const bool is_there = (layout != nullptr && file.document->holds_array(*found)) ||
                          holds_elements(*file.document, *found) ||
                          file.document->holds_object(*found);
    return is_there ? found : nullptr;
}

const io::StoredArray* Input::stored(const std::string& key) const {
    return holds_operands && file.arrays ? file.arrays->find(name_of(key)) : nullptr;
}

std::string Input::name_of(const std::string& key) const {
    return layout != nullptr && key == "mask" ? "attn_mask" : key;
}

RequestWithInput open_request(const Request& flags, std::optional<io::InputFile> line) {
    std::vector<std::string> paths{flags.input};
    for (const auto& [key, path] : flags.operand_files) paths.push_back(path);
    io::require_one_standard_input(paths);
    std::optional<Input> input;
    if (line)
        input = Input{std::move(*line), true};
    else if (flags.is_question && flags.result)
        input = Input{*flags.result};
    else if (reads_input(flags))
        input = Input{io::open_input_file(flags.input.empty() ? "-" : flags.input,
                                          flags.input_format, flags.access)};
    Request request = flags;
    if (flags.result && !flags.is_question) take_settings(request);
    if (input) {
        const io::InputFile& file = input->file;
        const bool is_document = file.holds_object() && file.array.empty();
        const bool is_question = flags.is_question && is_result(file);
        if (flags.is_question && !flags.has_mode) refuse_arrays_alone(file);
        if (is_document) request.document = file.source;
        input->holds_operands = is_document && !is_result(file);
        if (is_question)
            take_question(request, *input);
        else if (input->holds_operands)
            apply_document(request, *file.document, file.place, is_operand);
        else
            take_arrays(request, *input);
    }
    apply_environment(request);
    return {std::move(request), std::move(input)};
}

void check_sources(const RequestWithInput& asked) {
    const Request& request = asked.request;
    const ModeRow& mode = row_of(request.settings.mode);
    const char* source = nullptr;
    for (const char* key : {"inputs", "example", "rand", "randn", "text", "token_ids"}) {
        if (!request.has(key)) continue;
        if (source != nullptr)
            throw setting_error(
                request, key,
                "conflicts with " + location_of(request, source) + "; expected one input");
        source = key;
    }
    if (!request.projects() && source != nullptr) {
        const bool is_example =
            mode.source == Source::operands && std::string_view(source) == "example";
        for (const char* key : {"query", "key", "value"})
            if (is_example && request.has(key))
                throw setting_error(
                    request, key,
                    "conflicts with " + location_of(request, "example") + "; expected one of them");
        if (!is_example)
            throw setting_error(
                request, source,
                mode.source == Source::operands
                    ? about_operator_input(*asked.input)
                    : "conflicts with query, key and value; expected inputs or these three");
    }
    if (!reads_input(request) && !mode.context) {
        std::vector<std::string> of_files{"input_format"};
        for (const HelpOverride& of_csv : csv_help) of_files.emplace_back(of_csv.key);
        for (const std::string& key : of_files)
            if (request.has(key))
                throw setting_error(request, key, "requires INPUT, a file of tokens");
    }
    const bool text = request.text || request.example == "sentence";
    const std::string other = asked.input            ? asked.input->file.place
                              : source != nullptr    ? location_of(request, source)
                              : request.has("query") ? "query, key and value"
                                                     : "";
    for (const char* key : {"weights", "init", "d_out", "d_k", "d_v", "qkv_bias", "out_proj",
                            "pre_norm", "save_weights"})
        if (!request.projects() && mode.source != Source::operands && source == nullptr &&
            is_from_flag(request, key) && location_of(request, key).starts_with("--"))
            throw setting_error(request, key,
                                "no effect on query, key and value, which are not projected; "
                                "expected INPUT in place of them, or no such flag");
    for (const char* key : {"vocab_size", "embed_dim", "embed_seed"})
        if (request.has(key) && !text)
            throw setting_error(
                request, key,
                source != nullptr && source == std::string_view("token_ids")
                    ? "no effect on token ids; expected no such flag"
                    : "requires --text" + (other.empty() ? "" : " in place of " + other));
}

}  // namespace attn::cli
