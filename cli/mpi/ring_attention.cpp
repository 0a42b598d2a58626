#include "cli/mpi/divided.hpp"

#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/operator/merge.hpp"
#include "core/plan/backend.hpp"

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
        attend_part(*plan.backend, call, rows_of_heads(context.data(), shape_), logsumexp.data(),
                    pool);
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
        // The previous rank has those of the rank that many places before it.
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
