// The memory of a dry run is that of the computation, to the byte.
#include <doctest/doctest.h>

#include <limits>
#include <map>
#include <memory>
#include <random>

#include "core/base/error.hpp"
#include "core/base/memory.hpp"
#include "core/kernels/dispatch.hpp"
#include "core/layer/cost.hpp"
#include "core/plan/backend.hpp"
#include "tests/support/planned.hpp"
#include "tests/support/sample.hpp"

namespace dry_run_test {

using namespace attn;

namespace {

/// Random choices, the same on every machine.
class Dice {
public:
    explicit Dice(std::uint32_t seed) : engine_(seed) {}
    std::size_t below(std::size_t count) { return engine_() % count; }
    bool one_in(std::size_t count) { return below(count) == 0; }
    template <class T>
    T among(std::initializer_list<T> values) {
        return values.begin()[below(values.size())];
    }

private:
    std::mt19937 engine_;
};

struct Question {
    Settings settings;
    Operands operands;
    PlanOptions options;
    std::size_t threads = 1;
};

/// A matrix of one or several batch entries.
class QuestionMaker {
public:
    explicit QuestionMaker(std::uint32_t seed) : dice_(seed) {}

    Question make() {
        Settings& s = question_.settings;
        s.mode = dice_.among(
            {Mode::self, Mode::causal, Mode::multihead, Mode::cross, Mode::sdpa, Mode::linear});
        s.dtype = dice_.among({Dtype::float32, Dtype::float64});
        batch_ = dice_.among<std::size_t>({1, 1, 2});
        rows_ = dice_.among<std::size_t>({1, 3, 17, 70, 300});
        keys_ = row_of(s.mode).context ? dice_.among<std::size_t>({1, 5, 130, 9000}) : rows_;
        if (keys_ == 9000) rows_ = std::min<std::size_t>(rows_, 17);
        const bool is_either = row_of(s.mode).source == Source::either;
        row_of(s.mode).projects(is_either && dice_.one_in(2)) ? choose_layer() : choose_operator();
        if (is_linear()) {
            choose_gates();
        } else {
            choose_masks();
            choose_steps();
        }
        choose_output();
        question_.threads = dice_.among<std::size_t>({1, 2, 5});
        return std::move(question_);
    }

private:
    bool is_linear() const { return question_.settings.mode == Mode::linear; }

    Array<double> numbers(const Shape& shape) {
        Array<double> values = Array<double>::from_shape(shape);
        for (double& value : values) value = static_cast<double>(dice_.below(9)) / 8 - 0.5;
        return values;
    }

    RealArray reals(Shape shape) { return as_reals(numbers(shape), question_.settings.dtype); }

    Shape batched(Shape shape) const {
        if (batch_ > 1) shape.insert(shape.begin(), batch_);
        return shape;
    }

    void choose_layer() {
        Settings& s = question_.settings;
        const std::size_t d_in = dice_.among<std::size_t>({4, 12, 33}), d_context = d_in + 4;
        question_.operands.inputs = reals(batched({rows_, d_in}));
        if (row_of(s.mode).context) question_.operands.context = reals(batched({keys_, d_context}));
        if (dice_.one_in(5))
            question_.operands.norm = InputNorm{true, std::vector<double>(d_in, 1.0), {}, 1e-5};
        if (batch_ == 1 && dice_.one_in(4)) question_.operands.token_ids.assign(rows_, 1);
        s.init = dice_.among({Init::linear, Init::rand, Init::xavier, Init::mha, Init::none});
        const bool may_have_heads = s.mode == Mode::cross || is_linear();
        if (s.mode == Mode::multihead || (may_have_heads && dice_.one_in(2))) {
            s.heads = dice_.among<std::size_t>({1, 2, 4});
            s.kv_heads = *s.heads / dice_.among<std::size_t>({1, 1, 2});
            if (*s.kv_heads == 0) s.kv_heads = 1;
            heads_ = *s.heads;
            kv_heads_ = *s.kv_heads;
            if (!is_linear() && dice_.one_in(4)) s.style = Style::wrapper;
            if (dice_.one_in(3)) s.out_proj = false;
        }
        if (s.init == Init::none || s.init == Init::mha) {
            d_k_ = d_v_ = d_in / (s.style == Style::wrapper ? 1 : heads_);
        } else {
            d_k_ = dice_.among<std::size_t>({2, 6, 40});
            d_v_ = dice_.among<std::size_t>({2, 10});
            const std::size_t parts = s.style == Style::wrapper ? 1 : heads_;
            s.d_k = d_k_ * parts;
            s.d_v = d_v_ * parts;
            s.qkv_bias = dice_.one_in(2);
            if (dice_.one_in(4)) give_weights(d_in, row_of(s.mode).context ? d_context : d_in);
        }
        s.seed.bits = 7;
        choose_cache();
    }

    /// Of split heads, with an output projection if there are heads.
    void give_weights(std::size_t d_in, std::size_t d_context) {
        Settings& s = question_.settings;
        s.style = Style::split;
        s.d_k = d_k_ * heads_;
        s.d_v = d_v_ * heads_;
        for_dtype(s.dtype, [&]<class T>(T) {
            Parameters parameters;
            parameters.init = Init::linear;
            parameters.qkv_bias = s.qkv_bias;
            parameters.out_proj = s.heads.has_value() && s.out_proj.value_or(true);
            const WeightSizes sizes{
                d_in, d_context, heads_ * d_k_, kv_heads_ * d_k_, kv_heads_ * d_v_, heads_ * d_v_,
                20,   1};
            TorchGenerator generator(1);
            question_.operands.weights = std::make_shared<const LayerWeights<T>>(
                draw_weights<T>(parameters, sizes, generator));
        });
    }

    void choose_operator() {
        heads_ = dice_.among<std::size_t>({1, 2, 4});
        kv_heads_ = heads_ == 4 ? dice_.among<std::size_t>({1, 2, 4}) : heads_;
        d_k_ = dice_.among<std::size_t>({1, 6, 40});
        d_v_ = dice_.among<std::size_t>({2, 33});
        const bool packed = dice_.one_in(3);
        const auto operand = [&](std::size_t heads, std::size_t rows, std::size_t width) {
            return reals(packed ? Shape{batch_, rows, heads * width}
                                : Shape{batch_, heads, rows, width});
        };
        if (packed) {
            question_.settings.heads = heads_;
            question_.settings.kv_heads = kv_heads_;
        }
        question_.operands.query = operand(heads_, rows_, d_k_);
        question_.operands.key = operand(kv_heads_, keys_, d_k_);
        question_.operands.value = operand(kv_heads_, keys_, d_v_);
        choose_cache();
    }

    void choose_cache() {
        if (is_linear() || !dice_.one_in(4)) return;
        const std::size_t past = dice_.among<std::size_t>({1, 30});
        question_.operands.past_key = reals({batch_, kv_heads_, past, d_k_});
        question_.operands.past_value = reals({batch_, kv_heads_, past, d_v_});
        keys_ += past;
    }

    /// Constants, or a row for each token with one column for all key heads.
    void choose_gates() {
        Settings& s = question_.settings;
        Operands& operands = question_.operands;
        const Shape& x =
            operands.inputs.dimension() == 0 ? operands.query.shape() : operands.inputs.shape();
        Shape one_column(x.begin(), x.end());
        one_column.back() = 1;
        if (x.size() == 4) one_column[1] = kv_heads_;
        if (dice_.one_in(2))
            s.decay = {-0.5};
        else if (dice_.one_in(2))
            operands.decay = reals(one_column);
        if (dice_.one_in(3))
            s.beta.assign(dice_.one_in(2) ? kv_heads_ : 1, 0.5);
        else if (dice_.one_in(2))
            operands.beta = reals(one_column);
        if (dice_.one_in(3)) operands.past_state = reals({batch_, kv_heads_, d_k_, d_v_});
        s.qk_norm = dice_.one_in(3);
        if (dice_.one_in(5)) s.token = dice_.below(rows_);
    }

    void choose_masks() {
        Settings& s = question_.settings;
        Operands& operands = question_.operands;
        if (dice_.one_in(3)) {
            s.causal = true;
            s.causal_align = dice_.among({CausalAlign::top_left, CausalAlign::bottom_right});
        }
        if (dice_.one_in(4)) s.window = {dice_.among<std::int64_t>({-1, 3, 200}), 5};
        if (dice_.one_in(5)) s.kv_lengths.assign(batch_, keys_ / 2 + 1);
        const auto choose = [&](Array<double>& mask, bool& is_boolean, const Shape& shape) {
            mask = numbers(shape);
            is_boolean = dice_.one_in(2);
            for (double& value : mask)
                if (is_boolean)
                    value = value > 0 ? 1 : 0;
                else if (value > 0.4)
                    value = -std::numeric_limits<double>::infinity();
            if (is_boolean) s.mask_true = dice_.among({MaskTrue::keep, MaskTrue::drop});
        };
        if (dice_.one_in(3))
            choose(operands.mask, operands.mask_is_boolean,
                   dice_.one_in(2) ? Shape{rows_, keys_} : Shape{1, keys_});
        if (dice_.one_in(5))
            choose(operands.key_padding_mask, operands.key_padding_mask_is_boolean,
                   {batch_, keys_});
    }

    void choose_steps() {
        Settings& s = question_.settings;
        if (dice_.one_in(4)) s.softcap = 3;
        if (dice_.one_in(4)) {
            s.alibi = true;
            s.causal_align = CausalAlign::top_left;
        }
        if (dice_.one_in(5)) s.rope = dice_.among({Rope::half, Rope::interleaved});
        if (dice_.one_in(5)) s.sink = {0.5};
        if (dice_.one_in(4)) {
            s.dropout = dice_.among({0.25, 1.0});
            s.dropout_stream = dice_.among({DropoutStream::mt19937, DropoutStream::mkl});
            if (dice_.one_in(2)) s.dropout_seed = Seed{3, false};
        }
        if (dice_.one_in(6)) s.mask_method = MaskMethod::renormalize;
        if (dice_.one_in(5)) s.token = dice_.below(rows_);
    }

    void choose_output() {
        Settings& s = question_.settings;
        if (dice_.one_in(5)) {
            question_.options = {
                .stream = false, .trace = true, .emit = {{"all"}}, .kernel = "reference"};
            return;
        }
        const auto& kernels = kernels::supported();
        s.kernel = dice_.one_in(3) ? "reference" : kernels[dice_.below(kernels.size())]->name;
        s.average_heads = dice_.one_in(4);
        if (s.kernel == "reference" && dice_.one_in(2))
            s.emit = {"all"};
        else
            for (const char* name :
                 is_linear() ? std::vector<const char*>{"queries", "values", "head_outputs",
                                                        "attention_weights", "present_state",
                                                        "context_vectors"}
                             : std::vector<const char*>{"queries", "keys", "inputs", "W_query",
                                                        "b_key", "scores", "attention_weights",
                                                        "logsumexp", "head_outputs", "present_key",
                                                        "present_value", "token_ids", "W_out"})
                if (dice_.one_in(3)) s.emit.emplace_back(name);
    }

    Dice dice_;
    Question question_;
    std::size_t batch_ = 1, rows_ = 1, keys_ = 1, heads_ = 1, kv_heads_ = 1, d_k_ = 1, d_v_ = 1;
};

double bytes_of_given(const Operands& operands) {
    if (!operands.weights) return 0;
    return std::visit(
        []<class T>(const std::shared_ptr<const LayerWeights<T>>& w) {
            double numbers = 0;
            const auto add = [&](const Projection<T>& p) {
                numbers += static_cast<double>(p.weight.size() + p.bias.size());
            };
            add(w->query);
            add(w->key);
            add(w->value);
            if (w->out) add(*w->out);
            return numbers * sizeof(T);
        },
        *operands.weights);
}

std::uint64_t size_of(const NamedArray& array) {
    if (!array.stream)
        return std::visit([](const auto& values) { return std::uint64_t{values.size()}; },
                          array.values);
    std::uint64_t size = 1;
    for (std::size_t axis : std::visit([](const auto& s) { return s.shape; }, *array.stream))
        size *= axis;
    return size;
}

/// The bytes of the operands, the peak and those of the result, and the elements of its arrays,
/// counted during a computation.
Cost counted(const Plan& plan, const Operands& operands, std::size_t threads) {
    ThreadPool pool(threads);
    const double given = bytes_of_given(operands);
    MemoryMeter meter(MemoryMeter::Run::real);
    Operands copy = operands;
    Cost cost;
    cost.operand_bytes = given + meter.bytes();
    Result result = compute(plan, std::move(copy), pool);
    result.weights.reset();
    cost.answer_memory = meter.bytes();
    for (const NamedArray& array : result.arrays) cost.numbers += size_of(array);
    for (const NamedArray& array : result.arrays)
        if (array.stream)
            std::visit(
                [](const auto& rows) {
                    auto piece = rows.next();
                    piece = rows.next();
                },
                *array.stream);
    cost.memory = given + meter.peak();
    return cost;
}

void check(const Question& question, const Plan& plan) {
    const Cost dry = measure(plan, question.threads);
    const Cost real = counted(plan, question.operands, question.threads);
    CHECK(dry.operand_bytes == real.operand_bytes);
    CHECK(dry.memory == real.memory);
    if (!question.options.trace) CHECK(dry.numbers == real.numbers);
    CHECK(dry.answer_memory == real.answer_memory);
}

}  // namespace

TEST_CASE("dry run: it counts the bytes and elements of the computation, for generated questions") {
    std::map<std::pair<Mode, std::string_view>, int> checked;
    for (std::uint32_t seed = 1; seed <= test::cases(1500); ++seed) {
        CAPTURE(seed);
        const Question question = QuestionMaker(seed).make();
        try {
            const Plan plan = test::plan_of(question.settings, question.operands, question.options);
            check(question, plan);
            ++checked[{plan.mode, plan.backend->name}];
        } catch (const SettingError&) {
        }
    }
    for (const ModeRow& mode : mode_rows) {
        CAPTURE(mode.name);
        CHECK(checked[{mode.mode, "reference"}] >= (test::one_in == 1 ? 20 : 1));
        for (const kernels::Kernel* kernel : kernels::supported())
            if (test::one_in == 1) CHECK(checked[{mode.mode, kernel->name}] >= 2);
    }
}

TEST_CASE("dry run: it counts what streams hold, and two pieces of each") {
    Question question;
    question.operands.inputs = as_reals(Array<double>::from_shape({4200, 2}), Dtype::float32);
    question.operands.inputs.in<float>().fill(0.5);
    question.settings.mode = Mode::causal;
    question.settings.emit = {"scores", "attention_weights"};
    question.settings.kernel = "generic";
    question.options.stream = true;
    for (std::size_t threads : {1U, 3U}) {
        question.threads = threads;
        const Plan plan = test::plan_of(question.settings, question.operands, question.options);
        REQUIRE(plan.streams);
        check(question, plan);
    }
}

TEST_CASE("dry run: sizes may exceed every machine's memory") {
    Question question;
    question.operands.inputs = as_reals(Array<double>::from_shape({2, 2}), Dtype::float32);
    const auto memory_of = [&](const char* kernel, std::uint64_t width) {
        question.settings.kernel = kernel;
        question.settings.d_out = width;
        return measure(test::plan_of(question.settings, question.operands), 4).memory;
    };
    for (const char* kernel : {"reference", "generic"})
        for (std::uint64_t width : {std::uint64_t{1} << 31, std::uint64_t{1} << 50}) {
            CAPTURE(width);
            CHECK(memory_of(kernel, width) >= 3 * 2 * 4.0 * static_cast<double>(width));
        }
}

}  // namespace dry_run_test
