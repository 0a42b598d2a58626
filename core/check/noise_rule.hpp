// Whether the errors of an array are as large as those that are expected of a right program.
#pragma once

#include "core/check/comparison.hpp"

namespace attn {

/// The errors of an array as multiples of those expected.
struct NoiseFit {
    bool fits = true;
    bool is_known = true;     ///< of some rows
    double all = 0;           ///< the root of the mean of e^2 / V, the variance
    double most = 0;          ///< the same of the head, or the size of the element, that fits worst
    bool is_element = false;  ///< it is of an element
    /// In their array: the first element that does not fit, or else the one with the largest error
    /// relative to its standard deviation.
    std::size_t at = 0;
    double theirs = 0, truth = 0;  ///< there
};

/// Under the question's own conventions, with operands rounded to the type first if that fits
/// better. Empty: the array has no noise.
std::optional<NoiseFit> noise_of_question(const Evaluator& evaluator, const GivenArray& given,
                                          const Layout& layout, ThreadPool& pool);

/// Whether errors under some conventions are within those expected, in arrays that have
/// noise.
class ArraysNoise {
public:
    /// `comparison` must outlive it.
    explicit ArraysNoise(const Comparison& comparison);

    bool fits(const Conventions& conventions, ThreadPool& pool) const;
    /// Of one row, for one thread.
    bool fits(const Conventions& conventions, const TheirRow& row) const;

private:
    const Comparison& comparison_;
    std::vector<GivenArray> given_;  ///< in attn's layout
    std::vector<Layout> layouts_;
};

/// The root of the mean square of what rounding the factors of products to the evaluator's type
/// does to an array, over at most 64 rows of each head.
double error_of_rounded_factors(const Evaluator& evaluator, ArrayId array);

}  // namespace attn
