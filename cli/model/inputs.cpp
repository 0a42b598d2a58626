// The input of a model, and its files, with the settings that a missing config.json would give.
#include <algorithm>
#include <filesystem>
#include <limits>
#include <system_error>

#include "cli/model/internal.hpp"
#include "cli/model/model.hpp"
#include "cli/request/field.hpp"
#include "core/base/error.hpp"
#include "io/file/source.hpp"
#include "io/model/families.hpp"

namespace attn::cli {
namespace {

SharedArray read(const ModelAsked& asked, std::string_view key, const io::ArrayRules& rules) {
    return std::make_shared<const RealArray>(asked.read_array(key, rules));
}

/// One for each token, or none.
std::vector<std::uint64_t> list_of_tokens(const Args& args, std::string_view key,
                                          std::size_t tokens) {
    std::vector<std::uint64_t> list = whole_list(args, key);
    if (args.has(key) && list.size() != tokens)
        fail_at(args, key,
                std::to_string(list.size()) + " numbers; expected " + std::to_string(tokens) +
                    ", one per token");
    return list;
}

void read_text(const ModelAsked& asked, const io::Tokenizer& tokenizer, ModelInput& input,
               std::uint64_t& left_out) {
    const Args& args = asked.args;
    io::Access access = asked.request.access;
    access.expected = "a text";
    const std::string text(args.has("text")
                               ? *args.text("text")
                               : io::read_source(*args.text("text_file"), access).text);
    const bool adds = !args.has("no_special_tokens");
    const std::optional<std::string> pair = args.text("text_pair");
    const auto most = static_cast<std::size_t>(args.whole("truncate").value_or(io::Tokenizer::all));
    const io::TokenizedText tokens = at_locations(asked.request, [&] {
        return pair ? tokenizer.encode_pair(text, *pair, adds, most)
                    : tokenizer.encode(text, adds, most);
    });
    left_out = tokens.left_out;
    if (tokens.ids.empty())
        throw setting_error(asked.request, "text", "the text has no tokens; expected at least one");
    input.ids.assign(tokens.ids.begin(), tokens.ids.end());
    if (pair) input.segments.assign(tokens.type_ids.begin(), tokens.type_ids.end());
}

void refuse_both(const Args& args, const char* key, const std::string& other) {
    if (args.has(key)) fail_at(args, key, "conflicts with " + other + "; expected one of them");
}

/// The ids of the tokens, or their hidden states. Returns their number.
std::size_t read_tokens(const ModelAsked& asked, ModelFiles& files, ModelInput& input,
                        std::uint64_t& left_out) {
    const Args& args = asked.args;
    const bool has_text = args.has("text") || args.has("text_file");
    input.ids = asked.request.token_ids;
    if (!input.ids.empty()) {
        const std::string given = location_of(asked.request, "token_ids");
        for (const char* key : {"text", "text_file", "hidden_states"})
            refuse_both(args, key, given);
    }
    for (const char* key : {"text_pair", "no_special_tokens", "truncate"})
        if (args.has(key) && !has_text)
            fail_at(args, key,
                    std::string("requires --text") +
                        (!input.ids.empty()          ? " in place of --token-ids"
                         : args.has("hidden_states") ? " in place of --hidden-states"
                                                     : ""));
    if (args.has("text")) refuse_both(args, "text_file", "--text");
    if (has_text) {
        refuse_both(args, "hidden_states", args.has("text") ? "--text" : "--text-file");
        read_text(asked, files.tokenizer(), input, left_out);
    }
    if (!args.has("hidden_states")) return input.ids.size();
    io::ArrayRules rules{asked.request.settings.dtype};
    rules.highest_rank = 2;
    input.hidden_states = read(asked, "hidden_states", rules);
    return input.hidden_states->shape(0);
}

/// Reads the arrays of --pixel-values and its kin, exactly those that the model takes.
void read_arrays(const ModelAsked& asked, const io::OpenModel& model, ModelInput& input) {
    const Args& args = asked.args;
    const auto needed = model.row().inputs;
    const bool takes_ids = !model.row().ids.empty();
    const std::string location = asked.file ? asked.file->location : "attn model";
    io::ArrayRules rules;
    rules.dtype = NumberType::float64;
    rules.lowest_rank = 1;
    rules.highest_rank = 4;
    for (const InputRow& row : input_rows)
        if (args.has(row.key)) input.*row.field = read(asked, row.key, rules);
    for (const InputRow& row : input_rows) {
        const bool is_needed = std::ranges::find(needed, row.key) != needed.end();
        if (is_needed && !args.has(row.key))
            throw Error(ErrorKind::usage, location,
                        "no " + (asked.file ? row.key : flag_of_key(row.key)) +
                            ", which the model requires; expected " +
                            (asked.file ? "an array" : "a file"));
        if (!is_needed && args.has(row.key))
            fail_at(args, row.key,
                    std::string("the model does not take this array; expected ") +
                        (takes_ids && input.ids.empty() && !input.hidden_states
                             ? "--token-ids in its place"
                             : "no such flag"));
    }
    if (takes_ids && input.ids.empty() && !input.hidden_states)
        throw Error(ErrorKind::usage, location,
                    asked.file ? "no input; expected token_ids, text or hidden_states"
                               : "no input; expected --token-ids, --text or --hidden-states");
    if (!takes_ids && !input.ids.empty())
        throw setting_error(asked.request, "token_ids",
                            "the model does not take token ids; expected none");
}

/// From --decoder-ids, or the start token of the config.
std::vector<std::uint64_t> read_decoder_ids(const Args& args, const io::OpenModel& model,
                                            const ModelInput& input) {
    if (model.decoder() != nullptr)
        return args.has("decoder_ids") ? whole_list(args, "decoder_ids")
                                       : std::vector<std::uint64_t>{model.decoder()->start_id()};
    if (args.has("decoder_ids"))
        fail_at(args, "decoder_ids",
                std::string("the model has no decoder; expected ") +
                    (input.ids.empty() && !input.hidden_states ? "--token-ids in its place"
                                                               : "no such flag"));
    return {};
}

/// The sequence of each token, of --segment-ids.
std::vector<double> read_packed(const Request& request, const io::OpenModel& model,
                                std::size_t tokens) {
    const char* const key = "segment_ids";
    if (model.decoder() != nullptr || !model.row().inputs.empty())
        throw setting_error(request, key,
                            "only models of one stack over tokens have packed sequences; "
                            "expected no such flag");
    Array<double> ids;
    if (const auto file = request.operand_files.find(key); file != request.operand_files.end()) {
        const io::InputFile opened =
            io::open_input_file(file->second, nullptr, access_to(request, key));
        io::ArrayRules rules{NumberType::float64};
        rules.lowest_rank = rules.highest_rank = 1;
        ids = io::read_reals(opened, rules, nullptr, request.csv).take<double>();
    } else {
        ids = *request.settings.segment_ids;
    }
    if (ids.dimension() != 1 || ids.size() != tokens)
        throw setting_error(request, key,
                            concat("ids of shape ", shape_text(ids.shape()), "; expected (", tokens,
                                   "), one per token"));
    return {ids.begin(), ids.end()};
}

/// The type of a model of the request's family without a config; empty: it needs one.
std::string_view layout_of(const Request& request) {
    const std::string_view name = request.family != nullptr ? request.family->name : "";
    return name == "gpt2" ? "nanogpt" : name == "meta" || name == "roberta" ? name : "";
}

/// Opens the model at `path`. Errors: those of open_model_folder; kind usage
/// for settings that a config gives, and for a family that needs a config.
io::ModelFolder open_asked_model(const Request& request, const std::string& path) {
    const bool has_no_config = request.model_config && *request.model_config == "none";
    io::ModelLayout layout;
    const Settings& s = request.settings;
    if (s.heads) layout.settings.heads = static_cast<std::size_t>(*s.heads);
    layout.settings.norm_eps = request.norm_eps;
    layout.settings.rope_base = s.rope_base;
    layout.settings.rope_scaling = s.rope_scaling;
    if (!has_no_config && request.family != nullptr)
        throw setting_error(request, "family",
                            !layout_of(request).empty()
                                ? "requires --model-config none"
                                : "no effect on a model, whose config names its type; "
                                  "expected no such flag");
    if (has_no_config) {
        layout.type = layout_of(request);
        if (layout.type.empty())
            throw setting_error(
                request, request.family != nullptr ? "family" : "model_config",
                request.family != nullptr
                    ? "--model-config none supports only gpt2 (nanoGPT), meta and roberta "
                      "(fairseq); expected one of them, or --model-config FILE with a model_type "
                      "and its keys"
                    : "requires --family gpt2 (nanoGPT), meta or roberta (fairseq); or give "
                      "--model-config FILE with a model_type and its keys");
    }
    io::ModelFolder files =
        io::open_model_folder(path, request.model_config, request.access, layout);
    const auto stated = files.config.find("model_type");
    const bool is_stated = stated != files.config.end() && stated->is_string();
    const std::string type = is_stated ? stated->get<std::string>() : "";
    for (const char* key : {"heads", "norm_eps", "rope_base", "rope_scaling"}) {
        const bool is_read = type == "meta" || (has_no_config && key == std::string("heads"));
        if (request.has(key) && !is_read)
            throw setting_error(
                request, key,
                "is not read: " + files.config_location +
                    (has_no_config || type == "nanogpt" ? " has no such setting" : " gives it") +
                    "; expected no such flag");
    }
    return files;
}

}  // namespace

Labels read_input(const ModelAsked& asked, ModelFiles& files, ModelQuestion& question,
                  std::uint64_t& left_out) {
    const Args& args = asked.args;
    const Request& request = asked.request;
    ModelInput& input = question.input;
    const std::size_t tokens = read_tokens(asked, files, input, left_out);
    const bool reads_file = args.has("hidden_states") ||
                            std::any_of(std::begin(input_rows), std::end(input_rows),
                                        [&](const InputRow& row) { return args.has(row.key); });
    for (const HelpOverride& of_csv : csv_help)
        if (request.has(of_csv.key) && !reads_file)
            throw setting_error(request, std::string(of_csv.key),
                                "no file of numbers is read; expected one, or no such flag");
    if (const auto types = list_of_tokens(args, "token_type_ids", tokens); !types.empty())
        input.segments = types;
    const auto positions = list_of_tokens(args, "position_ids", tokens);
    input.positions.assign(positions.begin(), positions.end());
    if (request.has("segment_ids")) input.packed = read_packed(request, files.model(), tokens);
    for (const std::uint64_t valid : list_of_tokens(args, "attention_mask", tokens)) {
        if (valid > 1) args.fail("attention_mask");
        input.valid.push_back(valid == 1);
    }
    Labels labels =
        !request.tokens.empty() || input.ids.empty() ? request.tokens : files.pieces_of(input.ids);
    read_arrays(asked, files.model(), input);
    question.decoder_ids = read_decoder_ids(args, files.model(), input);
    return labels;
}

ModelFiles::ModelFiles(const Request& request, const std::string& path)
    : path_(path), access_(request.access), model_(open_asked_model(request, path)) {}

const io::Tokenizer& ModelFiles::tokenizer() {
    if (tokenizer_) return *tokenizer_;
    const io::ModelFolder& files = model_.files();
    if (!files.tokenizer_metadata.empty())
        tokenizer_.emplace(io::Tokenizer::from_gguf(path_, files.tokenizer_metadata));
    else
        tokenizer_.emplace(io::read_tokenizer(files.folder.empty() ? "." : files.folder, access_));
    return *tokenizer_;
}

double ModelFiles::tokenizer_bytes(bool with_text) const {
    // Measured on vocabularies of 30,000 to 250,000 pieces, per byte of the file that holds them.
    constexpr double kept = 8, with_decoder = 20;
    const io::ModelFolder& files = model_.files();
    double bytes = 0;
    if (!files.tokenizer_metadata.empty()) {  // ahead of the tensors of a GGUF file
        std::uint64_t first = std::numeric_limits<std::uint64_t>::max();
        for (const io::StoredArray& array : files.tensors->arrays)
            first = std::min(first, array.offset);
        bytes = files.tensors->arrays.empty() ? 0 : static_cast<double>(first);
    } else {
        std::error_code error;
        const std::filesystem::path folder = files.folder.empty() ? "." : files.folder;
        const std::uintmax_t size = std::filesystem::file_size(folder / "tokenizer.json", error);
        bytes = error ? 0 : static_cast<double>(size);
    }
    return bytes * (with_text ? with_decoder : kept);
}

std::vector<std::string> ModelFiles::pieces_of(const std::vector<std::uint64_t>& ids) {
    std::vector<std::string> pieces;
    if (is_without_tokenizer_) return pieces;
    try {
        for (const std::uint64_t id : ids)
            pieces.push_back(tokenizer().piece(static_cast<std::uint32_t>(id)));
    } catch (const Error&) {
        is_without_tokenizer_ = !tokenizer_;
        pieces.clear();
    }
    return pieces;
}

std::optional<std::string> ModelFiles::text_after(const std::vector<std::uint64_t>& before,
                                                  const std::vector<std::uint64_t>& ids) {
    if (is_without_tokenizer_) return {};
    const auto text_of = [&](const std::vector<std::uint64_t>& list) {
        return tokenizer().decode(std::vector<std::uint32_t>(list.begin(), list.end()), true);
    };
    std::vector<std::uint64_t> all = before;
    all.insert(all.end(), ids.begin(), ids.end());
    try {
        // The text of ids alone may lack the space before its first word.
        const std::string start = text_of(before), whole = text_of(all);
        return whole.starts_with(start) ? whole.substr(start.size()) : text_of(ids);
    } catch (const Error&) {
        is_without_tokenizer_ = !tokenizer_;
        return {};
    }
}

ModelFiles& ModelCache::open(const Request& request, const std::string& path) {
    const bool has_settings =
        std::ranges::any_of(model_settings, [&](std::string_view key) { return request.has(key); });
    if (!files_ || has_settings || has_settings_ || path_ != path ||
        config_ != request.model_config) {
        files_.reset();
        files_.emplace(request, path);
        path_ = path;
        config_ = request.model_config;
        has_settings_ = has_settings;
    }
    return *files_;
}

}  // namespace attn::cli
