#include "cli/check/matches.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

namespace attn::cli {
namespace {

/// What comes before the words of a change for which attn has no flag: "softmax over queries".
constexpr std::pair<Convention, std::string_view> beginnings[] = {
    {Convention::mask_polarity, ""},
    {Convention::masked_value, "masked scores "},
    {Convention::causal_align, "alignment: "},
    {Convention::causal, "causal: "},
    {Convention::window_left, "window: "},
    {Convention::window_right, "window: "},
    {Convention::scale, "scale "},
    {Convention::rope_pairs, "rotary pairs "},
    {Convention::rope_base, "rotary base "},
    {Convention::rope_dims, "rotary dimensions "},
    {Convention::rope_positions, "rotary positions "},
    {Convention::rope_keys, "rotated: "},
    {Convention::head_groups, "head groups: "},
    {Convention::softcap, "soft cap "},
    {Convention::softcap_order, "order: "},
    {Convention::alibi_sign, "sign of ALiBi: "},
    {Convention::alibi_slopes, "slopes of ALiBi: "},
    {Convention::sink, "sink "},
    {Convention::kv_lengths, "valid keys: "},
    {Convention::softmax_axis, "softmax over "},
    {Convention::transposed, ""},
    {Convention::heads_split, "heads split: "},
    {Convention::bias, "bias "},
    {Convention::exchanged, ""},
    {Convention::dropout, "dropout "},
    {Convention::precision, "rounded: "},
    {Convention::mask_method, ""},
    {Convention::out_proj, "output projection "},
};
static_assert(std::size(beginnings) == std::size(convention_names));

std::string change_in_words(const Change& change) {
    return std::string(beginnings[static_cast<std::size_t>(change.convention)].second) +
           change.found;
}

/// Whether two matches differ from the question in the same conventions.
bool changes_the_same(const Match& a, const Match& b) {
    return std::equal(
        a.changes.begin(), a.changes.end(), b.changes.begin(), b.changes.end(),
        [](const Change& x, const Change& y) { return x.convention == y.convention; });
}

std::string match_text(const Match& match) {
    std::array<char, 32> ulp{};
    std::snprintf(ulp.data(), ulp.size(), "%.3g", match.ulp);
    return changes_text(match) + ": " + ulp.data() + " ulp";
}

}  // namespace

std::string changes_text(const Match& match) {
    std::string found, asked, before;
    for (const Change& change : match.changes) {
        // One flag may be of two conventions: both sides of a window.
        if (!change.flag.empty() && change.flag == before) continue;
        before = change.flag;
        found += (found.empty() ? "" : " and ") +
                 (change.flag.empty() ? change_in_words(change) : change.flag);
        asked += (asked.empty() ? "" : ", ") + change.asked;
    }
    return found + " (asked: " + asked + ")";
}

std::string matches_text(const std::vector<Match>& matches) {
    if (matches.empty()) return "no change of conventions reproduces it\n";
    std::string text = "matches with " + match_text(matches.front()) + "\n";
    std::vector<bool> is_listed(matches.size());
    for (std::size_t i = 1; i < matches.size(); ++i) {
        if (is_listed[i]) continue;
        std::size_t others = 0;
        for (std::size_t k = i + 1; k < matches.size(); ++k) {
            if (is_listed[k] || !changes_the_same(matches[k], matches[i])) continue;
            is_listed[k] = true;
            ++others;
        }
        text += "indistinguishable: " + match_text(matches[i]);
        if (others != 0) text += "; and " + std::to_string(others) + " more such changes";
        text += "\n";
    }
    return text;
}

nlohmann::ordered_json match_json(const Match& match) {
    using nlohmann::ordered_json;
    ordered_json changes = ordered_json::array();
    for (const Change& change : match.changes)
        changes.push_back(
            {{"convention", convention_names[static_cast<std::size_t>(change.convention)]},
             {"asked", change.asked},
             {"found", change.found},
             {"flag", change.flag.empty() ? ordered_json() : ordered_json(change.flag)}});
    return {{"changes", std::move(changes)},
            {"ulp", std::isfinite(match.ulp) ? ordered_json(match.ulp) : ordered_json()}};
}

}  // namespace attn::cli
