#include "cli/question/question.hpp"

#include <array>
#include <cmath>

#include <nlohmann/json.hpp>

#include "cli/args/names.hpp"
#include "cli/question/operands.hpp"
#include "io/text/text.hpp"

namespace attn::cli {
namespace {

/// The error for an input of sdpa that is not a request. One matrix is not enough, but a layer's
/// result may have all three operands.
std::string about_operator_input(const Request& request, const Input& opened) {
    const std::string file = opened.file.name == "<stdin>" ? "FILE" : opened.file.name;
    std::string flags;
    std::size_t found = 0;
    for (const auto& [flag, names] : {std::pair(" --query ", std::array{"queries", "queries"}),
                                      {" --key ", {"present_key", "keys"}},
                                      {" --value ", {"present_value", "values"}}}) {
        const auto name = std::ranges::find_if(
            names, [&](const char* array) { return bool(io::array_in(opened.file, array)); });
        if (name == names.end()) continue;
        flags += flag + file + ":" + *name;
        ++found;
    }
    if (opened.array(request, "inputs").document != nullptr)
        return "a matrix of inputs; sdpa has no projections, expected query, key and value";
    if (found == 3) return "a layer's result, no request; expected" + flags;
    return "one matrix, and sdpa takes three; expected --query, --key and --value, or a request "
           "with them (attn self takes one matrix)";
}

std::string name_of(const Request& request, const std::string& key) {
    const auto found = request.array_names.find(key);
    return found == request.array_names.end() ? key : found->second;
}

void take_results(Input& input, const std::vector<std::string>& names) {
    if (!names.empty()) input.notes.push_back(note_of_results(input.file.location, names));
}

/// Whether a file of arrays has one that is the query in this mode.
bool holds_query(const io::InputFile& file, Mode mode) {
    const auto is_query = [&](const io::StoredArray& array) {
        return key_meant(array.name, mode, array.shape.size()) == "query";
    };
    return file.arrays && file.array.empty() && std::ranges::any_of(file.arrays->arrays, is_query);
}

/// Leaves out the arrays of --ignore-arrays. Refuses a name that INPUT lacks, but in a batch, for
/// all of whose records it is.
void leave_out_ignored(const Request& request, std::optional<Input>& input) {
    for (const std::string& name : request.ignore_arrays)
        if (!request.of_batch && (!input || !io::array_in(input->file, name)))
            throw setting_error(request, "ignore_arrays",
                                (input ? input->file.location : std::string("INPUT")) +
                                    " has no array " + io::shortened(name) +
                                    "; expected the name of one, or no such flag");
    if (request.ignore_arrays.empty() || !input || !input->file.arrays) return;
    io::ArrayFile& file = *input->file.arrays;
    std::erase_if(file.arrays, [&](const auto& array) { return is_ignored(request, array.name); });
    file.indices = nullptr;
}

/// Reads the text of --text-file in place of --text.
void take_text_file(Request& request, const std::optional<Input>& input) {
    if (!request.has_file("text_file")) return;
    if (request.text)
        throw setting_error(
            request, "text_file",
            "conflicts with " + location_of(request, "text") + "; expected one of them");
    read_named(request, !is_from_flag(request, "text_file"), [&] {
        const std::string path = path_of(request, input ? &*input : nullptr, "text_file");
        io::Access access = access_to(request, "text_file");
        access.expected = "a text";
        request.text = io::read_source(path, access).text;
    });
    request.locations["text"] = request.locations["text_file"];
}

nlohmann::json nested_list(const Array<double>& x, std::size_t axis, bool is_flag,
                           const double*& at) {
    nlohmann::json list = nlohmann::json::array();
    for (std::size_t i = 0; axis < x.dimension() && i < x.shape(axis); ++i)
        list.push_back(nested_list(x, axis + 1, is_flag, at));
    if (axis < x.dimension()) return list;
    const double value = *at++;
    if (is_flag && (value == 0 || value == 1)) return value == 1;
    if (std::trunc(value) != value || std::abs(value) >= 0x1p53) return value;
    if (value < 0) return static_cast<std::int64_t>(value);
    return static_cast<std::uint64_t>(value);
}

/// The value of a setting.
nlohmann::json value_of_array(const Option& option, const io::StoredArray& array) {
    const bool is_array = option.field.kind == FieldKind::operand;
    const auto read = io::read_numbers(array, io::ArrayRules::anything(is_array ? 4 : 1)).values;
    const double* next = read.begin();
    nlohmann::json value = nested_list(read, 0, option.field.kind == FieldKind::boolean, next);
    return value.size() == 1 && !value.front().is_array() ? value.front() : value;
}

/// Finds the operands and settings among the arrays of a file, under any of their names.
class ArrayNames {
public:
    ArrayNames(Request& request, Input& input) : request_(request), input_(input) {}

    void read() {
        std::vector<std::string> results, unknown;
        for (const io::StoredArray& array : input_.file.arrays->arrays) {
            const std::string& name = array.name;
            if (is_ignored(request_, name)) continue;
            const std::string key = key_meant(name, mode(), array.shape.size());
            if (!key.empty() && takes(key))
                take(key, array);
            else if (key.empty() && names_result(name))
                results.push_back(name);
            else
                unknown.push_back(name);
        }
        // A matrix without a name, or of a layer, is refused as such.
        if (!unknown.empty() && input_.holds_operands) refuse(unknown);
        take_results(input_, results);
    }

private:
    Mode mode() const { return request_.settings.mode; }

    /// Whether an array can be its value.
    bool takes(const std::string& key) const {
        using enum FieldKind;
        const Option& option = *find_option(key);
        const FieldKind kind = option.field.kind;
        return is_operand(key, mode()) ||
               (option.field.set != nullptr &&
                (kind == operand || kind == boolean || kind == integer || kind == seed ||
                 kind == number || kind == integers || kind == signed_integers || kind == numbers ||
                 kind == parameters));
    }

    void take(const std::string& key, const io::StoredArray& array) {
        take_name(request_, key, array.name, array.location());
        if (!is_operand(key, mode())) {
            const Option& option = *find_option(key);
            return apply_key(request_, key, value_of_array(option, array),
                             Location(array.location()));
        }
        input_.holds_operands = true;
        if (!request_.has(key)) request_.locations[key] = array.location();
    }

    [[noreturn]] void refuse(const std::vector<std::string>& unknown) const {
        const std::string& first = unknown.front();
        std::vector<std::string> keys;
        for (const OperandRow& rule : operand_rows)
            if (is_operand(rule.key, mode())) keys.emplace_back(rule.key);
        const Option* const own = find_option(first);
        const NameRow* const other = find_other_name("option", as_listed(first));
        const std::string hint =
            own != nullptr && (own->modes & in(mode())) == 0 ? ", " + where_else(*own, mode())
            : other != nullptr ? ", which may be what attn calls " + std::string(other->of)
                               : "";
        std::string all;
        for (const std::string& name : unknown) all += (all.empty() ? "" : ",") + name;
        throw Error(ErrorKind::usage, input_.file.location + ":" + io::shortened(first),
                    "no operand of " + std::string(row_of(mode()).name) + hint + "; expected " +
                        io::comma_list(keys) + " or a setting, or --ignore-arrays " +
                        io::shortened(all));
    }

    Request& request_;
    Input& input_;
};

bool reads_input(const Request& request) {
    return !request.input.empty() || !request.names_input();
}

/// Uses a result of attn: its context vectors become the inputs of this layer. Their labels come
/// with them, instead of a batch's own.
void take_result(Request& request, Input& input) {
    io::InputFile& file = input.file;
    if (!io::array_in(file, "context_vectors")) {
        for (const io::StoredArray& array :
             file.arrays ? file.arrays->arrays : std::vector<io::StoredArray>())
            if (array.name.starts_with("context_vectors."))
                throw Error(ErrorKind::input, file.location, "has context_vectors of each layer",
                            "; expected ", file.location, ":", array.name, ", or another layer's");
        throw Error(ErrorKind::input, file.location,
                    "a result without context_vectors; expected it among its arrays (--emit)");
    }
    file.array = "context_vectors";
    const io::ResultHead head(file);
    if (io::member(*head.config, "batch_first") == false && !request.has("batch_first"))
        throw setting_error(request, "batch_first",
                            file.location + " has (tokens, batch, d); expected --no-batch-first");
    if (head.tokens && !request.keeps_flag("tokens")) {
        request.locations.erase("tokens");
        request.tokens.clear();
    }
    request.is_next_layer = true;
    input.has_own_inputs = bool(io::array_in(file, "inputs"));
}

bool is_array_of_objects(const io::InputFile& file) {
    if (!file.source || file.document) return false;
    const std::string_view text = io::after_blanks(file.source->text);
    return text.starts_with('[') && io::after_blanks(text.substr(1)).starts_with('{');
}

/// Uses a file that is not a request: a matrix, a result, or the operands of sdpa.
void take_arrays(Request& request, Input& input) {
    const io::InputFile& file = input.file;
    if (is_array_of_objects(file))
        throw Error(ErrorKind::input, file.location,
                    "an array of objects; expected one request, or attn batch with one per line, "
                    "as jq -c '.[]' writes them");
    const bool is_earlier = is_result(file);
    if (!request.has_mode)
        throw Error(ErrorKind::usage, file.location,
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
    const bool holds_queries = !is_earlier && holds_query(file, mode.mode);
    if (mode.projects(holds_queries) || !file.arrays) {
        request.locations["inputs"] = file.location;
        if (mode.projects(false) && is_earlier) take_result(request, input);
        return;
    }
    if (!is_earlier && file.array.empty()) ArrayNames(request, input).read();
    if (!input.holds_operands || !request.has("query")) request.locations["inputs"] = file.location;
}

/// Refuses arrays of a result without what they were computed from.
void refuse_arrays_alone(const io::InputFile& file) {
    if (!file.array.empty() || is_result(file) || io::array_in(file, "mode") ||
        !(io::array_in(file, "context_vectors") || io::array_in(file, "attention_weights")))
        return;
    throw Error(ErrorKind::usage, file.location,
                "arrays without the question that they answer, as --bare writes them; expected the "
                "request that they were computed from, or a result with its settings, as --emit "
                "all writes");
}

/// What --rand draws, or has in place of drawn numbers. `other`: the other source of the input.
void check_draw(const Request& request, const std::string& other) {
    const char* first = nullptr;
    for (const char* key : {"uniform", "randint", "corners"}) {
        if (!request.has(key)) continue;
        if (request.settings.rand.empty())
            throw setting_error(request, key,
                                "requires --rand with the shape of the input, as --rand 6,3" +
                                    (other.empty() ? "" : ", in place of " + other));
        if (first != nullptr)
            throw setting_error(
                request, key,
                "conflicts with " + location_of(request, first) + "; expected one of them");
        first = key;
    }
    const std::vector<std::int64_t>& integers = request.settings.randint;
    if (!integers.empty() && integers[0] >= integers[1])
        throw setting_error(request, "randint",
                            "no integer is in it; expected LOW,HIGH with LOW below HIGH, as 0,10");
    const std::vector<double>& range = request.settings.uniform;
    if (range.empty()) return;
    const bool fits = !overflows(range[0], request.settings.dtype) &&
                      !overflows(range[1] - range[0], request.settings.dtype);
    if (!(fits && range[0] <= range[1]))
        throw setting_error(request, "uniform",
                            "not a range of the dtype; expected A,B with A at most B, as -4,4");
}

}  // namespace

bool is_result(const io::InputFile& file) {
    return file.array.empty() && io::schema_of(file) == schemas::result;
}

bool is_array_of(const Request& request, const io::JsonDocument& document,
                 const io::JsonMember& member) {
    const auto named = std::ranges::find(request.array_names, member.key,
                                         &decltype(request.array_names)::value_type::second);
    const std::string& key = named == request.array_names.end() ? member.key : named->first;
    return holds_elements(document, member) &&
           (key == "inputs" || is_operand(key, request.settings.mode));
}

io::FileArray Input::array(const Request& request, const std::string& key) const {
    const std::string name = name_of(request, key);
    if (!holds_operands || is_ignored(request, name)) return {};
    io::FileArray found = io::array_in(file, name);
    const io::JsonDocument* const document = found.document;
    // In a request a list of numbers may be constants, which a result has in its config.
    const bool is_there =
        document == nullptr || (layout != nullptr && document->holds_array(found.member)) ||
        holds_elements(*document, found.member) || document->holds_object(found.member);
    return is_there ? found : io::FileArray();
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
            take_results(*input,
                         apply_document(request, *file.document, file.location, is_operand));
        else
            take_arrays(request, *input);
    }
    leave_out_ignored(request, input);
    take_text_file(request, input);
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
        const bool is_made =
            mode.source == Source::operands && source != std::string_view("inputs");
        for (const char* key : {"query", "key", "value"})
            if (is_made && request.has(key))
                throw setting_error(
                    request, key,
                    "conflicts with " + location_of(request, source) + "; expected one of them");
        if (!is_made)
            throw setting_error(
                request, source,
                mode.source == Source::operands
                    ? about_operator_input(request, *asked.input)
                    : "conflicts with query, key and value; expected inputs or these three");
    }
    if (!reads_input(request) && !mode.context && request.has("input_format"))
        throw setting_error(request, "input_format", "requires INPUT, a file of tokens");
    const bool text = request.text || request.example == "sentence";
    const std::string other = asked.input            ? asked.input->file.location
                              : source != nullptr    ? location_of(request, source)
                              : request.has("query") ? "query, key and value"
                                                     : "";
    check_draw(request, other);
    for (const char* key : {"weights", "init", "draw_order", "qkv_joined", "d_out", "d_k", "d_v",
                            "qkv_bias", "out_proj", "pre_norm", "save_weights"})
        if (!request.projects() && mode.source != Source::operands && source == nullptr &&
            is_from_flag(request, key) && location_of(request, key).starts_with("--"))
            throw setting_error(request, key,
                                "no effect on query, key and value, which are not projected; "
                                "expected INPUT in place of them, or no such flag");
    for (const char* key : {"truncate", "vocab_size", "embed_dim", "embed_seed"})
        if (request.has(key) && !text)
            throw setting_error(
                request, key,
                source != nullptr && source == std::string_view("token_ids")
                    ? "no effect on token ids; expected no such flag"
                    : "requires --text" + (other.empty() ? "" : " in place of " + other));
}

}  // namespace attn::cli
