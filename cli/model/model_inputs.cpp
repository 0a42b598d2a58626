#include "cli/model/model_inputs.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <string>

#include "cli/request/field.hpp"
#include "core/base/error.hpp"
#include "io/file/path.hpp"
#include "io/file/source.hpp"
#include "io/read/input_file.hpp"
#include "io/tokenizer/tokenizer.hpp"

namespace attn::cli {
namespace {

struct InputRow {
    const char* key;
    std::string_view flag;
    std::optional<RealArray> ModelInput::*field;
};

constexpr InputRow input_rows[] = {
    {"pixel_values", "--pixel-values", &ModelInput::pixel_values},
    {"spatial_shapes", "--spatial-shapes", &ModelInput::spatial_shapes},
    {"input_values", "--input-values", &ModelInput::input_values},
    {"input_features", "--input-features", &ModelInput::input_features}};

/// The integers of a flag, one for each token. Errors: kind usage.
std::vector<std::uint64_t> list_of_tokens(const Args& args, std::string_view key,
                                          std::size_t tokens) {
    std::vector<std::uint64_t> list;
    const std::optional<std::string> text = args.text(key);
    if (!text) return list;
    for (const std::string& word : split_list(*text)) {
        std::uint64_t number = 0;
        const char* const end = word.data() + word.size();
        const auto [at, error] = std::from_chars(word.data(), end, number);
        if (error != std::errc() || at != end || number > std::uint64_t{1} << 31U) args.fail(key);
        list.push_back(number);
    }
    if (list.size() != tokens)
        throw Error(ErrorKind::usage, location_of(*args.find(key)),
                    std::to_string(list.size()) + " numbers; expected " + std::to_string(tokens) +
                        ", one per token");
    return list;
}

void read_text(const Args& args, const io::Tokenizer& tokenizer, ModelInput& input) {
    const std::string text = *args.text("text");
    const bool adds = !args.has("no_special_tokens");
    const std::optional<std::string> pair = args.text("text_pair");
    const io::TokenizedText tokens =
        pair ? tokenizer.encode_pair(text, *pair, adds) : tokenizer.encode(text, adds);
    if (tokens.ids.empty())
        throw Error(ErrorKind::usage, location_of(*args.find("text")),
                    "the text has no tokens; expected at least one");
    input.ids.assign(tokens.ids.begin(), tokens.ids.end());
    if (pair) input.segments.assign(tokens.type_ids.begin(), tokens.type_ids.end());
}

void refuse_both(const Args& args, const char* key, const std::string& other) {
    if (args.has(key))
        throw Error(ErrorKind::usage, location_of(*args.find(key)),
                    "conflicts with " + other + "; expected one of them");
}

}  // namespace

std::vector<std::string> read_tokens(const ModelAsked& asked, ModelFiles& files,
                                     ModelInput& input) {
    const Args& args = asked.args;
    const Request& request = asked.request;
    input.ids = request.token_ids;
    if (!input.ids.empty()) {
        refuse_both(args, "text", "--token-ids");
        refuse_both(args, "hidden_states", "--token-ids");
    }
    for (const char* key : {"text_pair", "no_special_tokens"})
        if (args.has(key) && !args.has("text"))
            throw Error(ErrorKind::usage, location_of(*args.find(key)),
                        std::string("requires --text") +
                            (!input.ids.empty()          ? " in place of --token-ids"
                             : args.has("hidden_states") ? " in place of --hidden-states"
                                                         : ""));
    if (args.has("text")) {
        refuse_both(args, "hidden_states", "--text");
        read_text(args, files.tokenizer(), input);
    }
    std::size_t tokens = input.ids.size();
    if (args.has("hidden_states")) {
        io::ArrayRules rules{request.settings.dtype};
        rules.highest_rank = 2;
        input.hidden_states = asked.read_array("hidden_states", rules);
        tokens = input.hidden_states->shape(0);
    }
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
    if (!request.tokens.empty()) return request.tokens;
    return input.ids.empty() ? std::vector<std::string>() : files.pieces_of(input.ids);
}

void read_input_arrays(const ModelAsked& asked, ModelInput& input) {
    io::ArrayRules rules;
    rules.dtype = Dtype::float64;
    rules.lowest_rank = 1;
    rules.highest_rank = 4;
    for (const InputRow& row : input_rows)
        if (asked.args.has(row.key)) input.*row.field = asked.read_array(row.key, rules);
}

void check_input(const ModelAsked& asked, std::span<const std::string_view> needed, bool takes_ids,
                 const ModelInput& input) {
    const Args& args = asked.args;
    const std::string place = asked.file ? asked.file->place : "attn model";
    for (const InputRow& row : input_rows) {
        const bool is_needed = std::find(needed.begin(), needed.end(), row.key) != needed.end();
        if (is_needed && !args.has(row.key))
            throw Error(ErrorKind::usage, place,
                        asked.file ? "no " + std::string(row.key) +
                                         ", which the model requires; expected an array"
                                   : "no " + std::string(row.flag) +
                                         ", which the model requires; expected a file");
        if (!is_needed && args.has(row.key))
            throw Error(ErrorKind::usage, location_of(*args.find(row.key)),
                        "the model does not take this array; expected " +
                            std::string(takes_ids ? "--token-ids" : "other flags"));
    }
    if (takes_ids && input.ids.empty() && !input.hidden_states)
        throw Error(ErrorKind::usage, place,
                    asked.file ? "no input; expected token_ids, text or hidden_states"
                               : "no input; expected --token-ids, --text or --hidden-states");
    if (!takes_ids && !input.ids.empty())
        throw setting_error(asked.request, "token_ids",
                            "the model does not take token ids; expected none");
}

}  // namespace attn::cli
