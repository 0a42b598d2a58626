// Rules by position in place of the question's: those that fit the keys that queries are seen to
// attend to or, where these are not known, rules with small numbers.
#include "core/check/departures.hpp"
#include "core/check/evaluate.hpp"
#include "core/expression/rows.hpp"

namespace attn {
namespace {

/// In the order in which they are named. N is a number, B a band of q - k.
struct RuleRow {
    std::string_view formula, flag = "";
    enum class Causal { any, never, always } causal = Causal::any;
};
constexpr RuleRow rule_rows[] = {
    {"B", "--window B"},
    {"k <= q || k < N", "--causal --prefix-len N", RuleRow::Causal::never},
    {"q // N == k // N", "--chunk N"},
    {"(q - k) % N == 0", "--dilation N"},
    {"k < N", "--kv-lengths N"},
    {"k >= N"},
    {"(q < N) == (k < N)", "--segment-ids S"},
    {"k < N || B", "--window B --keep-first N"},
    {"(q - k) % N == 0 && B", "--dilation N --window B"},
    {"k // N <= q // N", "", RuleRow::Causal::never},
    {"q != k"},
    {"k < N || q < N"},
    {"k < N || q < N || B", "", RuleRow::Causal::never},
    {"q - k < N || (q - k) % N == 0", "", RuleRow::Causal::always},
    {"q // N == k // N || k % N == N - 1", "", RuleRow::Causal::always},
    {"q // N - k // N <= 1", "", RuleRow::Causal::always},
};

std::string filled(std::string_view text, char letter, const std::string& with) {
    std::string result;
    for (const char c : text) result += c == letter ? with : std::string(1, c);
    return result;
}

class Rules {
public:
    explicit Rules(Alternatives& to)
        : to_(to), plan_(to.problem.plan), sizes_(plan_.expression_sizes()),
          seen_(to.problem.seen ? &to.problem.seen->keys : nullptr) {}

    void add() {
        const bool is_asked = to_.problem.asked.band.causal;
        if (seen_ != nullptr && agrees_with_question()) return;
        to_.asked(plan_.mask_formulas.empty() ? is_asked ? "causal" : "none" : "the question's");
        for (const RuleRow& row : rule_rows)
            for (const bool causal : {is_asked, !is_asked}) {
                if (row.causal == (causal ? RuleRow::Causal::never : RuleRow::Causal::always))
                    continue;
                if (add_row(row, causal) && seen_ != nullptr) return;
            }
        if (seen_ != nullptr && !add_documents() && !add_blocks()) add_seen();
    }

private:
    struct Band {
        std::int64_t left, right;
        std::string text(bool causal) const {
            std::string words;
            const auto add = [&](const std::string& one) {
                words += (words.empty() ? "" : " && ") + one;
            };
            if (!causal && right == 0) add("k <= q");
            if (!causal && right < 0) add(right == -1 ? "k < q" : concat("k < q - ", -right - 1));
            if (left < unbounded && left > 0) add(concat("q - k <= ", left));
            if (left <= 0) add(left == 0 ? "k >= q" : concat("k >= q + ", -left));
            if (!causal && right > 0 && right < unbounded) add(concat("k - q <= ", right));
            return words.empty() ? "1" : words;
        }
        static constexpr std::int64_t unbounded = 1 << 30;
    };

    bool add_row(const RuleRow& row, bool causal) {
        const bool has_number = row.formula.find('N') != std::string_view::npos,
                   has_band = row.formula.find('B') != std::string_view::npos;
        const std::size_t most = seen_ != nullptr ? (has_band ? 64 : 1024) : has_band ? 4 : 16;
        const std::size_t end = has_number ? std::min(plan_.kv_len, most + 1) : 2;
        bool any = false;
        for (std::size_t n = 1; n < end || (has_number && seen_ == nullptr && n < plan_.kv_len);
             n = n < 16 || seen_ != nullptr ? n + 1 : 2 * n) {
            const std::string formula = filled(row.formula, 'N', std::to_string(n));
            if (!has_band) {
                any |= add_rule(formula, flag_of(row, causal, n, {}), causal);
            } else if (seen_ != nullptr) {
                if (const auto band = band_beside(formula, causal))
                    any |= add_band(row, formula, causal, n, *band);
            } else if (n <= most) {
                for (std::int64_t left = 0; left < std::min<std::int64_t>(9, kv_len()); ++left)
                    for (const std::int64_t right : {left, std::int64_t{0}, std::int64_t{-1}})
                        if (right != left || !causal)
                            any |= add_band(row, formula, causal, n,
                                            {right < 0 ? Band::unbounded : left, right});
            }
            if (any && seen_ != nullptr) return true;
        }
        return any;
    }

    bool add_band(const RuleRow& row, const std::string& formula, bool causal, std::size_t n,
                  const Band& band) {
        std::string text = band.text(causal);
        if (formula != "B" && text.find('&') != std::string::npos &&
            formula.find("&&") == formula.npos)
            text = "(" + text + ")";
        return add_rule(filled(formula, 'B', text), flag_of(row, causal, n, band), causal);
    }

    /// The band of the pairs that the rest of the formula does not hold, of the first entry.
    std::optional<Band> band_beside(const std::string& formula, bool causal) const {
        const Expression others = parse_expression("", filled(formula, 'B', "0"), {}, {});
        Band band{-Band::unbounded, -Band::unbounded};
        for (std::size_t row = 0; row < plan_.rows; ++row) {
            const std::int64_t position = position_of(0, row);
            const auto allowed = row_of_rule(others, 0, 0, row);
            for (std::size_t k = 0; k < plan_.kv_len; ++k) {
                const std::int64_t distance = position - as_signed(k);
                const SeenKey seen = seen_at(0, 0, row, k);
                if (causal && distance < 0) continue;  // as the mask excludes it
                if (allowed[k] && seen == SeenKey::excluded) return {};
                if (allowed[k] || seen != SeenKey::attended) continue;
                band.left = std::max(band.left, distance);
                band.right = std::max(band.right, -distance);
            }
        }
        if (band.left == -Band::unbounded) return {};
        const std::int64_t last = position_of(0, plan_.rows - 1);
        if (band.left >= last) band.left = Band::unbounded;
        if (band.right >= kv_len() - 1 - position_of(0, 0)) band.right = Band::unbounded;
        return band;
    }

    /// The flags that a formula takes to the rule, if nothing of the question is in the way.
    std::string flag_of(const RuleRow& row, bool causal, std::size_t n,
                        const std::optional<Band>& band) const {
        std::string flag = filled(row.flag, 'N', std::to_string(n));
        if (band) {
            const bool is_window = band->left >= 0 && (causal || band->right >= 0);
            const auto side = [](std::int64_t x) { return x == Band::unbounded ? -1 : x; };
            flag = is_window ? filled(flag, 'B',
                                      concat(side(band->left), ",", causal ? 0 : side(band->right)))
                             : "";
        }
        if (flag.find('S') != flag.npos) {
            std::string ids;
            for (std::size_t i = 0; i < plan_.kv_len; ++i)
                ids += (i == 0 ? "" : ",") + std::string(i < n ? "0" : "1");
            flag = plan_.q_len == plan_.kv_len && plan_.kv_len <= 64 ? filled(flag, 'S', ids) : "";
        }
        return flag;
    }

    /// What comes before the flag of a rule: a causal mask or none. Nothing: it cannot be given.
    std::optional<std::string> flags_before(bool causal, const std::string& flag) const {
        const Settings& s = plan_.config;
        const bool is_asked = to_.problem.asked.band.causal, is_fixed = s.mode != Mode::sdpa;
        const bool has_others = plan_.mask_formulas.size() > (s.mask_mod ? 1U : 0U);
        const bool makes_causal = flag.starts_with("--causal");
        if (has_others || (is_asked && !causal && !makes_causal && is_fixed)) return {};
        std::string before;
        if (causal && !is_asked) before = "--causal ";
        if (is_asked && !causal && !makes_causal) before = "--no-causal ";
        if (!s.window.empty() && flag.find("--window") == flag.npos) before += "--window -1 ";
        return before;
    }

    /// Whether it fits what is seen, and excludes other keys than an earlier one.
    bool add_rule(const std::string& formula, std::string flag, bool causal,
                  const ExpressionArrays& arrays = {}, std::string words = "") {
        const bool joins = formula.find("||") != formula.npos;
        const std::string text = !causal          ? formula
                                 : formula == "1" ? "k <= q"
                                 : joins          ? "k <= q && (" + formula + ")"
                                                  : "k <= q && " + formula;
        auto rule = std::make_shared<PositionRule>();
        rule->formula = parse_expression("", text, {}, arrays);
        if (!agrees(rule->formula)) return false;
        if (flag.empty() && arrays.empty()) flag = "--mask-mod '" + formula + "'";
        const auto before = flags_before(causal, flag);
        if (before && !flag.empty()) rule->flag = *before + flag;
        to_.add(words.empty() ? text : words, seen_ == nullptr ? 1 : 3,
                [rule = std::shared_ptr<const PositionRule>(rule)](auto& c) { c.rule = rule; });
        return true;
    }

    /// Tokens of a document attend to its first one, or to all that come before or after.
    bool add_documents() {
        if (plan_.rows != plan_.kv_len || sizes_.offset.values() != std::vector<std::int64_t>{0})
            return false;
        std::vector<double> ids;
        std::string list;
        bool is_same = true;
        for (std::size_t b = 0; b < plan_.batch; ++b) {
            std::vector<std::size_t> firsts;
            for (std::size_t row = 0; row < plan_.rows; ++row) {
                std::size_t first = 0;
                while (first < row && seen_at(b, 0, row, first) != SeenKey::attended) ++first;
                auto id = std::find(firsts.begin(), firsts.end(), first) - firsts.begin();
                if (id == std::ssize(firsts)) firsts.push_back(first);
                ids.push_back(static_cast<double>(id));
                if (b == 0) list += concat(row == 0 ? "" : ",", id);
                is_same = is_same && ids.back() == ids[row];
            }
        }
        const ExpressionArrays arrays{{"segment", array_of({plan_.batch, plan_.kv_len}, ids)}};
        const bool is_short = is_same && plan_.kv_len <= longest_list;
        const std::string formula = "segment[b, q] == segment[b, k]";
        for (const bool causal : {to_.problem.asked.band.causal, !to_.problem.asked.band.causal})
            if (add_rule(formula, is_short ? "--segment-ids " + list : "", causal, arrays,
                         concat(causal ? "k <= q && " : "", formula, " of segments ",
                                list.substr(0, 2 * longest_list), is_same ? "" : " and others")))
                return true;
        return false;
    }

    /// Of blocks of equal size, those of the first head.
    bool add_blocks() {
        for (std::size_t n = 2; n < plan_.kv_len; ++n)
            for (const bool causal : {false, true}) {
                const std::size_t across = (plan_.kv_len + n - 1) / n, down = across;
                std::vector<double> blocks(down * across, 0);
                for (std::size_t row = 0; row < plan_.rows; ++row)
                    for (std::size_t k = 0; k < plan_.kv_len; ++k) {
                        const std::int64_t q = position_of(0, row);
                        if (q < 0 || q >= kv_len()) return false;
                        if (seen_at(0, 0, row, k) == SeenKey::attended)
                            blocks[static_cast<std::size_t>(q) / n * across + k / n] = 1;
                    }
                std::string list;
                for (std::size_t i = 0; i < blocks.size(); ++i)
                    list += concat(i == 0            ? "["
                                   : i % across == 0 ? "],["
                                                     : ",",
                                   shortest_decimal(blocks[i]));
                if (add_rule(concat("blocks[q // ", n, ", k // ", n, "] != 0"), "", causal,
                             {{"blocks", array_of({down, across}, blocks)}},
                             concat("blocks of ", n, causal ? " and causal: [" : ": [",
                                    list.substr(0, 4 * longest_list), "]]")))
                    return true;
            }
        return false;
    }

    /// The keys themselves, with the first query whose keys are not those of the question.
    void add_seen() {
        std::vector<double> keys;
        for (const SeenKey key : *seen_) keys.push_back(key == SeenKey::excluded ? 0 : 1);
        const ExpressionArrays arrays{
            {"seen", array_of({plan_.batch, plan_.heads, plan_.rows, plan_.kv_len}, keys)},
            {"first", array_of({plan_.batch}, firsts())}};
        add_rule("seen[b, h, q - first[b], k] != 0", "", false, arrays, departing_words());
    }

    std::vector<double> firsts() const {
        std::vector<double> positions;
        for (std::size_t b = 0; b < plan_.batch; ++b)
            positions.push_back(static_cast<double>(position_of(b, 0)));
        return positions;
    }

    /// "query 3 attends to keys 0, 2, 5".
    std::string departing_words() const {
        const auto& [b, h, row] = departs_;
        std::string list;
        std::size_t count = 0;
        for (std::size_t k = 0; k < plan_.kv_len; ++k)
            if (seen_at(b, h, row, k) == SeenKey::attended && ++count <= 8)
                list += concat(count == 1 ? "" : ", ", k);
        if (count > 8) list += concat(" and ", count - 8, " more");
        return concat(plan_.batch > 1 ? concat("batch entry ", b, ", ") : "",
                      plan_.heads > 1 ? concat("head ", h, ", ") : "", "query ",
                      plan_.first_query + row, " attends to ",
                      count == 0   ? "no key"
                      : count == 1 ? "key " + list
                                   : "keys " + list);
    }

    bool agrees_with_question() {
        const Evaluator evaluator(to_.problem, NumberType::float64);
        Candidate asked(evaluator, to_.problem.asked, false);
        for (std::size_t b = 0; b < plan_.batch; ++b)
            for (std::size_t h = 0; h < plan_.heads; ++h)
                for (std::size_t row = 0; row < plan_.rows; ++row) {
                    const std::vector<double>& allowed = asked.row("mask", b, h, row).value;
                    for (std::size_t k = 0; k < plan_.kv_len; ++k)
                        if (departs(b, h, row, k, allowed[k] != 0)) {
                            departs_ = {b, h, row};
                            return false;
                        }
                }
        return true;
    }

    /// With what is seen; or that no earlier rule is the same.
    bool agrees(const Expression& rule) {
        const bool has_heads = (rule.uses() & bit_of(Variable::h)) != 0;
        std::vector<bool> all;
        for (std::size_t b = 0; b < plan_.batch; ++b)
            for (std::size_t row = 0; row < plan_.rows; ++row) {
                std::vector<char> allowed = row_of_rule(rule, b, 0, row);
                for (std::size_t h = 0; h < plan_.heads && seen_ != nullptr; ++h) {
                    if (has_heads) allowed = row_of_rule(rule, b, h, row);
                    for (std::size_t k = 0; k < plan_.kv_len; ++k)
                        if (departs(b, h, row, k, allowed[k] != 0)) return false;
                }
                if (seen_ == nullptr) all.insert(all.end(), allowed.begin(), allowed.end());
            }
        return seen_ != nullptr || tried_.insert(std::hash<std::vector<bool>>()(all)).second;
    }

    bool departs(std::size_t b, std::size_t h, std::size_t row, std::size_t k, bool allows) const {
        return seen_at(b, h, row, k) == (allows ? SeenKey::excluded : SeenKey::attended);
    }

    std::vector<char> row_of_rule(const Expression& rule, std::size_t b, std::size_t h,
                                  std::size_t row) const {
        const std::unique_ptr<bool[]> allowed(new bool[plan_.kv_len]);
        compute_row(rule, sizes_, {b, h, plan_.first_query + row}, 0,
                    std::span(allowed.get(), plan_.kv_len));
        return {allowed.get(), allowed.get() + plan_.kv_len};
    }

    SeenKey seen_at(std::size_t b, std::size_t h, std::size_t row, std::size_t k) const {
        return (*seen_)[((b * plan_.heads + h) * plan_.rows + row) * plan_.kv_len + k];
    }
    std::int64_t position_of(std::size_t b, std::size_t row) const {
        return as_signed(plan_.first_query + row) + sizes_.offset.of(b);
    }
    std::int64_t kv_len() const { return as_signed(plan_.kv_len); }

    static constexpr std::size_t longest_list = 64;

    Alternatives& to_;
    const Plan& plan_;
    ExpressionSizes sizes_;
    const std::vector<SeenKey>* seen_;
    std::set<std::size_t> tried_;
    struct {
        std::size_t b, h, row;
    } departs_{};
};

void position_rules(Alternatives& to) {
    if (!to.problem.plan.config.rule) Rules(to).add();
}

std::string rule_flag(const Problem&, const Conventions& found) {
    return found.rule->flag;
}

constexpr ConventionRow conventions_of_rules[] = {
    {.name = "mask_rule",
     .beginning = "mask: ",
     .add_alternatives = position_rules,
     .flag = rule_flag,
     .keeps_words = true},
};

}  // namespace

const std::span<const ConventionRow> rows_of_rules = conventions_of_rules;

}  // namespace attn
