#include "cli/request/request.hpp"

#include <algorithm>

#include "cli/args/names.hpp"
#include "cli/request/field.hpp"
#include "core/base/did_you_mean.hpp"
#include "core/operator/arrays.hpp"
#include "io/text/text.hpp"

namespace attn::cli {

bool is_from_flag(const Request& request, std::string_view key) {
    const auto found = request.locations.find(key);
    return found != request.locations.end() &&
           (found->second.is_default || found->second.text.starts_with("--"));
}

io::Access access_to(const Request& request, std::string_view key) {
    io::Access access = request.access;
    access.regular_only = access.regular_only || !is_from_flag(request, key);
    return access;
}

std::string text_of(const Request& request, const std::string& key, const Location& location) {
    if (!location.in_document) return location.text;
    const std::string begin = request.document->location(location.offset);
    return location.value.empty() ? begin
                                  : concat(begin, ": ", location.text.empty() ? key : location.text,
                                           " ", io::shortened(location.value));
}

Request without_document(Request request) {
    for (auto& [key, location] : request.locations) {
        Location as_text(text_of(request, key, location));
        as_text.is_key = location.is_key;
        as_text.follows = location.follows;
        location = std::move(as_text);
    }
    request.document.reset();
    return request;
}

std::string location_of(const Request& request, const std::string& key) {
    const auto found = request.locations.find(key);
    if (found != request.locations.end()) return text_of(request, key, found->second);
    // A model's token ids are those of its text.
    if (key == "token_ids" && request.locations.count("text") != 0)
        return location_of(request, "text");
    const Option* option = find_option(key);
    return option != nullptr ? flag_of(*option) : key;
}

bool is_from_key(const Request& request, const std::string& key) {
    const auto found = request.locations.find(key);
    return found != request.locations.end() && found->second.is_key;
}

bool is_in_config(const Request& request, const Option& option) {
    const unsigned source = option.use & (of_draws | of_model);
    return (option.modes & in(request.settings.mode)) != 0 && (option.use & in_config) != 0 &&
           (source == 0 || source == (request.has("weights") ? of_model : of_draws));
}

std::string config_of(const Request& request) {
    std::string config;
    config.reserve(1024);  // longer than most configs
    config = '{';
    io::append_member(config, "mode", row_of(request.settings.mode).name);
    if (!request.id.empty()) io::append_member(config, "id", io::JsonText{request.id});
    const bool tokens_of_text = request.text && !request.has("tokens");
    if (!request.tokens.empty() && !tokens_of_text)
        io::append_member(config, "tokens", request.tokens);
    if (!request.context_tokens.empty())
        io::append_member(config, "context_tokens", request.context_tokens);
    append_settings(config, request,
                    [&](const Option& option) { return is_in_config(request, option); });
    return config += '}';
}

void append_settings(std::string& config, const Request& request,
                     FunctionRef<bool(const Option&)> is_shown) {
    for (const Option& option : options()) {
        if (!is_shown(option)) continue;
        const std::size_t before = config.size();
        append_value(config, option, request);
        if (config.size() != before) config.insert(before, ",\"" + std::string(option.key) + "\":");
    }
}

namespace {

/// The message with the keys of a request in place of flags: "expected d_out 4 or qkv_bias false".
std::string with_keys(std::string message) {
    constexpr std::string_view dashes = "--", negation = "no-";
    for (std::size_t at = 0; (at = message.find(dashes, at)) != std::string::npos; ++at) {
        const auto end = std::find_if(message.begin() + std::ptrdiff_t(at), message.end(),
                                      [](char c) { return c != '-' && !std::islower(c); });
        const std::size_t length = std::size_t(end - message.begin()) - at;
        std::string key = message.substr(at + dashes.size(), length - dashes.size());
        const bool is_negated = key.starts_with(negation);
        if (is_negated) key.erase(0, negation.size());
        std::ranges::replace(key, '-', '_');
        const Option* const option = find_option(key);
        if (option == nullptr || (option->use & as_key) == 0) continue;
        message.replace(at, length, key + (is_negated ? " false" : ""));
    }
    return message;
}

std::string text_of_flag(const FlagValue& flag) {
    if (is_boolean(*flag.option) && flag.text == "false") return "--no-" + flag_name(*flag.option);
    std::string text = flag_of(*flag.option);
    if (has_value(*flag.option)) text += words_text({&flag.text, 1});
    return text;
}

}  // namespace

Error setting_error(const Request& request, const std::string& key, const std::string& message,
                    ErrorKind kind) {
    return {kind, location_of(request, key),
            is_from_key(request, key) ? with_keys(message) : message};
}

std::string flags_text(std::span<const FlagValue> flags,
                       std::initializer_list<std::string_view> left_out) {
    std::string text;
    for (const FlagValue& flag : flags)
        if (std::ranges::find(left_out, flag.option->key) == left_out.end())
            text += " " + text_of_flag(flag);
    return text;
}

std::string command_text(const Args& args) {
    std::string text = "attn " + std::string(args.command->name);
    if (args.input) text += words_text({&*args.input, 1});
    return text + words_text(args.words) + flags_text(args.flags, {"threads"});
}

namespace {

/// Words separated by blanks; short ones are similar to everything.
std::vector<std::string> words_of(std::string_view text) {
    std::vector<std::string> words;
    for (const std::string_view word : io::split_text(text, ' '))
        if (word.size() > 4) words.emplace_back(word);
    return words;
}

}  // namespace

std::string unknown_array(std::string_view name, const std::vector<std::string>& names) {
    if (name.empty()) return "an empty name; expected names separated by commas, or all";
    const std::string small(name.substr(0, 40)), start = "unknown array \"" + small + "\"; ";
    const auto is_here = [&](std::string_view of) {
        return std::ranges::find(names, of) != names.end();
    };
    const NameRow* const other = find_other_name("array", as_listed(small));
    if (other != nullptr && is_here(other->of))
        return start + "attn calls it " + std::string(other->of);
    std::string near = did_you_mean(name, names);
    for (const NameRow& row : all_other_names)
        if (near.empty() && row.table == "array" && is_here(row.of) &&
            !did_you_mean(name, words_of(row.names)).empty())
            near = row.of;
    if (!near.empty()) return start + "did you mean " + near + "?";
    return start + "expected " + io::comma_list(names) + ", or all";
}

void check_array_names(const std::vector<std::string>& emit) {
    for (const std::string& name : emit)
        if (name != "all" && name != all_gradients && !find_array(name))
            throw SettingError(ErrorKind::usage, "emit", unknown_array(name, names_of_arrays()));
}

}  // namespace attn::cli
