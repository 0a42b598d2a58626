// Rules by position instead of the question's: those that fit the keys that queries are seen to
// attend to or, where these are not known, rules with small numbers.
#include "core/check/departures.hpp"
#include "core/check/evaluate.hpp"

namespace attn {
namespace {

enum class With { either, no_causal, causal };

/// In the order in which they are named. N is a number, above 1 where it divides, B a band of
/// q - k, S the ids of two segments, of which the first has N tokens.
struct RuleRow {
    std::string_view formula, flag = {};
    With with = With::either;
};
constexpr RuleRow rule_rows[] = {
    {"B", "--window B"},
    {"k < N", "--kv-lengths N"},
    {"k <= q || k < N", "--causal --prefix-len N", With::no_causal},
    {"q // N == k // N", "--chunk N"},
    {"(q - k) % N == 0", "--dilation N"},
    {"k >= N"},
    {"(q < N) == (k < N)", "--segment-ids S"},
    {"k < N || B", "--window B --keep-first N"},
    {"(q - k) % N == 0 && B", "--dilation N --window B"},
    {"k // N <= q // N", "", With::no_causal},
    {"q != k"},
    {"k < N || q < N"},
    {"k < N || q < N || B", "", With::no_causal},
    {"q - k < N || (q - k) % N == 0", "", With::causal},
    {"q // N == k // N || k % N == N - 1", "", With::causal},
};

constexpr std::int64_t unbounded = 1 << 30;
constexpr std::size_t longest_list = 64;

std::string filled(std::string_view text, char letter, const std::string& with) {
    std::string result;
    for (const char c : text) result += c == letter ? with : std::string(1, c);
    return result;
}

struct Band {
    std::int64_t left = -unbounded, right = -unbounded;

    std::string text(bool causal) const {
        std::string words;
        if (left < unbounded) words = left == 0 ? "k >= q" : concat("q - k <= ", left);
        if (causal || right == unbounded) return words.empty() ? "1" : words;
        return concat(words, words.empty() ? "" : " && ",
                      right == 0    ? "k <= q"
                      : right == -1 ? "k < q"
                                    : concat("k - q <= ", right));
    }
    /// Of --window.
    std::string sides(bool causal) const {
        const auto side = [](std::int64_t x) { return x == unbounded ? -1 : x; };
        return concat(side(left), ",", causal ? 0 : side(right));
    }
};

class Rules {
public:
    explicit Rules(Alternatives& to)
        : to_(to), plan_(to.problem.plan), sizes_(plan_.expression_sizes()),
          seen_(to.problem.seen ? &*to.problem.seen : nullptr) {}

    void add() {
        const bool is_asked = to_.problem.asked.band.causal;
        if (seen_ != nullptr && !seen_->departs) return;
        to_.asked(!plan_.mask_formulas.empty() ? "the question's" : is_asked ? "causal" : "none");
        for (const RuleRow& row : rule_rows)
            for (const bool causal : {is_asked, !is_asked})
                if (row.with != (causal ? With::no_causal : With::causal) && add_row(row, causal) &&
                    seen_ != nullptr) {
                    if (row.flag == "--chunk N") add_documents();
                    return;
                }
        if (seen_ != nullptr && !add_documents()) add_blocks();
    }

private:
    bool add_row(const RuleRow& row, bool causal) {
        const bool has_number = row.formula.find('N') != row.formula.npos,
                   has_band = row.formula.find('B') != row.formula.npos;
        const std::size_t most = seen_ != nullptr ? (has_band ? 64 : 1024) : has_band ? 4 : 1024;
        bool any = false;
        for (std::size_t n = row.formula.find_first_of("/%") == row.formula.npos ? 1 : 2;
             n < (has_number ? std::min(plan_.kv_len, most + 1) : 2);
             n = n < 16 || plan_.kv_len <= 64 || seen_ != nullptr ? n + 1 : 2 * n) {
            const std::string number = std::to_string(n),
                              formula = filled(row.formula, 'N', number);
            const auto add = [&](const Band& band) {
                std::string text = band.text(causal), flag = filled(row.flag, 'N', number);
                const bool is_window = band.left >= 0 && (causal || band.right >= 0);
                if (formula.find("||") != formula.npos && text.find('&') != text.npos)
                    text = "(" + text + ")";
                flag = is_window || !has_band ? filled(flag, 'B', band.sides(causal)) : "";
                any |= add_rule(filled(formula, 'B', text), filled(flag, 'S', halves(n)), causal);
            };
            if (!has_band) {
                add({});
            } else if (seen_ == nullptr) {
                for (std::int64_t left = 0; left < std::min<std::int64_t>(9, kv_len()); ++left) {
                    add({left, left});
                    if (left != 0 && !causal) add({left, 0});
                }
                if (!causal || !has_number) add({unbounded, -1});
            } else if (const auto band = band_beside(formula, causal)) {
                add(*band);
            }
            if (any && seen_ != nullptr) return true;
        }
        return any;
    }

    std::string halves(std::size_t n) const {
        std::string ids;
        for (std::size_t i = 0; i < plan_.kv_len; ++i) ids += i == 0 ? "0" : i < n ? ",0" : ",1";
        return ids;
    }

    /// Of the pairs of the first head that the rest of the formula does not hold.
    std::optional<Band> band_beside(const std::string& formula, bool causal) {
        const Expression others = parse_expression("", filled(formula, 'B', "0"), {}, {});
        Band band;
        for (std::size_t row = 0; row < plan_.rows; ++row) {
            const std::vector<char>& allowed = row_of_rule(others, 0, 0, row);
            for (std::size_t k = 0; k < plan_.kv_len; ++k) {
                const std::int64_t distance = position_of(0, row) - as_signed(k);
                if (causal && distance < 0) continue;
                const SeenKey seen = seen_at(0, 0, row, k);
                if (allowed[k] && seen == SeenKey::excluded) return {};
                if (allowed[k] || seen != SeenKey::attended) continue;
                band.left = std::max(band.left, distance);
                band.right = std::max(band.right, -distance);
            }
        }
        if (band.left == -unbounded) return {};
        if (band.left >= position_of(0, plan_.rows - 1)) band.left = unbounded;
        if (band.right >= kv_len() - 1 - position_of(0, 0)) band.right = unbounded;
        return band;
    }

    /// Whether it fits what is seen, or excludes other keys than an earlier one.
    bool add_rule(const std::string& formula, std::string flag, bool causal,
                  const ExpressionArrays& arrays = {}, const std::string& words = "") {
        const bool joins = formula.find("||") != formula.npos;
        const std::string text = !causal          ? formula
                                 : formula == "1" ? "k <= q"
                                 : joins          ? "k <= q && (" + formula + ")"
                                                  : "k <= q && " + formula;
        auto rule = std::make_shared<PositionRule>();
        rule->formula = parse_expression("", text, {}, arrays);
        if (!agrees(rule->formula)) return false;
        if (flag.size() > 4 * longest_list) flag.clear();
        if (flag.empty() && arrays.empty()) flag = "--mask-mod '" + formula + "'";
        if (!flag.empty()) rule->flag = with_mask(flag, causal);
        to_.add(words.empty() ? text : words, seen_ == nullptr ? 1 : 3,
                [rule = std::shared_ptr<const PositionRule>(rule)](auto& c) { c.rule = rule; });
        return true;
    }

    /// The flag with those that turn the causal mask on or off; empty: they cannot.
    std::string with_mask(std::string flag, bool causal) const {
        const Settings& s = plan_.config;
        const bool is_asked = to_.problem.asked.band.causal;
        constexpr std::string_view own = "--causal ";
        const bool has_own = flag.starts_with(own);
        if (plan_.mask_formulas.size() > (s.mask_mod ? 1U : 0U) ||
            (is_asked && !causal && !has_own && s.mode != Mode::sdpa))
            return "";
        if (has_own) flag.erase(0, own.size());
        if (!s.window.empty() && flag.find("--window") == flag.npos) flag = "--window -1 " + flag;
        if (has_own || causal) return is_asked ? flag : concat(own, flag);
        return is_asked ? "--no-causal " + flag : flag;
    }

    /// Tokens of a document attend to its first one, or to all that come before or after.
    bool add_documents() {
        if (plan_.rows != plan_.kv_len || position_of(0, 0) != 0) return false;
        std::vector<double> ids;
        std::string list;
        bool is_same = true;
        for (std::size_t b = 0; b < plan_.batch; ++b) {
            std::vector<std::size_t> firsts;
            for (std::size_t row = 0; row < plan_.rows; ++row) {
                std::size_t first = 0;
                while (first < row && seen_at(b, 0, row, first) != SeenKey::attended) ++first;
                const auto id = std::find(firsts.begin(), firsts.end(), first) - firsts.begin();
                if (id == std::ssize(firsts)) firsts.push_back(first);
                ids.push_back(static_cast<double>(id));
                if (b == 0) list += concat(row == 0 ? "" : ",", id);
                is_same = is_same && ids.back() == ids[row];
            }
        }
        const ExpressionArrays arrays{{"segment", array_of({plan_.batch, plan_.kv_len}, ids)}};
        const std::string formula = "segment[b, q] == segment[b, k]",
                          flag = is_same ? "--segment-ids " + list : "";
        const auto add = [&](bool causal) {
            return add_rule(formula, flag, causal, arrays,
                            concat(causal ? "causal " : "", "segments ", list.substr(0, 128),
                                   is_same ? "" : " of the first batch entry"));
        };
        return add(to_.problem.asked.band.causal) || add(!to_.problem.asked.band.causal);
    }

    /// The largest blocks of queries and keys that attend to each other; of one, where no rule
    /// fits, the first query whose keys are not those of the question.
    void add_blocks() {
        const std::int64_t first = position_of(0, 0);
        if (plan_.expression_sizes().offset.values().size() != 1 || first < 0) return;
        for (std::size_t n = plan_.kv_len / 2; n > 0; --n) {
            const std::size_t across = (plan_.kv_len - 1) / n + 1,
                              down = (static_cast<std::size_t>(first) + plan_.rows - 1) / n + 1;
            const bool is_small = across * down <= longest_list;
            std::vector<double> blocks(plan_.batch * plan_.heads * down * across, 0);
            std::string list;
            for (std::size_t i = 0; i < seen_->keys.size(); ++i) {
                const std::size_t q =
                    static_cast<std::size_t>(first) + i / plan_.kv_len % plan_.rows;
                if (seen_->keys[i] == SeenKey::attended)
                    blocks[(i / plan_.kv_len / plan_.rows * down + q / n) * across +
                           i % plan_.kv_len / n] = 1;
            }
            for (std::size_t i = 0; i < down * across && is_small; ++i)
                list += concat(i % across != 0 ? "," : i == 0 ? "[" : "],[", blocks[i] != 0);
            const ExpressionArrays arrays{
                {"blocks", array_of({plan_.batch, plan_.heads, down, across}, blocks)}};
            const std::string formula = concat("blocks[b, h, q // ", n, ", k // ", n, "] != 0"),
                              words = n == 1     ? departing_words()
                                      : is_small ? concat("blocks of ", n, ": [", list, "]]")
                                                 : concat("blocks of ", n);
            if (add_rule(formula, "", false, arrays, words) ||
                (n > 1 && add_rule(formula, "", true, arrays, "causal " + words)))
                return;
        }
    }

    /// "query 3 attends to keys 0, 2, 5".
    std::string departing_words() const {
        const auto& [b, h, row] = *seen_->departs;
        std::string list;
        for (std::size_t k = 0; k < plan_.kv_len && list.size() < longest_list; ++k)
            if (seen_at(b, h, row, k) == SeenKey::attended)
                list += concat(list.empty() ? "" : ", ", k);
        return concat(
            "query ", plan_.first_query + row, " attends to keys ", list,
            list.size() < longest_list ? "" : " and others",
            plan_.batch * plan_.heads == 1 ? "" : concat(" in head ", h, " of batch entry ", b));
    }

    /// With what is seen; or that no earlier rule is the same.
    bool agrees(const Expression& rule) {
        if (seen_ == nullptr) return is_new(rule);
        for (std::size_t b = 0; b < plan_.batch; ++b)
            for (std::size_t h = 0; h < plan_.heads; ++h)
                for (std::size_t row = 0; row < plan_.rows; ++row) {
                    const std::vector<char>& allowed = row_of_rule(rule, b, h, row);
                    for (std::size_t k = 0; k < plan_.kv_len; ++k)
                        if (seen_at(b, h, row, k) ==
                            (allowed[k] ? SeenKey::excluded : SeenKey::attended))
                            return false;
                }
        return true;
    }

    /// Rules that are the same in a few rows are compared in all.
    bool is_new(const Expression& rule) {
        const auto rows = [&](const Expression& of, std::size_t step) {
            std::vector<char> some;
            for (std::size_t i = 0; i < plan_.batch * plan_.rows; i += step)
                std::ranges::copy(row_of_rule(of, i / plan_.rows, 0, i % plan_.rows),
                                  std::back_inserter(some));
            return some;
        };
        std::vector<Expression>& like = tried_[rows(rule, plan_.rows / 8 + 1)];
        const std::vector<char> all = like.empty() ? std::vector<char>() : rows(rule, 1);
        if (std::ranges::any_of(like, [&](const auto& x) { return rows(x, 1) == all; }))
            return false;
        like.push_back(rule);
        return true;
    }

    /// Valid until the next call.
    const std::vector<char>& row_of_rule(const Expression& rule, std::size_t b, std::size_t h,
                                         std::size_t row) {
        allowed_.assign(plan_.kv_len, 1);
        exclude_keys(rule, sizes_, {b, h, plan_.first_query + row}, allowed_);
        return allowed_;
    }

    SeenKey seen_at(std::size_t b, std::size_t h, std::size_t row, std::size_t k) const {
        return seen_->keys[((b * plan_.heads + h) * plan_.rows + row) * plan_.kv_len + k];
    }
    std::int64_t position_of(std::size_t b, std::size_t row) const {
        return as_signed(plan_.first_query + row) + sizes_.offset.of(b);
    }
    std::int64_t kv_len() const { return as_signed(plan_.kv_len); }

    Alternatives& to_;
    const Plan& plan_;
    ExpressionSizes sizes_;
    const SeenWeights* seen_;
    std::map<std::vector<char>, std::vector<Expression>> tried_;  ///< by some of their rows
    std::vector<char> allowed_;
};

constexpr ConventionRow conventions_of_rules[] = {
    {.name = "mask_rule",
     .beginning = "mask: ",
     .add_alternatives =
         [](Alternatives& to) {
             if (!to.problem.plan.config.rule) Rules(to).add();
         },
     .flag = [](const Problem&, const Conventions& found) { return found.rule->flag; },
     .keeps_words = true},
};

}  // namespace

const std::span<const ConventionRow> rows_of_rules = conventions_of_rules;

}  // namespace attn
