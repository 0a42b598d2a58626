#include "core/check/departures.hpp"

#include <charconv>
#include <iterator>

namespace attn {

void Alternatives::add(std::string found, std::size_t max_changes,
                       std::function<void(Conventions&)> change) {
    Conventions changed = problem.asked;
    change(changed);
    if (problem.fits(changed) && tried_.insert(std::move(changed)).second)
        list.push_back(
            {&convention_, asked_, std::move(found), std::move(change), max_changes, setting_});
}

const std::vector<ConventionRow>& convention_rows() {
    static const std::vector<ConventionRow> all = [] {
        std::vector<ConventionRow> rows;
        for (const auto some : {rows_of_masks, rows_of_products, rows_of_scores, rows_of_arrays})
            rows.insert(rows.end(), some.begin(), some.end());
        return rows;
    }();
    return all;
}

std::vector<Alternative> alternatives_of(const Problem& problem) {
    std::vector<Alternative> all;
    for (const ConventionRow& row : convention_rows()) {
        Alternatives to(problem, row);
        row.add_alternatives(to);
        std::move(to.list.begin(), to.list.end(), std::back_inserter(all));
    }
    return all;
}

std::string shortest_decimal(double number) {
    char text[64];
    const double size = std::abs(number);
    const bool is_short = size == 0 || (size >= 1e-4 && size < 1e9);
    const auto end = std::to_chars(std::begin(text), std::end(text), number,
                                   is_short ? std::chars_format::fixed : std::chars_format::general)
                         .ptr;
    return {std::begin(text), end};
}

std::vector<std::int64_t> top_left_offset(const Problem& problem) {
    return {as_signed(problem.plan.past_len)};
}

std::vector<std::int64_t> bottom_right_offset(const Problem& problem, const Conventions& by) {
    return PositionOffset::bottom_right(problem.plan.q_len, problem.plan.kv_len, by.kv_lengths)
        .values();
}

}  // namespace attn
