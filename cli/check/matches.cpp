#include "cli/check/matches.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

namespace attn::cli {
namespace {

/// Where attn has no flag: "softmax over queries".
std::string change_in_words(const Change& change) {
    constexpr std::pair<Convention, std::string_view> phrases[] = {
        {Convention::softmax_axis, "softmax over "}, {Convention::transposed, "transposed: "},
        {Convention::heads_split, "heads split: "},  {Convention::bias, "bias: "},
        {Convention::exchanged, "exchanged: "},      {Convention::masked_value, "masked scores "},
        {Convention::precision, "rounding to "},     {Convention::dropout, "dropout "},
    };
    for (const auto& [convention, phrase] : phrases)
        if (convention == change.convention) return std::string(phrase) + change.found;
    std::string name(convention_names[static_cast<std::size_t>(change.convention)]);
    std::replace(name.begin(), name.end(), '_', ' ');
    return name + " " + change.found;
}

}  // namespace

std::string changes_text(const Match& match) {
    std::string found, asked;
    for (const Change& change : match.changes) {
        found += (found.empty() ? "" : " and ") +
                 (change.flag.empty() ? change_in_words(change) : change.flag);
        asked += (asked.empty() ? "" : ", ") + change.asked;
    }
    return found + " (asked: " + asked + ")";
}

std::string matches_text(const std::vector<Match>& matches) {
    if (matches.empty()) return "no change of conventions reproduces it\n";
    std::string text;
    for (const Match& match : matches) {
        std::array<char, 32> ulp{};
        std::snprintf(ulp.data(), ulp.size(), "%.3g", match.ulp);
        text += (text.empty() ? "matches with " : "indistinguishable: ") + changes_text(match) +
                ": " + ulp.data() + " ulp\n";
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
