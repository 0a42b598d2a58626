// `attn repro`: a short program that computes a question and compares with attn's numbers.
#pragma once

#include <string>
#include <vector>

#include "cli/repro/language.hpp"
#include "cli/request/request.hpp"

namespace attn::cli {

inline constexpr auto language_names = names_of(language_rows);

/// The most numbers in a program: it is read and pasted. More are in a file of their own, with the
/// program's name and another suffix.
inline constexpr std::size_t max_program_numbers = 20000;
inline constexpr std::size_t max_data_numbers = 20'000'000;

/// Computes the request's question, and writes the program, with its command in a comment, to the
/// request's output, no file before all are complete. The command of `flags` is what follows the
/// mode; the mode may be in the request's document alone. Settings for the form of an answer are
/// ignored. Errors: those of the question; kind usage for a single query or chosen heads, for
/// questions of too many numbers, and for a file of numbers that would replace another file; kind
/// input for numbers that are not finite. Returns the question's notes.
std::vector<std::string> write_repro(const LanguageRow& language, const Request& flags);

}  // namespace attn::cli
