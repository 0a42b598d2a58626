// The memory of a dry run is that of the computation, to the byte.
#include <atomic>
#include <memory>

#include "core/base/layout.hpp"
#include "core/base/memory.hpp"
#include "core/kernels/dispatch.hpp"
#include "core/plan/backend.hpp"
#include "tests/support/drawn_layer.hpp"
#include "tests/support/planned.hpp"

namespace dry_run_test {
namespace {

using namespace attn;

struct Question {
    Settings settings;
    Operands operands;
    PlanOptions options;
    std::size_t threads = 1;
};

/// A drawn layer, whose parameters are given or drawn, with kernels, arrays and threads.
Question drawn_question(std::uint32_t seed) {
    test::Dice dice(seed);
    test::DrawnLayer layer = test::drawn_layer(seed, test::Lengths::of_tiles)
                                 .in(dice.among({NumberType::float32, NumberType::float64}));
    Question question{layer.settings, layer.operands, {}, dice.among({1U, 2U, 5U})};
    Settings& s = question.settings;
    if (dice.one_in(2)) {
        question.operands.weights.reset();
        s.init = dice.among({Init::linear, Init::rand, Init::xavier, Init::mha, Init::none});
        if (s.init == Init::mha || s.init == Init::none) s.d_k = s.d_v = s.d_out = {};
        if (dice.one_in(3)) s.out_proj = false;
    }
    for (const OperandRow& row : operand_rows)
        if (RealArray& x = question.operands[row]; x.dimension() != 0 && !row.is_mask())
            x = as_reals(x.in<double>(), s.dtype);
    if (dice.one_in(2))
        s.dropout_stream =
            dice.among({DropoutStream::mt19937, DropoutStream::mkl, DropoutStream::cuda});
    if (dice.one_in(5)) {
        question.options = {
            .stream = false, .trace = true, .emit = {{"all"}}, .kernel = "reference"};
        return question;
    }
    const auto& kernels = kernels::supported();
    s.kernel = dice.one_in(3) ? "reference" : kernels[dice.below(kernels.size())]->name;
    s.emit.clear();
    if (s.kernel == "reference" && dice.one_in(2)) s.emit = {"all"};
    if (s.emit.empty())
        for (const std::string& name : test::arrays_of(layer, std::string(s.kernel)))
            if (dice.one_in(3)) s.emit.push_back(name);
    return question;
}

Array<double> ones(const std::vector<std::size_t>& shape) {
    Array<double> x = Array<double>::from_shape(shape);
    x.fill(1);
    return x;
}

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

TEST_CASE("dry run: it counts the bytes and elements of the computation, for generated questions") {
    std::map<std::pair<Mode, std::string_view>, int> checked;
    for (std::uint32_t seed = 1; seed <= test::cases(1000); ++seed) {
        CAPTURE(seed);
        const Question question = drawn_question(seed);
        try {
            const Plan plan = test::plan_of(question.settings, question.operands, question.options);
            check(question, plan);
            ++checked[{plan.config.mode, plan.backend->name}];
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
    question.operands["inputs"] =
        as_reals(Array<double>::from_shape({4200, 2}), NumberType::float32);
    question.operands["inputs"].in<float>().fill(0.5);
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

TEST_CASE("dry run: arrays are copied, filled and looped over without memory") {
    const Array<double> given = ones({2, 3, 4});
    for (const MemoryMeter::Run run : {MemoryMeter::Run::real, MemoryMeter::Run::dry})
        for (const std::size_t threads : {1U, 3U}) {
            CAPTURE(threads);
            ThreadPool pool(threads);
            const MemoryMeter meter(run);
            const std::size_t loops = run == MemoryMeter::Run::dry ? 0 : 1;
            std::atomic<std::size_t> called = 0;
            const auto call = [&](auto...) { ++called; };
            for_each_index(5, call);
            pool.run(5, call);
            pool.run(1, call);
            share(&pool, 5, call);
            share(nullptr, 5, call);
            run_in_slots(pool, 5, call);
            CHECK(called == 26 * loops);

            Array<double> x = given;
            CHECK(meter.bytes() == 24 * 8);
            x.fill(2);
            put(x, 1, 2, sliced(x, 1, 0, 1));
            const Array<float> both(joined(0, x, picked(given, 0, {1, 0, 1})));
            Tensor4<float> swapped = Tensor4<float>::from_shape({5, 4, 3, 1});
            copy_swapped(both.data(), {5, 3, 4, 1}, swapped.data());
            CHECK(meter.bytes() == 24 * 8 + 60 * 4 + 60 * 4);
            CHECK(both.size() == 60);
            CHECK(std::accumulate(both.begin(), both.end(), 0.0) ==
                  static_cast<double>((24 * 2 + 36) * loops));
            CHECK(std::ranges::count(swapped, 2.0F) == static_cast<std::ptrdiff_t>(24 * loops));
        }
}

}  // namespace
}  // namespace dry_run_test
