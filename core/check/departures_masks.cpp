// Which keys count: masks that are operands, and rules by position.

#include "core/check/departures.hpp"

namespace attn {
namespace {

std::string of_mask(std::size_t which, std::string_view words) {
    return concat(mask_operands[which]->key, " ", words);
}

void mask_polarities(Alternatives& to) {
    for (std::size_t i = 0; i < mask_operands.size(); ++i) {
        if (has_mask(to.problem, i, true)) {
            const bool keeps = to.problem.asked.masks[i].nonzero_keeps;
            to.asked(keeps ? "keep" : "drop", i);
            to.add(keeps ? "drop" : "keep", [=](auto& c) { c.masks[i].nonzero_keeps = !keeps; });
        }
        if (!has_mask(to.problem, i, false)) continue;
        to.asked(of_mask(i, "added"), i);
        to.add(of_mask(i, "subtracted"), [=](auto& c) { c.masks[i].factor = -1; });
        for (const bool keeps : {true, false})
            to.add(of_mask(i, keeps ? "boolean, 0 blocks" : "boolean, 0 keeps"), [=](auto& c) {
                c.masks[i] = {MaskUse::blocks, keeps, c.masks[i].factor};
            });
    }
}

/// With --mask-true, attn reads masks of numbers as boolean ones if none has boolean type.
std::string polarity_flag(const Problem& problem, const Conventions& found) {
    const bool has_boolean = has_boolean_mask(problem.plan.operands.is_boolean);
    bool keep = true, drop = true;
    for (std::size_t i = 0; i < mask_operands.size(); ++i) {
        if (!problem.mask(i)) continue;
        const std::vector<double>& mask = problem.mask(i)->values;
        const bool is_boolean = problem.mask(i)->is_boolean;
        const bool is_read =
            is_boolean || (!has_boolean && std::all_of(mask.begin(), mask.end(),
                                                       [](double x) { return x == 0 || x == 1; }));
        const bool blocks = is_boolean || found.masks[i].use == MaskUse::blocks;
        keep = keep && is_read && blocks && found.masks[i].nonzero_keeps;
        drop = drop && is_read && blocks && !found.masks[i].nonzero_keeps;
    }
    return keep ? "--mask-true keep" : drop ? "--mask-true drop" : "";
}

/// In programs and bug reports: transformers, fairseq, the notebooks; 1e-9 is a frequent typing
/// error for -1e9.
constexpr std::pair<double, std::string_view> masked_value_rows[] = {
    {-1e9, "-1e9"},
    {-10000, "-10000"},
    {-3.4028234663852886e38, "finfo(float32).min"},
    {-65504, "finfo(float16).min"},
    {-3.3895313892515355e38, "finfo(bfloat16).min"},
    {0, "0"},
    {1e-9, "1e-9"},
    {-1, "-1"},
    {-10, "-10"},
    {-100, "-100"},
    {-1000, "-1000"},
    {-50000, "-50000"},
    {-1e5, "-1e5"},
    {-1e6, "-1e6"},
    {-1e10, "-1e10"},
    {-1e20, "-1e20"},
    {-1e30, "-1e30"},
    {-1.7014117331926443e38, "finfo(float32).min / 2"},
    {-2.3819763e38, "-2.3819763e38"},
};

void masked_values(Alternatives& to) {
    to.asked("0 for queries without keys");
    to.set("NaN for queries without keys", &Conventions::empty_rows_are_nan, true);
    to.asked("-inf");
    // Without excluded keys in the question, these matter only with another change.
    const std::size_t most =
        excludes_keys(to.problem, to.problem.asked) ? std::size(masked_value_rows) : 1;
    for (std::size_t i = 0; i < most; ++i) {
        const auto& [value, words] = masked_value_rows[i];
        to.set(std::string(words), &Conventions::masked_value, value);
        if (value <= -1)
            to.add(std::string(words) + " added", [x = value](auto& c) {
                c.masked_value = x;
                c.masked_value_is_added = true;
            });
    }
}

using Offset = std::vector<std::int64_t>;

std::string words_of_offset(const Problem& problem, const Offset& offset) {
    if (offset == top_left_offset(problem)) return "top-left";
    if (offset == bottom_right_offset(problem, problem.asked) ||
        offset == bottom_right_offset(problem, {}))
        return "bottom-right";
    return "offset " + listed_numbers(offset);
}

/// Each alignment, with and without the lengths and the cached keys.
void causal_alignments(Alternatives& to) {
    const Problem& problem = to.problem;
    const BandConvention& band = problem.asked.band;
    const bool has_both = band.causal && (band.left >= 0 || band.right >= 0);
    const auto tokens = as_signed(problem.plan.kv_len - problem.plan.past_len),
               queries = as_signed(problem.plan.q_len);
    to.asked(words_of_offset(problem, band.offset));
    for (const Offset& offset :
         {top_left_offset(problem), bottom_right_offset(problem, problem.asked),
          bottom_right_offset(problem, {}), Offset{0},
          problem.plan.past_len != 0 ? Offset{tokens - queries} : band.offset}) {
        const std::string words = words_of_offset(problem, offset);
        to.set(words, &Conventions::band, &BandConvention::offset, offset);
        if (!has_both || offset == band.offset) continue;
        to.set(words + " for the window only", &Conventions::band, &BandConvention::window_offset,
               offset);
        to.add(words + " except for the window", [=](auto& c) {
            c.band.window_offset = c.band.offset;
            c.band.offset = offset;
        });
    }
    to.asked("keys up to the query's position", 1);
    to.set("keys before the query's position", &Conventions::band, &BandConvention::causal_shift,
           -1);
    to.set("keys up to the one after the query's position", &Conventions::band,
           &BandConvention::causal_shift, 1);
    to.asked(words_of_offset(problem, band.offset));
    for (const std::int64_t shift : {-1, 1}) {
        if (!has_both) continue;
        Offset offset = band.offset;
        for (std::int64_t& one : offset) one += shift;
        to.set(shift < 0 ? "window from the position before the query's"
                         : "window from the position after the query's",
               &Conventions::band, &BandConvention::window_offset, offset);
    }
}

std::string alignment_flag(const Problem& problem, const Conventions& found) {
    if (found.band.causal_shift != 0 || !found.band.window_offset.empty()) return "";
    if (found.band.offset == top_left_offset(problem)) return "--causal-align top-left";
    return found.band.offset == bottom_right_offset(problem, found) ? "--causal-align bottom-right"
                                                                    : "";
}

bool hides_keys(std::int64_t side, const Problem& problem) {
    return side >= 0 && side + 1 < as_signed(problem.plan.kv_len);
}

void without_window(Conventions& c) {
    c.band.left = c.band.right = -1;
    c.band.window_offset.clear();
}

void causal_masks(Alternatives& to) {
    const BandConvention& band = to.problem.asked.band;
    const bool causal = band.causal;
    to.asked(causal ? "on" : "off");
    to.set(causal ? "off" : "on", &Conventions::band, &BandConvention::causal, !causal);
    // Programs without any mask are more usual than those with an unusual one that hides nothing.
    if (causal && (hides_keys(band.left, to.problem) || hides_keys(band.right, to.problem))) {
        to.add("off", [](auto& c) {
            c.band.causal = false;
            without_window(c);
        });
        const std::vector<ConventionRow>& rows = convention_rows();
        to.list.back().also = &*std::find_if(
            rows.begin(), rows.end(), [](const auto& row) { return row.name == "window_left"; });
    }
    for (const bool later : {false, true})
        to.add(later ? "later keys only" : "the query's position and later keys", [=](auto& c) {
            c.band.causal = c.band.causal_reversed = true;
            if (later) c.band.causal_shift = 1;
        });
}

std::string causal_flag(const Problem& problem, const Conventions& found) {
    const Plan& plan = problem.plan;
    // The other modes are defined by the mask.
    if (plan.config.mode == Mode::self || plan.config.mode == Mode::causal) return "";
    if (!found.band.causal) return "--no-causal";
    if (found.band.causal_reversed) return "";
    if (plan.q_len == plan.kv_len - plan.past_len) return "--causal";
    const std::string alignment = alignment_flag(problem, found);
    return alignment.empty() ? "" : "--causal " + alignment;
}

using Sizes = std::vector<std::int64_t>;

/// Other sizes of one side of a window, in triples of changes and in pairs. Windows that the
/// question does not have are tried alone, and in pairs where there are few keys.
void add_sides(Alternatives& to, std::int64_t BandConvention::*side, const Sizes& triples,
               const Sizes& pairs) {
    constexpr std::int64_t few_keys = 16;
    const auto keys = as_signed(to.problem.plan.kv_len);
    const auto add = [&](std::int64_t size, std::size_t most) {
        if (size >= -1) to.set("", &Conventions::band, side, size, most);
    };
    for (const std::int64_t size : triples) add(size, 3);
    for (const std::int64_t size : pairs) add(size, 2);
    for (std::int64_t size = 0; size + 1 < std::min<std::int64_t>(keys, 1024); ++size)
        add(size, keys <= few_keys ? 2 : 1);
}

void left_windows(Alternatives& to) {
    const std::int64_t left = to.problem.asked.band.left, right = to.problem.asked.band.right;
    if (left < 0) return add_sides(to, &BandConvention::left, {}, {});
    to.add("", without_window);
    Sizes pairs{left / 2, (left - 1) / 2, (left + 1) / 2, 2 * left, 2 * left + 1};
    if (right >= 0) pairs.insert(pairs.end(), {right, left + right});
    pairs.push_back(0);
    add_sides(to, &BandConvention::left, {std::max<std::int64_t>(left - 1, 0), left + 1, -1},
              pairs);
    to.add("", 2, [](auto& c) { std::swap(c.band.left, c.band.right); });
}

void right_windows(Alternatives& to) {
    const std::int64_t left = to.problem.asked.band.left, right = to.problem.asked.band.right;
    Sizes triples, pairs;
    if (right >= 0) triples = {std::max<std::int64_t>(right - 1, 0), right + 1, -1};
    if (right >= 0) pairs = {2 * right, right / 2};
    if (left >= 0) pairs.insert(pairs.end(), {0, left, left - 1, left + 1});
    add_sides(to, &BandConvention::right, triples, pairs);
}

std::string words_of_window(const Conventions& c) {
    return concat(c.band.left, ",", c.band.right);
}

std::string window_flag(const Problem&, const Conventions& found) {
    return found.band.window_offset.empty() ? "--window " + words_of_window(found) : "";
}

template <bool Conventions::*formula>
void without_formula(Alternatives& to) {
    if (!(to.problem.asked.*formula)) return;
    to.asked("applied");
    to.set("left out", formula, false);
}

constexpr ConventionRow conventions_of_masks[] = {
    {"mask_mod", "mask-mod ", without_formula<&Conventions::mask_mod>},
    {"relative_bias", "relative-bias ", without_formula<&Conventions::relative_bias>},
    {"score_mod", "score-mod ", without_formula<&Conventions::score_mod>},
    {"prob_mod", "prob-mod ", without_formula<&Conventions::prob_mod>},
    {"mask_polarity", "", mask_polarities, polarity_flag},
    {"masked_value", "masked scores ", masked_values},
    {"causal_align", "alignment: ", causal_alignments, alignment_flag},
    {"causal", "causal: ", causal_masks, causal_flag},
    {"window_left", "window: ", left_windows, window_flag, words_of_window},
    {"window_right", "window: ", right_windows, window_flag, words_of_window},
};

}  // namespace

const std::span<const ConventionRow> rows_of_masks = conventions_of_masks;

}  // namespace attn
