// The documentation: pages of the manual, what the tables have of one word, and the completion of
// lines.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/args/args.hpp"
#include "cli/page/page.hpp"

namespace attn::cli {

/// A page of cli/manual, which is compiled into the program.
struct Topic {
    std::string_view name;  ///< of the page's file, without .md
    std::string_view text;  ///< Markdown; the first line is "# " and the title
};

/// By name.
extern const std::span<const Topic> manual;

/// By its name, an earlier name or a word that people look up. Null for an unknown topic.
const Topic* find_topic(std::string_view name);

std::string_view title_of(const Topic& topic);

/// A heading of a page, with what follows it up to the next one.
struct Section {
    std::string_view topic;  ///< the name of the page
    std::string heading;     ///< without marks
    std::vector<Block> blocks;
};

/// Those of all pages, in their order.
const std::vector<Section>& all_sections();

/// The section that names.tsv has for a word; or null.
const Section* find_named_section(std::string_view name);

/// The sections that have these words, in a heading, a table or the text; the best first.
std::vector<const Section*> find_sections(std::string_view query);

/// The section without those rows of its tables that lack the words, if others have them and the
/// heading has not.
Section with_rows(Section section, std::string_view query);

struct HelpEntry {
    std::string name;          ///< "flag --seed", "array queries"
    std::string text;          ///< lines: how it is written, what it means, its default
    std::string topic;         ///< the page of the manual that has more
    bool is_sentence = false;  ///< about a word that attn does not have
};

/// The entries of a word in this order: flags, keys of a request, arrays, model types, and what
/// other programs call so. A word with leading dashes is a flag. Empty for an unknown word.
std::vector<HelpEntry> entries_of(const Program& program, const std::string& word,
                                  std::size_t columns);

/// All words that have an entry; flags with and without their dashes.
std::vector<std::string> words_with_entries(const Program& program);

/// What may replace the last word of a line. A `list` has names that may be followed by a comma;
/// `files` are completed by the shell.
struct Completion {
    std::string_view kind;                                     ///< words, list or files
    std::vector<std::pair<std::string, std::string>> words{};  ///< each with its help, or ""
};

/// From the tables of commands and options. `line` begins with the program's name and ends at the
/// cursor; a blank at its end begins a word.
Completion completion_of(const Program& program, std::string_view line);

/// attn.1, from the tables of commands and options and from pages of the manual: in roff, for man's
/// macros. It holds no date: the same program prints the same bytes.
std::string man_page(const Program& program);

/// The answer of `attn help WORDS`; empty for unknown words.
std::string help_page(const Program& program, const std::vector<std::string>& words,
                      std::size_t columns);

}  // namespace attn::cli
