// One query of the backward pass of core/check.
#pragma once

#include "core/check/evaluate.hpp"

namespace attn {

/// Gradients by key.
struct Candidate::BackwardRow {
    RowIndex at;
    bool is_made = false;
    std::vector<Lane> by_weight, before;  ///< of weights after dropout, and before it
    std::vector<Lane> by_softmax;         ///< of weights before prob_mod
    std::vector<Lane> capped, scaled;     ///< of the scores after these stages
    std::vector<Lane> raw;                ///< of products, without the error of the row term
    std::vector<double> slope;            ///< derivative of raw with respect to the row term
    std::vector<Lane> weight;             ///< after dropout
    std::array<std::vector<Lane>, mask_operands.size()> by_mask;
    Lane term;  ///< the sum of weights times their gradients, whose error all keys have in common
    Lane sink;  ///< its gradient

    Lane with_term(std::size_t k) const {
        const double x = square(slope[k]);
        return raw[k] + Lane{0, x * term.squares, x * term.variance};
    }
    std::vector<Lane> all_with_term() const {
        std::vector<Lane> all;
        all.reserve(raw.size());
        for (std::size_t k = 0; k < raw.size(); ++k) all.push_back(with_term(k));
        return all;
    }
};

}  // namespace attn
