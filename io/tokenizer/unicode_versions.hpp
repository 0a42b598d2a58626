// Differences between versions of Unicode's data: the tables of unicode_versions.txt.
#pragma once

#include <span>

#include "io/text/code_ranges.hpp"

namespace attn::io {

/// Do not decompose, compose or move: added after Unicode 9.
extern const std::span<const CodeRange> newer_in_forms;

/// M in one of utf8proc and the normalizer StripAccents (Unicode 9) alone.
extern const std::span<const CodeRange> other_marks;

/// Mn in one of utf8proc and BertNormalizer (Unicode 8) alone.
extern const std::span<const CodeRange> other_nonspacing;

/// Cc, Cf or Co in one of utf8proc and BertNormalizer alone.
extern const std::span<const CodeRange> other_controls;

/// P in one of utf8proc and the pre-tokenizers (Unicode 8) alone.
extern const std::span<const CodeRange> other_punctuation;

/// N in one of utf8proc and the pre-tokenizers (Unicode 17) alone.
extern const std::span<const CodeRange> other_numbers;

/// Part of a word in one of utf8proc and the pre-tokenizers (Unicode 17) alone.
extern const std::span<const CodeRange> other_words;

/// Have a script in PCRE2 (Unicode 14), but none in UnicodeScripts (Unicode 9).
extern const std::span<const CodeRange> newer_in_scripts;

/// Characters with a lower case that utf8proc does not know.
struct LowercaseRange {
    char32_t first, last;
    int distance;
};
extern const std::span<const LowercaseRange> newer_lowercase;

/// Characters of a general category that PCRE2 takes for unassigned.
struct NewerCategory {
    char32_t first, last;
    const char* category;
};
extern const std::span<const NewerCategory> newer_categories;

}  // namespace attn::io
