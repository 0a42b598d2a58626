// Where an array is wrong.

#include "core/base/tensor.hpp"
#include "core/check/judge.hpp"

namespace attn {
namespace {

/// The axes of theirs, with those of size 1.
std::vector<WrongElements::Side> empty_box(const GivenArray& given,
                                           const std::vector<std::string>& axes) {
    std::vector<WrongElements::Side> box;
    std::size_t next = 0;
    for (const std::size_t size : given.shape)
        box.push_back({size == 1 || next >= axes.size() ? "" : axes[next++], size, 0, size});
    return box;
}

bool are_same(double a, double b) {
    return a == b || (std::isnan(a) && std::isnan(b));
}

}  // namespace

void Judge::locate(ArrayJudgement& judgement, const GivenArray& given) {
    const bool is_transpose = judgement.layout && judgement.layout->is_transposed;
    if (!judgement.first || (is_transpose && judgement.is_right_if_transposed)) return;
    struct Largest {
        double error = -1;
        JudgedElement element{};
    };
    std::vector<Largest> of_item(items(given.id));
    std::vector<char> is_wrong(given.values.size());
    visit(given, *judgement.layout, judgement.type,
          [&](std::size_t item, const JudgedElement& element) {
              if (element.is_right) return;
              is_wrong[element.offset] = 1;
              const double error = std::abs(element.theirs - element.truth);
              if (std::isfinite(error) && error > of_item[item].error)
                  of_item[item] = {error, element};
          });
    WrongElements wrong;
    wrong.of = given.values.size();
    wrong.box = empty_box(
        given, judgement.axes.empty() ? own_axes(problem_.plan, given.id) : judgement.axes);
    std::size_t votes = 0;  // of the only number that more than half of them can be
    for (std::size_t i = 0; i < is_wrong.size(); ++i) {
        if (is_wrong[i] == 0) continue;
        const double x = given.values[i];
        ++wrong.count;
        wrong.zeros += x == 0 ? 1U : 0U;
        wrong.nan += std::isnan(x) ? 1U : 0U;
        if (votes == 0) wrong.common = x;
        votes = are_same(x, wrong.common) ? votes + 1 : votes - 1;
        const std::vector<std::size_t> index = index_of(i, given.shape);
        for (std::size_t axis = 0; axis < index.size(); ++axis) {
            wrong.box[axis].first = std::min(wrong.box[axis].first, index[axis]);
            wrong.box[axis].last = std::max(wrong.box[axis].last, index[axis]);
        }
    }
    for (std::size_t i = 0; i < is_wrong.size(); ++i)
        wrong.alike += is_wrong[i] != 0 && are_same(given.values[i], wrong.common) ? 1U : 0U;
    if (wrong.alike < 2 || 2 * wrong.alike <= wrong.count) wrong.alike = 0;
    const Largest* largest = nullptr;
    for (const Largest& one : of_item)
        if (one.error >= 0 && (largest == nullptr || one.error > largest->error)) largest = &one;
    if (largest != nullptr)
        wrong.largest = Departure{index_of(largest->element.offset, given.shape),
                                  largest->element.theirs, largest->element.truth};
    // Each element of an array that is wrong by its noise alone is within its bound.
    if (wrong.count != 0) judgement.wrong = std::move(wrong);
}

}  // namespace attn
