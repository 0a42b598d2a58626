// Whether other draws reproduce another program's arrays: a seed, an initialiser or an order that
// was forgotten, or biases, which shift the draws after them.
#include "cli/check/check.hpp"
#include "cli/question/operands.hpp"
#include "cli/request/field.hpp"
#include "core/check/comparison.hpp"
#include "core/layer/layer.hpp"

namespace attn::cli {
namespace {

/// A setting by its key, and values that are often meant.
struct DrawRow {
    ConventionRow setting;
    std::array<std::string_view, 10> values;
};
constexpr DrawRow draw_rows[] = {
    {{"seed", "", nullptr}, {"0", "1", "42", "123", "789", "1337"}},
    {{"init", "", nullptr},
     {"linear", "rand", "randn", "mha", "xavier_uniform", "xavier_normal", "kaiming_uniform",
      "kaiming_normal", "normal,0,0.02", "trunc_normal,0,0.02"}},
    {{"rng", "", nullptr}, {"torch", "cuda"}},
    {{"dropout_stream", "", nullptr}, {"mt19937", "cuda"}},
    {{"draw_order", "", nullptr},
     {"query,key,value", "query,value,key", "key,query,value", "key,value,query", "value,query,key",
      "value,key,query", "out,query,key,value"}},
    {{"qkv_joined", "", nullptr}, {"true", "false"}},
    {{"qkv_bias", "", nullptr}, {"true", "false"}},
    {{"out_bias", "", nullptr}, {"true", "false"}},
};

/// At most `product_limit` multiplications in all, about two seconds; `fixed_cost` or more each.
constexpr double product_limit = 3e8, fixed_cost = 20000;
constexpr std::size_t max_changes = 3;

struct OtherDraws {
    Change change;
    const Option* option;
    nlohmann::json value;
};

std::string shown(const Option& option, const Request& request) {
    std::string text;
    append_value(text, option, request);
    std::erase_if(text, [](char c) { return c == '"' || c == '[' || c == ']'; });
    return text.empty() ? "the default" : text;
}

std::vector<OtherDraws> draws_besides(const Request& asked) {
    std::vector<OtherDraws> others;
    for (const DrawRow& row : draw_rows)
        for (const std::string_view value : row.values) {
            const Option& option = *find_option(row.setting.name);
            const std::string text(value), no = value == "false" ? "--no-" : "--";
            OtherDraws other{
                {&row.setting, shown(option, asked), text,
                 is_boolean(option) ? no + flag_name(option) : flag_of(option) + " " + text},
                &option,
                value_of(option, text)};
            if (!text.empty() && (option.modes & in(asked.settings.mode)) != 0 &&
                other.change.asked != text)
                others.push_back(std::move(other));
        }
    return others;
}

}  // namespace

void search_draws(ProgramJudgement& judgement, const Request& asked, const Problem& problem,
                  const Operands& operands, const std::vector<TheirArray>& arrays,
                  ThreadPool& pool) {
    const bool draws = problem.plan.draws_parameters() || !asked.settings.drawn_shape().empty();
    // In float16 and bfloat16 the bounds are so wide that other draws would be within them.
    const bool is_narrow = std::ranges::all_of(
        arrays, [](const TheirArray& array) { return array.type <= NumberType::float32; });
    if (!draws || !is_narrow) return;
    const std::vector<OtherDraws> others = draws_besides(asked);

    const auto match_of = [&](const std::vector<std::size_t>& changes,
                              std::uint64_t more_seed) -> std::optional<Match> {
        Request request = asked;
        Match match;
        for (const std::size_t i : changes) {
            match.changes.push_back(others[i].change);
            if (!store(request, *others[i].option, others[i].value).empty()) return {};
        }
        Settings& s = request.settings;
        s.seed.bits += more_seed;
        if (!asked.has("dropout_skip")) s.dropout_skip = {};  // follows from the streams
        if (s.rng != Rng::cuda && s.dropout_stream != DropoutStream::cuda)
            s.multiprocessors = s.threads_per_multiprocessor = {};
        try {
            const Plan plan = make_plan(request.settings, problem.plan.operands);
            const auto has = [&](const TheirArray& array) {
                return plan.has(array.id.row()) && shape_of_all_axes(plan, array.id) == array.shape;
            };
            if (!std::ranges::all_of(arrays, has)) return {};
            Operands drawn = operands;
            if (draws_inputs(request)) draw_inputs(request, drawn);
            ThreadPool alone(1);
            const Problem other = exact_question(plan, drawn, alone);
            const Comparison comparison(other, arrays, alone);
            if (!comparison.is_right()) return {};
            Reproduction all(comparison, other.asked);
            for (std::size_t array = 0; array < arrays.size(); ++array)
                for (std::size_t row = 0; row < comparison.rows(array); ++row)
                    match.ulp =
                        std::max(match.ulp, all.compare(comparison.row_at(array, row), false).ulp);
            return match;
        } catch (const SettingError&) {  // the question cannot have these draws
            return {};
        }
    };

    // Then it is not the draws that differ, but how numbers were rounded.
    if (match_of({}, 0)) return;
    std::vector<std::vector<std::size_t>> all{{}};
    double left = product_limit;
    for (std::size_t size = 1; size <= max_changes; ++size) {
        std::vector<std::vector<std::size_t>> longer;
        for (const std::vector<std::size_t>& one : all)
            for (std::size_t i = one.empty() ? 0 : one.back() + 1; i < others.size(); ++i) {
                if (!one.empty() && others[one.back()].option == others[i].option) continue;
                longer.push_back(one);
                longer.back().push_back(i);
            }
        all = std::move(longer);
        left -= static_cast<double>(all.size()) * (flops_of(problem.plan) / 2 + fixed_cost);
        if (left < 0) return;
        std::vector<std::optional<Match>> found(all.size());
        pool.run(all.size(), [&](std::size_t i, std::size_t) { found[i] = match_of(all[i], 0); });
        // With few printed digits other seeds match by chance.
        const auto is_chance = [&](const std::vector<std::size_t>& changes) {
            constexpr std::uint64_t others_tried = 32;
            for (std::uint64_t more = 1; more <= others_tried; ++more)
                if (match_of(changes, more)) return true;
            return false;
        };
        judgement.tried_draws = true;
        for (std::size_t i = 0; i < all.size(); ++i)
            if (found[i] && !is_chance(all[i])) judgement.matches.push_back(*std::move(found[i]));
        if (!judgement.matches.empty()) return;
    }
}

}  // namespace attn::cli
