// The input of a model.
#include <algorithm>

#include "cli/model/internal.hpp"
#include "cli/request/field.hpp"
#include "io/file/source.hpp"

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

void read_text(const ModelAsked& asked, const io::Tokenizer& tokenizer, ModelQuestion& question) {
    const Args& args = asked.args;
    ModelInput& input = question.input;
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
    question.note = note_of_truncation(location_of(asked.request, "truncate"), tokens.ids.size(),
                                       tokens.left_out);
    if (tokens.ids.empty())
        throw setting_error(asked.request, "text", "the text has no tokens; expected at least one");
    input.ids.assign(tokens.ids.begin(), tokens.ids.end());
    if (pair) input.segments.assign(tokens.type_ids.begin(), tokens.type_ids.end());
}

void refuse_both(const Args& args, const char* key, const std::string& other) {
    if (args.has(key)) fail_at(args, key, "conflicts with " + other + "; expected one of them");
}

/// The ids of the tokens, or their hidden states. Returns their number.
std::size_t read_tokens(const ModelAsked& asked, ModelFiles& files, ModelQuestion& question) {
    const Args& args = asked.args;
    ModelInput& input = question.input;
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
        read_text(asked, files.tokenizer(), question);
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

}  // namespace

Labels read_input(const ModelAsked& asked, ModelFiles& files, ModelQuestion& question) {
    const Args& args = asked.args;
    const Request& request = asked.request;
    ModelInput& input = question.input;
    const std::size_t tokens = read_tokens(asked, files, question);
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

}  // namespace attn::cli
