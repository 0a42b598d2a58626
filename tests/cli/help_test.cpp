// Pages of the manual as text, at every width: nothing is lost, no line is too wide.
#include <cctype>

#include "cli/args/names.hpp"
#include "cli/commands.hpp"
#include "cli/help/help.hpp"
#include "cli/page/page.hpp"
#include "io/text/text.hpp"
#include "tests/support/answers.hpp"

namespace help_test {
namespace {

using namespace attn::cli;
using attn::test::contains;
using attn::test::lines_of;
using attn::test::run_attn;

void replace_all(std::string& text, const std::string& from, const std::string& to) {
    for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
        text.replace(at, from.size(), to);
}

std::string text_page(std::string_view markdown, std::size_t columns) {
    return render_text(parse_markdown(markdown), screen_width(columns));
}

/// Whether a line is one word, perhaps of a list.
bool is_word(std::string_view line) {
    line.remove_prefix(std::min(line.find_first_not_of("- "), line.size()));
    return line.find(' ') == std::string_view::npos;
}

constexpr std::size_t step = 3 * attn::test::one_in;  // every width takes a minute

/// A page's source as it is shown: without fences, the ends of links, and the first cell of each
/// table, which a list leaves out.
std::string shown_words(std::string_view page) {
    std::string text;
    bool was_table = false;
    for (const std::string& line : lines_of(std::string(page))) {
        const bool is_table = line.starts_with('|'), begins = is_table && !was_table;
        was_table = is_table;
        if (!line.starts_with("```")) text += line.substr(begins ? line.find('|', 1) : 0) + '\n';
    }
    replace_all(text, ".md)", ")");
    return text;
}

/// How often each letter and digit occurs; other signs may be marks of the source.
std::array<int, 256> letters_of(const std::string& text) {
    std::array<int, 256> counts{};
    for (const char c : text)
        if (const auto byte = static_cast<unsigned char>(c);
            byte >= 0x80 || std::isalnum(byte) != 0)
            ++counts[byte];
    return counts;
}

/// The table of cli/manual/flags.md: the flags of modes by group, then those of other commands.
std::string table_of_flags() {
    const Program& program = attn_program();
    std::string table = "| | flags |\n|---|---|\n";
    const auto add = [&](const std::string& group, const std::vector<const Option*>& options) {
        std::string cell;
        for (const Option* option : options)
            cell += (cell.empty() ? "" : ", ") + spelling_of(*option);
        replace_all(cell, "|", "\\|");
        replace_all(cell, ", -", "`, `-");
        table += "| " + group + " | `" + cell + "` |\n";
    };
    std::map<std::string_view, std::vector<const Option*>> groups;
    std::vector<std::string_view> order;
    for (const Option& option : program.options)
        if ((option.use & as_flag) != 0) {
            if (groups[option.group].empty()) order.emplace_back(option.group);
            groups[option.group].push_back(&option);
        }
    for (const std::string_view group : order) add("modes: " + std::string(group), groups[group]);
    for (const CommandRow* command : program.commands) {
        std::vector<const Option*> options;
        if (command->mode == nullptr)
            for (const ShownOption& shown : taken_options(program, *command))
                if (shown.group != nullptr) options.push_back(shown.option);
        if (!options.empty()) add("`attn " + std::string(command->name) + '`', options);
    }
    add("every command", {&config_option, &help_option});
    add("`attn`", {&version_option});
    return table;
}

TEST_CASE("manual: the page of flags has the table of options") {
    const std::string table = table_of_flags();
    CHECK_MESSAGE(contains(find_topic("flags")->text, table), "flags.md; expected\n" << table);
}

TEST_CASE("manual: every page of the manual fits every width, and nothing of it is lost") {
    REQUIRE(manual.size() + 1 == attn::test::manual_pages().size());
    attn::test::Sample sample;
    for (const Topic& topic : manual)
        for (std::size_t columns = 20; columns <= 200; columns += step) {
            if (!sample.takes()) continue;
            CAPTURE(std::string(topic.name));
            CAPTURE(columns);
            const std::string shown = text_page(topic.text, columns);
            const auto source = letters_of(shown_words(topic.text)), found = letters_of(shown);
            CHECK(std::equal(source.begin(), source.end(), found.begin(), std::less_equal<>()));
            std::string wrong;  // the first line that is too wide, or ends with a blank
            for (const std::string& line : lines_of(shown)) {
                const bool is_code = line.starts_with("    ");
                const bool fits =
                    is_code || is_word(line) || attn::io::display_width(line) <= columns;
                if (wrong.empty() && (!fits || line.ends_with(' '))) wrong = line;
            }
            CHECK(wrong == "");
        }
}

TEST_CASE("manual: every command and every topic has a page, and is in the list") {
    const std::string list = run_attn({"help"}).out;
    for (const CommandRow* command : attn_program().commands) {
        const std::string name(command->name);
        const attn::test::Outcome page = run_attn({"help", name});
        CHECK(page.code == 0);
        CHECK(page.out.starts_with(run_attn({"--help", name}).out));
        CHECK(contains(list, "\n  " + name + " "));
    }
    for (const Topic& topic : manual) {
        const std::string name(topic.name), page = run_attn({"help", name}).out;
        CHECK(contains(page, text_page(topic.text, 80)));
        CHECK(contains(list, "\n  " + name + " "));
        CHECK(topic.text.starts_with("# "));
    }
}

TEST_CASE("manual: links of the manual lead to pages that there are") {
    for (const Topic& topic : manual)
        for (std::size_t at = 0; (at = topic.text.find("](", at)) != std::string_view::npos; ++at) {
            const std::string_view target =
                topic.text.substr(at + 2, topic.text.find(')', at) - at - 2);
            CAPTURE(std::string(target));
            CHECK((target.starts_with("https://") ||
                   (target.ends_with(".md") &&
                    std::any_of(manual.begin(), manual.end(), [&](const Topic& page) {
                        return page.name == target.substr(0, target.size() - 3);
                    }))));
        }
}

TEST_CASE("help: every flag, array and model type has its line and its page") {
    const std::vector<std::string> words = words_with_entries(attn_program());
    CHECK(words.size() > 250);
    for (const std::string& word : words) {
        CAPTURE(word);
        const std::vector<HelpEntry> entries = entries_of(attn_program(), word, 80);
        REQUIRE(!entries.empty());
        for (const HelpEntry& entry : entries) {
            CAPTURE(entry.text);
            CHECK(find_topic(entry.topic) != nullptr);
            CHECK_FALSE(contains(entry.text, "    \n"));  // a meaning that is missing
            for (const std::string& line : lines_of(entry.text))
                CHECK(attn::io::display_width(line) <= 80);
        }
    }
}

TEST_CASE("help: every flag has its entry, as completion spells it, and is on the man page") {
    std::string all = man_page(attn_program());
    replace_all(all, "\\-", "-");
    for (const CommandRow* command : attn_program().commands)
        for (const auto& word :
             completion_of(attn_program(), "attn " + std::string(command->name) + " -").words) {
            const std::string flag = word.first;
            CAPTURE(flag);
            CHECK(contains(all, flag));
            if (flag == "--man") continue;  // the help command's own
            const attn::test::Outcome page = run_attn({"help", flag});
            CHECK(page.code == 0);
            CHECK(page.out.starts_with("flag --"));
        }
}

TEST_CASE("help: a word shows its first entry and lists the others") {
    const auto help = [](const std::string& word) { return run_attn({"help", word}).out; };
    CHECK(help("mask").starts_with("flag --mask\n    --mask FILE\n"));
    CHECK(help("mask").ends_with("\nAlso: array mask\n"));
    CHECK_FALSE(contains(help("--mask"), "Also"));
    CHECK(help("--config").starts_with("flag --config\n    --config FILE\n"));
    CHECK(help("mask_true").starts_with("flag --mask-true\n"));
    CHECK(help("causal").starts_with("attn causal: "));
    CHECK(help("causal").ends_with("\nAlso: flag --causal\n"));
    CHECK(help("inputs").starts_with("key \"inputs\"\n"));
    CHECK(help("inputs").ends_with("\nAlso: array inputs\n"));
    CHECK(help("logsumexp").starts_with("array logsumexp\n    of each query, the natural log"));
    CHECK(contains(help("xlm-roberta"), "--family bert"));
    CHECK(contains(help("num_heads"), "Called num_heads elsewhere."));
}

TEST_CASE("help: words that people look up show the section that has them") {
    std::istringstream lines(
        attn::test::read_text(attn::test::data_path("../tests/cli/help_words.tsv")));
    std::size_t count = 0;
    for (std::string line; std::getline(lines, line);) {
        const std::size_t tab = line.find('\t');
        const std::string expected = line.substr(0, tab) + '\n';
        std::istringstream words(line.substr(tab + 1));
        for (std::string word; std::getline(words, word, ';'); ++count) {
            word = word.substr(word.starts_with(' ') ? 1 : 0);
            const std::string page = help_page(attn_program(), {word}, 80);
            CAPTURE(word);
            CAPTURE(page);
            CHECK((page.starts_with(expected) || contains(page, "\n" + expected)));
        }
    }
    CHECK(count >= 150);
    // Several words are one, with or without quotes.
    CHECK(help_page(attn_program(), {"kv", "cache"}, 80) ==
          help_page(attn_program(), {"kv cache"}, 80));
}

TEST_CASE("help: every name of the tables is answered, and leads to a section that exists") {
    std::set<std::string> words{"ATTN_CONFIG", "ATTN_KERNEL",    "COLUMNS",
                                "NO_COLOR",    "CLICOLOR_FORCE", "PAGER"};
    for (const NameRow& row : all_other_names) {
        std::istringstream names{std::string(row.names)};
        for (std::string name; names >> name;) {
            CAPTURE(name);
            if (row.table == "topic") {
                CHECK(find_named_section(name) != nullptr);
                CHECK(find_other_name("topic", " " + name + " ") == &row);  // one row has it
            }
            if (row.table != "result") words.insert(name);
        }
    }
    for (const std::string& word : words_with_entries(attn_program())) words.insert(word);
    for (const Section& section : all_sections()) words.insert(section.heading);
    for (const Option& option : attn_program().options) words.insert(option.key);
    for (const std::string& word : words) {
        CAPTURE(word);
        CHECK(!help_page(attn_program(), {word}, 80).empty());
    }
    CHECK(words.size() > 1000);
}

TEST_CASE(
    "help: a section is shown, not its page; a long table shows the rows that have the word") {
    for (const Section& section : all_sections()) {
        const std::string page = help_page(attn_program(), {section.heading}, 80);
        CAPTURE(section.heading);
        CHECK(lines_of(page).size() < 300);
    }
    const std::string page = help_page(attn_program(), {"clicolor"}, 80);
    CHECK(page.starts_with("Environment variables\n"));
    CHECK(contains(page, "CLICOLOR_FORCE"));
    CHECK_FALSE(contains(page, "ATTN_KERNEL"));
}

TEST_CASE("help: on a terminal a page is read in the pager, elsewhere it is written") {
    attn::test::write_text("pager", "#!/bin/sh\nsed s/^/paged:/\n");
    std::filesystem::permissions("pager", std::filesystem::perms::owner_all);
    const std::string plain = run_attn({"help", "seed"}).out;
    const auto on_terminal = [](const char* pager) {
        setenv("PAGER", pager, 1);
        std::string shown = attn::test::run_on_terminal({"help", "seed"}).out;
        std::erase(shown, '\r');
        return shown;
    };
    CHECK(plain.starts_with("flag --seed\n"));
    CHECK(on_terminal("./pager").starts_with("paged:flag --seed\npaged:    -s, --seed N\n"));
    for (const char* pager : {"cat", "", "exit 0; cat", "./no-such-pager 2>/dev/null"})
        CHECK(on_terminal(pager) == (pager[0] == 'e' ? "" : plain));
    CHECK(run_attn({"help", "seed"}).out == plain);
    unsetenv("PAGER");
}

}  // namespace
}  // namespace help_test
