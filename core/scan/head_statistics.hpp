// Statistics of a head's weights: a value for each query, or for each key.
#pragma once

#include <span>

#include "core/base/tensor.hpp"
#include "core/scan/fixed_sums.hpp"

namespace attn {

/// The tokens of a text, whose queries and keys have the same positions.
class ScannedTokens {
public:
    /// `counted`: whether a token's query and key count; empty: all. `ids` is empty if unknown.
    ScannedTokens(std::size_t tokens, std::vector<std::uint64_t> ids, std::vector<bool> counted);

    static constexpr std::size_t none = static_cast<std::size_t>(-1);

    std::size_t size() const { return counted_.size(); }
    bool counts(std::size_t token) const { return counted_[token]; }
    std::size_t first() const { return first_; }  ///< that counts, or none
    /// The last token before this one that counts and has the same id, or none.
    std::size_t same_before(std::size_t token) const { return same_before_[token]; }

private:
    std::vector<bool> counted_;
    std::size_t first_ = none;
    std::vector<std::size_t> same_before_;
};

/// The weights of one query.
struct WeightRow {
    std::span<const double> weights;  ///< one per key
    std::size_t query;
    const ScannedTokens& tokens;
};

struct HeadStatistic {
    std::string_view name;
    Bins bins;
    bool needs_ids;
    double (*of_row)(const WeightRow&);  ///< null: of each key, its weights summed over the queries
};

std::span<const HeadStatistic> head_statistics();

/// Where the sums of a text's statistics go: those of the statistic with this index in the table.
/// Null if it is not wanted.
using SumsOfHead = std::vector<FixedSums*>;

/// Adds the values of one head, whose weights are (tokens, tokens), to its sums. A query counts if
/// its token does and a weight is not 0; a key if its token does. Errors: kind input for weights
/// that are not finite and for sums beyond their range; `location` names the head in errors.
template <class T>
void add_statistics(std::span<const T> weights, const ScannedTokens& tokens, const SumsOfHead& sums,
                    const std::string& location);

}  // namespace attn
