// One head of the walk: which keys are blocked, and by which rules.
#include <algorithm>

#include "cli/explain/walk_head.hpp"

namespace attn::cli {
namespace {

class MaskWalk : public HeadView {
public:
    using HeadView::HeadView;

    void show() {
        heading("Blocked keys");
        const std::vector<Rule> all = rules();
        if (all.empty())
            return page_.paragraph("No rule blocks a key: the query may see all of " +
                                   sized("kv_len", g_.kv_len) + ".");
        std::vector<std::pair<std::string, Row>> rows;
        for (const Rule& rule : all) {
            rows.emplace_back("allowed_by_" + rule.name, row("allowed_by_" + rule.name));
            page_.paragraph(rule.words + ". " + blocks(rows.back().second) + ".");
        }
        rows.emplace_back("mask", mask_);
        const bool before_softmax = s_.mask_method == MaskMethod::neg_inf;
        if (before_softmax) rows.emplace_back("masked_scores", row("masked_scores"));
        page_.paragraph(
            std::string("A key is seen, 1 in mask, where every rule allows it") +
            (before_softmax ? "; masked_scores are the unscaled scores of those keys:" : ":"));
        walk_.show_by_key(rows);
    }

private:
    struct Rule {
        std::string name, words;
    };

    std::string window_words() const {
        const std::int64_t left = s_.window[0], right = s_.window[1];
        if (left < 0 && right < 0) return "it stands anywhere (both sides are unbounded)";
        if (left < 0) return "j <= p + " + std::to_string(right);
        if (right < 0) return "j >= p - " + std::to_string(left);
        return "p - " + std::to_string(left) + " <= j <= p + " + std::to_string(right);
    }

    std::vector<Rule> rules() const {
        std::vector<Rule> all;
        for (std::size_t i = 0; i < walk_.additive_masks.size(); ++i)
            all.push_back({"bias_" + std::to_string(i),
                           "-Infinity in the additive mask (" +
                               walk_.operand_source(walk_.additive_masks[i]) + ")"});
        const std::string keeps = s_.mask_true == MaskTrue::keep
                                      ? "where it is true a key may be seen ("
                                      : "where it is true a key is blocked (";
        for (const char* key : {"mask", "key_padding_mask"})
            if (arrays_.has("allowed_by_" + std::string(key)))
                all.push_back({key, "boolean mask (" + walk_.operand_source(key) + "): " + keeps +
                                        walk_.source("mask_true") + ")"});
        const std::string causal =
            walk_.request.has("causal") ? walk_.source("causal") : walk_.command();
        if (*s_.causal)
            all.push_back({"causal", "causal (" + causal + "): key j is seen where j <= p; " +
                                         walk_.position_words()});
        if (!s_.window.empty())
            all.push_back({"window", "window (" + walk_.source("window") +
                                         "): key j is seen where " + window_words() + "; " +
                                         walk_.position_words()});
        if (!s_.kv_lengths.empty())
            all.push_back({"kv_lengths", "real keys (" + walk_.source("kv_lengths") +
                                             "): the first " +
                                             std::to_string(s_.kv_lengths[walk_.batch]) +
                                             " of this batch entry"});
        return all;
    }

    /// `2 "starts" to 5 "step"`.
    std::string runs_of_blocked(const Row& allowed) const {
        std::string text;
        std::size_t runs = 0;
        for (std::size_t key = 0; key < g_.kv_len; ++key) {
            if (allowed[key] != 0) continue;
            const std::size_t first = key;
            while (key + 1 < g_.kv_len && allowed[key + 1] == 0) ++key;
            if (++runs > most_shown) return text + ", ...";
            text += (text.empty() ? "" : ", ") + walk_.key_label(first);
            if (key != first) text += " to " + walk_.key_label(key);
        }
        return text;
    }

    std::string blocks(const Row& allowed) const {
        const auto count = std::count(allowed.begin(), allowed.end(), 0.0);
        if (count == 0) return "It blocks no key";
        if (static_cast<std::size_t>(count) == allowed.size()) return "It blocks every key";
        return "It blocks " + std::to_string(count) + " of " + std::to_string(g_.kv_len) +
               " keys: " + runs_of_blocked(allowed);
    }
};

}  // namespace

void walk_mask(Walk& walk, std::size_t head) {
    MaskWalk(walk, head).show();
}

}  // namespace attn::cli
