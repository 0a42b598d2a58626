#include "cli/question/question.hpp"

#include <algorithm>

namespace attn::cli {

template <class T>
T* read_rows(const RowsInFile& file, std::size_t matrix, std::size_t first, std::size_t count,
             T* to, ThreadPool& pool) {
    if (count == 0) return to;
    io::ArrayRules rules = file.rules;
    rules.lowest_rank = rules.highest_rank = 2;
    const Array<T> rows =
        io::read_array<T>(io::rows_of(file.array, matrix, first, count), rules, &pool);
    return std::copy_n(rows.data(), rows.size(), to);
}

template float* read_rows(const RowsInFile&, std::size_t, std::size_t, std::size_t, float*,
                          ThreadPool&);
template double* read_rows(const RowsInFile&, std::size_t, std::size_t, std::size_t, double*,
                           ThreadPool&);

}  // namespace attn::cli
