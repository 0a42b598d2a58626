#include "core/layer/backward.hpp"

#include "core/base/torch_math.hpp"
#include "core/layer/mask_rows.hpp"
#include "core/linear/backward.hpp"
#include "core/operator/rope.hpp"
#include "core/plan/backend.hpp"

namespace attn {
namespace {

/// (batch, heads, rows, d) to (batch, rows, heads * d): split_heads() back.
template <class T>
Tensor3<T> side_by_side(const Tensor4<T>& x) {
    Tensor4<T> merged = merge_heads(x);
    const std::array shape{merged.shape(0), merged.shape(2), merged.shape(3)};
    return {std::move(merged), shape};
}

/// (batch, heads, rows, d) to (batch, rows, d): copy_for_heads() back.
template <class T>
Tensor3<T> summed_over_heads(const Tensor4<T>& x) {
    Tensor3<T> sums = Tensor3<T>::from_shape({x.shape(0), x.shape(2), x.shape(3)});
    const std::size_t matrix = x.shape(2) * x.shape(3);
    for_each_index(x.shape(0), [&](std::size_t b) {
        sum_over_rows(x.data() + b * x.shape(1) * matrix, x.shape(1), matrix,
                      sums.data() + b * matrix);
    });
    return sums;
}

template <class T>
void add(Tensor3<T>& to, const Tensor3<T>& x) {
    if (to.size() == 0) {
        to = x;
        return;
    }
    for_each_index(to.size(), [&](std::size_t i) { to.data()[i] += x.data()[i]; });
}

/// Columns [first, first + count) of rows, as one matrix (1, rows, count); or its transpose.
template <class T>
Tensor3<T> columns_of(const Tensor3<T>& x, std::size_t first, std::size_t count, bool turned) {
    const std::size_t rows = x.shape(0) * x.shape(1), width = x.shape(2);
    Tensor3<T> part = turned ? Tensor3<T>::from_shape({1, count, rows})
                             : Tensor3<T>::from_shape({1, rows, count});
    for_each_index(rows, [&](std::size_t row) {
        for (std::size_t i = 0; i < count; ++i)
            part.data()[turned ? i * rows + row : row * count + i] =
                x.data()[row * width + first + i];
    });
    return part;
}

template <class T>
class LayerBackward {
public:
    LayerBackward(const Stages<T>& stages, KeptForBackward<T>& kept, const LayerWeights<T>* weights)
        : stages_(stages), plan_(stages.plan), recorder_(stages.recorder), operands_(kept.operands),
          call_(kept.call), heads_(kept.heads), weights_(weights) {}

    void run(const Tensor4<T>& context) {
        Tensor4<T> gradient = of_loss(context);
        if (weights_ != nullptr && weights_->out) gradient = project_out_back(gradient);
        if (!plan_.shown.separate_heads) {
            const std::array shape{gradient.shape(0), gradient.shape(2), gradient.shape(3)};
            gradient = split_heads(Tensor3<T>(std::move(gradient), shape), plan_.heads);
        }
        recorder_.record("grad_head_outputs", gradient);
        AttentionGradients<T> by = attend_back(gradient);
        call_ = {};
        append_and_rotate_back(by);
        plan_.projects ? project_back(by) : split_back(by);
    }

private:
    /// Operands have the shapes in which they are given.
    void record_operand(ArrayId gradient, Array<T> values) {
        if (!recorder_.records(gradient)) return;
        values.reshape(plan_.operand_shape(gradient.base().row()));
        recorder_.keep_as_is(gradient, std::move(values), plan_.computed_axes_of(gradient));
    }
    template <class Shape>
    void record_operand(ArrayId gradient, const ShapedArray<T, Shape>& values) {
        if (recorder_.records(gradient))
            record_operand(gradient, Array<T>(ShapedArray<T, Shape>(values),
                                              {values.shape().begin(), values.shape().end()}));
    }

    /// Sums are in double.
    Tensor4<T> of_loss(const Tensor4<T>& context) {
        if (RealArray& given = operands_["grad_output"]; given.dimension() != 0)
            return {given.take<T>(), context.shape()};
        const Loss loss = *plan_.config.loss;
        const auto count = loss == Loss::sum ? 1.0 : static_cast<double>(context.size());
        Array<T> target;
        if (loss == Loss::mse) target = operands_["target"].take<T>();
        Tensor4<T> gradient = Tensor4<T>::from_shape(context.shape());
        double sum = 0;
        for_each_index(context.size(), [&](std::size_t i) {
            const double x = double{context.data()[i]};
            const double difference = loss == Loss::mse ? x - double{target.data()[i]} : 1;
            sum += loss == Loss::mse ? difference * difference : x;
            gradient.data()[i] = static_cast<T>((loss == Loss::mse ? 2 : 1) * difference / count);
        });
        Array<T> value = Array<T>::from_shape({1});
        value.fill(static_cast<T>(sum / count));
        recorder_.keep_as_is("loss", std::move(value));
        return gradient;
    }

    /// The gradient with respect to x, (batch, rows, d_in), of x W^T + b; records those of the
    /// parameters.
    Tensor3<T> linear_back(const Projection<T>& p, const Tensor3<T>& x, const Tensor3<T>& gradient,
                           ArrayId weight, ArrayId bias) {
        const std::size_t d_in = p.d_in(), d_out = p.d_out(), groups = p.groups();
        const Tensor3<T> whole = columns_of(x, 0, d_in, p.in_out);
        Tensor3<T> by_weight = Tensor3<T>::from_shape(p.weight.shape()), by_x;
        Tensor2<T> by_bias = Tensor2<T>::from_shape({groups, d_out});
        for (std::size_t group = 0; group < groups; ++group) {
            const Tensor3<T> own = columns_of(gradient, group * d_out, d_out, false);
            // W as a projection from d_out to d_in columns.
            const std::array turned{std::size_t{1}, p.weight.shape(1), p.weight.shape(2)};
            Projection<T> back{Tensor3<T>::from_shape(turned), {}, !p.in_out};
            std::copy_n(p.weight.data() + group * d_in * d_out,
                        back.weight.end() - back.weight.begin(), back.weight.data());
            add(by_x, product(own, back, d_in));
            for_each_index(recorder_.records(bias) ? 1 : 0, [&](std::size_t) {
                sum_over_rows(own.data(), own.shape(1), d_out, by_bias.data() + group * d_out);
            });
            if (!recorder_.records(weight)) continue;
            // G^T x, or x^T G where W is stored as (d_in, d_out).
            const Projection<T> factor{p.in_out ? own : whole, {}, true};
            const Tensor3<T> part =
                p.in_out ? product(whole, factor, d_out)
                         : product(columns_of(gradient, group * d_out, d_out, true), factor, d_in);
            std::copy(part.begin(), part.end(), by_weight.data() + group * d_in * d_out);
        }
        keep_parameter(weight, std::move(by_weight), p.in_out);
        keep_parameter(bias, std::move(by_bias), false);
        return {std::move(by_x), x.shape()};
    }

    Tensor3<T> product(const Tensor3<T>& rows, const Projection<T>& matrix, std::size_t columns) {
        Tensor3<T> result = Tensor3<T>::from_shape({1, rows.shape(1), columns});
        const ProjectionTo<T> to{matrix, 1, {result.data(), result.size(), result.size(), columns}};
        if (rows.shape(1) != 0) attn::project<T>(plan_, rows, std::span(&to, 1), stages_.pool);
        return result;
    }

    template <class Values>
    void keep_parameter(ArrayId gradient, Values values, bool is_transposed) {
        if (!recorder_.records(gradient)) return;
        std::vector<std::size_t> shape(values.shape().begin(), values.shape().end());
        if (recorder_.axes_of(gradient).size() < shape.size()) shape.erase(shape.begin());
        recorder_.keep_as_is(gradient, Array<T>(std::move(values), shape), is_transposed);
    }

    Tensor4<T> project_out_back(const Tensor4<T>& gradient) {
        const auto rows = [](const Tensor4<T>& x) {
            return Tensor3<T>(Tensor4<T>(x), {x.shape(0), x.shape(2), x.shape(3)});
        };
        Tensor3<T> by =
            linear_back(*weights_->out, rows(heads_), rows(gradient), "grad_W_out", "grad_b_out");
        return {std::move(by), heads_.shape()};
    }

    AttentionGradients<T> attend_back(const Tensor4<T>& gradient) {
        if (plan_.config.rule) {
            LinearGradients<T> by = linear_backward(call_, gradient, plan_.has_plain_decay(),
                                                    plan_.normalizes(), stages_.pool);
            record_gate("grad_decay", by.decay);
            record_gate("grad_beta", by.beta);
            record_operand("grad_past_state", by.past_state);
            return by;
        }
        AttentionGradients<T> by =
            attn::attend_backward(plan_, call_, gradient, recorder_, stages_.pool);
        if (recorder_.records("grad_sink")) {
            Array<T> sums = Array<T>::from_shape({plan_.config.sink.size()});
            sums.fill(T{0});
            for_each_index(by.sink.size(), [&](std::size_t h) {
                sums.data()[sums.size() == 1 ? 0 : h] += static_cast<T>(by.sink[h]);
            });
            recorder_.keep_as_is("grad_sink", std::move(sums));
        }
        const std::vector<std::string> masks = additive_masks(plan_.operands);
        for (std::size_t i = 0; i < by.biases.size(); ++i) {
            const OperandRow& mask = *find_row(operand_rows, &OperandRow::key, masks[i]);
            if (const auto id = gradient_by(*find_array(mask.array)))
                record_operand(*id, Array<T>(by.biases[i]));
        }
        return by;
    }

    /// gate_of_heads() back.
    void record_gate(ArrayId gradient, const Tensor4<T>& by) {
        if (!recorder_.records(gradient)) return;
        const bool has_columns_of_heads = plan_.projects || plan_.packed;
        if (!has_columns_of_heads) return record_operand(gradient, by);
        const bool is_shared =
            by.shape(3) == 1 && plan_.operand_shape(gradient.base().row()).back() == 1;
        record_operand(gradient, is_shared ? summed_over_heads(by) : side_by_side(by));
    }

    /// rotate_and_append() back.
    void append_and_rotate_back(AttentionGradients<T>& by) {
        for (const auto& [past, fresh] : {std::pair(ArrayId("grad_past_key"), &by.key),
                                          {ArrayId("grad_past_value"), &by.value}}) {
            if (plan_.past_len == 0) continue;
            record_operand(past, sliced(*fresh, 2, 0, plan_.past_len));
            *fresh = sliced(*fresh, 2, plan_.past_len, fresh->shape(2) - plan_.past_len);
        }
        recorder_.record("grad_queries", by.query);
        recorder_.record("grad_keys", by.key);
        recorder_.record("grad_values", by.value);
        if (plan_.rope.dims == 0) return;
        // The transpose of a rotation is that by the negative angle.
        RopeAngles angles = plan_.rope.angles();
        for (double& frequency : angles.frequencies) frequency = -frequency;
        for_each_index(2, [&](std::size_t i) {
            rotate(i == 0 ? by.query : by.key, plan_.rope.pairs, angles,
                   i == 0 ? plan_.query_positions : plan_.key_positions,
                   plan_.past_len + (i == 0 ? plan_.first_query : 0));
        });
    }

    /// Through the division by lengths, from what `given` holds before it.
    void unit_length_back(const Tensor4<T>& given, Tensor4<T>& by) {
        if (plan_.config.qk_norm)
            to_unit_length_back(given.data(), by.data(), by.size() / by.shape(3), by.shape(3),
                                plan_.config.rule.has_value());
    }

    /// With rows of 0 for the queries that are not computed.
    Tensor4<T> with_all_queries(Tensor4<T> by) {
        if (plan_.rows == plan_.q_len) return by;
        Tensor4<T> all =
            Tensor4<T>::from_shape({by.shape(0), by.shape(1), plan_.q_len, by.shape(3)});
        all.fill(T{0});
        put(all, 2, plan_.first_query, by);
        return all;
    }

    /// Of query, key and value that are given.
    void split_back(AttentionGradients<T>& by) {
        Operands copy;
        for (const OperandId operand : {OperandId("query"), OperandId("key"), OperandId("value")})
            copy[operand] = operands_[operand];
        const AttentionCall<T> given = stages_.split(copy);
        unit_length_back(given.query, by.query);
        unit_length_back(given.key, by.key);
        const auto record = [&](ArrayId gradient, const Tensor4<T>& x) {
            plan_.packed ? record_operand(gradient, side_by_side(x)) : record_operand(gradient, x);
        };
        record("grad_query", with_all_queries(std::move(by.query)));
        record("grad_key", by.key);
        record("grad_value", by.value);
    }

    /// Of inputs, contexts and parameters.
    void project_back(AttentionGradients<T>& by) {
        const Tensor3<T> inputs = as_batch(operands_["inputs"].template take<T>());
        Recorder nothing({}, plan_.shown, plan_.config.dtype);
        const Stages<T> silent{plan_, stages_.pool, nothing};
        const Tensor3<T> x = silent.norm(operands_.norm, inputs);
        const auto take = [&](OperandId operand) {
            RealArray& array = operands_[operand];
            return array.dimension() == 0 ? Tensor3<T>() : as_batch(array.template take<T>());
        };
        const Tensor3<T> context = take("context"), value_input = take("value_input");
        const Tensor3<T>& of_keys = context.size() == 0 ? x : context;
        const Tensor3<T>& of_values = value_input.size() == 0 ? of_keys : value_input;
        undo_norms(by, x, of_keys, of_values);

        by.query = with_all_queries(std::move(by.query));
        Tensor3<T> by_x = through(weights_ == nullptr ? nullptr : &weights_->query, x, by.query,
                                  "grad_W_query", "grad_b_query");
        const Tensor3<T> by_keys = through(weights_ == nullptr ? nullptr : &weights_->key, of_keys,
                                           by.key, "grad_W_key", "grad_b_key"),
                         by_values = through(weights_ == nullptr ? nullptr : &weights_->value,
                                             of_values, by.value, "grad_W_value", "grad_b_value");
        Tensor3<T> by_context;
        add(context.size() == 0 ? by_x : by_context, by_keys);
        if (value_input.size() == 0)
            add(context.size() == 0 ? by_x : by_context, by_values);
        else
            record_operand("grad_value_input", by_values);
        if (context.size() != 0) record_operand("grad_context", by_context);
        if (operands_.norm) {
            const std::size_t d = inputs.shape(2);
            for_each_index(inputs.shape(0) * inputs.shape(1), [&](std::size_t row) {
                normalise_back(*operands_.norm, std::span<const T>(inputs.data() + row * d, d),
                               std::span<T>(by_x.data() + row * d, d));
            });
        }
        recorder_.record("grad_inputs", by_x);
    }

    /// Through the norms of queries and keys, if there are any.
    void undo_norms(AttentionGradients<T>& by, const Tensor3<T>& x, const Tensor3<T>& of_keys,
                    const Tensor3<T>& of_values) {
        const bool has_norms = weights_ != nullptr && (weights_->query_norm || weights_->key_norm);
        Recorder nothing({}, plan_.shown, plan_.config.dtype);
        const Stages<T> silent{plan_, stages_.pool, nothing};
        if (plan_.config.qk_norm) {
            const AttentionCall<T> normed = silent.project(weights_, x, of_keys, &of_values);
            unit_length_back(normed.query, by.query);
            unit_length_back(normed.key, by.key);
        }
        if (!has_norms) return;
        LayerWeights<T> plain = *weights_;
        plain.query_norm.reset();
        plain.key_norm.reset();
        const AttentionCall<T> given = silent.project(&plain, x, of_keys, &of_values);
        normalise_heads_back(weights_->query_norm, given.query, by.query);
        normalise_heads_back(weights_->key_norm, given.key, by.key);
    }

    /// Gradients of tokens' rows from those of their heads.
    Tensor3<T> through(const Projection<T>* projection, const Tensor3<T>& x, const Tensor4<T>& by,
                       ArrayId weight, ArrayId bias) {
        if (projection != nullptr)
            return linear_back(*projection, x, side_by_side(by), weight, bias);
        return plan_.independent_heads() ? summed_over_heads(by) : side_by_side(by);
    }

    const Stages<T>& stages_;
    const Plan& plan_;
    Recorder& recorder_;
    Operands& operands_;
    AttentionCall<T>& call_;
    const Tensor4<T>& heads_;
    const LayerWeights<T>* weights_;
};

}  // namespace

template <class T>
void differentiate(const Stages<T>& stages, KeptForBackward<T>&& kept,
                   const LayerWeights<T>* weights, const Tensor4<T>& context) {
    KeptForBackward<T> own = std::move(kept);
    LayerBackward<T>(stages, own, weights).run(context);
}

template void differentiate(const Stages<float>&, KeptForBackward<float>&&,
                            const LayerWeights<float>*, const Tensor4<float>&);
template void differentiate(const Stages<double>&, KeptForBackward<double>&&,
                            const LayerWeights<double>*, const Tensor4<double>&);

}  // namespace attn
