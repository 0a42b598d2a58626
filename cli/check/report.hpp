// The report of `attn check`, for people and for programs.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cli/check/check.hpp"

namespace attn::cli {

/// The programs as text, best first, in lines of at most `columns` where the table allows it.
std::string check_text(const std::vector<ProgramJudgement>& ranked, std::size_t columns);

/// "pairs of changes: 1200 of 5000".
std::string search_progress_text(std::size_t changes, std::size_t done, std::size_t of);

/// One line of JSON, attn.check/1. Several programs are its `candidates`.
std::string check_json(const std::vector<ProgramJudgement>& ranked);

}  // namespace attn::cli
