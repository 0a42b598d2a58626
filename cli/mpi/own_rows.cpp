#include "cli/mpi/divided.hpp"

#include <algorithm>
#include <utility>

#include "core/layer/heads.hpp"
#include "core/layer/stages.hpp"
#include "core/operator/recorder.hpp"
#include "core/operator/rope.hpp"

namespace attn::cli {
namespace {

/// The matrices of a file that a share has: those of `heads` of each of `batches`, of which the
/// file has `all_heads`.
struct Matrices {
    IndexRange batches, heads;
    std::size_t all_heads;
};

/// Some rows of them: (batch, heads, rows, columns).
template <class T>
Tensor4<T> rows_of_share(const RowsInFile& file, const Matrices& matrices, const IndexRange& rows,
                         ThreadPool& pool) {
    const std::size_t columns = file.array.shape.back();
    Tensor4<T> read =
        Tensor4<T>::from_shape({matrices.batches.count, matrices.heads.count, rows.count, columns});
    T* to = read.data();
    for (std::size_t b = 0; b < matrices.batches.count; ++b)
        for (std::size_t h = 0; h < matrices.heads.count; ++h) {
            const std::size_t matrix =
                (matrices.batches.first + b) * matrices.all_heads + matrices.heads.first + h;
            to = read_rows(file, matrix, rows.first, rows.count, to, pool);
        }
    return read;
}

template <class T>
class RowReader {
public:
    RowReader(const Plan& plan, const Share& share, const OperandRows& rows,
              const Operands& operands, const LayerWeights<T>* weights, ThreadPool& pool)
        : plan_(plan), share_(share), rows_(rows), operands_(operands), weights_(weights),
          pool_(pool), recorder_({}, plan.shown), stages_{plan, pool, recorder_} {}

    /// A chunk of queries, and one of keys and values.
    void read(const IndexRange& queries, const IndexRange& keys, QueryRows<T>& to_queries,
              KeyRows<T>& to_keys) {
        to_queries.first = queries.first;
        to_keys.first = keys.first;
        AttentionCall<T> call =
            plan_.projects ? project_tokens(queries, keys) : read_heads(queries, keys);
        if (plan_.rope.dims != 0) {
            const std::vector<double> frequencies = plan_.rope.frequencies();
            rotate(call.query, plan_.rope.pairs, frequencies, queries.first);
            rotate(call.key, plan_.rope.pairs, frequencies, keys.first);
        }
        to_queries.query = std::move(call.query);
        to_keys.key = std::move(call.key);
        to_keys.value = std::move(call.value);
    }

private:
    const RowsInFile& file(const char* key) const { return rows_.files.find(key)->second; }

    Tensor4<T> heads_in(const char* key, const IndexRange& rows, const IndexRange& heads,
                        std::size_t all_heads) {
        if (!plan_.packed)
            return rows_of_share<T>(file(key), {share_.batches, heads, all_heads}, rows, pool_);
        return split_heads(tokens_in(key, rows), all_heads);
    }

    Tensor3<T> tokens_in(const char* key, const IndexRange& rows) {
        Tensor4<T> read = rows_of_share<T>(file(key), {share_.batches, {0, 1}, 1}, rows, pool_);
        const std::array shape{read.shape(0), read.shape(2), read.shape(3)};
        return {std::move(read), shape};
    }

    AttentionCall<T> read_heads(const IndexRange& queries, const IndexRange& keys) {
        // Both numbers of heads are divided by the same number of parts.
        const std::size_t parts = share_.head_parts;
        AttentionCall<T> call;
        call.query = heads_in("query", queries, share_.heads, plan_.heads * parts);
        call.key = heads_in("key", keys, share_.kv_heads, plan_.kv_heads * parts);
        call.value = heads_in("value", keys, share_.kv_heads, plan_.kv_heads * parts);
        return call;
    }

    /// Keys have tokens of their own, which are also read where they are those of the queries.
    AttentionCall<T> project_tokens(const IndexRange& queries, const IndexRange& keys) {
        const bool has_context = row_of(plan_.config.mode).context;
        const Tensor3<T> x = stages_.norm(operands_.norm, tokens_in("inputs", queries));
        Tensor3<T> source = tokens_in(has_context ? "context" : "inputs", keys);
        if (!has_context) source = stages_.norm(operands_.norm, std::move(source));
        return stages_.project(weights_, x, source);
    }

    const Plan& plan_;
    const Share& share_;
    const OperandRows& rows_;
    const Operands& operands_;
    const LayerWeights<T>* weights_;
    ThreadPool& pool_;
    Recorder recorder_;  // of nothing
    Stages<T> stages_;
};

}  // namespace

template <class T>
OwnRows<T> read_own_rows(const Plan& plan, const Share& share, const OperandRows& rows,
                         const Operands& operands, const LayerWeights<T>* weights,
                         ThreadPool& pool) {
    // The rows that are computed, all of those read: the stages must not select some again.
    Plan chunk = plan;
    chunk.first_query = 0;
    chunk.rows = chunk.q_len;
    RowReader<T> reader(chunk, share, rows, operands, weights, pool);
    const std::array<IndexRange, 2> queries = chunks_of(plan.rows, share.place, share.ring_size),
                                    keys = chunks_of(plan.kv_len, share.place, share.ring_size);
    OwnRows<T> own;
    for (std::size_t i = 0; i < queries.size(); ++i)
        reader.read({plan.first_query + queries[i].first, queries[i].count}, keys[i],
                    own.queries[i], own.keys[i]);
    return own;
}

template OwnRows<float> read_own_rows(const Plan&, const Share&, const OperandRows&,
                                      const Operands&, const LayerWeights<float>*, ThreadPool&);
template OwnRows<double> read_own_rows(const Plan&, const Share&, const OperandRows&,
                                       const Operands&, const LayerWeights<double>*, ThreadPool&);

}  // namespace attn::cli
