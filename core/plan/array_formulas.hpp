// Formulas whose arrays are made of settings: a function for each mask or bias that is longer than
// a row of formulas.cpp.
#pragma once

#include "core/plan/plan.hpp"
#include "core/plan/resolve.hpp"

namespace attn {

/// One number for each batch entry, of one for all or one each.
template <class T>
std::shared_ptr<const Array<double>> by_batch(std::string_view key, const std::vector<T>& given,
                                              const Plan& plan) {
    if (given.size() != 1 && given.size() != plan.batch)
        refuse(key, given.size(), " numbers; expected ", plan.batch == 1 ? "" : "1 or ",
               plan.batch);
    std::vector<double> numbers;
    for (std::size_t b = 0; b < plan.batch; ++b)
        numbers.push_back(static_cast<double>(given[given.size() == 1 ? 0 : b]));
    return array_of({plan.batch}, numbers);
}

/// (tokens), or (batch, tokens) with one row, as (batch, tokens). With several axes: (tokens), and
/// (axes, tokens) or (axes, batch, tokens) as (axes, batch, tokens).
std::shared_ptr<const Array<double>> by_token(std::string_view key, const Array<double>& given,
                                              std::size_t tokens, const Plan& plan,
                                              std::size_t axes = 1);

/// The index of each token in its sequence, (1, tokens).
std::shared_ptr<const Array<double>> packed_positions(std::string_view key,
                                                      const Array<double>& given,
                                                      std::size_t tokens);

// The formulas of masks, to whose arrays theirs are added.
std::string segments_formula(const Settings& s, const Plan& plan, ExpressionArrays& arrays);
std::string lengths_formula(const Settings& s, const Plan& plan, ExpressionArrays& arrays);
/// The element of the blocks of the query and the key. An axis of batch entries or heads has blocks
/// of one, or one of all.
std::string blocks_formula(const Settings& s, const Plan& plan, ExpressionArrays& arrays);
/// NATTEN's rule: at a border, the window of a query is moved into the grid, so that all see as
/// many keys. With a dilation this holds among the tokens whose distance is a multiple of it.
std::string grid_formula(const Settings& s, const Plan& plan, ExpressionArrays& arrays);
/// In place of the causal mask and the window: the first and the last key of each query.
std::string packed_formula(const Settings& s, const Plan& plan, ExpressionArrays& arrays);

/// T5's bias of each head for the distance between query and key, added to the score.
NamedFormula relative_bias(const Settings& s, const Plan& plan);

}  // namespace attn
