#include "cli/help/help.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "cli/args/names.hpp"
#include "core/base/did_you_mean.hpp"
#include "core/base/error.hpp"
#include "io/file/output.hpp"
#include "io/file/screen.hpp"
#include "io/file/source.hpp"

namespace attn::cli {
namespace {

std::string section(const char* name) {
    return std::string(".SH ") + name + '\n';
}

/// A paragraph after a tag.
std::string tagged(std::string_view tag, std::string_view words) {
    return ".TP\n.B " + roff_text(tag) + '\n' + roff_line(roff_text(words));
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

namespace {

std::vector<std::string_view> all_names(const Program& program) {
    std::vector<std::string_view> names;
    for (const CommandRow* command : program.commands) names.push_back(command->name);
    for (const Topic& topic : manual)
        if (find_command(program, topic.name) == nullptr) names.push_back(topic.name);
    return names;
}

std::string list_of_all(const Program& program, std::size_t columns) {
    std::string page =
        "attn help WORDS shows one of these, or what the manual has of a flag, an array, a "
        "model\ntype, a name of another library or any other word.\n" +
        command_list(program, columns);
    page += "\nTopics of the manual:\n";
    for (const Topic& topic : manual)
        if (find_command(program, topic.name) == nullptr)
            page += list_entry(topic.name, title_of(topic), columns);
    return page;
}

std::string list_of(const std::vector<HelpEntry>& entries, std::size_t first) {
    std::vector<std::string> names;  // a flag of several commands has several entries
    for (const HelpEntry& entry : std::span(entries).subspan(first))
        if (std::ranges::find(names, entry.name) == names.end()) names.push_back(entry.name);
    return names.empty() ? "" : "\nAlso: " + io::comma_list(names) + '\n';
}

/// The first entry of a word, and the names of the others.
std::string entry_page(const std::vector<HelpEntry>& entries) {
    if (entries.empty()) return "";
    // A flag may have a row for modes and others for commands.
    std::string page;
    std::size_t shown = 0;
    for (; shown < entries.size() && entries[shown].name == entries[0].name; ++shown)
        page += (shown == 0 ? entries[0].name + '\n' : "\n") + entries[shown].text;
    return page + "\nattn help " + entries[0].topic + " has more.\n" + list_of(entries, shown);
}

/// The best of the sections, with the rows of its tables that have the words, and the next ones.
std::string section_page(const std::vector<const Section*>& sections, std::string_view words,
                         std::size_t columns) {
    constexpr std::size_t most = 4;
    if (sections.empty()) return "";
    std::string page =
        render_text(with_rows(*sections.front(), words).blocks, screen_width(columns)) +
        "\nattn help " + std::string(sections.front()->topic) + " has more.\n";
    for (std::size_t i = 1; i < std::min(sections.size(), most); ++i)
        page += (i == 1 ? "Also: \"" : ", \"") + sections[i]->heading + '"';
    return sections.size() > 1 ? page + '\n' : page;
}

[[noreturn]] void fail_unknown_topic(const Program& program, const std::string& name) {
    const std::vector<std::string_view> names = all_names(program);
    std::vector<std::string> known = words_with_entries(program);
    const bool is_flag = name.starts_with('-');
    if (is_flag)
        std::erase_if(known, [&](const std::string& word) { return !word.starts_with("--"); });
    else
        known.insert(known.begin(), names.begin(), names.end());
    const std::string near = did_you_mean(name, known);
    throw Error(ErrorKind::usage, "attn help " + io::shortened(name),
                near.empty() ? "nothing in the manual; expected a command, page, flag, key, array, "
                               "model type or another word of the manual (attn help lists commands "
                               "and pages)"
                             : "nothing in the manual; did you mean " + near + "?");
}

/// Itself, in lower case, and with the other mark between words: DeepSeek-V3 is deepseek_v3.
std::vector<std::string> spellings_of(const std::string& name) {
    std::string small = name;
    for (char& c : small) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    std::vector<std::string> spellings{name, small, small, small};
    if (!name.starts_with('-')) std::ranges::replace(spellings[2], '-', '_');
    if (!name.starts_with('-')) std::ranges::replace(spellings[3], '_', '-');
    return spellings;
}

std::string joined(const std::vector<std::string>& words) {
    std::string text;
    for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
    return text;
}

}  // namespace

std::string help_page(const Program& program, const std::vector<std::string>& words,
                      std::size_t columns) {
    const std::string query = joined(words);
    std::string name = query;  // other names have '_' between words
    std::ranges::replace(name, ' ', '_');
    const CommandRow* const command = find_command(program, name);
    const Section* const section = find_named_section(name);
    const Topic* const topic = find_row(manual, &Topic::name, name);
    std::vector<HelpEntry> entries;
    for (const std::string& spelling : spellings_of(name))
        if (entries.empty())
            entries = entries_of(program, spelling, std::min(columns, std::size_t{100}));
    std::string page = command != nullptr ? full_page(program, *command, columns) + '\n' : "";
    if (topic != nullptr) {
        page += render_text(parse_markdown(topic->text), screen_width(columns));
    } else if (section != nullptr) {
        if (command == nullptr && !entries.empty() && entries.front().is_sentence) {
            page = entries.front().text + '\n';
            entries.erase(entries.begin());
        }
        page += section_page({section}, section->heading, columns);
    } else if (command != nullptr) {
        page.pop_back();
    }
    if (!page.empty()) return page + list_of(entries, 0);
    page = entry_page(entries);
    return page.empty() && !name.starts_with('-')
               ? section_page(find_sections(query), query, columns)
               : page;
}

namespace {

/// Writes a page to standard output; on a terminal with the pager of PAGER, or with less.
void show_page(const std::string& page) {
    // As git does: a page that fits on the screen is not paged.
    constexpr const char* usual =
        "if command -v less >/dev/null; then LESS=${LESS-FRX} exec less; else exec cat; fi";
    constexpr int not_found = 127;
    const char* const chosen = std::getenv("PAGER");
    const std::string_view pager = chosen != nullptr ? chosen : usual;
    std::FILE* const pipe = isatty(STDOUT_FILENO) == 0 || pager.empty() || pager == "cat"
                                ? nullptr
                                : popen(pager.data(), "w");
    if (pipe == nullptr) return io::show(page);
    // An interrupt is the pager's, and a reader who leaves early needs no error.
    const auto before = std::signal(SIGINT, SIG_IGN);
    std::fwrite(page.data(), 1, page.size(), pipe);
    const int status = pclose(pipe);
    std::signal(SIGINT, before);
    if (WIFEXITED(status) && WEXITSTATUS(status) == not_found) io::show(page);
}

int run_help(const Args& args) {
    const std::vector<std::string>& words = args.words;  // may be flags
    const std::size_t columns = io::screen_columns(STDOUT_FILENO);
    std::string page;
    if (args.has("man")) {
        if (!words.empty())
            throw Error(ErrorKind::usage, "--man", "given with ", io::shortened(words[0]),
                        "; expected no topic, since it contains all");
        page = man_page(*args.program);
    } else {
        page = words.empty() ? list_of_all(*args.program, columns)
                             : help_page(*args.program, words, columns);
    }
    if (page.empty()) fail_unknown_topic(*args.program, joined(words));
    args.has("man") ? io::show(page) : show_page(page);
    return 0;
}

constexpr Option help_options[] = {
    {.key = "man", .field = no_value, .help = "the man page, in roff, as man -l reads it"}};

}  // namespace

constexpr CommandRow help_command{
    .name = "help",
    .summary = "the manual: a page on a command or a topic",
    .examples =
        "  attn help\n"
        "  attn help formats\n"
        "  attn help --rope\n"
        "  attn help kv cache\n"
        "  attn help --man | man -l -\n",
    .usage =
        "[WORD...]\n\nWORD is a command, a page of the manual, a flag, "
        "a key of a request, an array, a model type,\na name of "
        "another library, or what headings, tables and texts of the "
        "manual\nmay have, also in several words; without it: the "
        "list of commands and pages.",
    .own = help_options,
    .explains_flags = true,
    .names = all_names,
    .run = run_help};

}  // namespace attn::cli
