// A model in ONNX's text form: its inputs, nodes and constants, and the steps that others share.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "cli/repro/python.hpp"

namespace attn::cli {

/// An attribute that is a real number: "1.0", where "1" would be an integer.
std::string real_attribute(double value);

/// Writes the program around the model. All arrays of heads are (batch, heads, rows, columns), with
/// sizes of 1 where the question has no such axis.
class OnnxText : public PythonLanguage {
public:
    explicit OnnxText(const Repro& program);

    void begin() override;
    void operand(const ProgramArray& operand) override;
    void begin_steps() override;
    void check(const ProgramArray& expected, const ProgramArray& tolerance) override;

protected:
    /// Of an array (batch, count, rows, width).
    struct Heads {
        std::size_t count, rows, width;
    };

    const std::vector<std::size_t>& shape_of(const ProgramArray& array) const override;
    bool has_batch_axis() const override { return true; }
    bool has_heads_axis() const override { return true; }

    bool is_float() const { return plan.dtype == Dtype::float32; }

    /// Makes the NumPy array of this name an input of the model.
    void feed(const std::string& name) { feeds_.push_back(name); }

    /// Adds a node. Returns the name of its output.
    std::string node(const std::string& to, std::string_view operation, const std::string& inputs,
                     const std::string& attributes = "");
    /// A scalar of the model's type; each name has one value.
    std::string number(const std::string& name, double value);
    /// A vector of integers, as a shape or axes.
    std::string integers(const std::vector<std::size_t>& values);
    /// "float[2, 3]".
    std::string shaped(const std::vector<std::size_t>& shape) const;

    /// x normed over its last axis.
    void normed_as(const std::string& to, const std::string& x, const ProgramNorm& norm);
    /// x W^T + b for tokens x, (batch, rows, columns); with a W of each head (batch, heads, rows,
    /// columns).
    void multiply(const std::string& to, const std::string& x, ArrayId weight,
                  const std::string& bias);
    /// The projection of tokens x, as heads.
    std::string heads_of(const std::string& to, const std::string& x, const Heads& heads,
                         ArrayId weight, const std::string& bias);
    /// (batch, rows, count * width) to (batch, count, rows, width).
    void split(const std::string& to, const std::string& x, const Heads& heads);
    /// And back.
    std::string merge(const std::string& to, const std::string& x, const Heads& heads);
    /// Heads of keys, each repeated for the query heads that share it.
    std::string repeated_as(const std::string& to, const std::string& x, std::size_t columns);

private:
    void run_model();

    std::string type_, nodes_;
    std::vector<std::string> feeds_;
    std::set<std::string> constants_;
    bool has_run_ = false;
};

}  // namespace attn::cli
