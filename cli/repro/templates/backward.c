@# An explicit backward pass, for attention.c. Rows of keys and values are the new ones, without a cache.

@# Adds the gradient of x, from that of the heads x W^T + b, to that of other uses of x.
@def project_back by x count width W b
@indices_of $W
    for (int b = 0; b < B; ++b)
        for (int h = 0; h < $count; ++h)
            for (int t = 0; t < @rows@; ++t)
                for (int c = 0; c < $width; ++c) {
                    const real by = $by[b][h][t][c];
@if $W
                    for (int i = 0; i < @width.$W@; ++i) {
                        grad_$W@weight@ += by * $x[b][t][i];
                        grad_@given@[b][t][i] += by * $W@weight@;
                    }
                    @if $b: grad_$b[@head@][@column@] += by;
@else
                    grad_@given@@index@ += by;
@end
                }
@end
@def norm_heads_back by given count norm
@norm_arguments $norm
@if spans_all_heads.$norm
    for (int b = 0; b < B; ++b)
        for (int t = 0; t < @rows@; ++t) {
            real x[$count * D_K], by[$count * D_K];
            for (int h = 0; h < $count; ++h)
                for (int c = 0; c < D_K; ++c) {
                    x[h * D_K + c] = $given[b][h][@row@][c];
                    by[h * D_K + c] = $by[b][h][t][c];
                }
            norm_back($count * D_K, x, $norm_weight, @is_rms@, (real)@eps.$norm@, by);
            for (int h = 0; h < $count; ++h)
                for (int c = 0; c < D_K; ++c) $by[b][h][t][c] = by[h * D_K + c];
        }
@else
    for (int b = 0; b < B; ++b)
        for (int h = 0; h < $count; ++h)
            for (int t = 0; t < @rows@; ++t)
                norm_back(D_K, $given[b][h][@row@], $norm_weight, @is_rms@, (real)@eps.$norm@, $by[b][h][t]);
@end
@end
@def unit_back by given count
    for (int b = 0; b < B; ++b)
        for (int h = 0; h < $count; ++h)
            for (int t = 0; t < @rows@; ++t) {
                real squares = 0, along = 0, *by = $by[b][h][t], *x = $given[b][h][@row@];
                for (int c = 0; c < D_K; ++c) squares += x[c] * x[c], along += x[c] * by[c];
                const real length = fmax@f@(sqrt@f@(squares), (real)1e-12);
                for (int c = 0; c < D_K; ++c) by[c] = (by[c] - x[c] / length * (along / length)) / length;
            }
@end
@def backward_arrays
static real by_all_keys[B][KV_H][K][D_K], by_all_values[B][KV_H][K][D_V];
static real by_queries[B][H][Q][D_K], by_keys[B][KV_H][K - PAST][D_K], by_values[B][KV_H][K - PAST][D_V];
static real softmax_weights[B][H][Q][K];
@if softcap: static real uncapped_scores[B][H][Q][K];
@if score_mod: static real unmodified_scores[B][H][Q][K];
@if grad_sink !renormalize: static real sink_weights[B][H][Q];
@if any_norm: static real given_queries[B][H][Q][D_K], given_keys[B][KV_H][K][D_K];
@if qk_norm: static real long_queries[B][H][Q][D_K], long_keys[B][KV_H][K][D_K];
@if norm: static real grad_normed_inputs@extents.inputs@;
@if !grad_output: static real grad_output@extents.context_vectors@;
@for x in @gradients@
static real $x@extents.$x@;
@end
@end
@def norm_back_function

// Backward pass of the norm: the gradient of its result becomes that of x, in place.
static void norm_back(int n, const real *x, const real *weight, int is_rms, real eps, real *by)
{
    real mean = 0, squares = 0, sum = 0, along = 0;
    for (int i = 0; i < n && !is_rms; ++i) mean += x[i] / n;
    for (int i = 0; i < n; ++i) squares += (x[i] - mean) * (x[i] - mean);
    const real factor = 1 / sqrt@f@(squares / n + eps);
    for (int i = 0; i < n; ++i) {
        by[i] *= weight[i] * factor;
        sum += by[i] / n;
        along += by[i] * (x[i] - mean) / n;
    }
    for (int i = 0; i < n; ++i) by[i] -= (is_rms ? 0 : sum) + (x[i] - mean) * factor * factor * along;
}
@end
@# Query i of a head: its scores' gradients, and what they add to those of keys and values.
@def softmax_back
    for (int b = 0; b < B; ++b)
        for (int h = 0; h < H; ++h)
            for (int i = 0; i < Q; ++i) {
                const int g = h / (H / KV_H);
@if positions
                const int p = i + offset[@sequence@];
                (void)p;
@end
                const real *weights = softmax_weights[b][h][i], *by_output = grad_head_outputs[b][h][i];
                real by[K], sum = 0;
                for (int j = 0; j < K; ++j) {
                    by[j] = 0;
                    for (int c = 0; c < D_V; ++c) {
                        by[j] += by_output[c] * values[b][g][j][c];
                        by_all_values[b][g][j][c] += attention_weights[b][h][i][j] * by_output[c];
                    }
                    grad_attention_weights[b][h][i][j] = by[j];
                    @if drop: by[j] *= dropout_kept@element.dropout_kept@ * (real)@kept_weight@;
                    grad_weights_before_dropout[b][h][i][j] = by[j];
                    @if prob_mod: by[j] = weights[j] == 0 ? 0 : by[j] * @prob_mod_slope@;
                    sum += weights[j] * by[j];
                }
@if grad_sink !renormalize
@let of_head 0
@if many_sinks: @let of_head h
                grad_sink[@of_head@] -= sink_weights[b][h][i] * sum;
@end
                @if score_mod: const real *scores = unmodified_scores[b][h][i];
                @if score_mod: (void)scores;
                for (int j = 0; j < K; ++j) {
                    real by_score = weights[j] * (by[j] - sum);  // 0 where a key is masked
@for mask in @additive_masks@
                    grad_$mask@element.$mask@ += by_score;
@end
                    @if score_mod: by_score = by_score == 0 ? 0 : by_score * @score_mod_slope@;
                    grad_capped_scores[b][h][i][j] = by_score;
@if softcap
                    const real part = tanh@f@(uncapped_scores[b][h][i][j] / (real)@softcap@);
                    by_score *= 1 - part * part;
@end
                    grad_scaled_scores[b][h][i][j] = by_score;
                    @if head_scales: by_score *= (const real[]){@head_scales@}[h];
                    @if scales !head_scales divides_by_root: by_score /= sqrt@f@(D_K);
                    @if scales !head_scales !divides_by_root: by_score *= (real)@scale@;
                    grad_scores[b][h][i][j] = by_score;
                    for (int c = 0; c < D_K; ++c) {
                        grad_queries[b][h][i][c] += by_score * keys[b][g][j][c];
                        by_all_keys[b][g][j][c] += by_score * queries[b][h][i][c];
                    }
                }
            }
@end
@def backward
@if loss
    const int count = sizeof context_vectors / sizeof(real);
    const real *output = (const real *)context_vectors;
    real *by_output = (real *)grad_output;
    double total_loss = 0;
    for (int n = 0; n < count; ++n) {
@if loss_mse
        const real difference = output[n] - ((const real *)target)[n];
        total_loss += (double)difference * difference / count;
        by_output[n] = 2 * difference / count;
@end
        @if loss_sum: total_loss += output[n], by_output[n] = 1;
        @if loss_mean: total_loss += (double)output[n] / count, by_output[n] = (real)1 / count;
    }
    loss[0] = (real)total_loss;
@end
@if W_out
@let out_weight [0][o][h * D_V + c]
@if in_out.W_out: @let out_weight [0][h * D_V + c][o]
    for (int b = 0; b < B; ++b)
        for (int i = 0; i < Q; ++i)
            for (int o = 0; o < D_OUT; ++o) {
                const real by = grad_output[b][0][i][o];
                @if b_out: grad_b_out[0][o] += by;
                for (int h = 0; h < H; ++h)
                    for (int c = 0; c < D_V; ++c) {
                        grad_W_out@out_weight@ += by * head_outputs[b][h][i][c];
                        grad_head_outputs[b][h][i][c] += by * W_out@out_weight@;
                    }
            }
@else
@let output_index [b][h][i][c]
@if merge_heads: @let output_index [b][0][i][h * D_V + c]
    for (int b = 0; b < B; ++b)
        for (int h = 0; h < H; ++h)
            for (int i = 0; i < Q; ++i)
                for (int c = 0; c < D_V; ++c)
                    grad_head_outputs[b][h][i][c] = grad_output@output_index@;
@end
@softmax_back
    memcpy(by_queries, grad_queries, sizeof by_queries);
    for (int b = 0; b < B; ++b)
        for (int h = 0; h < KV_H; ++h)
            for (int t = 0; t < K; ++t) {
@if append_cache
                if (t < PAST) {
                    memcpy(grad_past_key[b][h][t], by_all_keys[b][h][t], sizeof by_all_keys[b][h][t]);
                    memcpy(grad_past_value[b][h][t], by_all_values[b][h][t], sizeof by_all_values[b][h][t]);
                    continue;
                }
@end
                memcpy(by_keys[b][h][t - PAST], by_all_keys[b][h][t], sizeof by_all_keys[b][h][t]);
                memcpy(by_values[b][h][t - PAST], by_all_values[b][h][t], sizeof by_all_values[b][h][t]);
            }
    memcpy(grad_keys, by_keys, sizeof by_keys);
    memcpy(grad_values, by_values, sizeof by_values);
@if rotate
@let key_first 0
@let key_rows K - PAST
@let query_position -(PAST + t)
@let key_position -(PAST + t)
@rotate_all by_queries by_keys
@end
@let row t
@let rows Q
@if qk_norm: @unit_back by_queries long_queries H
@if query_norm: @norm_heads_back by_queries given_queries H query_norm
@let given @source_of_queries@
@let column h * D_K + c
@if one_head: @let column c
@project_back by_queries @source_of_queries@ H D_K W_query b_query
@let row PAST + t
@let rows K - PAST
@if qk_norm: @unit_back by_keys long_keys KV_H
@if key_norm: @norm_heads_back by_keys given_keys KV_H key_norm
@let given @source_of_keys@
@let column h * D_K + c
@project_back by_keys @source_of_keys@ KV_H D_K W_key b_key
@let given @source_of_values@
@let column h * D_V + c
@project_back by_values @source_of_values@ KV_H D_V W_value b_value
@if norm
    memcpy(grad_inputs, grad_normed_inputs, sizeof grad_inputs);
@norm_arguments norm
    for (int b = 0; b < B; ++b)
        for (int t = 0; t < Q; ++t)
            norm_back(@D_IN@, inputs[b][t], norm_weight, @is_rms@, (real)@eps.norm@, grad_inputs[b][t]);
@end
@for x in @gradients@
    check("$x", @rank.$x@, (const int[]){@shape.$x@}, (const real *)$x, (const real *)expected_$x,
          $x_tolerance, 1);
@end
@end
