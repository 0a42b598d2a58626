// How far two programs that compute the same question may differ by rounding.
#pragma once

#include <cstddef>

#include "core/base/dtype.hpp"
#include "core/layer/result.hpp"

namespace attn::cli {

struct Repro;

/// The largest difference of an element between two computations in the question's dtype.
struct Tolerances {
    double attention_weights = 0, context_vectors = 0;
};

/// Derived as `attn help repro` describes: first-order bounds on the rounding errors of each step,
/// propagated through the later ones. `result` has all arrays of the question, by the reference.
Tolerances tolerances_of(const Repro& program, const Result& result);

/// The unit roundoff of a type, and the relative error of a sum of products.
class Roundoff {
public:
    explicit Roundoff(Dtype dtype);

    /// Half the distance from 1 to the next number.
    double unit() const { return unit_; }

    /// A bound on |error| / sum of |products| of an inner product of n terms, in any order: n u /
    /// (1
    /// - n u), or, with a probability of at least 1 - 2 exp(-lambda^2 / 2) for lambda = 5 (all but
    /// 7e-6), exp(lambda sqrt(n) u + n u^2 / (1 - u)) - 1, whichever is smaller. Source: Higham and
    /// Mary 2019, "A new approach to probabilistic rounding error analysis", theorem 2.4.
    double sum(std::size_t n) const;

private:
    double unit_;
};

}  // namespace attn::cli
