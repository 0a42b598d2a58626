#include "cli/request/request_builder.hpp"

#include <algorithm>
#include <cstdlib>

#include "cli/args/names.hpp"
#include "cli/request/field.hpp"
#include "core/operator/arrays.hpp"
#include "io/file/path.hpp"
#include "io/plot/picture.hpp"
#include "io/read/input_formats.hpp"

namespace attn::cli {
namespace {

using nlohmann::json;

void store_at(Request& request, const Option& option, const json& value, ErrorKind kind,
              const std::string& location) {
    const std::string problem = store(request, option, value);
    if (!problem.empty()) throw Error(kind, location, problem);
    request.locations[option.key] = location;
}

template <class Formats>
bool has_suffix(const Formats& formats, const std::string& suffix) {
    return !suffix.empty() && std::ranges::any_of(formats, [&](const auto& row) {
        return std::ranges::count(row.suffixes, suffix) != 0;
    });
}

/// "d-out=2", without its dashes.
bool is_setting(const std::string& word) {
    std::string key = word.substr(0, word.find('='));
    std::replace(key.begin(), key.end(), '-', '_');
    return key.size() < word.size() && find_option(key) != nullptr;
}

[[noreturn]] void refuse_second_input(const std::string& word, const Args& args) {
    const auto toggle = std::ranges::find_if(
        args.flags, [](const FlagValue& flag) { return !has_value(*flag.option); });
    constexpr std::string_view toggled = " true false yes no on off ";
    const Mode mode = args.command->mode->mode;
    const std::string first = io::shortened(args.input.value_or("A")), second = io::shortened(word);
    std::string hint;
    const bool is_there = io::path_exists(word);
    const std::string suffix = io::suffix_of_name(word);
    if (!is_there && has_suffix(io::picture_formats, suffix))
        hint = "; to write a picture, use --plot " + word + " (--heatmap draws on the terminal)";
    else if (!is_there && has_suffix(io::output_formats, suffix))
        hint = "; to write the result, use --output " + word;
    else if (is_setting(word))
        hint = "; did you mean --" + second + "?";
    else if (find_array(word))
        hint = "; separate the names of arrays with commas: --emit scores,mask";
    else if (toggled.find(" " + word + " ") != std::string_view::npos)
        hint = "; " + (toggle != args.flags.end() ? flag_of(*toggle->option) : "--pretty") +
               " takes no value";
    else if (args.gives("text"))
        hint = "; quote the text: --text \"some words\"";
    else if (mode == Mode::cross)
        hint = "; to attend to its tokens, use --context " + second;
    else if (mode == Mode::sdpa)
        hint = "; use attn sdpa --query " + first + " --key " + second + " --value FILE";
    throw Error(ErrorKind::usage, word, "unexpected second input; expected only one" + hint);
}

std::vector<std::string> known_keys(Mode mode) {
    std::vector<std::string> keys{"mode", "id", "meta", "inputs"};
    for (const Option& option : options())
        if ((option.use & as_key) != 0 && (option.modes & in(mode)) != 0)
            keys.emplace_back(option.key);
    return keys;
}

void apply_flag(Request& request, const FlagValue& given) {
    const Option& option = *given.option;
    if (io::find_invalid_utf8(given.text) != std::string::npos)
        throw Error(ErrorKind::usage, flag_of(option), "not UTF-8; expected UTF-8 text");
    store_at(request, option, value_of(option, given.text), ErrorKind::usage, location_of(given));
    request.locations[option.key].is_default = given.origin != Origin::command_line;
}

}  // namespace

Request with_flags(Request request, const Args& args) {
    if (request.has_mode && !request.of_batch && args.result) {
        request.result = args.result;
        request.is_question = args.is_question && !args.input && request.input.empty();
        if (request.is_question) request.input = args.result->name;
    }
    for (const FlagValue& given : args.flags) {
        const Option& option = *given.option;
        if (&option == &config_id) request.id = given.text;
        // A command reads its own flags itself.
        if (find_option(option.key) != &option) continue;
        if (given.of_result && request.result) {
            request.of_result.push_back(given);
            continue;
        }
        // Environment flags apply to all modes, and a record may specify its mode.
        if (given.origin == Origin::environment)
            request.deferred.push_back(given);
        else
            apply_flag(request, given);
    }
    if (!request.of_batch && request.has_mode) apply_deferred(request);
    return request;
}

void apply_deferred(Request& request) {
    const Modes here = in(request.settings.mode);
    for (const FlagValue& given : request.deferred)
        if ((given.option->modes & here) != 0 && !request.has(given.option->key))
            apply_flag(request, given);
    request.deferred.clear();
}

void apply_settings_of_result(Request& request, const json& asked) {
    const Modes here = in(request.settings.mode);
    for (FlagValue& given : request.of_result) {
        const std::string key = given.option->key;
        if (!asked.contains(key) || (given.option->modes & here) == 0 || request.has(key)) continue;
        if (key == "emit" && asked[key] == json{"all"}) given.text = "all";
        apply_flag(request, given);
    }
    request.of_result.clear();
}

void apply_key(Request& request, const std::string& key, const json& value,
               const Location& location, const std::string& unread) {
    const Option* option = find_option(key);
    const Mode mode = request.settings.mode;
    const auto fail = [&](const std::string& message) {
        Location key_location = location;
        key_location.value = {};
        throw Error(ErrorKind::usage, text_of(request, key, key_location),
                    message + (unread.empty() ? "" : "; or --ignore-arrays " + unread));
    };
    const Option* positive = key.starts_with("no_") ? find_option(key.substr(3)) : nullptr;
    if (positive != nullptr && is_boolean(*positive))
        fail("unknown key \"" + key + "\"; expected \"" + positive->key + "\": false");
    if (option == nullptr) {
        const NameRow* const row = find_other_name("option", as_listed(key));
        const Option* const other = row == nullptr ? nullptr : find_option(row->of);
        if (other != nullptr && (other->modes & in(mode)) == 0)
            fail("unknown key \"" + key + "\"; attn calls it \"" + other->key + "\"; " +
                 where_else(*other, mode));
        fail(unknown_key(key, known_keys(mode)));
    }
    if ((option->use & as_key) == 0)
        fail("\"" + key + "\" is not a key of a request; expected " + flag_of(*option) +
             " on the command line");
    if ((option->modes & in(mode)) == 0)
        fail("mode " + std::string(row_of(mode).name) + " has no \"" + key + "\"; " +
             where_else(*option, mode));
    if (request.keeps_flag(key) || value.is_null()) return;
    const std::string problem = store(request, *option, value);
    if (!problem.empty()) throw Error(ErrorKind::usage, text_of(request, key, location), problem);
    request.locations[key] = location;
}

void apply_value(Request& request, const std::string& key, const json& value,
                 const std::string& location) {
    store_at(request, *find_option(key), value, ErrorKind::input, location);
}

void check_defaults(const Request& request) {
    for (const auto& [key, location] : request.locations) {
        const Option* option = find_option(key);
        if (option != nullptr && (option->modes & in(request.settings.mode)) == 0)
            throw Error(ErrorKind::usage, text_of(request, key, location),
                        "mode " + std::string(row_of(request.settings.mode).name) +
                            " does not have this setting; " +
                            where_else(*option, request.settings.mode));
    }
}

void apply_shorthands(Request& request) {
    // Flags rank above a document or a result, defaults of a batch or a file of flags below.
    const auto rank = [&](const char* key) {
        return !request.has(key)             ? 0
               : !is_from_flag(request, key) ? 2
               : request.keeps_flag(key)     ? 3
                                             : 1;
    };
    const auto apply = [&](const char* of, const char* key, auto& setting, const auto& value) {
        if (rank(key) == rank(of) && setting != value)
            throw setting_error(request, of,
                                "conflicts with " + location_of(request, key) +
                                    ", which it also sets; expected one of them");
        if (rank(key) > rank(of)) return;
        setting = value;
        Location& location = request.locations[key] = request.locations[of];
        if (location.in_document) location.text = of;
    };
    Settings& s = request.settings;
    if (request.device) {
        apply("device", "rng", s.rng, request.device->first);
        if (row_of(s.mode).mechanism == Mechanism::softmax)
            apply("device", "dropout_stream", s.dropout_stream, request.device->second);
    }
    if (request.gpu) {
        apply("gpu", "multiprocessors", s.multiprocessors, request.gpu->multiprocessors);
        apply("gpu", "threads_per_multiprocessor", s.threads_per_multiprocessor,
              request.gpu->threads_per_multiprocessor);
    }
}

void apply_environment(Request& request) {
    const char* kernel = std::getenv("ATTN_KERNEL");
    if (kernel == nullptr || *kernel == '\0' || request.has("kernel")) return;
    store_at(request, *find_option("kernel"), kernel, ErrorKind::usage,
             "ATTN_KERNEL=" + io::shortened(kernel));
}

namespace {

void check_input_name(const std::string& input, const CommandRow& command) {
    if (input.empty())
        throw Error(ErrorKind::usage, "INPUT", "an empty name; expected a path or -");
    if (input == "help" && !io::path_exists(input))
        throw Error(
            ErrorKind::usage, input,
            "file not found; expected attn help " + std::string(command.name) + ", or a file");
    if (find_array(input) && !io::path_exists(input))
        throw Error(ErrorKind::usage, input,
                    "file not found; expected a list of arrays without blanks: --emit scores,mask");
    if (is_setting(input) && !io::path_exists(input))
        throw Error(ErrorKind::usage, io::shortened(input),
                    "file not found; expected --" + io::shortened(input));
    if (io::is_folder(input) && io::manifest_in(input).empty())
        throw Error(ErrorKind::io, io::shortened(input),
                    "is a folder; expected a file, and a model's folder as --weights " +
                        io::shortened(input));
}

}  // namespace

Request request_of_mode(const std::vector<std::string>& words) {
    Request request;
    request.settings.mode = mode_named(words[0])->mode;
    if (words.size() > 2)
        throw Error(ErrorKind::usage, words[2], "unexpected second input; expected only one");
    if (words.size() < 2) return request;
    if (words[1].empty())
        throw Error(ErrorKind::usage, "INPUT", "an empty name; expected a path or -");
    request.input = words[1];
    return request;
}

Request request_of_words(const std::vector<std::string>& words, const ModeWords& form) {
    const std::string expected = "; expected " + listed_modes() + ", then INPUT" +
                                 (form.instead.empty() ? "" : "; or " + form.instead);
    if (words.empty()) throw Error(ErrorKind::usage, form.command, form.missing + expected);
    const std::string& first = words[0];
    if (mode_named(first) != nullptr) return request_of_mode(words);
    if (words.size() > 1 || form.instead.empty())
        throw Error(ErrorKind::usage, io::shortened(first), "is not a mode" + expected);
    if (!io::is_standard_input(first) && !io::path_exists(io::split_data_path(first).file))
        throw Error(ErrorKind::usage, io::shortened(first),
                    "file not found, and not a mode" + expected);
    Request request;
    request.has_mode = false;
    request.is_question = true;
    request.input = first;
    return request;
}

void require_recording_kernel(const Request& request) {
    if (request.settings.kernel != "auto" && request.settings.kernel != recording_kernel)
        throw setting_error(request, "kernel",
                            "a fused kernel records no steps; expected auto or reference");
}

Request make_request(const Args& args) {
    Request request;
    request.settings.mode = args.command->mode->mode;
    request.command = command_text(args);
    for (const std::string& word : args.words) {
        if (word.starts_with("-:") && request.input.empty())
            request.input = word;  // an array of standard input, which looks like a flag
        else if (word.starts_with('-') && word != "-")
            args.fail_unknown(word);
        else
            refuse_second_input(word, args);
    }
    request = with_flags(std::move(request), args);
    if (!args.input) return request;
    if (!request.input.empty())
        throw Error(ErrorKind::usage, "-", "unexpected second input; expected only one");
    check_input_name(*args.input, *args.command);
    request.input = *args.input;
    return request;
}

}  // namespace attn::cli
