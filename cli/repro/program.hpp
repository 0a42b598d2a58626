// What a program of `attn repro` computes: the question's plan, its operands and the numbers to
// compare with; and the languages, a template each (its syntax is in cli/page/fill_template.hpp).
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/question/question.hpp"
#include "core/base/thread_pool.hpp"
#include "core/check/problem.hpp"
#include "core/layer/norm.hpp"
#include "core/layer/result.hpp"
#include "core/plan/plan.hpp"
#include "io/file/output.hpp"

namespace attn::cli {

/// An array of numbers in the program.
struct ProgramArray {
    std::string name;
    /// All axes that attn computes with: (batch, heads, q_len, kv_len), (groups, d_out, d_in), ...
    std::vector<std::size_t> full;
    /// Without the axes that the question does not have.
    std::vector<std::size_t> shape;
    std::vector<double> values;
    bool is_boolean = false;
};

/// A norm whose weights are operands of the program.
struct ProgramNorm {
    const InputNorm& norm;
    std::string name;      ///< of its operands: NAME_weight, NAME_bias
    bool spans_all_heads;  ///< of a norm of heads: over all of them together
};

/// A question as a program.
struct Repro {
    const Plan& plan;
    std::string command{};       ///< as a comment shows it
    bool has_data_file = false;  ///< the numbers are in a file of their own (program.cpp)
    std::vector<ProgramArray> operands{};
    /// To compare with, and how far each element of these may be from the program's.
    std::vector<ProgramArray> expected{}, tolerances{};
    std::optional<ProgramNorm> input_norm{}, query_norm{}, key_norm{};
    std::vector<std::string> additive_masks{}, boolean_masks{};  ///< names of operands
    bool has_masked_rows = false;                                ///< a query with no key
    double kept_weight = 1;                                      ///< 1 / (1 - p) of dropout

    bool has(std::string_view operand) const { return find(operand) != nullptr; }
    const ProgramArray* find(std::string_view operand) const;

    /// Calls use(array) for all arrays of numbers, in the order of a program in C.
    template <class Use>
    void for_each_array(const Use& use) const {
        for (const auto* arrays : {&operands, &tolerances, &expected})
            for (const ProgramArray& array : *arrays) use(array);
    }

    bool is_linear() const { return plan.config.rule.has_value(); }
    bool renormalizes() const { return plan.config.mask_method == MaskMethod::renormalize; }
    /// Whether arrays of heads have axes of batch and heads; if not, the size is 1.
    bool batched() const { return plan.shown.batched; }
    bool with_heads() const { return plan.shown.with_heads; }
};

/// The operands of a question that is planned with `emit_of_program`, before it is computed, and
/// the arrays to compare with, from its result. Errors: kind unsupported for what programs do not
/// have, kind input for operands and results that are infinite or NaN.
Repro make_program(const PlannedQuestion& planned, const Result& result, ThreadPool& pool);

/// The elements of an array, in float64.
std::vector<double> elements_of(const NamedArray& array);
/// Adds columns of zeros.
void widen(std::vector<double>& values, std::size_t& columns, std::size_t wanted);
/// Errors: kind input for a number that is infinite or NaN.
void check_finite(const ProgramArray& array);
/// For each element of an array, the largest difference between two computations of the problem in
/// its plan's type, with three digits: twice the bound of `attn check`, plus the smallest normal
/// number, because programs may flush those below it to 0. Errors: kind input where a computation
/// may overflow.
ProgramArray tolerances_of(const Problem& problem, ArrayId id, const ProgramArray& array,
                           ThreadPool& pool);

/// Adds the gradients that are expected, and one tolerance for each, that of its largest bound.
void add_gradients(Repro& program, const Problem& problem, const Result& result, ThreadPool& pool);

/// The arrays that a program needs from its question's result.
inline const std::vector<std::string> emit_of_program{"all"};

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
/// One a line, also made of templates/: modules that NumPy, PyTorch and ONNX Runtime import, or
/// that these import. Python looks for them in the program's folder first.
extern const std::string_view python_modules;

inline constexpr std::array<LanguageRow, 4> language_rows{
    {{"numpy", ".py", &attention_py, "[", "]", "math.inf", ".npz", write_npz_data},
     {"torch", ".py", &attention_py, "[", "]", "math.inf", ".npz", write_npz_data},
     {"onnx", ".py", &onnx_py, "[", "]", "math.inf", ".npz", write_npz_data,
      ProgramAxes::all_of_heads},
     {"c", ".c", &attention_c, "{", "}", "INFINITY", ".bin", write_raw_data, ProgramAxes::all}}};

/// A formula as an expression of the language, of `score` or `weight` in Python and of scores[j] or
/// weights[j] in C; for ONNX in NumPy. Of a mask it is an array of booleans in Python. p and j are
/// the positions of queries and keys, `head` and `entry`, in C h and b, the numbers of heads and
/// batch entries, and of_NAME an array of the formula.
std::string formula_text(const Expression& expression, const Plan& plan, std::string_view language);

/// The shortest decimal that reads back as the same number of its type.
std::string literal_of(double value, NumberType dtype, const LanguageRow& language);

/// Adds the numbers from `next` on as an array of this shape from an axis on: rows in rows, each on
/// lines of its own.
void add_rows(std::string& text, const std::vector<std::size_t>& shape, std::size_t axis,
              const double*& next, NumberType dtype, const LanguageRow& language);

/// An array that formulas take, as of_NAME.
std::string array_text(const std::string& name, const Array<double>& array, NumberType dtype,
                       const LanguageRow& language);

/// A formula of `given`, score or weight, as lines of ONNX's text form, and the arrays of NumPy
/// that they take: lines, and their names, each after a blank.
struct OnnxFormula {
    std::string lines, result, arrays, inputs;
};
OnnxFormula onnx_formula(const Expression& expression, const Plan& plan, const std::string& given);

/// The whole program.
std::string program_text(const LanguageRow& language, const Repro& program);

}  // namespace attn::cli
