// A language of programs: a function for each step of attention. The order of the steps, and which
// of them a question has, are in one table (steps.cpp), the same for all languages.
#pragma once

#include <array>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "cli/repro/data_file.hpp"
#include "cli/repro/program.hpp"

namespace attn::cli {

class Language {
public:
    explicit Language(const Repro& program) : p(program), plan(program.plan) {}
    Language(const Language&) = delete;
    Language& operator=(const Language&) = delete;
    virtual ~Language() = default;

    virtual void begin() = 0;  ///< up to the operands
    virtual void operand(const ProgramArray& array) = 0;
    virtual void begin_steps() {}

    // Tokens to queries, keys and values.
    virtual void norm() = 0;        ///< of the inputs
    virtual void project() = 0;     ///< or splits operands into heads
    virtual void norm_heads() = 0;  ///< norms of queries and keys that a model has
    virtual void qk_norm() = 0;
    virtual void rotate() = 0;
    virtual void append_cache() = 0;

    /// Whether the language has one function for all steps from the product to the values, and the
    /// call of it.
    virtual bool has_operator() const { return false; }
    virtual void attend() {}

    virtual void product() = 0;
    virtual void scale() = 0;
    virtual void softcap() = 0;
    virtual void alibi() = 0;
    virtual void add_masks() = 0;
    virtual void apply_rules() = 0;
    virtual void softmax() = 0;
    virtual void renormalize() = 0;
    virtual void drop() = 0;
    virtual void multiply_values() = 0;

    // Linear attention instead of those.
    virtual void recurrence() = 0;
    virtual void recurrence_weights() = 0;

    // Heads to context vectors.
    virtual void merge_heads() = 0;
    virtual void project_out() = 0;

    /// Whether the steps leave this array in the program.
    virtual bool has_result(std::string_view) const { return true; }
    virtual void check(const ProgramArray& expected, const ProgramArray& tolerance) = 0;
    virtual void end() {}

    std::string take() { return std::move(text_); }

protected:
    /// Appends a line.
    void line(std::string_view text) { (text_ += text) += '\n'; }

    const Repro& p;
    const Plan& plan;

private:
    std::string text_;
};

/// A value of --to.
struct LanguageRow {
    std::string_view name;
    std::array<std::string_view, 1> suffixes;  ///< of a program's file
    std::string (*text)(const Repro&);         ///< the whole program
    std::string_view data_suffix;              ///< of the file of its numbers, in place of its own
    void (*write_data)(io::Output&, const Repro&);
};

std::string numpy_program(const Repro& program);
std::string torch_program(const Repro& program);
std::string onnx_program(const Repro& program);
std::string c_program(const Repro& program);

inline constexpr std::array<LanguageRow, 4> language_rows{
    {{"numpy", {".py"}, numpy_program, ".npz", write_npz_data},
     {"torch", {".py"}, torch_program, ".npz", write_npz_data},
     {"onnx", {".py"}, onnx_program, ".npz", write_npz_data},
     {"c", {".c"}, c_program, ".bin", write_raw_data}}};

/// The program whose steps `language` writes.
std::string written_by(Language& language, const Repro& program);

/// Which steps a question has, by the names of their functions.
std::map<std::string_view, bool> step_conditions(const Repro& program);

extern const std::string_view c_template;  ///< templates/attention.c

}  // namespace attn::cli
