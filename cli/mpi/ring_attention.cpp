#include "cli/mpi/ring_attention.hpp"

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "core/operator/merge.hpp"
#include "core/plan/backend.hpp"
#include "core/plan/division.hpp"

namespace attn::cli {
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

/// The keys of the rank at `place`, not set yet.
template <class T>
OwnKeys<T> space_for_keys(const Plan& plan, std::size_t place, std::size_t ring_size) {
    const std::array<IndexRange, 2> chunks = chunks_of(plan.kv_len, place, ring_size);
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
        plan.backend->entries<T>().attend_part(plan, call, rows_of_heads(context.data(), shape_),
                                               logsumexp.data(), pool);
        for (std::size_t row = 0; row < logsumexp.size(); ++row)
            rows_.add(row, context.data() + row * shape_[3], logsumexp[row]);
    }

    RingResult<T> finish(const std::vector<double>& sink) {
        RingResult<T> result{Tensor4<T>::from_shape(shape_),
                             Tensor4<T>::from_shape({shape_[0], shape_[1], shape_[2], 1})};
        rows_.add_sinks<T>(sink, shape_[1], shape_[2]);
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

}  // namespace

template <class T>
std::array<RingResult<T>, 2> attend_in_ring(const Plan& plan, const AttentionCall<T>& rules,
                                            OwnRows<T> own, const Communicator& ring,
                                            ThreadPool& pool) {
    const std::size_t size = ring.size(), place = ring.rank();
    std::array<JoinedRows<T>, 2> joined{JoinedRows<T>(shape_of_context(own.queries[0], plan)),
                                        JoinedRows<T>(shape_of_context(own.queries[1], plan))};
    OwnKeys<T> here = std::move(own.keys), there;
    for (std::size_t step = 0; step < size; ++step) {
        Communicator::Passing passing(ring);
        if (step + 1 < size) {
            // The previous rank has those of the rank that many places before it.
            there = space_for_keys<T>(plan, (place + size - step - 1) % size, size);
            for (std::size_t i = 0; i < here.size(); ++i) {
                passing.pass(bytes_of(here[i].key), bytes_of(there[i].key));
                passing.pass(bytes_of(here[i].value), bytes_of(there[i].value));
            }
        }
        for (KeyRows<T>& keys : here) {
            if (keys.key.shape(2) == 0) continue;
            AttentionCall<T> call = rules;
            call.sink.clear();  // counts once for all keys
            number_keys_from(call, keys.first, plan.kv_len);
            // Moved, not copied: the addresses that are being sent from stay.
            call.key = std::move(keys.key);
            call.value = std::move(keys.value);
            for (std::size_t i = 0; i < joined.size(); ++i) {
                QueryRows<T>& queries = own.queries[i];
                call.first_query = queries.first;
                call.query = std::move(queries.query);
                if (call.query.size() != 0 && !is_hidden(call)) joined[i].add(plan, call, pool);
                queries.query = std::move(call.query);
                passing.progress();
            }
            keys.key = std::move(call.key);
            keys.value = std::move(call.value);
        }
        passing.wait();
        std::swap(here, there);
    }
    return {joined[0].finish(rules.sink), joined[1].finish(rules.sink)};
}

template std::array<RingResult<float>, 2> attend_in_ring(const Plan&, const AttentionCall<float>&,
                                                         OwnRows<float>, const Communicator&,
                                                         ThreadPool&);
template std::array<RingResult<double>, 2> attend_in_ring(const Plan&, const AttentionCall<double>&,
                                                          OwnRows<double>, const Communicator&,
                                                          ThreadPool&);

}  // namespace attn::cli
