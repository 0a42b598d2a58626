#include "cli/request/request.hpp"

#include "cli/request/field.hpp"
#include "io/text/json_text.hpp"

namespace attn::cli {

std::string config_of(const Request& request) {
    const Mode mode = request.settings.mode;
    const unsigned elsewhere = request.has("weights") ? of_draws : of_model;
    std::string config;
    config.reserve(1024);  // longer than most configs
    config = '{';
    io::append_member(config, "mode", row_of(mode).name);
    if (!request.id.empty()) io::append_member(config, "id", io::JsonText{request.id});
    const bool tokens_of_text = request.text && !request.has("tokens");
    if (!request.tokens.empty() && !tokens_of_text)
        io::append_member(config, "tokens", request.tokens);
    if (!request.context_tokens.empty())
        io::append_member(config, "context_tokens", request.context_tokens);
    for (const Option& option : options()) {
        const bool is_here = (option.modes & in(mode)) != 0 && (option.use & in_config) != 0 &&
                             (option.use & elsewhere) == 0;
        if (!is_here) continue;
        const std::size_t before = config.size();
        ((config += ",\"") += option.key) += "\":";
        const std::size_t without_value = config.size();
        append_value(config, option, request);
        if (config.size() == without_value) config.resize(before);
    }
    return config += '}';
}

}  // namespace attn::cli
