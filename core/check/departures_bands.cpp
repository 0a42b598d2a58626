// Rules that exclude keys by position: causal masks, their alignment, windows, valid keys.
#include <algorithm>
#include <functional>
#include <utility>

#include "core/check/departures.hpp"

namespace attn {
namespace {

using Offset = std::vector<std::int64_t>;

std::string words_of_offset(const Problem& problem, const Offset& offset) {
    if (offset == top_left_offset(problem)) return "top-left";
    if (offset == bottom_right_offset(problem, problem.asked) ||
        offset == bottom_right_offset(problem, {}))
        return "bottom-right";
    std::string words = "offset ";
    for (std::size_t i = 0; i < offset.size(); ++i)
        words += (i == 0 ? "" : ",") + std::to_string(offset[i]);
    return words;
}

/// The other offsets that programs have: each alignment, with and without the lengths and the
/// cached keys.
std::vector<Offset> other_offsets(const Problem& problem) {
    const auto q_len = static_cast<std::int64_t>(problem.plan.q_len);
    const auto kv_len = static_cast<std::int64_t>(problem.plan.kv_len);
    const auto past = static_cast<std::int64_t>(problem.plan.past_len);
    std::vector<Offset> offsets;
    const auto add = [&](const Offset& offset) {
        if (offset != problem.asked.band.offset &&
            std::find(offsets.begin(), offsets.end(), offset) == offsets.end())
            offsets.push_back(offset);
    };
    add(top_left_offset(problem));
    add(bottom_right_offset(problem, problem.asked));
    add(bottom_right_offset(problem, {}));
    add({0});
    if (past != 0) add({kv_len - past - q_len});
    return offsets;
}

std::string words_of_side(std::int64_t side) {
    return side < 0 ? "unbounded" : std::to_string(side);
}

/// A function that adds another size of one side of the window, each only once.
auto other_sides(std::vector<Alternative>& found, std::int64_t asked,
                 std::int64_t BandConvention::*side) {
    return [&found, asked, side, tried = std::vector<std::int64_t>{asked}](
               std::int64_t other, std::size_t most) mutable {
        if (other < -1 || std::find(tried.begin(), tried.end(), other) != tried.end()) return;
        tried.push_back(other);
        found.push_back({words_of_side(asked), words_of_side(other),
                         [side, other](Conventions& c) { c.band.*side = other; }, 0, most});
    };
}

std::vector<std::uint64_t> lengths_of(const Problem& problem) {
    const std::vector<std::uint64_t>& lengths = problem.asked.kv_lengths;
    return lengths.empty() ? std::vector<std::uint64_t>(problem.plan.batch, problem.plan.kv_len)
                           : lengths;
}

std::string words_of_lengths(const std::vector<std::uint64_t>& lengths) {
    std::string words;
    for (std::size_t i = 0; i < lengths.size(); ++i)
        words += (i == 0 ? "" : ",") + std::to_string(lengths[i]);
    return words;
}

/// Windows that the question does not have are tried alone and in pairs where there are few keys.
constexpr std::size_t few_keys = 16;

}  // namespace

std::vector<Alternative> alternatives::causal_alignments(const Problem& problem) {
    std::vector<Alternative> found;
    const BandConvention& band = problem.asked.band;
    const std::string asked = words_of_offset(problem, band.offset);
    const bool windowed = band.left >= 0 || band.right >= 0;
    for (const Offset& offset : other_offsets(problem)) {
        const std::string words = words_of_offset(problem, offset);
        found.push_back({asked, words, [offset](Conventions& c) { c.band.offset = offset; }});
        if (!windowed || !band.causal) continue;
        found.push_back({asked, words + " for the window only",
                         [offset](Conventions& c) { c.band.window_offset = offset; }});
        found.push_back({asked, words + " except for the window", [offset](Conventions& c) {
                             c.band.window_offset = c.band.offset;
                             c.band.offset = offset;
                         }});
    }
    for (std::int64_t shift : {-1, 1})
        found.push_back({"keys up to the query's position",
                         shift < 0 ? "keys before the query's position"
                                   : "keys up to the one after the query's position",
                         [shift](Conventions& c) { c.band.causal_shift = shift; }, 1});
    if (band.causal && windowed)
        for (std::int64_t shift : {-1, 1}) {
            Offset offset = band.offset;
            for (std::int64_t& one : offset) one += shift;
            found.push_back({asked,
                             shift < 0 ? "window from the position before the query's"
                                       : "window from the position after the query's",
                             [offset](Conventions& c) { c.band.window_offset = offset; }});
        }
    return found;
}

std::vector<Alternative> alternatives::causal_masks(const Problem& problem) {
    std::vector<Alternative> found;
    const bool causal = problem.asked.band.causal;
    const std::string asked = causal ? "on" : "off";
    if (causal)
        found.push_back({asked, "off", [](Conventions& c) { c.band.causal = false; }});
    else
        found.push_back({asked, "on", [](Conventions& c) { c.band.causal = true; }});
    found.push_back({asked, "the query's position and later keys", [](Conventions& c) {
                         c.band.causal = true;
                         c.band.causal_reversed = true;
                     }});
    found.push_back({asked, "later keys only", [](Conventions& c) {
                         c.band.causal = true;
                         c.band.causal_reversed = true;
                         c.band.causal_shift = 1;
                     }});
    return found;
}

std::vector<Alternative> alternatives::left_windows(const Problem& problem) {
    std::vector<Alternative> found;
    const std::int64_t asked = problem.asked.band.left, right = problem.asked.band.right;
    const auto keys = static_cast<std::int64_t>(problem.plan.kv_len);
    auto add = other_sides(found, asked, &BandConvention::left);
    if (asked >= 0) {
        if (asked > 0) add(asked - 1, 3);
        add(asked + 1, 3);
        add(-1, 3);
        add(asked / 2, 2);
        add((asked - 1) / 2, 2);
        add((asked + 1) / 2, 2);
        add(2 * asked, 2);
        add(2 * asked + 1, 2);
        if (right >= 0) add(right, 2);
        if (right >= 0) add(asked + right, 2);
        add(0, 2);
    }
    const std::size_t most = problem.plan.kv_len <= few_keys ? 2 : 1;
    for (std::int64_t left = 0; left + 1 < std::min<std::int64_t>(keys, 1024); ++left)
        add(left, most);
    if (asked >= 0 && right != asked)
        found.push_back({words_of_side(asked) + "," + words_of_side(right),
                         words_of_side(right) + "," + words_of_side(asked),
                         [](Conventions& c) { std::swap(c.band.left, c.band.right); }, 0, 2});
    return found;
}

std::vector<Alternative> alternatives::right_windows(const Problem& problem) {
    std::vector<Alternative> found;
    const std::int64_t asked = problem.asked.band.right, left = problem.asked.band.left;
    const auto keys = static_cast<std::int64_t>(problem.plan.kv_len);
    auto add = other_sides(found, asked, &BandConvention::right);
    if (asked >= 0) {
        if (asked > 0) add(asked - 1, 3);
        add(asked + 1, 3);
        add(-1, 3);
        add(2 * asked, 2);
        add(asked / 2, 2);
    }
    if (left >= 0) {
        add(0, 2);
        add(left, 2);
        add(left - 1, 2);
        add(left + 1, 2);
    }
    const std::size_t most = problem.plan.kv_len <= few_keys ? 2 : 1;
    for (std::int64_t right = 0; right + 1 < std::min<std::int64_t>(keys, 1024); ++right)
        add(right, most);
    return found;
}

std::vector<Alternative> alternatives::valid_keys(const Problem& problem) {
    std::vector<Alternative> found;
    const Plan& plan = problem.plan;
    const std::vector<std::uint64_t> lengths = lengths_of(problem);
    const bool asked_lengths = !problem.asked.kv_lengths.empty();
    const std::string asked = asked_lengths ? words_of_lengths(lengths) : "all keys";
    const bool is_bottom_right =
        problem.asked.band.offset == bottom_right_offset(problem, problem.asked);
    std::vector<std::vector<std::uint64_t>> tried{lengths};
    const auto add = [&](std::vector<std::uint64_t> other, std::size_t most) {
        for (std::uint64_t& length : other) length = std::min<std::uint64_t>(length, plan.kv_len);
        if (std::find(tried.begin(), tried.end(), other) != tried.end()) return;
        tried.push_back(other);
        found.push_back({asked, words_of_lengths(other),
                         [other](Conventions& c) { c.kv_lengths = other; }, 0, most});
        if (!asked_lengths || !is_bottom_right) return;
        Conventions changed = problem.asked;
        changed.kv_lengths = other;
        found.push_back({asked, words_of_lengths(other) + ", for the alignment too",
                         [other, offset = bottom_right_offset(problem, changed)](Conventions& c) {
                             c.kv_lengths = other;
                             c.band.offset = offset;
                         },
                         0, 2});
    };
    const auto changed_by = [&](std::int64_t change) {
        std::vector<std::uint64_t> other = lengths;
        for (std::uint64_t& length : other) {
            const std::int64_t changed = static_cast<std::int64_t>(length) + change;
            length = static_cast<std::uint64_t>(std::max<std::int64_t>(changed, 0));
        }
        return other;
    };
    const auto all_of = [&](std::uint64_t length) {
        return std::vector<std::uint64_t>(plan.batch, length);
    };
    if (asked_lengths) {
        found.push_back({asked, "ignored", [](Conventions& c) { c.kv_lengths.clear(); }});
        if (is_bottom_right) {
            const Offset offset = bottom_right_offset(problem, {});
            if (offset != problem.asked.band.offset)
                found.push_back({asked, "ignored, for the alignment too", [offset](Conventions& c) {
                                     c.kv_lengths.clear();
                                     c.band.offset = offset;
                                 }});
        }
        add(changed_by(-1), 3);
        add(changed_by(1), 3);
        add(all_of(lengths[0]), 2);
        add(all_of(*std::max_element(lengths.begin(), lengths.end())), 2);
        add(all_of(*std::min_element(lengths.begin(), lengths.end())), 2);
        add({lengths.rbegin(), lengths.rend()}, 2);
        std::vector<std::uint64_t> rest = lengths;
        for (std::uint64_t& length : rest) length = plan.kv_len - length;
        add(rest, 2);
        found.push_back({asked, "the last ones, not the first",
                         [](Conventions& c) { c.lengths_from_end = true; }, 1});
        if (std::adjacent_find(lengths.begin(), lengths.end(), std::not_equal_to<>()) ==
                lengths.end() &&
            lengths[0] < plan.kv_len)
            found.push_back(
                {asked, "keys after the valid ones", [first = lengths[0]](Conventions& c) {
                     c.kv_lengths.clear();
                     c.first_key = first;
                 }});
    } else {
        add(changed_by(-1), 2);
    }
    if (plan.past_len != 0)
        found.push_back({asked, "without the cached keys",
                         [past = plan.past_len](Conventions& c) { c.first_key = past; }, 2});
    if (plan.kv_len > 1)
        found.push_back(
            {asked, "without the first key", [](Conventions& c) { c.first_key = 1; }, 2, 2});
    const bool pads = asked_lengths || problem.masks[1].has_value();
    if (pads && plan.q_len == plan.kv_len) {
        found.push_back({"padding of keys", "padding of queries",
                         [](Conventions& c) { c.padding = PaddingAxis::queries; }, 3});
        found.push_back({"padding of keys", "padding of keys and queries",
                         [](Conventions& c) { c.padding = PaddingAxis::both; }, 3});
    }
    return found;
}

}  // namespace attn
