#include "cli/help/help.hpp"

#include <algorithm>
#include <sstream>

#include "cli/args/names.hpp"
#include "core/operator/shown_axes.hpp"
#include "io/model/families.hpp"
#include "io/text/text.hpp"
#include "io/transformer/family_row.hpp"

namespace attn::cli {
namespace {

constexpr std::size_t entry_indent = 4;

std::string paragraph(std::string_view text, std::size_t columns) {
    return std::string(entry_indent, ' ') + io::wrapped(text, columns, entry_indent, entry_indent) +
           '\n';
}

/// Whether `cell` holds the word as code.
bool names(const std::string& cell, std::string_view word) {
    return cell.find('`' + std::string(word) + '`') != std::string::npos;
}

/// The rows of a page's tables whose first header is `header`.
io::Cells rows_of(std::string_view topic, std::string_view header) {
    io::Cells rows;
    for (const Block& block : parse_markdown(find_topic(topic)->text))
        for (std::size_t i = block.table.headers; i < block.table.cells.size(); ++i)
            if (block.table.cells.front().front() == header) rows.push_back(block.table.cells[i]);
    return rows;
}

/// The last cell of the row whose first cell names the word; empty if there is none.
std::string meaning_in(std::string_view topic, std::string_view header, std::string_view word) {
    for (const std::vector<std::string>& row : rows_of(topic, header))
        if (names(row.front(), word)) return bare(row.back());
    return "";
}

/// The pages about the flags of a group of modes' options.
struct GroupPages {
    std::string_view group;
    std::vector<std::string_view> topics;
};

const GroupPages pages_of_groups[] = {{"Input", {"requests", "formats", "model", "numbers"}},
                                      {"Dimensions", {"flags"}},
                                      {"Weights", {"numbers", "model"}},
                                      {"Masking", {"operator", "formulas"}},
                                      {"Scores", {"operator", "formulas"}},
                                      {"Recurrence", {"operator"}},
                                      {"Cache", {"operator"}},
                                      {"Dropout", {"operator", "numbers"}},
                                      {"Output", {"formats", "requests"}},
                                      {"Pictures", {"plot"}},
                                      {"Numerics", {"numbers"}}};

/// How often the prose of a page, without its blocks of commands, mentions a flag.
std::size_t mentions_of(const std::string& flag, std::string_view page) {
    constexpr std::string_view fence = "```";
    std::size_t count = 0;
    for (bool is_prose = true; !page.empty(); is_prose = !is_prose) {
        const std::string_view part = page.substr(0, page.find(fence));
        page.remove_prefix(std::min(page.size(), part.size() + fence.size()));
        for (std::size_t at = 0; is_prose && (at = part.find(flag, at)) != part.npos;) {
            at += flag.size();
            const char next = at < part.size() ? part[at] : ' ';
            if (next != '-' && (next < 'a' || next > 'z')) ++count;
        }
    }
    return count;
}

/// The page that mentions the flag most often among `topics`; the first of them if none does.
std::string topic_about(const std::string& flag, const std::vector<std::string_view>& topics) {
    std::string best(topics.front());
    std::size_t most = 0;
    for (const std::string_view name : topics) {
        const std::size_t count = mentions_of(flag, find_topic(std::string(name))->text);
        if (count > most) most = count, best = name;
    }
    return best;
}

/// The page about an option of modes or, where it is not null, of a command.
std::string topic_about(const Option& option, const CommandRow* command) {
    for (const GroupPages& row : pages_of_groups)
        if (command == nullptr && option.group != nullptr && row.group == option.group)
            return topic_about(flag_of(option), row.topics);
    if (command == nullptr) return "flags";
    return find_topic(command->name) != nullptr ? std::string(command->name) : "flags";
}

bool is_flag(const Option& option, const std::string& word) {
    std::string name = without_dashes(word);
    if (word.starts_with('-') && !word.starts_with("--"))
        return name.size() == 1 && name[0] == option.letter;
    std::ranges::replace(name, '_', '-');
    return name == flag_name(option) ||
           (is_boolean(option) && name == "no-" + flag_name(option) && word.starts_with("--"));
}

/// `command`: whose own option it is; null for one of modes or of all commands.
HelpEntry entry_of(const Option& option, const std::string& commands, std::size_t columns,
                   const CommandRow* command = nullptr) {
    std::string text = paragraph(spelling_of(option), columns) +
                       paragraph(help_of(option), columns) +
                       paragraph("A flag of " + commands + ".", columns);
    if (option.modes != 0 && (option.use & as_key) != 0)
        text += paragraph("In a request: \"" + std::string(option.key) + "\".", columns);
    return {"flag " + flag_of(option), text, topic_about(option, command)};
}

void add_flags(std::vector<HelpEntry>& entries, const Program& program, const std::string& word,
               std::size_t columns) {
    for (const Option& option : program.options)
        if ((option.use & as_flag) != 0 && is_flag(option, word))
            entries.push_back(entry_of(option, owners_of(program, option), columns));
    for (const CommandRow* command : program.commands)
        for (const Option& option : command->own)
            if (is_flag(option, word))
                entries.push_back(
                    entry_of(option, "attn " + std::string(command->name), columns, command));
    for (const Option* option : {&config_option, &help_option})
        if (is_flag(*option, word)) entries.push_back(entry_of(*option, "every command", columns));
    if (is_flag(version_option, word))
        entries.push_back(entry_of(version_option, "attn alone", columns));
}

/// "(batch, heads, q_len, kv_len)", without axes that only --style wrapper and the operator have.
std::string axes_of(const ArrayRow& array) {
    std::string text;
    for (const Axis axis : array.axes)
        if (!axis_name(axis).empty() && axis != Axis::groups && axis != Axis::heads_apart)
            text += (text.empty() ? "(" : ", ") + std::string(axis_name(axis));
    return text + ")";
}

void add_key(std::vector<HelpEntry>& entries, const std::string& word, std::size_t columns) {
    const std::string meaning = meaning_in("requests", "key", word);
    if (!meaning.empty())
        entries.push_back({"key \"" + word + "\"", paragraph(meaning, columns), "requests"});
}

void add_array(std::vector<HelpEntry>& entries, const std::string& word, std::size_t columns) {
    const ArrayRow* const found = find_row(emitted_arrays, &ArrayRow::name, word);
    if (found == nullptr) return;
    const bool has_batch = found->axes.front() == Axis::batch;
    std::string meaning = meaning_in("requests", "name", word);
    if (meaning.empty())
        meaning = "The gradient of the loss w.r.t. " + word.substr(word.find('_') + 1) + ".";
    entries.push_back({"array " + word,
                       paragraph(meaning, columns) +
                           paragraph("Axes " + axes_of(*found) +
                                         (has_batch ? ", without batch for a single input" : "") +
                                         "; written with --emit " + word + ".",
                                     columns),
                       "requests"});
}

/// Tables of pages whose first column holds names that only one command has.
struct NamesOfPage {
    std::string_view topic, header, kind;
};
constexpr NamesOfPage names_of_pages[] = {{"model", "array", "array of attn model "},
                                          {"scan", "name", "statistic "}};

/// Calls `take` with the cells of each row of these tables, and the table's NamesOfPage.
template <class Take>
void for_each_name_of_pages(const Take& take) {
    for (const NamesOfPage& page : names_of_pages)
        for (const std::vector<std::string>& row : rows_of(page.topic, page.header))
            take(page, row);
}

void add_names_of_pages(std::vector<HelpEntry>& entries, const std::string& word,
                        std::size_t columns) {
    for_each_name_of_pages([&](const NamesOfPage& page, const std::vector<std::string>& cells) {
        if (names(cells.front(), word))
            entries.push_back({std::string(page.kind) + word, paragraph(bare(cells[1]), columns),
                               std::string(page.topic)});
    });
}

/// The first cell of the row whose last cell names the word, in this table of the page on models.
std::string row_of_model(std::string_view header, std::string_view word) {
    for (const std::vector<std::string>& row : rows_of("model", header))
        if (names(row.back(), word)) return bare(row.front());
    return "";
}

void add_models(std::vector<HelpEntry>& entries, const std::string& word, std::size_t columns) {
    const auto add = [&](const std::string& text, const char* kind = "model type ") {
        entries.push_back({kind + word, text, "model"});
    };
    if (const std::string group = row_of_model("families", word); !group.empty()) {
        const std::string part = row_of_model("part of the layers", word);
        add(paragraph("Group: " + group + ". attn model DIR computes it.", columns) +
            paragraph(part.empty() ? "attn multihead --weights computes its layers of softmax "
                                     "attention one by one (attn help \"one layer of a model\")."
                                   : "attn multihead --weights does not compute its layers: " +
                                         part + " (attn help \"settings of a layer\").",
                      columns));
    }
    for (const io::Family& family : io::all_families()) {
        const bool is_type = std::ranges::find(family.types, word) != family.types.end();
        if (!is_type && family.name != word) continue;
        const std::string name(family.name);
        add(paragraph((is_type ? "Without a config.json, its tensors are those of --family "
                               : "attn multihead --weights FILE --family ") +
                          name + ".",
                      columns) +
                paragraph(meaning_in("model", "`--family`", name), columns),
            is_type ? "model type " : "family ");
    }
}

/// The flag that words such as "--out-dir DIR writes ..." or "attn multihead --kv-heads" name
/// first, or the page of the command that they name.
std::string topic_in(const Program& program, std::string_view words) {
    std::istringstream stream{std::string(words)};
    std::string word, page = "flags";
    while (stream >> word) {
        word.resize(word.find_last_not_of(",;:.") + 1);
        for (const Option& option : program.options)
            if (flag_of(option) == word) return topic_about(option, nullptr);
        if (page == "flags" && find_command(program, word) != nullptr &&
            find_topic(word) != nullptr)
            page = find_topic(word)->name;
    }
    return page;
}

/// What other programs, or people, call so; sentences only if nothing has this name here.
void add_other_names(std::vector<HelpEntry>& entries, const Program& program,
                     const std::string& word, std::size_t columns) {
    const bool is_unknown = entries.empty(), is_flag = word.starts_with('-');
    if (is_flag && !is_unknown) return;
    const std::string name = without_dashes(word), listed_word = as_listed(name);
    const auto add_words = [&](const std::string& text) {
        if (is_unknown)
            entries.push_back({word, paragraph(text, columns), topic_in(program, text), true});
    };
    for (const Option& option : program.options)  // a flag's value, such as renormalize
        if (is_unknown && !is_flag && std::ranges::count(names_of(option.field), name) != 0)
            add_flags(entries, program, flag_of(option), columns);
    for (const NameRow& row : all_other_names) {
        if (row.names.find(listed_word) == row.names.npos) continue;
        const std::string of(row.of);
        const std::size_t before = entries.size();
        if (row.table == "option")
            add_flags(entries, program, flag_of_key(of), columns);
        else if (row.table == "flag" && !of.empty())
            add_words("attn " + of + ": " + row.words);
        else if (row.table == "flag" || row.table == "no value" || row.table == "command")
            add_words(row.words);
        else if (row.table == "value")
            add_words(flag_of_key(of) + ' ' + row.words + " in attn");
        else if (row.table == "array" && !is_flag)
            add_array(entries, of, columns);
        else if (row.table == "key" && !is_flag)
            add_key(entries, of, columns);
        if (row.table == "option" && entries.size() != before)
            entries[before].text += paragraph("Called " + name + " elsewhere.", columns);
    }
}

}  // namespace

std::vector<HelpEntry> entries_of(const Program& program, const std::string& word,
                                  std::size_t columns) {
    std::vector<HelpEntry> entries;
    add_flags(entries, program, word, columns);
    if (!word.starts_with('-')) {
        add_key(entries, word, columns);
        add_array(entries, word, columns);
        add_names_of_pages(entries, word, columns);
        add_models(entries, word, columns);
    }
    add_other_names(entries, program, word, columns);
    return entries;
}

std::vector<std::string> words_with_entries(const Program& program) {
    std::vector<std::string> words;
    const auto add = [&](const Option& option) {
        words.push_back(flag_name(option));
        words.push_back(flag_of(option));
    };
    for (const Option& option : program.options)
        if ((option.use & as_flag) != 0) add(option);
    for (const CommandRow* command : program.commands)
        for (const Option& option : command->own) add(option);
    for (const Option* option : {&config_option, &help_option, &version_option}) add(*option);
    for (const ArrayRow& row : emitted_arrays) words.emplace_back(row.name);
    for_each_name_of_pages([&](const NamesOfPage&, const std::vector<std::string>& cells) {
        const std::string& cell = cells.front();
        for (std::size_t at = cell.find('`'); at != cell.npos; at = cell.find('`', at)) {
            const std::size_t end = cell.find('`', at + 1);
            words.push_back(cell.substr(at + 1, end - at - 1));
            at = end + 1;
        }
    });
    for (const io::Family& family : io::all_families()) {
        words.emplace_back(family.name);
        for (const std::string_view type : family.types) words.emplace_back(type);
    }
    for (const std::string_view type : io::family_types()) words.emplace_back(type);
    return words;
}

const Topic* find_topic(std::string_view name) {
    const NameRow* const other = find_other_name("topic", as_listed(name));
    return find_row(manual, &Topic::name, other != nullptr ? other->of : name);
}

std::string_view title_of(const Topic& topic) {
    constexpr std::size_t mark = 2;  // "# "
    return topic.text.substr(mark, topic.text.find('\n') - mark);
}

}  // namespace attn::cli
