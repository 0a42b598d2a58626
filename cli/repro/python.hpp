// What programs in Python share: NumPy and PyTorch have the same steps in a few other words.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/repro/language.hpp"

namespace attn::cli {

/// How a library of arrays spells what the other spells differently.
struct PythonDialect {
    std::string_view library, module, array, keep, max, swap, cat, repeat, copy;
    std::string_view type_before, bool_type;  ///< "x.astype(" and the type of a boolean array
};

inline constexpr PythonDialect numpy_dialect{.library = "NumPy",
                                             .module = "np",
                                             .array = "array",
                                             .keep = "keepdims=True",
                                             .max = "max",
                                             .swap = "swapaxes",
                                             .cat = "np.concatenate",
                                             .repeat = "repeat",
                                             .copy = "copy",
                                             .type_before = ".astype(",
                                             .bool_type = "bool"};

class PythonLanguage : public Language {
public:
    PythonLanguage(const Repro& program, const PythonDialect& dialect)
        : Language(program), d_(dialect) {}

    void operand(const ProgramArray& operand) override;
    void begin_steps() override;

    void norm() override;
    void project() override;
    void norm_heads() override;
    void qk_norm() override;
    void rotate() override;
    void append_cache() override;
    void product() override;
    void scale() override;
    void softcap() override;
    void alibi() override;
    void add_masks() override;
    void apply_rules() override;
    void softmax() override;
    void renormalize() override;
    void drop() override;
    void multiply_values() override;
    void recurrence() override;
    void recurrence_weights() override;
    void merge_heads() override;
    void project_out() override;
    void check(const ProgramArray& expected, const ProgramArray& tolerance) override;

protected:
    /// The axes of an array in the program.
    virtual const std::vector<std::size_t>& shape_of(const ProgramArray& array) const {
        return array.shape;
    }
    virtual bool has_batch_axis() const { return p.batched(); }
    virtual bool has_heads_axis() const { return p.with_heads(); }

    /// x normed over its last axis by the operands NAME_weight and NAME_bias.
    virtual std::string normed(const std::string& x, const ProgramNorm& norm);
    /// x W^T + b.
    virtual std::string projected(const std::string& x, ArrayId weight, std::string_view bias);
    virtual std::string repeated(const std::string& x, std::size_t times) const;  ///< for each head
    virtual std::string softmaxed(const std::string& x) { return exponentials_of(x); }

    /// `imports` are of libraries.
    void header(std::string_view imports);
    void array(const std::string& name, const ProgramArray& array);
    /// From the file of numbers.
    virtual std::string loaded(const ProgramArray& array) const;
    std::string real() const { return of_module(row_of(plan.dtype).name); }
    std::string of_module(std::string_view name) const;  ///< "np.NAME"
    std::string as_real(const std::string& x) const;
    std::string transposed(const std::string& x) const;
    std::string with_axes_of_batch(const std::string& x) const;
    std::string with_axes_of_heads(const std::string& x) const;
    std::string split(const std::string& x, std::size_t heads) const;
    std::string shape_of_heads(std::size_t heads, std::size_t rows, std::size_t columns) const;

    /// Adds the lines that define positions p and j, angles, slopes, `allowed`.
    void positions();
    void frequencies();
    std::string alibi_terms();
    std::string rules();
    std::string sinks();
    std::string weights_name() const;
    std::string exponentials_of(const std::string& x);

    const PythonDialect& d_;
    std::string scores_ = "scores";  ///< the name of the last step's scores

private:
    void keys_at();

    bool has_positions_ = false, has_keys_at_ = false;
};

/// A number in an expression: "0.5".
std::string python_number(double value);

/// The function `check` of a program: its lines up to the comparison differ.
inline constexpr std::string_view check_end = R"(    if got.shape != want.shape:
        sys.exit(f"{name}: shape {got.shape}; expected {want.shape}")
    error = np.where(got == want, 0, np.abs(got - want))
    wrong = np.argwhere(~(error <= tolerance)).tolist()  # also a NaN
    if wrong:
        at = tuple(wrong[0])
        sys.exit(f"{name} {wrong[0]}: {got[at]}; expected {want[at]} within {tolerance[at]:.3g}")
    part = np.max(error / tolerance)
    print(f"ok: {name}, largest error {error.max():.2e}, at most {part:.2g} of a tolerance")
)";

}  // namespace attn::cli
