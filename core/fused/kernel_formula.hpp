// A formula as kernels take it.
#pragma once

#include "core/expression/range.hpp"
#include "core/kernels/kernel.hpp"

namespace attn {

/// Whether kernels compute a formula of scores: few enough nodes, and integers that T, float32 or
/// float64 as the sizes say, holds exactly.
bool suits_kernels(const Expression& expression, const ExpressionSizes& sizes);

template <class T>
class KernelFormula {
public:
    /// `first_key`: the formula's number of key 0.
    KernelFormula(const Expression& expression, const ExpressionSizes& sizes,
                  std::size_t first_key);
    KernelFormula(const KernelFormula&) = delete;
    KernelFormula& operator=(const KernelFormula&) = delete;

    const kernels::Formula<T>& formula() const { return formula_; }

private:
    std::vector<std::vector<T>> arrays_;
    std::vector<kernels::FormulaNode<T>> nodes_;
    kernels::Formula<T> formula_;
};

}  // namespace attn
