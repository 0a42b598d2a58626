#include "cli/repro/program.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <utility>
#include <variant>

#include "core/base/error.hpp"
#include "core/check/evaluate.hpp"
#include "core/check/their_array.hpp"
#include "core/layer/mask_rows.hpp"
#include "io/file/zip.hpp"
#include "io/read/input_formats.hpp"
#include "io/text/number_text.hpp"
#include "io/write/row_text.hpp"

namespace attn::cli {

std::vector<double> elements_of(const NamedArray& array) {
    std::vector<double> numbers;
    for_each_piece(array, [&](const auto& piece) {
        for (const auto x : piece) numbers.push_back(static_cast<double>(x));
    });
    return numbers;
}

void widen(std::vector<double>& values, std::size_t& columns, std::size_t wanted) {
    std::vector<double> wide(values.size() / columns * wanted);
    for (std::size_t i = 0; i < values.size(); ++i)
        wide[i / columns * wanted + i % columns] = values[i];
    values = std::move(wide);
    columns = wanted;
}

void check_finite(const ProgramArray& array) {
    const auto row = std::ranges::find(operand_rows, array.name, &OperandRow::key);
    const bool may_be_minus_infinity =
        array.name == "decay" || (row != operand_rows.end() && row->is_mask());
    for (std::size_t at = 0; at < array.values.size(); ++at) {
        const double x = array.values[at];
        if (std::isfinite(x) || (may_be_minus_infinity && x < 0)) continue;
        throw Error(ErrorKind::input, array.name + " " + index_text(at, array.full),
                    std::isnan(x) ? "NaN"
                    : x > 0       ? "Infinity"
                                  : "-Infinity",
                    "; expected a finite number, whose rounding errors have a bound");
    }
}

namespace {

using Axes = std::vector<std::size_t>;

/// The value with three digits, not below it but for the rounding to the type.
double with_three_digits(double value, NumberType dtype) {
    // Half a unit of the third digit is at most 0.5 %. Unlike stod, strtod takes subnormal numbers.
    return row_of(dtype).round(std::strtod(io::scientific_text(value * 1.005, 2).c_str(), nullptr));
}

/// Adds the operands of one question, with all axes and with those that the question has.
class OperandList {
public:
    OperandList(const PlannedQuestion& planned, const Result& result, Repro& program)
        : given_(planned.question.operands), result_(result), program_(program) {}

    void add_all() {
        if (plan().projects)
            add_inputs();
        else
            add_heads_given();
        for (const OperandRow& row : operand_rows)
            if (row.kind == OperandKind::result && given_[row].dimension() != 0)
                add_result(row);
            else if (!row.is_tokens())
                add_of_heads(row);
        if (const std::vector<double> bonus = plan().bonus(); !bonus.empty())
            add("bonus", {plan().kv_heads, plan().d_k}, {program_.with_heads(), true}, bonus);
        if (plan().config.dropout != 0) add_dropout();
    }

private:
    const Plan& plan() const { return program_.plan; }

    void add(std::string name, Axes full, const std::vector<bool>& shown,
             std::vector<double> values, bool is_boolean = false) {
        ProgramArray array{std::move(name), std::move(full), {}, std::move(values), is_boolean};
        for (std::size_t axis = 0; axis < array.full.size(); ++axis)
            if (shown[axis]) array.shape.push_back(array.full[axis]);
        program_.operands.push_back(std::move(array));
    }

    /// (batch, heads, rows, columns).
    void add_of_heads(std::string name, const Axes& full, std::vector<double> values,
                      bool is_boolean = false) {
        add(std::move(name), full, {program_.batched(), program_.with_heads(), true, true},
            std::move(values), is_boolean);
    }

    /// (batch, tokens, columns).
    void add_matrix(const char* name, const RealArray& x) {
        const Axes& shape = x.shape();
        add(name, {plan().batch, shape[shape.size() - 2], shape.back()},
            {program_.batched(), true, true}, rounded_doubles(x, plan().config.dtype));
    }

    /// In the shape of the context vectors.
    void add_result(const OperandRow& row) {
        const auto full = shape_of_all_axes(plan(), "context_vectors");
        program_.operands.push_back({row.key,
                                     {full.begin(), full.end()},
                                     given_[row].shape(),
                                     rounded_doubles(given_[row], plan().config.dtype)});
    }

    /// In any rank that the plan admits. Keys past a mask's last column are excluded by the lengths
    /// anyway.
    void add_of_heads(const OperandRow& row) {
        std::optional<OperandNumbers> numbers = numbers_of_operand(plan(), given_, row);
        if (!numbers) return;
        auto& [shape, values, is_boolean] = *numbers;
        if (row.is_mask()) {
            if (shape[3] != 1) widen(values, shape[3], plan().kv_len);
            (is_boolean ? program_.boolean_masks : program_.additive_masks).emplace_back(row.key);
        }
        add_of_heads(row.key, {shape.begin(), shape.end()}, std::move(values), is_boolean);
    }

    void add_inputs() {
        add_matrix("inputs", given_["inputs"]);
        for (const OperandId operand : {OperandId("context"), OperandId("value_input")})
            if (given_[operand].dimension() != 0) add_matrix(operand.row().key, given_[operand]);
        if (given_.norm) add_norm(program_.input_norm, *given_.norm, "norm", false);
        const bool grouped = plan().independent_heads();
        for (const NamedArray& array : result_.arrays) {
            const auto id = find_array(array.name);
            if (!id || !id->row().is_parameter()) continue;
            const Axes shape = io::shape_of(array);
            Axes full = shape;
            std::vector<bool> shown(shape.size(), true);
            if (!grouped || id->row().axes[1] != Axis::groups) {
                full.insert(full.begin(), 1);
                shown.insert(shown.begin(), false);
            }
            add(array.name, std::move(full), shown, elements_of(array));
        }
        if (!result_.weights) return;
        std::visit(
            [&](const auto& weights) {
                for (const auto& [norm, to, name] :
                     {std::tuple(&weights->query_norm, &program_.query_norm, "query_norm"),
                      {&weights->key_norm, &program_.key_norm, "key_norm"}})
                    if (*norm) add_norm(*to, **norm, name, (*norm)->weight.size() != plan().d_k);
            },
            *result_.weights);
    }

    void add_norm(std::optional<ProgramNorm>& to, const InputNorm& norm, const std::string& name,
                  bool spans_all_heads) {
        to.emplace(ProgramNorm{norm, name, spans_all_heads});
        add(name + "_weight", {norm.weight.size()}, {true}, norm.weight);
        if (!norm.bias.empty()) add(name + "_bias", {norm.bias.size()}, {true}, norm.bias);
    }

    void add_heads_given() {
        for (const OperandRow& row : operand_rows)
            if (row.is_tokens() && given_[row].dimension() != 0)
                plan().packed ? add_matrix(row.key, given_[row]) : add_of_heads(row);
    }

    /// Which weights dropout keeps.
    void add_dropout() {
        std::vector<double> kept = elements_of(*array_named("dropout_mask", result_.arrays));
        for (double& x : kept) {
            if (x != 0) program_.kept_weight = x;
            x = x != 0 ? 1 : 0;
        }
        add_of_heads("dropout_kept", {plan().batch, plan().heads, plan().q_len, plan().kv_len},
                     std::move(kept), true);
    }

    const Operands& given_;
    const Result& result_;
    Repro& program_;
};

}  // namespace

ProgramArray tolerances_of(const Problem& problem, ArrayId id, const ProgramArray& array,
                           ThreadPool& pool) {
    const NumberType dtype = problem.plan.config.dtype;
    const Evaluator evaluator(problem, dtype);
    const double least = row_of(dtype).least_normal();
    const std::size_t heads = array.full[1], rows = array.full[2], columns = array.full[3];
    ProgramArray tolerances = array;
    tolerances.name += "_tolerance";
    std::vector<std::unique_ptr<Candidate>> of_worker(pool.threads());
    // Rows of all heads of a query are neighbours: candidates keep what these have in common.
    pool.run(array.full[0] * rows, [&](std::size_t item, std::size_t worker) {
        std::unique_ptr<Candidate>& candidate = of_worker[worker];
        if (!candidate) candidate = std::make_unique<Candidate>(evaluator, problem.asked, true);
        const std::size_t b = item / rows, row = item % rows;
        for (std::size_t head = 0; head < heads; ++head) {
            const std::vector<double>& errors = candidate->row(id, b, head, row).error;
            double* const to = &tolerances.values[((b * heads + head) * rows + row) * columns];
            for (std::size_t i = 0; i < errors.size(); ++i)
                to[i] = with_three_digits(2 * errors[i] + least, dtype);
        }
    });
    for (std::size_t at = 0; at < tolerances.values.size(); ++at)
        if (!std::isfinite(tolerances.values[at]))
            throw Error(ErrorKind::input, array.name + " " + index_text(at, array.full),
                        "the bound on its rounding error is not finite; expected smaller numbers, "
                        "or --dtype float64");
    return tolerances;
}

namespace {

void add_expected(Repro& program, const Problem& problem, const Result& result, ThreadPool& pool) {
    for (const ArrayId id : {ArrayId("attention_weights"), ArrayId("context_vectors")}) {
        const NamedArray& array = *array_named(id.row().name, result.arrays);
        const auto extent = shape_of_all_axes(program.plan, id);
        ProgramArray expected{
            array.name, {extent.begin(), extent.end()}, io::shape_of(array), elements_of(array)};
        check_finite(expected);
        program.tolerances.push_back(tolerances_of(problem, id, expected, pool));
        program.expected.push_back(std::move(expected));
    }
}

/// Masked keys may have any content in attn, and a product by a weight of 0 in the program.
bool has_masked_rows(const Repro& program, const Result& result) {
    if (program.is_linear()) return false;
    const std::vector<double> mask = elements_of(*array_named("mask", result.arrays));
    const std::size_t keys = program.plan.kv_len;
    for (std::size_t row = 0; row < mask.size(); row += keys)
        if (std::all_of(&mask[row], &mask[row] + keys, [](double x) { return x == 0; }))
            return true;
    return false;
}

/// Programs divide by the sum of the weights of a query's allowed keys; attn takes the softmax over
/// those keys instead where the sum is subnormal. A margin of 16 allows for a program's rounding.
/// Errors: SettingError, kind unsupported, of mask_method.
void check_sums(const Repro& program, const Result& result) {
    if (program.is_linear() || !program.renormalizes()) return;
    const std::vector<double> masked = elements_of(*array_named("masked_weights", result.arrays)),
                              weights = elements_of(
                                  *array_named("weights_before_dropout", result.arrays));
    const std::size_t keys = program.plan.kv_len;
    const double least = 16 * row_of(program.plan.config.dtype).least_normal();
    for (std::size_t row = 0; row < weights.size(); row += keys) {
        const auto sum_of = [&](const std::vector<double>& rows) {
            return std::accumulate(&rows[row], &rows[row] + keys, 0.0);
        };
        if (sum_of(weights) != 0 && sum_of(masked) < least)
            throw SettingError(ErrorKind::unsupported, "mask_method",
                               "the sum of the weights of the keys that query ",
                               row / keys % program.plan.q_len,
                               " may attend to is 0 or too small for a program to divide by; "
                               "expected scores that differ less, or neg-inf");
    }
}

}  // namespace

const ProgramArray* Repro::find(std::string_view operand) const {
    return find_row(operands, &ProgramArray::name, operand);
}

Repro make_program(const PlannedQuestion& planned, const Result& result, ThreadPool& pool) {
    Repro program{.plan = planned.plan};
    OperandList(planned, result, program).add_all();
    for (const ProgramArray& operand : program.operands) check_finite(operand);
    program.has_masked_rows = has_masked_rows(program, result);
    at_locations(planned.question.request, [&] { check_sums(program, result); });
    const Problem problem = make_problem(planned.plan, planned.question.operands, result);
    add_expected(program, problem, result, pool);
    add_gradients(program, problem, result, pool);
    return program;
}

namespace {

static_assert(std::endian::native == std::endian::little,
              "numbers are written in their memory layout");

std::string bytes_of(const ProgramArray& array, NumberType dtype) {
    std::string bytes;
    const auto append = [&](auto number) {
        bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
    };
    for (const double x : array.values) {
        if (array.is_boolean)
            append(static_cast<unsigned char>(x != 0));
        else if (arithmetic_of(dtype) == NumberType::float32)
            append(static_cast<float>(x));
        else
            append(x);
    }
    return bytes;
}

template <class Use>
void for_each_array(const Repro& program, const Use& use) {
    program.for_each_array(
        [&](const ProgramArray& array) { use(array, bytes_of(array, program.plan.config.dtype)); });
}

}  // namespace

void write_npz_data(io::Output& out, const Repro& program) {
    io::ZipWriter zip(out);
    const std::string real = io::descr_of(arithmetic_of(program.plan.config.dtype));
    for_each_array(program, [&](const ProgramArray& array, const std::string& bytes) {
        const std::string header = io::npy_header(array.is_boolean ? "|b1" : real, array.shape);
        zip.begin(array.name + ".npy", header.size() + bytes.size());
        zip.write(header);
        zip.write(bytes);
        zip.end();
    });
    zip.finish();
}

void write_raw_data(io::Output& out, const Repro& program) {
    for_each_array(program, [&](const ProgramArray&, const std::string& bytes) { out << bytes; });
}

}  // namespace attn::cli
