// Dropout: its probability, its factor, where its mask is drawn, and single decisions of it.

#include "core/base/tensor.hpp"
#include "core/check/comparison.hpp"
#include "core/layer/layer.hpp"

namespace attn {
namespace {

void dropouts(Alternatives& to) {
    const Problem& problem = to.problem;
    if (problem.asked.drops) {
        const std::string asked = "p = " + shortest_decimal(problem.plan.config.dropout);
        to.asked(asked);
        to.set("p = 0", &Conventions::drops, false);
        to.set(asked + ", kept weights not divided by 1 - p", &Conventions::rescales_dropout,
               false);
    }
    if (problem.asked.drops || problem.dropout_kept.empty()) return;
    // Of a mask that their weights show; the factor is known only if nothing else differs.
    const auto applied = [&](const std::string& words, double factor) {
        to.add(words, [=](auto& c) {
            c.drops = true;
            c.rescales_dropout = false;
            c.weight_factor = factor;
        });
    };
    to.asked("p = 0");
    // Of six digits, which float32 has.
    const double seen = std::round((1 - 1 / problem.kept_weight) * 1e6) / 1e6;
    bool is_usual = false;
    for (const double p : {0.1, 0.2, 0.5, 0.05, 0.15, 0.25, 0.3, 0.4, 0.6, 0.7, 0.75, 0.8, 0.9}) {
        is_usual = is_usual || p == seen;
        applied("p = " + shortest_decimal(p), 1 / (1 - p));
    }
    applied("kept weights not divided by 1 - p", 1);
    if (!is_usual) applied("p = " + shortest_decimal(seen), problem.kept_weight);
}

std::string dropout_flag(const Problem&, const Conventions& found) {
    return found.drops ? "" : "--dropout 0";
}

std::string words_of_draws(const Settings& s) {
    return std::string(s.dropout_kernel ? name_of(dropout_kernel_names, *s.dropout_kernel)
                                        : name_of(dropout_stream_names, s.dropout_stream));
}

void draws(Alternatives& to) {
    to.asked(words_of_draws(to.problem.plan.config));
    for (std::size_t i = 0; i < to.problem.other_dropouts.size(); ++i)
        to.set(to.problem.other_dropouts[i].words, &Conventions::dropout_draws, i + 1, 2);
}

std::string draws_flag(const Problem& problem, const Conventions& found) {
    return found.dropout_draws == 0 ? "" : problem.other_dropouts[found.dropout_draws - 1].flag;
}

constexpr ConventionRow conventions_of_dropout[] = {
    {"dropout", "dropout ", dropouts, dropout_flag},
    {.name = "dropout_draws",
     .beginning = "dropout of ",
     .add_alternatives = draws,
     .flag = draws_flag,
     .keeps_words = true},
    {"dropout_decision", "dropout that ", [](Alternatives&) {}},
};

}  // namespace

const std::span<const ConventionRow> rows_of_dropout = conventions_of_dropout;

std::optional<Alternative> flipped_decision(const Comparison& comparison) {
    const Problem& problem = comparison.problem();
    const Plan& plan = problem.plan;
    const auto probe = std::ranges::find_if(
        comparison.probes(), [&](const TheirRow& row) { return comparison.asked(row) != nullptr; });
    if (!problem.asked.drops || problem.dropout_kept.empty() || probe == comparison.probes().end())
        return {};
    const TheirArray& array = comparison.array(*probe);
    const std::size_t heads = array.shape[1] < plan.heads ? plan.heads : 1,  // in the row
        keys = plan.kv_len;
    constexpr double product_limit = 1e9;
    if (array.id.row().is_gradient() ||
        product_of_sizes(heads, heads, keys, keys, plan.d_k + plan.d_v) > product_limit)
        return {};
    const std::span<const double> theirs = comparison.numbers(*probe);
    double least = HUGE_VAL;
    std::size_t best = 0;
    Conventions changed = problem.asked;
    for (std::size_t i = 0; i < heads * keys; ++i) {
        const std::size_t head = probe->batch * plan.heads + probe->head + i / keys,
                          at = (head * plan.rows + probe->row) * keys + i % keys;
        changed.flipped = at;
        const Numbers made = Reproduction(comparison, changed).computed(*probe, false);
        double squares = 0;
        for (std::size_t c = 0; c < theirs.size(); ++c)
            squares += (theirs[c] - made.value[c]) * (theirs[c] - made.value[c]);
        if (squares < least) best = at;
        least = std::min(least, squares);
    }
    const bool is_kept = problem.dropout_kept[best] != 0;
    return Alternative{&conventions_of_dropout[2], "p = " + shortest_decimal(plan.config.dropout),
                       concat(is_kept ? "drops" : "keeps", " weight ",
                              index_text(best, {plan.batch, plan.heads, plan.rows, keys}),
                              ", which the question ", is_kept ? "keeps" : "drops"),
                       [best](Conventions& c) { c.flipped = best; }, 1};
}

void draw_other_dropouts(Problem& problem) {
    using enum DropoutStream;
    const Settings& asked = problem.plan.config;
    const bool is_cuda = asked.dropout_stream == cuda;
    const std::uint64_t skip = asked.dropout_skip.value_or(0);
    const auto add = [&](Settings s, std::uint64_t skipped, std::string words,
                         std::string_view gpu = {}) {
        std::string flags;
        const auto flag = [&](const auto&... parts) {
            flags += concat(flags.empty() ? "--dropout-" : " --dropout-", parts...);
        };
        if (s.dropout_stream != asked.dropout_stream)
            flag("stream ", name_of(dropout_stream_names, s.dropout_stream));
        if (s.dropout_kernel && s.dropout_kernel != asked.dropout_kernel)
            flag("kernel ", name_of(dropout_kernel_names, *s.dropout_kernel));
        if (skipped != skip) {
            if (!asked.dropout_seed) flag("seed ", static_cast<std::int64_t>(asked.seed.bits));
            flag("skip ", skipped);
            s.dropout_seed = asked.dropout_seed.value_or(asked.seed);
        }
        if (!gpu.empty()) flags += concat(flags.empty() ? "--gpu " : " --gpu ", gpu);
        if (asked.dropout_kernel && !s.dropout_kernel) {
            flags.clear();
            words += ", without --dropout-kernel";
        }
        s.dropout_skip = s.continues_stream() ? std::nullopt : std::optional(skipped);
        if (s.dropout_stream != cuda)
            s.multiprocessors = s.threads_per_multiprocessor = std::nullopt;
        const Plan plan = make_plan(s, problem.plan.operands);
        std::vector<char> kept;
        for (const float factor :
             dropout_mask<float>(draws_of(plan).dropout, plan.first_query,
                                 {plan.batch, plan.heads, plan.rows, plan.kv_len}))
            kept.push_back(factor == 0 ? 0 : 1);
        const bool is_tried =
            kept == problem.dropout_kept ||
            std::ranges::find(problem.other_dropouts, kept, &OtherDropout::kept) !=
                problem.other_dropouts.end();
        if (!is_tried)
            problem.other_dropouts.push_back({std::move(words), std::move(flags), std::move(kept)});
    };
    using Kernel = std::optional<DropoutKernel>;
    // Of equal masks the first: F.dropout has no flag that undoes a kernel's.
    for (const auto& [stream, kernel] : {std::pair(cuda, Kernel(DropoutKernel::math)),
                                         {cuda, DropoutKernel::efficient},
                                         {cuda, DropoutKernel::flash},
                                         {cuda, {}},
                                         {mt19937, {}},
                                         {mkl, {}}}) {
        Settings s = asked;
        s.dropout_stream = stream;
        s.dropout_kernel = kernel;
        const bool is_same = (stream == cuda) == is_cuda;
        add(s, is_same ? skip : 0,
            concat("another ",
                   !is_same  ? "device"
                   : is_cuda ? "kernel"
                             : "stream",
                   ": ", words_of_draws(s)));
    }
    for (const auto& [threads, name] : gpu_names) {
        Settings s = asked;
        s.dropout_stream = cuda;
        s.multiprocessors = threads.multiprocessors;
        s.threads_per_multiprocessor = threads.threads_per_multiprocessor;
        add(s, is_cuda ? skip : 0, concat("another ", is_cuda ? "GPU: " : "device: ", name), name);
    }
    add(asked, end_of_dropout(problem.plan, draws_of(problem.plan).dropout), "the next call");
    add(asked, 0, "the first call");
}

}  // namespace attn
