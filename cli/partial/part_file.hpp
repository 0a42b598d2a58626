// A file of attn.part/1: attention over some keys of a question, and the question.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/base/thread_pool.hpp"
#include "core/layer/layer.hpp"
#include "core/operator/mask.hpp"
#include "core/plan/plan.hpp"
#include "io/read/input_file.hpp"
#include "io/write/output_formats.hpp"

namespace attn::cli {

/// Ascending, not empty, and with keys between them.
using KeyRanges = std::vector<KeyRange>;

/// "0:4,8:12".
std::string text_of_ranges(const KeyRanges& ranges);

/// Empty if the text is not of that form.
KeyRanges ranges_of_text(const std::string& text);

/// Sorted, adjacent ones as one. They must be disjoint.
KeyRanges joined_ranges(KeyRanges ranges);

/// The keys from 0 to before `keys` that are in no range.
KeyRanges missing_keys(const KeyRanges& ranges, std::size_t keys);

/// The members that state the question; equal in all its parts.
inline constexpr const char* question_members[] = {"mode",   "config", "shapes",        "layout",
                                                   "digest", "tokens", "context_tokens"};

struct PartFile {
    std::string place;  ///< in errors; empty if it is not read from a file
    KeyRanges ranges;
    nlohmann::ordered_json question;  ///< an object of the members of `question_members` that exist
    KeyPart part;
};

/// Opens and reads a part of this plan. Errors: kind input for anything that write_part() does not
/// write.
KeyPart read_part_arrays(const io::InputFile& file, const Plan& plan, ThreadPool& workers);

/// The ranges that a file states. Errors: kind input.
KeyRanges read_ranges(const io::InputFile& file, const Plan& plan);

/// The format of a part's file: by the suffix of the path; JSON on standard output. Errors: kind
/// usage for a suffix of a format that does not hold a part.
const io::OutputFormat& format_of_part(const std::string& path);

/// Writes the file, whole or not at all. Errors: kind io.
void write_part(const std::string& path, PartFile file, ThreadPool& workers);

}  // namespace attn::cli
