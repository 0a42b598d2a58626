#include "cli/mpi/divided.hpp"

#include <utility>
#include <vector>

#include "core/layer/stages.hpp"
#include "core/operator/merge.hpp"
#include "core/operator/recorder.hpp"
#include "core/operator/rope.hpp"
#include "core/plan/backend.hpp"

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
            const RopeAngles angles = plan_.rope.angles();
            rotate(call.query, plan_.rope.pairs, angles, {}, queries.first);
            rotate(call.key, plan_.rope.pairs, angles, {}, keys.first);
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
    const std::array<IndexRange, 2> queries =
                                        chunks_of(plan.rows, share.ring_rank, share.ring_size),
                                    keys = chunks_of(plan.kv_len, share.ring_rank, share.ring_size);
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

namespace {

template <class T>
std::span<std::byte> bytes_of(Tensor4<T>& x) {
    return std::as_writable_bytes(std::span(x.data(), x.size()));
}

template <class T>
std::array<std::size_t, 4> shape_of_context(const QueryRows<T>& queries, const Plan& plan) {
    const auto& shape = queries.query.shape();
    return {shape[0], shape[1], shape[2], plan.d_v};
}

/// The keys of rank `ring_rank`, not set yet.
template <class T>
OwnKeys<T> space_for_keys(const Plan& plan, std::size_t ring_rank, std::size_t ring_size) {
    const std::array<IndexRange, 2> chunks = chunks_of(plan.kv_len, ring_rank, ring_size);
    OwnKeys<T> keys;
    for (std::size_t i = 0; i < keys.size(); ++i) {
        const std::size_t rows = chunks[i].count;
        keys[i] = {chunks[i].first,
                   Tensor4<T>::from_shape({plan.batch, plan.kv_heads, rows, plan.d_k}),
                   Tensor4<T>::from_shape({plan.batch, plan.kv_heads, rows, plan.d_v})};
    }
    return keys;
}

/// The rows of one chunk of queries, joined from parts.
template <class T>
class JoinedRows {
public:
    explicit JoinedRows(const std::array<std::size_t, 4>& shape)
        : shape_(shape), rows_(shape[0] * shape[1] * shape[2], shape[3]) {}

    /// Adds the attention over the keys of `call`, which are numbered in the whole sequence.
    void add(const Plan& plan, const AttentionCall<T>& call, ThreadPool& pool) {
        Tensor4<T> context = Tensor4<T>::from_shape(shape_);
        std::vector<double> logsumexp(shape_[0] * shape_[1] * shape_[2]);
        attend_part(*plan.backend, call, rows_of_heads(context.data(), shape_), logsumexp.data(),
                    pool);
        for (std::size_t row = 0; row < logsumexp.size(); ++row)
            rows_.add(row, context.data() + row * shape_[3], logsumexp[row]);
    }

    RingResult<T> finish(const std::vector<double>& sink) {
        RingResult<T> result{Tensor4<T>::from_shape(shape_),
                             Tensor4<T>::from_shape({shape_[0], shape_[1], shape_[2], 1})};
        rows_.add_sinks(sink, dtype_of<T>, shape_[1], shape_[2]);
        for (std::size_t row = 0; row < result.logsumexp.size(); ++row)
            result.logsumexp.data()[row] = static_cast<T>(
                rows_.finish(row, result.context.data() + row * shape_[3]).logsumexp());
        return result;
    }

private:
    std::array<std::size_t, 4> shape_;  // of the context
    MergedRows rows_;
};

/// Whether a mask hides all keys of the call from all its queries.
template <class T>
bool is_hidden(const AttentionCall<T>& call) {
    const auto& queries = call.query.shape();
    for (std::size_t b = 0; b < queries[0]; ++b)
        for (std::size_t h = 0; h < queries[1]; ++h)
            if (call.mask.cover({b, h, call.first_query, queries[2], 0, call.key.shape(2)}) !=
                Coverage::none)
                return false;
    return true;
}

/// What fails on one rank fails in `together` on all of them, so that none waits for messages that
/// will not come.
template <class T>
class RingAttention {
public:
    RingAttention(const Plan& plan, const AttentionCall<T>& rules, OwnRows<T> own,
                  const Communicator& ring, const Communicator& world, ThreadPool& pool)
        : plan_(plan), rules_(rules), ring_(ring), world_(world), pool_(pool),
          queries_(std::move(own.queries)), here_(std::move(own.keys)) {}

    std::array<RingResult<T>, 2> run() {
        world_.together([&] {
            for (const QueryRows<T>& queries : queries_)
                joined_.emplace_back(shape_of_context(queries, plan_));
            passing_.emplace(ring_);
        });
        for (std::size_t step = 0; step < ring_.size(); ++step) {
            world_.together([&] { prepare_to_pass(step); });
            passing_->start();
            world_.together([&] {
                for (KeyRows<T>& keys : here_)
                    if (keys.key.shape(2) != 0) attend_to(keys);
            });
            passing_->wait();
            std::swap(here_, there_);
        }
        std::array<RingResult<T>, 2> results;
        world_.together([&] {
            for (std::size_t i = 0; i < results.size(); ++i)
                results[i] = joined_[i].finish(rules_.sink);
        });
        return results;
    }

private:
    void prepare_to_pass(std::size_t step) {
        const std::size_t size = ring_.size();
        if (step + 1 == size) return;
        // The previous rank has those of the rank that many steps before it.
        there_ = space_for_keys<T>(plan_, (ring_.rank() + size - step - 1) % size, size);
        for (std::size_t i = 0; i < here_.size(); ++i) {
            passing_->add(bytes_of(here_[i].key), bytes_of(there_[i].key));
            passing_->add(bytes_of(here_[i].value), bytes_of(there_[i].value));
        }
    }

    void attend_to(KeyRows<T>& keys) {
        call_ = rules_;
        call_.sink.clear();  // counts once for all keys
        number_keys_from(call_, keys.first, plan_.kv_len);
        // Moved, not copied: the addresses that are being sent from stay.
        call_.key = std::move(keys.key);
        call_.value = std::move(keys.value);
        for (std::size_t i = 0; i < queries_.size(); ++i) {
            call_.first_query = queries_[i].first;
            call_.query = std::move(queries_[i].query);
            if (call_.query.size() != 0 && !is_hidden(call_)) joined_[i].add(plan_, call_, pool_);
            queries_[i].query = std::move(call_.query);
            passing_->progress();
        }
        keys.key = std::move(call_.key);
        keys.value = std::move(call_.value);
    }

    const Plan& plan_;
    const AttentionCall<T>& rules_;
    const Communicator& ring_;
    const Communicator& world_;
    ThreadPool& pool_;
    OwnQueries<T> queries_;
    std::vector<JoinedRows<T>> joined_;  ///< of each chunk of queries
    OwnKeys<T> here_, there_;
    AttentionCall<T> call_;  ///< of some keys of `here_`, which it keeps if it fails
    std::optional<Communicator::Passing> passing_;  ///< ends before what it sends and fills
};

}  // namespace

template <class T>
std::array<RingResult<T>, 2> attend_in_ring(const Plan& plan, const AttentionCall<T>& rules,
                                            OwnRows<T> own, const Communicator& ring,
                                            const Communicator& world, ThreadPool& pool) {
    return RingAttention<T>(plan, rules, std::move(own), ring, world, pool).run();
}

template std::array<RingResult<float>, 2> attend_in_ring(const Plan&, const AttentionCall<float>&,
                                                         OwnRows<float>, const Communicator&,
                                                         const Communicator&, ThreadPool&);
template std::array<RingResult<double>, 2> attend_in_ring(const Plan&, const AttentionCall<double>&,
                                                          OwnRows<double>, const Communicator&,
                                                          const Communicator&, ThreadPool&);

}  // namespace attn::cli
