// Follows core/layer/layer.cpp step by step, adding up the arrays that exist at the same time.
#include "core/plan/memory_need.hpp"

#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "core/fused/fused_sizes.hpp"
#include "core/fused/project_fused.hpp"
#include "core/kernels/dispatch.hpp"
#include "core/plan/backend.hpp"
#include "core/plan/product.hpp"

namespace attn {
namespace {

double numbers_of(const Shape& shape) {
    double numbers = shape.empty() ? 0 : 1;
    for (std::size_t length : shape) numbers *= static_cast<double>(length);
    return numbers;
}

/// Masks are read as double.
double bytes_of_mask(const Shape& shape) {
    return sizeof(double) * numbers_of(shape);
}

/// Copies of the scores that the reference holds at its peak.
double copies_of_scores(const Plan& plan) {
    if (plan.mask_method == MaskMethod::renormalize) return 9;
    return plan.dropout.p != 0 || plan.emit.has("dropout_mask") ? 6 : 5;
}

std::size_t lanes_of(const kernels::Kernel& kernel, Dtype dtype) {
    return dtype == Dtype::float64 ? kernels::entries_of<double>(kernel).lanes
                                   : kernels::entries_of<float>(kernel).lanes;
}

std::size_t vector_lanes_of(const kernels::Kernel& kernel, Dtype dtype) {
    return dtype == Dtype::float64 ? kernels::entries_of<double>(kernel).vector_lanes
                                   : kernels::entries_of<float>(kernel).vector_lanes;
}

class Peak {
public:
    Peak(const Plan& plan, const OperandShapes& operands, const PlanOptions& options)
        : plan_(plan), shapes_(operands), options_(options), fused_(plan.backend->is_fused()),
          element_(static_cast<double>(row_of(plan.dtype).size)),
          lanes_(fused_ ? lanes_of(*plan.backend->kernel, plan.dtype) : 1) {}

    MemoryNeed find() {
        masks_ = bytes_of_mask(shapes_.mask) + bytes_of_mask(shapes_.key_padding_mask);
        past_ = bytes_of(shapes_.past_key) + bytes_of(shapes_.past_value);
        tokens_ = bytes_of(shapes_.inputs) + bytes_of(shapes_.context) + bytes_of(shapes_.query) +
                  bytes_of(shapes_.key) + bytes_of(shapes_.value);
        held_ = masks_ + past_ + tokens_;
        note(options_.text_bytes_while_reading);
        row_of(plan_.mode).projects ? make_heads() : unpack_heads();
        join_cache();
        attend();
        return peak_;
    }

private:
    /// The size of an operand, which is read as T.
    double bytes_of(const Shape& shape) const { return element_ * numbers_of(shape); }
    double bytes(ArrayId array) const { return element_ * plan_.numbers<double>(array); }
    double bytes(std::initializer_list<std::size_t> sizes) const {
        return element_ * product(sizes);
    }

    /// Copies of the arrays before this one, in the order of computation, that are emitted.
    double kept_before(ArrayId end) const {
        double kept = 0;
        plan_.emit.for_each([&](ArrayId array) {
            if (array.index < end.index && !array.row().counts_queries_and_keys())
                kept += bytes(array);
        });
        return kept;
    }

    /// Memory in addition to the stored arrays, of it `steps` for queries and keys.
    void note(double more, double steps = 0) {
        const MemoryNeed now{options_.text_bytes + held_ + more, steps};
        if (now.total() > peak_.total()) peak_ = now;
    }

    void make_heads() {
        const double parameters = bytes("W_query") + bytes("W_key") + bytes("W_value");
        weights_ = parameters + bytes("W_out") + bytes("b_out") + bytes("b_query") +
                   bytes("b_key") + bytes("b_value");
        held_ += weights_;
        const double kept = kept_before("queries");
        note(kept);
        const double query = bytes({plan_.batch, plan_.heads, plan_.q_len, plan_.d_k});
        call_ = query + bytes("keys") + bytes("values");
        // Parameters are copied to another layout: by kernels all of a projection's at once, by the
        // reference one by one, with the result.
        const std::size_t groups = plan_.independent_heads() ? plan_.heads : 1;
        const bool is_cross = row_of(plan_.mode).context;
        const auto of_kernel = [&] {
            const double of_query = packed("W_query", plan_.d_in),
                         of_source =
                             packed("W_key", plan_.d_context) + packed("W_value", plan_.d_context);
            return is_cross ? std::max(of_query, of_source) : of_query + of_source;
        };
        const auto of_reference = [&] {
            return std::max({bytes("W_query"), bytes("W_key"), bytes("W_value")}) /
                       static_cast<double>(groups) +
                   std::max({query, bytes("keys"), bytes("values")}) + row_of_sums();
        };
        const double again = weights_ == 0 ? 0 : fused_ ? of_kernel() : of_reference();
        note(kept + call_ + again);
        note(kept + call_ + bytes("queries"));
        held_ -= tokens_;
        if (plan_.rows != plan_.q_len) call_ += bytes("queries") - query;
        held_ += call_;
    }

    void unpack_heads() {
        // These are the heads in their own layout; packed ones exist twice while they are split.
        const double query = bytes({plan_.batch, plan_.heads, plan_.q_len, plan_.d_k});
        call_ = query + bytes("keys") + bytes("values");
        note(plan_.packed ? std::max({query, bytes("keys"), bytes("values")}) : 0);
        if (plan_.rows != plan_.q_len) {
            held_ += bytes("queries") - query;
            call_ += bytes("queries") - query;
        }
    }

    void join_cache() {
        if (plan_.past_len != 0) {
            const double joined = bytes("present_key") + bytes("present_value");
            const double fresh = bytes("keys") + bytes("values");
            note(kept_before("present_key") + joined);
            held_ += joined - fresh - past_;
            call_ += joined - fresh;
        }
        note(kept_before("head_outputs"));
        note(kept_before("head_outputs") + masks_);  // in the kernels' layout
    }

    void attend() {
        const double joined = bytes({plan_.batch, plan_.heads, plan_.rows, plan_.d_v});
        const double scores = bytes({plan_.batch, plan_.heads, plan_.rows, plan_.kv_len});
        double kept_scores = 0;
        plan_.emit.for_each([&](ArrayId array) {
            if (array.row().counts_queries_and_keys() && !plan_.streams)
                kept_scores += bytes(array);
        });
        if (plan_.shown.average_heads && plan_.emit.has("attention_weights"))
            kept_scores += fused_ ? scores : bytes("attention_weights");
        const double kept = kept_before("context_vectors");
        held_ += joined;
        if (fused_) {
            // Additive masks also exist in T.
            const double additive =
                (shapes_.mask_is_boolean ? 0 : bytes_of_mask(shapes_.mask)) +
                (shapes_.key_padding_mask_is_boolean ? 0 : bytes_of_mask(shapes_.key_padding_mask));
            note(kept + worker_bytes(scores) + additive / sizeof(double) * element_, kept_scores);
        } else {
            note(kept + bytes("present_key"), scores + kept_scores);
            note(kept + joined, copies_of_scores(plan_) * scores + kept_scores);  // unmerged heads
        }
        if (!plan_.streams) held_ -= call_ + masks_;
        const double context = bytes("context_vectors");
        const double out = bytes("W_out");
        const double again = out == 0 ? 0
                             : fused_ ? packed("W_out", plan_.heads * plan_.d_v)
                                      : out + context;
        note(kept + context + again, kept_scores);
        held_ += context - joined;
        note(kept + (plan_.emit.has("context_vectors") ? context : 0), kept_scores);
    }

    /// The working memory of a kernel's threads; the rows of a stream.
    double worker_bytes(double scores) const {
        bool writes_weights = plan_.streams, writes_scores = plan_.streams;
        plan_.emit.for_each([&](ArrayId array) {
            writes_weights |= array == "attention_weights";
            writes_scores |= array == "scores";
        });
        const kernels::Kernel& kernel = *plan_.backend->kernel;
        const FusedSizes sizes{{plan_.batch, plan_.heads, plan_.rows, plan_.kv_len},
                               plan_.kv_heads,
                               plan_.d_k,
                               plan_.d_v,
                               row_of(plan_.dtype).size,
                               lanes_,
                               vector_lanes_of(kernel, plan_.dtype),
                               std::max<std::size_t>(1, options_.threads),
                               plan_.dropout.p != 0,
                               plan_.independent_heads(),
                               plan_.streams,
                               writes_weights,
                               writes_scores};
        const bool masked =
            (!shapes_.mask.empty() && shapes_.mask_is_boolean) ||
            (!shapes_.key_padding_mask.empty() && shapes_.key_padding_mask_is_boolean);
        constexpr double streamed = 3 * 0x1p24;
        return sizes.working_bytes(masked) + (plan_.streams ? std::min(scores, streamed) : 0);
    }

    /// A projection in the layout of the kernels.
    double packed(ArrayId weight, std::size_t d_in) const {
        return element_ * panels(plan_.numbers<double>(weight) / static_cast<double>(d_in)) *
               panel_size(static_cast<double>(d_in), static_cast<double>(lanes_));
    }

    /// The widest projection, which the reference sums in addition to its result.
    double row_of_sums() const {
        return element_ * std::max({plan_.size_of<double>(Axis::query_width),
                                    plan_.size_of<double>(Axis::key_width),
                                    plan_.size_of<double>(Axis::value_width)});
    }

    double panels(double columns) const { return std::ceil(columns / static_cast<double>(lanes_)); }

    const Plan& plan_;
    const OperandShapes& shapes_;
    const PlanOptions& options_;
    bool fused_;
    double element_;
    std::size_t lanes_;  // columns of a kernel's panel
    double masks_ = 0, past_ = 0, tokens_ = 0;
    double held_ = 0;     // at this step, without emitted copies
    double weights_ = 0;  // parameters
    double call_ = 0;     // queries, keys and values
    MemoryNeed peak_;
};

}  // namespace

MemoryNeed memory_need(const Plan& plan, const OperandShapes& operands,
                       const PlanOptions& options) {
    return Peak(plan, operands, options).find();
}

double memory_of_answer(const Plan& plan, const PlanOptions& options) {
    const auto element = static_cast<double>(row_of(plan.dtype).size);
    double numbers = 0;
    plan.emit.for_each([&](ArrayId array) {
        if (!plan.streams || !array.row().counts_queries_and_keys())
            numbers += plan.numbers<double>(array);
    });
    if (plan.streams)
        numbers += product({plan.batch, plan.heads, plan.rows, plan.d_k}) +
                   plan.numbers<double>("present_key") + plan.numbers<double>("present_value");
    return options.text_bytes + element * numbers;
}

}  // namespace attn
