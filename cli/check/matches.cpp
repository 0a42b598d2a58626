#include "cli/check/matches.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <utility>

#include <nlohmann/json.hpp>

namespace attn::cli {
namespace {

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
                 (change.flag.empty() ? std::string(change.convention->beginning) + change.found
                                      : change.flag);
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
            {{"convention", change.convention->name},
             {"asked", change.asked},
             {"found", change.found},
             {"flag", change.flag.empty() ? ordered_json() : ordered_json(change.flag)}});
    return {{"changes", std::move(changes)},
            {"ulp", std::isfinite(match.ulp) ? ordered_json(match.ulp) : ordered_json()}};
}

}  // namespace attn::cli
