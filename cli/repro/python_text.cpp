// The parts of PythonLanguage besides its steps: data, positions, checks.
#include <bit>
#include <utility>

#include "cli/repro/literal.hpp"
#include "cli/repro/python.hpp"

namespace attn::cli {

std::string python_number(double value) {
    return number_literal(value, Dtype::float64, "math.inf");
}

std::string PythonLanguage::of_module(std::string_view name) const {
    return std::string(d_.module) + "." + std::string(name);
}

std::string PythonLanguage::as_real(const std::string& x) const {
    return x + std::string(d_.type_before) + real() + ")";
}

std::string PythonLanguage::transposed(const std::string& x) const {
    return x + "." + std::string(d_.swap) + "(-2, -1)";
}

void PythonLanguage::header(std::string_view imports) {
    line("# " + p.command);
    line("# Computes the same in " + std::string(d_.library) +
         " and compares with attn's numbers: attn help repro");
    line(p.has_data_file ? "import math\nimport pathlib\nimport sys\n"
                         : "import math\nimport sys\n");
    line(imports);
    line("");
    if (p.has_data_file) line("data = np.load(pathlib.Path(__file__).with_suffix(\".npz\"))");
}

void PythonLanguage::array(const std::string& name, const ProgramArray& array) {
    if (p.has_data_file) {
        line(name + " = " + loaded(array));
        return;
    }
    const std::string type = array.is_boolean ? std::string(d_.bool_type) : real();
    const std::string before = name + " = " + of_module(d_.array) + "(";
    line(before +
         array_literal(shape_of(array), array.values, plan.dtype, before.size(),
                       {"[", "]", "math.inf"}) +
         ", dtype=" + type + ")");
}

std::string PythonLanguage::loaded(const ProgramArray& array) const {
    std::string text = "data[\"" + array.name + "\"]";
    if (shape_of(array) != array.shape) text += ".reshape" + shape_text(shape_of(array));
    return text;
}

void PythonLanguage::operand(const ProgramArray& operand) {
    array(operand.name, operand);
}

void PythonLanguage::begin_steps() {
    line("");
}

std::string PythonLanguage::shape_of_heads(std::size_t heads, std::size_t rows,
                                           std::size_t columns) const {
    std::vector<std::size_t> shape;
    if (has_batch_axis()) shape.push_back(plan.batch);
    if (has_heads_axis()) shape.push_back(heads);
    shape.insert(shape.end(), {rows, columns});
    return shape_text(shape);
}

std::string PythonLanguage::with_axes_of_batch(const std::string& x) const {
    return x + (has_heads_axis() ? ".reshape(-1, 1, 1, 1)" : ".reshape(-1, 1, 1)");
}

std::string PythonLanguage::with_axes_of_heads(const std::string& x) const {
    return x + (has_heads_axis() ? ".reshape(-1, 1, 1)" : "");
}

std::string PythonLanguage::split(const std::string& x, std::size_t heads) const {
    return "split(" + x + ", " + std::to_string(heads) + ")";
}

void PythonLanguage::keys_at() {
    if (std::exchange(has_keys_at_, true)) return;
    line("j = " + of_module("arange(") + std::to_string(plan.kv_len) + ")  # keys");
}

void PythonLanguage::positions() {
    if (std::exchange(has_positions_, true)) return;
    const std::vector<std::int64_t>& offsets = plan.offset.values();
    std::string offset;
    if (offsets.size() > 1) {
        offset = " + " +
                 with_axes_of_batch(of_module(d_.array) + "([" + listed_integers(offsets) + "])");
    } else if (offsets[0] != 0) {
        offset = offsets[0] > 0 ? " + " + std::to_string(offsets[0])
                                : " - " + std::to_string(-offsets[0]);
    }
    line("p = " + of_module("arange(") + std::to_string(plan.q_len) + ")[:, None]" + offset +
         "  # positions of the queries among the keys");
    keys_at();
}

void PythonLanguage::frequencies() {
    const RopeSettings& rope = plan.rope;
    const std::string dims = std::to_string(rope.dims), pairs = std::to_string(rope.dims / 2);
    line("frequencies = " + python_number(rope.base) + " ** (-2 * " + of_module("arange(") + pairs +
         ", dtype=" + of_module("float64") + ") / " + dims + ")");
    if (rope.scaling.size() == 1)
        line("frequencies = frequencies / " + python_number(rope.scaling[0]));
    if (rope.scaling.size() != 4) return;
    line("turns = frequencies * " + python_number(rope.scaling[3]) + " / (2 * math.pi)");
    const std::string low = python_number(rope.scaling[1]), high = python_number(rope.scaling[2]);
    line("kept = ((turns - " + low + ") / (" + high + " - " + low + ")).clip(0, 1)");
    line("frequencies = (1 - kept) * frequencies / " + python_number(rope.scaling[0]) +
         " + kept * frequencies");
}

std::string PythonLanguage::alibi_terms() {
    positions();
    const auto powers = [](std::size_t of, std::size_t end, const char* step) {
        return "[2 ** (-8 * h / " + std::to_string(of) + ") for h in range(1, " +
               std::to_string(end) + step + ")]";
    };
    const std::size_t power = std::bit_floor(plan.heads);
    std::string list;
    if (!plan.alibi_slopes.empty()) {
        for (double slope : plan.alibi_slopes)
            list += (list.empty() ? "[" : ", ") + python_number(slope);
        list += "]";
    } else if (plan.slope_formula == SlopeFormula::geometric || power == plan.heads) {
        list = powers(plan.heads, plan.heads + 1, "");
    } else {
        list = powers(power, power + 1, "") + " + " +
               powers(2 * power, 2 * (plan.heads - power) + 1, ", 2");
    }
    line("slopes = " +
         with_axes_of_heads(of_module(d_.array) + "(" + list + ", dtype=" + real() + ")"));
    return "slopes * " + as_real("(j - p)");
}

std::string PythonLanguage::rules() {
    std::string all;
    const auto add = [&](const std::string& rule) { all += (all.empty() ? "" : " & ") + rule; };
    if (plan.causal || p.has_window()) positions();
    for (const std::string& mask : p.boolean_masks) add((plan.keeps_true ? "" : "~") + mask);
    if (plan.causal) add("(j <= p)");
    if (p.has_window()) {
        if (plan.window[0] >= 0) add("(p - " + std::to_string(plan.window[0]) + " <= j)");
        if (plan.window[1] >= 0) add("(j <= p + " + std::to_string(plan.window[1]) + ")");
    }
    if (!plan.kv_lengths.empty()) {
        keys_at();
        const std::string lengths = listed_integers(plan.kv_lengths);
        if (has_batch_axis()) {
            line("kv_lengths = " + with_axes_of_batch(of_module(d_.array) + "([" + lengths + "])"));
            add("(j < kv_lengths)");
        } else {
            add("(j[None] < " + lengths + ")");
        }
    }
    return all;
}

std::string PythonLanguage::sinks() {
    return with_axes_of_heads(of_module(d_.array) + "([" +
                              listed_numbers(plan.sink, python_number) + "], dtype=" + real() +
                              ")");
}

std::string PythonLanguage::weights_name() const {
    if (p.renormalizes()) return "unmasked_weights";
    return p.has("dropout_kept") ? "weights_before_dropout" : "attention_weights";
}

void PythonLanguage::check(const ProgramArray& expected, const ProgramArray& tolerance) {
    array("expected", expected);
    array("tolerance", tolerance);
    line("check(\"" + expected.name + "\", " + expected.name + ", expected, tolerance)");
}

}  // namespace attn::cli
