#include "cli/explain/from_result.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "cli/explain/recompute.hpp"
#include "cli/output/result_plan.hpp"
#include "cli/question/token_label.hpp"
#include "core/base/error.hpp"
#include "core/base/picked.hpp"
#include "core/base/tensor.hpp"
#include "io/read/result_view.hpp"

namespace attn::cli {
namespace {

/// The chosen query, or else one in the middle. Errors: kind usage if the result lacks it.
std::size_t query_in(const ExplanationSource& source, std::optional<std::uint64_t> chosen,
                     const Request& request) {
    const Plan& plan = source.plan;
    const std::size_t first = plan.first_query;
    const std::size_t query = chosen.value_or(source.has_one_query ? first : plan.middle_query());
    if (query >= first && query - first < plan.rows) return query;
    throw setting_error(
        request, "token",
        source.file + " has " +
            (source.has_one_query ? "query " + std::to_string(first) + " alone"
                                  : "queries 0 to " + std::to_string(plan.rows - 1)) +
            "; expected one of them");
}

void require_weights(const Plan& plan, const io::ResultView& view) {
    if (view.find("attention_weights") == nullptr)
        throw Error(
            ErrorKind::input, view.place(),
            "has no attention_weights; expected a result with them, at best with --emit all");
    if (!plan.shown.heads.empty())
        throw Error(ErrorKind::input, view.place(),
                    "has the heads " + shape_text(plan.shown.heads) + " of " +
                        std::to_string(plan.heads) +
                        " alone; expected all, as without --head, or the question: attn explain " +
                        std::string(row_of(plan.mode).name) + " INPUT --head " +
                        std::to_string(plan.shown.heads.front()));
    if (plan.shown.average_heads)
        throw Error(ErrorKind::input, view.place(),
                    "has attention_weights averaged over the heads; expected each head's own, as "
                    "without --average-heads");
}

/// Reads the arrays of attn with the row of one query; pictures keep all rows. The numbers of a
/// file are the decimals of the plan's dtype T.
template <class T>
void read_arrays(ExplanationSource& source, const io::ResultView& view, std::size_t query,
                 ThreadPool& workers) {
    const Plan& plan = source.plan;
    for (const io::ArrayView& viewed : view.arrays()) {
        const auto id = find_array(viewed.name);
        if (!id) continue;
        const Array<double> numbers = view.read(viewed, workers).values;
        check_shape(plan, *id, {numbers.shape().begin(), numbers.shape().end()}, view.place());
        Array<T> values(numbers);
        const std::vector<std::string_view> axes = plan.axes_of(*id);
        const bool is_drawn = *id == "mask" || *id == "attention_weights";
        if (is_drawn && !source.has_one_query)
            source.maps.arrays.push_back({viewed.name, values, axes});
        const auto axis = std::find(axes.begin(), axes.end(), "q_len");
        if (axis != axes.end()) {
            const auto place = static_cast<std::size_t>(axis - axes.begin());
            const std::size_t row = query - plan.first_query;
            if (*id == "states" && row != 0)
                source.result.arrays.push_back(
                    {"state_before", picked(values, place, {row - 1}), axes});
            values = picked(values, place, {row});
        }
        source.result.arrays.push_back({viewed.name, std::move(values), axes});
    }
}

}  // namespace

std::pair<Request, ExplanationSource> read_explained(const std::string& path, const Request& flags,
                                                     ThreadPool& workers) {
    const io::ResultView view = io::ResultView::open(path, io::ResultView::Scope::whole);
    Request request = request_of_result(view.head(), view.place(), flags);
    request.input = path;
    request.settings.token = view.head().number("token");
    ExplanationSource source{plan_of_result(view.head(), request.settings, view.place()), {}};
    check_labels(request, source.plan, view.place());
    source.file = view.place();
    source.digits = view.head().number("precision");
    source.has_one_query = request.settings.token.has_value();
    at_locations(request, [&] {
        const std::optional<std::uint64_t> chosen =
            request.token_label.empty() ? flags.settings.token
                                        : token_labelled(request, source.plan.q_len);
        const std::size_t query = query_in(source, chosen, request);
        require_weights(source.plan, view);
        view.require_memory_for_all();
        for_dtype(source.plan.dtype,
                  [&]<class T>(T) { read_arrays<T>(source, view, query, workers); });
        source.plan.first_query = query;
        source.plan.rule ? recompute_step(source) : recompute(source);
        request.settings = source.plan.config;
        request.settings.token = query;
    });
    return {std::move(request), std::move(source)};
}

}  // namespace attn::cli
