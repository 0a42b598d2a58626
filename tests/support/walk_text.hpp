// A page of `attn explain`, read back: its words, tables and formulas.
#pragma once

#include "tests/support/run_attn.hpp"

namespace attn::test {

std::string joined(const Words& words);

/// Standard output of a run that must go well, on a screen of so many columns.
std::string good(const Words& arguments, const std::string& input = "",
                 std::size_t columns = 10000);

/// Paragraphs of text are broken at any blank.
std::string in_one_line(std::string page);

/// Whether these words are in the page, wherever its lines end.
bool says(const std::string& page, const std::string& words);

/// Formulas and tables, which hold the numbers.
Words numbers_of(const std::string& page);

/// Whether numbers differ by at most `tolerance`, or by that part of the larger ones.
bool is_near(double a, double b, double tolerance = 1e-6);

/// Paragraphs and items of lists on a line each; formulas and tables as they are.
std::string in_paragraphs(const std::string& page);

/// Formulas that go on in the next line, and paragraphs, on one line each.
std::string unfolded(const std::string& page);

std::vector<double> numbers_in(const std::string& text);

/// The numbers of a table's row "    scores  1.0  2.0", or of a column under that name.
std::vector<double> table_row(const std::string& page, const std::string& name);

/// The numbers in the brackets of "    queries[head 0][1] = [0.1, 0.2]".
std::vector<double> vector_of(const std::string& page, const std::string& name);

/// Row `key` of the table of vectors: the numbers in its brackets.
std::vector<double> key_row(const std::string& page, const std::string& name, std::size_t key);

/// Checks that there is content below each heading of a page of text.
void check_headings(const std::string& page);

/// The part of the page under "Head N", or all of it where there is one head.
std::string head_part(const std::string& page, std::size_t head);

}  // namespace attn::test
