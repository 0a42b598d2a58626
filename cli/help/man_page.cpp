#include "cli/help/help.hpp"

#include <string_view>

#include "cli/args/args.hpp"
#include "cli/page/page.hpp"

namespace attn::cli {
namespace {

std::string section(const char* name) {
    return std::string(".SH ") + name + '\n';
}

std::string bold_line(std::string_view text) {
    return ".B " + roff_text(text) + '\n';
}

/// A paragraph after a tag.
std::string tagged(std::string_view tag, std::string_view words) {
    return ".TP\n" + bold_line(tag) + roff_line(roff_text(words));
}

/// "multihead, cross, sdpa", unless it is every mode.
std::string modes_of(const Program& program, const Option& option) {
    std::string names;
    bool is_everywhere = true;
    for (const CommandRow* command : program.commands) {
        if (command->mode == nullptr) continue;
        if (takes(*command, option))
            names += (names.empty() ? "" : ", ") + std::string(command->name);
        else
            is_everywhere = false;
    }
    return is_everywhere ? "" : names;
}

/// The options of the modes, by group.
std::string mode_flags(const Program& program) {
    std::string out;
    std::string_view group;
    for (const Option& option : program.options) {
        if ((option.use & as_flag) == 0) continue;
        if (option.group != group) out += ".SS " + std::string(group = option.group) + '\n';
        const std::string modes = modes_of(program, option);
        out +=
            tagged(spelling_of(option), help_of(option) + (modes.empty() ? "" : "; of " + modes));
    }
    return out;
}

std::string own_flags(const Program& program, const CommandRow& command) {
    std::string out = ".SS attn " + std::string(command.name) + '\n';
    for (const ShownOption& shown : taken_options(program, command))
        if (shown.group != nullptr) out += tagged(spelling_of(*shown.option), shown.help);
    return out;
}

/// The page, or one section of it.
std::string page_section(const char* name, std::string_view topic, std::string_view heading = "") {
    constexpr std::string_view mark = "\n## ";
    std::string_view text = find_topic(topic)->text;
    if (!heading.empty()) {
        text.remove_prefix(text.find(std::string(mark) + std::string(heading)) + 1);
        text.remove_prefix(text.find('\n'));
        text = text.substr(0, text.find(mark));
    }
    return section(name) + render_roff(parse_markdown(text));
}

}  // namespace

std::string man_page(const Program& program) {
    const std::string version = program.version();
    std::string page = ".TH ATTN 1 \"\" \"" + roff_text(version.substr(0, version.find('\n'))) +
                       "\" \"User Commands\"\n" + section("NAME") + "attn \\- " +
                       roff_text(program.summary) + '\n' + section("SYNOPSIS") +
                       ".B attn\n.I COMMAND\n[\\fIINPUT\\fR] [\\fIFLAGS\\fR]\n" +
                       section("COMMANDS");
    for (const CommandRow* command : program.commands)
        page += tagged("attn " + std::string(command->name),
                       std::string(command->summary) + command->note);
    page +=
        section("FLAGS OF THE MODES") + mode_flags(program) + section("FLAGS OF OTHER COMMANDS");
    for (const CommandRow* command : program.commands)
        if (command->mode == nullptr && !command->own.empty()) page += own_flags(program, *command);
    page += ".SS all commands\n" + tagged(spelling_of(config_option), config_option.help) +
            tagged("-h", "the common flags") + tagged("--help", "every flag");
    page += page_section("FILES", "formats") +
            page_section("ENVIRONMENT", "scripts", "Environment") +
            page_section("EXIT STATUS", "scripts", "Exit codes") + section("EXAMPLES");
    page += roff_code(program.examples);
    page += section("SEE ALSO");
    for (const Topic& topic : manual)
        page += tagged("attn help " + std::string(topic.name), title_of(topic));
    return page;
}

}  // namespace attn::cli
