// One head of the walk: which keys are blocked, and by which rules.
#include <algorithm>

#include "cli/explain/page_quotes.hpp"
#include "cli/explain/walk_head.hpp"
#include "core/layer/mask_rows.hpp"

namespace attn::cli {
namespace {

class MaskWalk : public HeadView {
public:
    using HeadView::HeadView;

    void show() {
        heading("Blocked keys");
        const std::vector<Rule> all = rules();
        if (all.empty() && !sees_all()) {
            page_.paragraph(
                "Keys with 0 in mask are blocked by a mask that the result does not "
                "say more of:");
            return show_by_key({{"mask", mask_}});
        }
        if (all.empty())
            return page_.paragraph("No rule blocks a key: the query may see all of " +
                                   sized("kv_len", g_.kv_len) + ".");
        std::vector<std::pair<std::string, Row>> rows;
        for (const Rule& rule : all) {
            rows.emplace_back(rule.allowed, row(rule.allowed));
            page_.paragraph(rule.words + ". " + blocks(rows.back().second) + ".");
        }
        rows.emplace_back("mask", mask_);
        page_.paragraph("A key is seen, 1 in mask, where every rule allows it:");
        show_by_key(rows);
    }

private:
    struct Rule {
        std::string allowed, words;  // the array of the keys that it allows
    };

    std::vector<Rule> rules() const {
        const PageQuotes quotes(walk_);
        std::vector<Rule> all;
        for (std::size_t i = 0; i < walk_.source.additive_masks.size(); ++i)
            if (arrays_.has(allowed_by_biases[i].row().name))
                all.push_back(
                    {std::string(allowed_by_biases[i].row().name), additive_mask_words(i, quotes)});
        for (const MaskRow& rule : mask_rows())
            if (arrays_.has(rule.allowed.row().name))
                all.push_back({std::string(rule.allowed.row().name),
                               rule.words(rule, g_, walk_.batch, quotes)});
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
            if (++runs > words_.most()) return text + ", ...";
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
