// A request of `attn model`, from flags or from a file.

#include <algorithm>
#include <utility>

#include "cli/model/model.hpp"
#include "cli/request/request_builder.hpp"
#include "core/base/error.hpp"
#include "io/file/path.hpp"
#include "io/text/text.hpp"

namespace attn::cli {
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
