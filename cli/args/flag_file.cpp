#include "cli/args/args.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <type_traits>

#include <nlohmann/json.hpp>

#include "cli/args/names.hpp"
#include "core/base/did_you_mean.hpp"
#include "core/base/error.hpp"
#include "io/file/access.hpp"
#include "io/file/bytes.hpp"
#include "io/file/path.hpp"
#include "io/file/source.hpp"
#include "io/read/input_formats.hpp"
#include "io/read/json_document.hpp"
#include "io/read/result_view.hpp"
#include "io/text/json_text.hpp"
#include "io/text/text.hpp"

namespace attn::cli {
namespace {

using nlohmann::json;

/// Whether a string is not itself as a part between commas. Then the list is written as JSON, which
/// begins with a string.
bool needs_quotes(const json& item) {
    if (!item.is_string()) return false;
    const std::string& text = item.get_ref<const std::string&>();
    return text.empty() || text.find(',') != std::string::npos || text.starts_with("[\"") ||
           text.front() == ' ' || text.back() == ' ';
}

/// The command line's form; empty for values without one.
std::optional<std::string> spelled_value(const json& value) {
    if (value.is_string()) return value.get<std::string>();
    // 1e3 is the integer 1000, as in a request.
    constexpr double exact = 0x1p53;
    if (value.is_number_float() && std::floor(value.get<double>()) == value.get<double>() &&
        std::abs(value.get<double>()) <= exact &&
        !(value == 0.0 && std::signbit(value.get<double>())))
        return std::to_string(value.get<std::int64_t>());
    if (value.is_boolean() || value.is_number()) return value.dump();
    if (!value.is_array()) return {};
    if (std::ranges::any_of(value, needs_quotes)) return value.dump();
    std::string list;
    for (const json& item : value) {
        if (item.is_array()) return {};
        const std::optional<std::string> text = spelled_value(item);
        if (!text) return {};
        list += (list.empty() ? "" : ",") + *text;
    }
    return list;
}

bool is_text(const Option& option) {
    using enum FieldKind;
    const FieldKind kind = option.field.kind;
    const std::string_view argument = option.argument;
    const bool is_word = kind == word && (names_file(option) || argument == "DIR");
    return kind == string || kind == text || kind == strings || kind == operand || kind == choice ||
           is_word;
}

std::vector<std::string> keys_of(const Program& program, const CommandRow& command) {
    std::vector<std::string> keys;
    for (const Option& option : command.keys) keys.emplace_back(option.key);
    for (const Option& option : command.own) keys.emplace_back(option.key);
    for (const Option& option : program.options)
        if (takes(command, option)) keys.emplace_back(option.key);
    return keys;
}

class FlagFile {
public:
    FlagFile(const std::string& path, Origin origin, Args& args)
        : path_(path), origin_(origin), args_(args), program_(*args.program),
          command_(*args.command) {}

    /// Adds the flags, and the result that they are of.
    void read() {
        read_flags();
        std::ranges::move(given_, std::back_inserter(args_.flags));
        args_.flag_files.push_back(path_);
    }

    std::vector<FlagValue> of_request(const io::Source& source, const io::JsonDocument& document) {
        is_request_ = true;
        read_members(source, document);
        return std::move(given_);
    }

private:
    void read_flags() {
        io::InputFile opened;
        if (is_pipe() || is_binary()) {
            opened = or_no_flags([&] { return io::open_input_file(path_); }, !is_pipe());
            if (opened.arrays) return take_arrays(std::move(opened));
        }
        io::Source text =
            opened.source ? *opened.source : or_no_flags([&] { return io::read_source(path_); });
        const std::string_view object = io::after_blanks(text.text);
        if (!object.starts_with('{'))
            fail_without_flags(text.location(text.text.size() - object.size()));
        auto file = std::make_shared<io::InputFile>(io::input_file_of_line(std::move(text)));
        file->location = file->name;
        const io::Source& source = *file->source;
        const io::JsonDocument& whole = *file->document;
        const io::JsonMember* const config = whole.find("config");
        const bool is_result =
            whole.find("schema") != nullptr && config != nullptr && whole.holds_object(*config);
        if (!is_result) return read_members(source, whole);
        const io::JsonDocument settings(source, *config);
        is_result_ = true;
        read_members(source, settings);
        take_result(std::move(file));
    }

    /// It is read once, and not looked into.
    bool is_pipe() const { return io::path_exists(path_) && !io::file_id(path_); }

    bool is_binary() const {
        constexpr std::size_t enough = 64;
        if (!io::file_id(path_)) return false;
        const io::InputFormat* const format =
            io::format_of_start(io::Bytes::start_of(path_, {}, enough));
        return format != nullptr && !format->text;
    }

    /// The config of a result in binary form.
    void take_arrays(io::InputFile file_of_arrays) {
        auto opened = std::make_shared<io::InputFile>(std::move(file_of_arrays));
        const io::InputFile& file = *opened;
        const json config = io::head_member(file, "config");
        if (!config.is_object()) fail_without_flags(path_);
        set_kind(config.contains("mode"));
        is_result_ = true;
        for (const auto& [key, value] : config.items()) take(key, value, path_ + ": config");
        take_result(std::move(opened));
    }

    /// It is a question if it says what it was computed on: by its arrays or by its settings.
    void take_result(std::shared_ptr<io::InputFile> file) {
        if (!is_mode_config_ || !is_of_modes()) return;
        const json written = io::head_member(*file, "config"),
                   config = *io::ResultHead(*file).config;
        for (const auto& [key, value] : config.items())
            if (!written.contains(key)) take(key, value, path_ + ": config");
        for (FlagValue& flag : given_) flag.of_result = flag.option != &config_id;
        const auto has = [&](const char* name) {
            return io::array_in(*file, name) || !io::head_member(*file, name).is_null();
        };
        const auto is_set = [&](const char* key) { return !io::member(config, key).is_null(); };
        args_.is_question = has("layout") && (has("inputs") || has("query") || is_set("example") ||
                                              is_set("text") || is_set("rand") || is_set("randn"));
        args_.result = std::move(file);
    }

    bool is_of_modes() const {
        return command_.mode != nullptr || (command_.takes & in_explain) != 0;
    }

    void set_kind(bool has_mode) {
        const bool takes_modes = (command_.takes & in_explain) != 0;
        is_mode_config_ = origin_ == Origin::config &&
                          (command_.mode != nullptr || takes_modes || !command_.keys.empty()) &&
                          (is_request_ || has_mode);
    }

    void read_members(const io::Source& source, const io::JsonDocument& document) {
        set_kind(document.find("mode") != nullptr);
        for (const io::JsonMember& member : document.members()) {
            const std::string location = source.location(member.key_offset);
            if (is_request_ && (member.key == io::passed_on_key || take_array(document, member)))
                continue;
            if (is_mode_config_ && member.key == "inputs")
                throw Error(
                    ErrorKind::usage, location + ": inputs",
                    "what is computed on, and --config takes settings; expected the request "
                    "as INPUT, or without it, as jq 'del(.inputs)' writes it");
            take(member.key, document.read_value(member), location);
        }
    }

    /// Takes the mode and the id of a config.
    bool take_name(const std::string& key, const json& value, const std::string& location) {
        if (!is_mode_config_ || (key != "mode" && key != "id")) return false;
        if (key == "id") {
            if (!value.is_string() && !value.is_number_integer())
                throw Error(ErrorKind::usage, location + ": id",
                            "no id; expected a string or a 64-bit integer");
            given_.push_back({&config_id, io::json_text(value), origin_, location + ": id"});
            return true;
        }
        const bool has_one = command_.mode != nullptr || !command_.keys.empty();
        const std::string mode = has_one               ? std::string(command_.name)
                                 : args_.words.empty() ? ""
                                                       : args_.words[0];
        if (value == mode || (!has_one && mode_named(mode) == nullptr)) return true;
        const std::string own = value.is_string() ? value.get<std::string>() : value.dump();
        throw Error(ErrorKind::usage, location + ": mode " + io::shortened(own),
                    is_request_ ? "a request of another mode; expected \"" + mode + "\""
                                : "the config of another mode; expected \"" + mode +
                                      "\", the mode of the command");
    }

    /// Takes an array in place of a file's name. It is read later, from the document.
    bool take_array(const io::JsonDocument& document, const io::JsonMember& member) {
        const Option* const own = find_option(command_.own, member.key);
        if (own == nullptr || own->field.kind != FieldKind::operand ||
            !document.holds_array(member))
            return false;
        given_.push_back({own, io::shortened(document.text(member)), origin_,
                          document.location(member) + ": " + member.key});
        return true;
    }

    [[noreturn]] static void fail_without_flags(const std::string& location) {
        throw Error(ErrorKind::input, location,
                    "no object; expected flags as JSON, as {\"d_out\": 2, \"seed\": 123}");
    }

    /// Returns the result of `read`. A file that is not text has no flags, unless it `is_binary`.
    template <class Read>
    std::invoke_result_t<Read> or_no_flags(const Read& read, bool is_binary = false) const {
        try {
            return read();
        } catch (const Error& error) {
            if (error.kind() == ErrorKind::input && !is_binary)
                fail_without_flags(error.location());
            throw;
        }
    }

    void take(const std::string& key, const json& value, const std::string& location) {
        if (take_name(key, value, location)) return;
        const Option* const option = find(key, location, value == false);
        if (option == nullptr || value.is_null()) return;
        if (is_request_ && (option->use & as_key) == 0)
            throw Error(ErrorKind::usage, location + ": " + key,
                        "\"" + key + "\" is not a key of a request; expected " + flag_of(*option) +
                            " on the command line");
        const auto refuse = [&](const std::string& what) {
            throw Error(ErrorKind::usage, location + ": " + key + " " + io::shortened(value.dump()),
                        what);
        };
        const bool is_switch = option->field.kind == FieldKind::no_value;
        if (!has_value(*option) && !value.is_boolean())
            refuse("not a boolean; expected true or false");
        if (is_switch && value == false) return;
        const bool is_operand = option->field.kind == FieldKind::operand;
        const bool takes_constants = is_operand && option->field.set != nullptr;
        if (value.is_array() && !is_list(*option) && !takes_constants)
            refuse(is_request_ && option->field.kind == FieldKind::text
                       ? about_texts(key, path_, "")
                       : "a list; expected one value");
        if (value.is_boolean() && has_value(*option)) refuse("a boolean; expected a value");
        if (value.is_number() && is_text(*option) && !takes_constants)
            refuse("a number; expected a string");
        const bool is_nested =
            takes_constants && value.is_array() && !value.empty() && value.front().is_array();
        const FieldKind kind = option->field.kind;
        const bool is_object =
            kind == FieldKind::shapes ||
            (value.is_object() && (kind == FieldKind::arrays || kind == FieldKind::parameters));
        std::optional<std::string> text =
            is_object || is_nested ? std::optional(value.dump()) : spelled_value(value);
        if (text && option->argument == std::string_view("A:B"))
            std::ranges::replace(*text, ',', ':');
        if (!text) refuse("no value of a flag; expected a number, a string or a list of them");
        const bool is_path = is_operand || (is_request_ && names_file(*option) && value != "none");
        // Those of a result are relative to where its command ran.
        const bool is_beside = !is_result_ && path_ != "<stdin>";
        if (is_beside && is_path && value.is_string() && is_file_name(*option, *text))
            text = io::path_beside(path_, *text);
        given_.push_back({option, is_switch ? "" : *text, origin_, location + ": " + key});
    }

    /// Null for a key that is for other commands.
    const Option* find(const std::string& key, const std::string& location, bool is_off) const {
        const bool is_for_all = origin_ == Origin::environment;
        const bool is_explained =
            is_mode_config_ && command_.mode == nullptr && command_.keys.empty();
        if (const Option* const key_only = find_option(command_.keys, key)) return key_only;
        const Option* const own = find_option(command_.own, key);
        const Option* const shared = find_option(program_.options, key);
        const bool is_setting = is_mode_config_ && command_.mode != nullptr && shared != nullptr &&
                                (shared->use & in_config) != 0 &&
                                (shared->modes & in(command_.mode->mode)) != 0;
        if (is_setting) return shared;
        // Its own --format and --head are not those of the mode.
        if (is_explained && shared != nullptr) return takes(command_, *shared) ? shared : nullptr;
        const bool is_shared = shared != nullptr && (shared->use & as_flag) != 0;
        // The shared option takes precedence over a command's flag of the same name.
        if (own != nullptr && !(is_for_all && is_shared)) return own;
        // The environment's format is for single answers, not for the lines of a batch.
        const bool is_for_modes =
            is_for_all && command_.mode == nullptr && is_shared && (shared->use & in_explain) == 0;
        if (is_shared && takes(command_, *shared) && !is_for_modes) return shared;
        const bool is_mode = command_.mode != nullptr && key == "mode";
        // The environment may name a result, with the settings of other commands.
        const bool is_of_result =
            is_for_all &&
            (is_elsewhere(key, true) || (shared != nullptr && (shared->use & in_config) != 0));
        if (is_shared || is_elsewhere(key) || is_mode || is_of_result) {
            // A switch that is off asks for nothing that the command lacks.
            const bool is_default = is_shared && is_boolean(*shared) && is_off;
            if (is_for_all || is_default) return nullptr;
            if (is_request_)
                refuse_key(key, location, is_shared ? elsewhere(program_, command_, *shared) : "");
            throw Error(ErrorKind::usage, location + ": " + key,
                        is_mode ? "not a flag; expected attn " + std::string(command_.name) +
                                      " to select it"
                                : unknown_flag(program_, command_, flag_of_key(key)));
        }
        if (key == config_option.key)
            throw Error(ErrorKind::usage, location,
                        "a file of flags names another; expected --config on the command line");
        if (key.starts_with("no_") && takes_switch(key.substr(3)))
            throw Error(ErrorKind::usage, location,
                        "unknown key \"" + key + "\"; expected \"" + key.substr(3) + "\": false");
        throw Error(ErrorKind::usage, location, unknown_key(key, keys_of(program_, command_)));
    }

    /// A key of a request that only other commands have.
    [[noreturn]] void refuse_key(const std::string& key, const std::string& location,
                                 const std::string& others) const {
        const std::string near = did_you_mean(key, keys_of(program_, command_));
        throw Error(ErrorKind::usage, location + ": " + key, "not a key of mode ", command_.name,
                    !near.empty()    ? "; did you mean \"" + near + "\"?"
                    : others.empty() ? "; expected another key"
                                     : "; " + others);
    }

    bool takes_switch(const std::string& key) const {
        const Option* const option = find_option(program_.options, key);
        return option != nullptr && is_boolean(*option) && takes(command_, *option);
    }

    bool is_elsewhere(const std::string& key, bool as_key = false) const {
        return std::ranges::any_of(program_.commands, [&](const CommandRow* command) {
            return find_option(as_key ? command->keys : command->own, key) != nullptr;
        });
    }

    const std::string& path_;
    Origin origin_;
    Args& args_;
    const Program& program_;
    const CommandRow& command_;
    bool is_mode_config_ = false;  // may have a mode and an id, as the config of a result
    bool is_request_ = false;
    bool is_result_ = false;
    std::vector<FlagValue> given_;
};

}  // namespace

void read_flag_file(const std::string& path, Origin origin, Args& args) {
    const std::string location =
        (origin == Origin::environment ? "ATTN_CONFIG=" : "--config ") + io::shortened(path);
    if (path.empty() || path == "-")
        throw Error(ErrorKind::usage, location, "no name of a file; expected one");
    if (origin == Origin::environment && !io::path_exists(path))
        throw Error(ErrorKind::io, location,
                    "is not there; expected a file of flags as JSON, or no such variable");
    FlagFile(path, origin, args).read();
}

std::vector<FlagValue> flags_of_request(const io::InputFile& file, Args args) {
    return FlagFile(file.name, Origin::config, args).of_request(*file.source, *file.document);
}

}  // namespace attn::cli
