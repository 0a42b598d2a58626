// The languages of programs: a template each (its syntax is in cli/page/fill_template.hpp), and
// what a question puts into it.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "cli/page/fill_template.hpp"
#include "cli/repro/program.hpp"
#include "io/file/output.hpp"

namespace attn::cli {

/// Which arrays have axes that the question does not have: none, operands but for parameters, or
/// all.
enum class ProgramAxes { of_question, all_of_heads, all };

/// A value of --to.
struct LanguageRow {
    std::string_view name;
    std::string_view suffix;                 ///< of a program's file
    const std::string_view* text;            ///< the template
    std::string_view open, close, infinity;  ///< of a row of numbers: "[", "]"; "inf"
    std::string_view data_suffix;            ///< of the file of its numbers, in place of its own
    void (*write_data)(io::Output&, const Repro&);
    ProgramAxes axes = ProgramAxes::of_question;
};

/// Operands and expected arrays by their names, for programs in Python; real numbers in the
/// question's dtype.
void write_npz_data(io::Output& out, const Repro& program);

/// The same arrays one after the other, as C declares them: little-endian numbers in row-major
/// order, booleans as bytes.
void write_raw_data(io::Output& out, const Repro& program);

/// Made of templates/ by the build. Each has `python.py` before it, but for C.
extern const std::string_view attention_py, onnx_py, attention_c;

inline constexpr std::array<LanguageRow, 4> language_rows{
    {{"numpy", ".py", &attention_py, "[", "]", "math.inf", ".npz", write_npz_data},
     {"torch", ".py", &attention_py, "[", "]", "math.inf", ".npz", write_npz_data},
     {"onnx", ".py", &onnx_py, "[", "]", "math.inf", ".npz", write_npz_data,
      ProgramAxes::all_of_heads},
     {"c", ".c", &attention_c, "{", "}", "INFINITY", ".bin", write_raw_data, ProgramAxes::all}}};

/// The whole program.
std::string program_text(const LanguageRow& language, const Repro& program);

}  // namespace attn::cli
