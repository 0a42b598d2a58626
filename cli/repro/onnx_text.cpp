#include "cli/repro/onnx_text.hpp"

#include <utility>

#include "cli/repro/literal.hpp"

namespace attn::cli {

std::string real_attribute(double value) {
    const std::string text = number_literal(value);
    return text + (text.find_first_of(".e") == std::string::npos ? ".0" : "");
}

OnnxText::OnnxText(const Repro& program)
    : PythonLanguage(program, numpy_dialect), type_(is_float() ? "float" : "double") {}

void OnnxText::begin() {
    header("import numpy as np\nimport onnx.checker\nimport onnx.parser");
}

void OnnxText::operand(const ProgramArray& operand) {
    PythonLanguage::operand(operand);
    // NumPy makes one array of these and others, as of the masks.
    const bool is_mask = operand.name == "mask" || operand.name == "key_padding_mask";
    const bool is_part =
        is_mask ? operand.is_boolean || has_operator() : operand.name == "past_state";
    if (!is_part) feed(operand.name);
}

void OnnxText::begin_steps() {
    line("");
    line("def check(name, got, want, tolerance):");
    line(check_end);
}

void OnnxText::check(const ProgramArray& expected, const ProgramArray& tolerance) {
    if (!std::exchange(has_run_, true)) run_model();
    array("expected", expected);
    array("tolerance", tolerance);
    line("check(\"" + expected.name + "\", " + expected.name +
         ".reshape(expected.shape), expected, tolerance)");
}

/// Parameters that all heads share, and what is compared, have no more axes than in attn.
const std::vector<std::size_t>& OnnxText::shape_of(const ProgramArray& array) const {
    const auto id = find_array(array.name);
    const bool is_parameter = id && id->row().is_parameter();
    return is_parameter || !p.has(array.name) ? array.shape : array.full;
}

void OnnxText::run_model() {
    line("");
    line("feeds = {");
    for (const std::string& name : feeds_) line("    \"" + name + "\": " + name + ",");
    line("}");
    std::string outputs, names;
    for (const ProgramArray& expected : p.expected) {
        std::vector<std::size_t> shape = expected.full;
        // merged heads are (batch, q_len, d_out)
        if (expected.name == "context_vectors" && (p.merges_heads() || p.has("W_out")))
            shape.erase(shape.begin() + 1);
        outputs += (outputs.empty() ? "" : ", ") + shaped(shape) + " " + expected.name;
        names += (names.empty() ? "" : ", ") + expected.name;
    }
    line(R"(types = {"float32": "float", "float64": "double", "bool": "bool", "int64": "int64"}
operands = ", ".join(f"{types[x.dtype.name]}{list(x.shape)} {name}" for name, x in feeds.items())
model = onnx.parser.parse_model("""
<ir_version: 10, opset_import: ["" : 23]>
attention (""" + operands + """)
    => ()" +
         outputs + R"()
{)");
    line(nodes_ + R"(}
""")
onnx.checker.check_model(model, full_check=True)
try:
    from onnxruntime import InferenceSession
    run = InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run
except ImportError:
    from onnx.reference import ReferenceEvaluator
    run = ReferenceEvaluator(model).run)");
    line(names + " = run(None, feeds)");
}

std::string OnnxText::node(const std::string& to, std::string_view operation,
                           const std::string& inputs, const std::string& attributes) {
    std::string start = "    " + to + " = " + std::string(operation);
    if (!attributes.empty()) start += " <" + attributes + ">";
    const std::string arguments = "(" + inputs + ")\n";
    constexpr std::size_t max_width = 100;
    const bool fits = start.size() + arguments.size() <= max_width;
    nodes_ += start + (fits ? " " : "\n        ") + arguments;
    return to;
}

std::string OnnxText::number(const std::string& name, double value) {
    if (constants_.insert(name).second)
        node(name, "Constant", "",
             "value = " + type_ + " {" + number_literal(value, Dtype::float64, "inf") + "}");
    return name;
}

std::string OnnxText::integers(const std::vector<std::size_t>& values) {
    std::string name = "i";
    for (const std::size_t x : values) name += "_" + std::to_string(x);
    if (constants_.insert(name).second)
        node(name, "Constant", "", "value_ints = [" + listed_integers(values) + "]");
    return name;
}

std::string OnnxText::shaped(const std::vector<std::size_t>& shape) const {
    return type_ + "[" + listed_integers(shape) + "]";
}

void OnnxText::normed_as(const std::string& to, const std::string& x, const ProgramNorm& norm) {
    const bool has_bias = !norm.norm.bias.empty();
    const std::string weight = norm.name + "_weight", bias = norm.name + "_bias";
    if (is_float()) {
        node(to, norm.norm.is_rms ? "RMSNormalization" : "LayerNormalization",
             x + ", " + weight + (has_bias ? ", " + bias : ""),
             "axis = -1, epsilon = " + real_attribute(norm.norm.eps));
        return;
    }
    const std::string last = "axes_last";
    if (constants_.insert(last).second) node(last, "Constant", "", "value_ints = [-1]");
    std::string deviation = x;
    if (!norm.norm.is_rms) {
        const std::string mean = node(to + "_mean", "ReduceMean", x + ", " + last);
        deviation = node(to + "_deviation", "Sub", x + ", " + mean);
    }
    const std::string squares = node(to + "_squares", "Mul", deviation + ", " + deviation);
    const std::string variance = node(to + "_variance", "ReduceMean", squares + ", " + last);
    const std::string shifted =
        node(to + "_shifted", "Add", variance + ", " + number(norm.name + "_eps", norm.norm.eps));
    const std::string root = node(to + "_root", "Sqrt", shifted);
    const std::string unit = node(to + "_unit", "Div", deviation + ", " + root);
    const std::string scaled = node(has_bias ? to + "_scaled" : to, "Mul", unit + ", " + weight);
    if (has_bias) node(to, "Add", scaled + ", " + bias);
}

void OnnxText::multiply(const std::string& to, const std::string& x, ArrayId weight,
                        const std::string& bias) {
    const std::string name(weight.row().name);
    const bool grouped = p.find(name)->shape.size() == 3;
    const std::string w = p.is_in_out(weight)
                              ? name
                              : node(name + "_transposed", "Transpose", name,
                                     grouped ? "perm = [0, 2, 1]" : "perm = [1, 0]");
    const std::string by_head =
        grouped ? node(to + "_tokens", "Unsqueeze", x + ", " + integers({1})) : x;
    const std::string product =
        node(p.has(bias) ? to + "_product" : to, "MatMul", by_head + ", " + w);
    if (!p.has(bias)) return;
    const std::string b =
        grouped ? node(bias + "_rows", "Unsqueeze", bias + ", " + integers({1})) : bias;
    node(to, "Add", product + ", " + b);
}

std::string OnnxText::heads_of(const std::string& to, const std::string& x, const Heads& heads,
                               ArrayId weight, const std::string& bias) {
    if (p.has(weight.row().name)) {
        multiply(plan.independent_heads() ? to : to + "_merged", x, weight, bias);
        if (!plan.independent_heads()) split(to, to + "_merged", heads);
    } else if (plan.independent_heads()) {
        const std::string tokens = node(to + "_tokens", "Unsqueeze", x + ", " + integers({1}));
        node(to, "Expand",
             tokens + ", " + integers({plan.batch, heads.count, heads.rows, heads.width}));
    } else {
        split(to, x, heads);
    }
    return to;
}

void OnnxText::split(const std::string& to, const std::string& x, const Heads& heads) {
    if (heads.count == 1) {
        node(to, "Unsqueeze", x + ", " + integers({1}));
        return;
    }
    const std::string rows =
        node(to + "_rows", "Reshape",
             x + ", " + integers({plan.batch, heads.rows, heads.count, heads.width}));
    node(to, "Transpose", rows, "perm = [0, 2, 1, 3]");
}

std::string OnnxText::merge(const std::string& to, const std::string& x, const Heads& heads) {
    if (heads.count == 1) return node(to, "Squeeze", x + ", " + integers({1}));
    const std::string by_token = node(to + "_by_token", "Transpose", x, "perm = [0, 2, 1, 3]");
    return node(to, "Reshape",
                by_token + ", " + integers({plan.batch, heads.rows, heads.count * heads.width}));
}

std::string OnnxText::repeated_as(const std::string& to, const std::string& x,
                                  std::size_t columns) {
    const std::size_t rows = plan.kv_len;
    const std::string single = node(to + "_single", "Unsqueeze", x + ", " + integers({2}));
    const std::string copies =
        node(to + "_copies", "Expand",
             single + ", " + integers({plan.batch, plan.kv_heads, p.group(), rows, columns}));
    return node(to, "Reshape", copies + ", " + integers({plan.batch, plan.heads, rows, columns}));
}

}  // namespace attn::cli
