// What the tables of options, arrays and models have of one word.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cli/args/args.hpp"

namespace attn::cli {

struct HelpEntry {
    std::string name;   ///< "flag --seed", "array queries"
    std::string text;   ///< lines: how it is written, what it means, its default
    std::string topic;  ///< the page of the manual that has more
};

/// The entries of a word in this order: flags, keys of a request, arrays, model types. A word with
/// leading dashes is a flag. Empty for an unknown word.
std::vector<HelpEntry> entries_of(const Program& program, const std::string& word,
                                  std::size_t columns);

/// All words that have an entry; flags with and without their dashes.
std::vector<std::string> words_with_entries(const Program& program);

}  // namespace attn::cli
