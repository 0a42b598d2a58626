// A request of `attn model`, from flags or from a file, and the layers and arrays that it names.
#include <algorithm>
#include <set>
#include <utility>

#include "cli/model/internal.hpp"
#include "cli/model/model.hpp"
#include "cli/request/field.hpp"
#include "cli/request/request_builder.hpp"
#include "core/base/error.hpp"
#include "core/operator/arrays.hpp"
#include "io/file/path.hpp"
#include "io/file/source.hpp"
#include "io/text/number_text.hpp"
#include "io/text/text.hpp"

namespace attn::cli {
namespace {

constexpr ModelArray array_rows[] = {
    {"hidden_states", true, true, "the input of each block, and the output of the last"},
    {"recurrent_state", true, true, "the state after the last token, for recurrent layers"},
    {"cross_attention_weights", true, true, "for decoders: weights of the encoder's tokens"},
    {"last_hidden_state", false, true, "after the final norm"},
    {"logits", false, false, "logits of the last token, one per entry of the vocabulary"},
    {"next_tokens", false, false, "the ten most probable next tokens, with their probabilities"},
    {"next_token_probabilities", false, false, "the probabilities of next_tokens"},
};

bool is_of_attention(const ArrayRow& row) {
    constexpr std::string_view kept[] = {"queries",         "keys",         "values",
                                         "context_vectors", "head_outputs", "attention_weights"};
    return row.from != From::trace && !row.is_statistic() &&
           (row.needs & ~unsigned{needs::softmax}) == 0 &&
           (row.needs != 0 || std::ranges::count(kept, row.name) != 0);
}

/// `word` is a number of the list that is not one of a layer.
[[noreturn]] void fail_layers(std::string_view word, std::size_t count) {
    throw SettingError(ErrorKind::usage, "layers",
                       std::string(word.empty() ? "a number is missing, and " : "") +
                           "the model has " + std::to_string(count) +
                           " layers; expected all, or numbers from -" + std::to_string(count) +
                           " to " + std::to_string(count - 1) + " as in 0,5,-1");
}

}  // namespace

std::span<const ModelArray> model_arrays() {
    return array_rows;
}

std::vector<std::size_t> layers_of_stack(const std::string& list, std::size_t count,
                                         std::size_t deepest) {
    std::set<std::size_t> layers;
    for (std::size_t layer = 0; layer < count && list == "all"; ++layer) layers.insert(layer);
    for (const std::string& word : list == "all" ? std::vector<std::string>() : split_list(list)) {
        const auto number = io::number_of_text<std::int64_t>(word);
        const auto all = static_cast<std::int64_t>(deepest), own = static_cast<std::int64_t>(count);
        if (!number || *number >= all || *number < -all) fail_layers(word, deepest);
        if (*number < own && *number >= -own)
            layers.insert(static_cast<std::size_t>(*number < 0 ? *number + own : *number));
    }
    return {layers.begin(), layers.end()};
}

std::vector<std::size_t> layers_named(const std::string& list, std::size_t count) {
    std::vector<std::size_t> layers = layers_of_stack(list, count, count);
    if (layers.empty()) fail_layers(list, count);
    return layers;
}

std::vector<std::string> arrays_of_stacks() {
    std::vector<std::string> names{"encoder_last_hidden_state"};
    for (const std::string prefix : {"encoder_", "decoder_"}) {
        for (const ModelArray& row : array_rows)
            if (row.of_layers && !row.name.starts_with("cross_"))
                names.push_back(prefix + std::string(row.name));
        for (const ArrayRow& row : emitted_arrays)
            if (is_of_attention(row)) names.push_back(prefix + std::string(row.name));
    }
    return names;
}

bool is_model_array(const std::string& name) {
    return find_row(array_rows, &ModelArray::name, std::string_view(name)) != nullptr ||
           std::ranges::count(arrays_of_stacks(), name) != 0;
}

std::vector<std::string> names_of_stack(const std::vector<std::string>& names,
                                        std::string_view prefix) {
    std::vector<std::string> own;
    for (const std::string& name : names)
        if (name.starts_with(prefix))
            own.push_back(name.substr(prefix.size()));
        else if (!name.starts_with("encoder_") && !name.starts_with("decoder_"))
            own.push_back(name);
    return own;
}

std::vector<std::string> arrays_named(const Request& request, bool has_decoder) {
    std::vector<std::string> all, defaults;
    for (const ModelArray& row : array_rows) {
        all.emplace_back(row.name);
        if (row.is_default) defaults.emplace_back(row.name);
    }
    defaults.emplace_back("attention_weights");
    for (const ArrayRow& row : emitted_arrays)
        if (is_of_attention(row)) all.emplace_back(row.name);
    const std::vector<std::string> of_stack =
        has_decoder ? arrays_of_stacks() : std::vector<std::string>();
    if (!request.has("emit")) return defaults;
    std::vector<std::string> named;
    bool is_all = false;
    for (const std::string& name : request.settings.emit) {
        is_all |= name == "all";
        if (name == "all") continue;
        if (std::ranges::count(all, name) == 0 && std::ranges::count(of_stack, name) == 0) {
            if (name.starts_with("generated"))
                throw setting_error(request, "emit",
                                    name +
                                        " is not an array; expected --generate N in its place, "
                                        "which writes generated and, with a tokenizer, "
                                        "generated_text");
            throw setting_error(
                request, "emit",
                unknown_array(name, all) +
                    (has_decoder ? "; arrays of one stack begin with encoder_ or decoder_" : ""));
        }
        if (std::ranges::count(named, name) == 0) named.push_back(name);
    }
    return is_all ? all : named;
}

namespace {

/// Whether a file may be a request rather than a model. Models are folders,
/// GGUF files, or safetensors, which begin with a length.
bool may_be_request(const std::string& path, const io::Access& access) {
    if (path == "-") return true;
    if (io::is_folder(path) || !io::path_exists(path)) return false;
    return io::after_blanks(io::Bytes::start_of(path, access, 256)).starts_with('{');
}

/// The args with the keys of a request, for which no flag is given.
Args with_keys_of(Args args, const io::InputFile& file) {
    for (FlagValue& key : flags_of_request(file, args)) {
        const auto given = std::ranges::find(args.flags, key.option, &FlagValue::option);
        if (given == args.flags.end())
            args.flags.push_back(std::move(key));
        else if (given->origin != Origin::command_line)
            *given = std::move(key);
    }
    return args;
}

/// The request of these args. Errors: kind usage.
ModelAsked asked_of(Args args, Request defaults, std::optional<io::InputFile> file) {
    ModelAsked asked{std::move(args), {}, {}, std::move(file)};
    Request& request = asked.request;
    request = with_flags(std::move(defaults), asked.args);
    apply_deferred(request);
    apply_environment(request);
    if (asked.file)
        if (const io::JsonMember* meta = asked.file->document->find(std::string(io::passed_on_key)))
            request.meta = asked.file->document->copied(*meta);
    for (const Option& option : asked.args.command->own)
        if (const FlagValue* const flag = asked.args.find(option.key))
            request.locations[option.key] = Location(location_of(*flag));
    if (asked.args.has("text_file") && !asked.args.has("text"))
        request.locations["text"] = request.locations["text_file"];
    if (asked.file)
        for (const FlagValue& flag : asked.args.flags)
            request.locations[flag.option->key].is_key = flag.origin == Origin::config;
    if (const std::optional<std::string> path = asked.args.text("model")) asked.path = *path;
    return asked;
}

}  // namespace

bool is_model_request(const io::InputFile& file) {
    if (!file.holds_object() || !file.array.empty()) return false;
    const io::JsonMember* const mode = file.document->find("mode");
    return mode != nullptr && file.document->text(*mode) == "\"model\"";
}

RealArray ModelAsked::read_array(std::string_view key, const io::ArrayRules& rules) const {
    const FlagValue& flag = *args.find(key);
    const io::JsonMember* const member =
        file && flag.origin == Origin::config ? file->document->find(std::string(key)) : nullptr;
    if (member == nullptr || !file->document->holds_array(*member))
        return io::read_reals(io::open_input_file(flag.text, nullptr, request.access), rules,
                              nullptr, request.csv);
    return as_reals(file->document->read_array(*member, rules).values, rules.dtype);
}

ModelAsked model_of_command(const Args& args) {
    const std::vector<std::string>& words = args.names();
    const bool has_model = args.has("model");  // in the config of a result
    if (words.size() > 1 || (words.empty() && !has_model))
        throw Error(ErrorKind::usage, "attn model",
                    words.empty() ? "no model; expected its folder or file, as in attn model DIR "
                                    "--token-ids 3,1,4"
                                  : "a second word, " + io::shortened(words[1]) +
                                        "; expected one model, token ids as --token-ids 3,1,4, "
                                        "and a text as --text TEXT");
    std::optional<io::InputFile> file;
    const bool is_index = !words.empty() && (words[0].ends_with(io::safetensors_index) ||
                                             words[0].ends_with(io::torch_index));
    if (!words.empty() && !is_index && may_be_request(words[0], {})) {
        file = io::open_input_file(words[0]);
        if (!is_model_request(*file))
            throw Error(ErrorKind::usage, file->location,
                        "is not a request of attn model; expected \"mode\": \"model\" in it, or "
                        "the folder or file of a model");
    }
    const bool is_request = file.has_value();
    Args all = is_request ? with_keys_of(args, *file) : args;
    ModelAsked asked = asked_of(std::move(all), {}, std::move(file));
    asked.request.command = command_text(args);
    plan_output(asked.request);
    if (!is_request && !words.empty()) asked.path = words[0];
    if (asked.path.empty())
        throw Error(ErrorKind::usage, asked.file ? asked.file->location : "attn model",
                    "no \"model\"; expected the folder or file of a model");
    return asked;
}

ModelAsked model_of_record(const Request& defaults, const Program& program, io::InputFile record,
                           const std::string& path, std::span<const FlagValue> flags) {
    Args args;
    args.program = &program;
    args.command = &model_command;
    args = with_keys_of(std::move(args), record);
    for (const FlagValue& flag : args.flags)
        if (defaults.no_files && names_file(*flag.option) && !flag.text.starts_with('['))
            throw Error(ErrorKind::usage, flag.location,
                        "\"" + std::string(flag.option->key) +
                            "\" names a file, and --no-files is on; expected none");
    for (const FlagValue& flag : flags) {
        const io::JsonMember* const key = record.document->find(std::string(flag.option->key));
        if (key == nullptr || record.document->text(*key) == "null") args.flags.push_back(flag);
    }
    for (const auto& [key, location] : defaults.locations) {
        const Option* const option = find_option(key);
        if (option != nullptr && !takes(model_command, *option) &&
            find_option(model_command.own, key) == nullptr)
            throw Error(ErrorKind::usage, text_of(defaults, key, location),
                        "mode model does not have this setting; expected it in records of other "
                        "modes");
    }
    const std::string location = record.location;
    ModelAsked asked = asked_of(std::move(args), defaults, std::move(record));
    if (asked.path.empty()) asked.path = path;
    if (asked.path.empty())
        throw Error(ErrorKind::usage, location,
                    "no \"model\"; expected the folder or file of a model");
    return asked;
}

}  // namespace attn::cli
