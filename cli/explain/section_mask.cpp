// One head of the explanation: which keys are masked, and by which rules.
#include <algorithm>

#include "cli/explain/page_quotes.hpp"
#include "cli/explain/section_head.hpp"
#include "cli/explain/words.hpp"
#include "core/layer/mask_rows.hpp"

namespace attn::cli {
namespace {

class MaskSection : public HeadView {
public:
    using HeadView::HeadView;

    void show() {
        heading("Masked keys");
        const std::vector<Rule> all = rules();
        std::vector<std::pair<std::string, Row>> rows;
        Row allowed(g_.kv_len, 1);  // by the known rules
        for (const Rule& rule : all) {
            rows.emplace_back(rule.allowed, row(rule.allowed));
            const Row& of_rule = rows.back().second;
            page_.paragraph(rule.words + ". " + masked_keys(of_rule) + ".");
            std::transform(allowed.begin(), allowed.end(), of_rule.begin(), allowed.begin(),
                           [](double one, double other) { return std::min(one, other); });
        }
        const Row zeros = unknown_zeros();
        const bool is_known = std::count(zeros.begin(), zeros.end(), 0.0) == 0;
        if (e_.is_result()) show_masks_of_result(allowed);
        if (!is_known) show_zeros(zeros);
        if (rows.empty() && attends_to_all()) {
            if (is_known)
                page_.paragraph("No rule masks a key: the query may see all of " +
                                sized("kv_len", g_.kv_len) + ".");
            return;
        }
        if (is_known) {
            if (allowed == mask_)
                page_.paragraph("A key is seen, 1 in mask, where every rule allows it:");
            rows.emplace_back("mask", mask_);
        }
        show_by_key(rows);
    }

private:
    /// States which keys are masked by something other than these rules, as far as a result shows
    /// it.
    void show_masks_of_result(const Row& allowed) {
        Row others(g_.kv_len, 1);
        for (std::size_t key = 0; key < g_.kv_len; ++key)
            if (allowed[key] != 0 && !attends_to(key)) others[key] = 0;
        if (std::count(others.begin(), others.end(), 0.0) == 0) return;
        const bool is_alone = std::count(allowed.begin(), allowed.end(), 0.0) == 0;
        page_.paragraph(
            (e_.source.layer.empty() ? "A mask that was given (--mask, --key-padding-mask or both)"
                                     : "A mask of the layer") +
            std::string(is_alone ? " masks " : " also masks ") + counted_keys(others) + ".");
    }

    /// 0 at keys that have no weight and may or may not be masked.
    Row unknown_zeros() const {
        Row zeros(g_.kv_len, 1);
        const Row weights = row("attention_weights");
        for (std::size_t key = 0; key < g_.kv_len; ++key)
            if (e_.source.has_unknown_mask && attends_to(key) && weights[key] == 0) zeros[key] = 0;
        return zeros;
    }

    void show_zeros(const Row& zeros) {
        page_.paragraph("The weight is 0 for " + counted_keys(zeros) +
                        ". The result does not have mask, so that it does not say why: a mask "
                        "masks such a key, " +
                        (e_.has_only_kept() ? "dropout has dropped it, " : "") +
                        "or its score is too low for a weight.");
    }

    struct Rule {
        std::string allowed, words;  // allowed: name of the array of allowed keys
    };

    std::vector<Rule> rules() const {
        const PageQuotes quotes(e_);
        std::vector<Rule> all;
        for (std::size_t i = 0; i < e_.source.additive_masks.size(); ++i)
            if (arrays_.has(allowed_by_biases[i].row().name))
                all.push_back(
                    {std::string(allowed_by_biases[i].row().name), additive_mask_words(i, quotes)});
        for (const MaskRow& rule : mask_rows())
            if (arrays_.has(rule.allowed.row().name))
                all.push_back({std::string(rule.allowed.row().name),
                               words_of(rule).words(g_, e_.batch, quotes)});
        return all;
    }

    /// `2 "starts" to 5 "step"`.
    std::string runs_of_masked(const Row& allowed) const {
        std::string text;
        std::size_t runs = 0;
        for (std::size_t key = 0; key < g_.kv_len; ++key) {
            if (allowed[key] != 0) continue;
            const std::size_t first = key;
            while (key + 1 < g_.kv_len && allowed[key + 1] == 0) ++key;
            if (++runs > format_.most()) return text + ", ...";
            text += (text.empty() ? "" : ", ") + e_.key_label(first);
            if (key != first) text += " to " + e_.key_label(key);
        }
        return text;
    }

    std::string masked_keys(const Row& allowed) const {
        const auto count = std::count(allowed.begin(), allowed.end(), 0.0);
        if (count == 0) return "It masks no key";
        if (static_cast<std::size_t>(count) == allowed.size()) return "It masks every key";
        return "It masks " + counted_keys(allowed);
    }

    /// "2 of 6 keys: 4 to 5".
    std::string counted_keys(const Row& allowed) const {
        return std::to_string(std::count(allowed.begin(), allowed.end(), 0.0)) + " of " +
               std::to_string(g_.kv_len) + " keys: " + runs_of_masked(allowed);
    }
};

}  // namespace

void write_mask(Explanation& e, std::size_t head) {
    MaskSection(e, head).show();
}

}  // namespace attn::cli
