#include "cli/repro/tolerances.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <memory>

#include "core/check/evaluate.hpp"

namespace attn::cli {

std::vector<double> tolerances_of(const Problem& problem, ArrayId array, ThreadPool& pool) {
    const Dtype dtype = problem.plan.dtype;
    const Evaluator evaluator(problem,
                              dtype == Dtype::float32 ? Precision::float32 : Precision::float64);
    const double least = row_of(dtype).least;
    const auto extent = extent_of(problem.plan, array);
    const std::size_t batch = extent[0], heads = extent[1], rows = extent[2], columns = extent[3];
    std::vector<double> tolerances(batch * heads * rows * columns);
    std::vector<std::unique_ptr<Candidate>> of_worker(pool.threads());
    // Rows of all heads of a query are neighbours: candidates keep what these have in common.
    pool.run(batch * rows, [&](std::size_t item, std::size_t worker) {
        std::unique_ptr<Candidate>& candidate = of_worker[worker];
        if (!candidate) candidate = std::make_unique<Candidate>(evaluator, problem.asked, true);
        const std::size_t b = item / rows, row = item % rows;
        for (std::size_t head = 0; head < heads; ++head) {
            const std::vector<double>& errors = candidate->row(array, b, head, row).error;
            double* const to = &tolerances[((b * heads + head) * rows + row) * columns];
            std::transform(errors.begin(), errors.end(), to, [least](double error) {
                return error >= 0 ? 2 * error + least : std::numeric_limits<double>::infinity();
            });
        }
    });
    return tolerances;
}

}  // namespace attn::cli
