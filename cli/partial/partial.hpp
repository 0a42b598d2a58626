// Parts of a question: attention over some of its keys.
#pragma once

#include <nlohmann/json.hpp>

#include "cli/args/args.hpp"
#include "cli/question/question.hpp"
#include "core/base/number_type.hpp"
#include "core/layer/operands.hpp"
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

/// The members that state the question; equal in all its parts.
inline constexpr const char* question_members[] = {"mode",   "config", "shapes",        "layout",
                                                   "digest", "tokens", "context_tokens"};

struct PartFile {
    std::string location;  ///< in errors; empty if it is not read from a file
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

/// A digest of all operands, given parameters included, which tells parts of different questions
/// apart. Those in `rows` are read from their files piece by piece.
std::string digest_of(const Operands& operands, const OperandRows& rows);

/// The shapes of the operands once those in `rows` have the keys of `range` alone.
OperandShapes shapes_of_range(OperandShapes shapes, const OperandRows& rows, const KeyRange& range);

/// Reads those keys. Errors: those of io::read_array.
void read_range(Operands& operands, const OperandRows& rows, const KeyRange& range,
                NumberType dtype, ThreadPool& pool);

/// Joins parts of one question, in any order, and writes --output: the question's result if they
/// have all keys, otherwise a part again, with its context in float64. Errors: kind input for
/// damaged files, parts of several questions and keys in two parts; kind usage if keys are missing
/// and the output's format holds no part.
void merge_parts(const std::vector<io::InputFile>& files, const Args& args);

}  // namespace attn::cli
