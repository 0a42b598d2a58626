// @command@
// Computes the same in C99 and compares with attn's numbers: attn help repro
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

typedef @type@ real;
enum { B = @B@, H = @H@, KV_H = @KV_H@, Q = @Q@, PAST = @PAST@, K = @K@, D_K = @D_K@, D_V = @D_V@, D_OUT = @D_OUT@ };

@operands@

static real queries[B][H][Q][D_K], keys[B][KV_H][K][D_K], values[B][KV_H][K][D_V];
static real attention_weights[B][H][Q][K];
@if head_outputs
static real head_outputs[B][H][Q][D_V];
@end
static real context_vectors@extents_of_context@;
@if norm
static real normed_inputs@extents_of_inputs@;
@end
@tolerances_and_expected@
@if any_norm

// Of n numbers; without a mean if it is a root mean square.
static void norm(int n, const real *x, const real *weight, const real *bias, int is_rms,
                 real eps, real *y)
{
    real mean = 0, squares = 0;
    for (int i = 0; i < n && !is_rms; ++i) mean += x[i] / n;
    for (int i = 0; i < n; ++i) squares += (x[i] - mean) * (x[i] - mean);
    const real factor = 1 / sqrt@f@(squares / n + eps);
    for (int i = 0; i < n; ++i)
        y[i] = (x[i] - mean) * factor * weight[i] + (bias ? bias[i] : 0);
}
@end

static void check(const char *name, int rank, const int *shape, const real *got, const real *want,
                  const real *tolerance)
{
    int count = 1, at = 0;
    double error = 0, largest = 0, part = 0;
    for (int axis = 0; axis < rank; ++axis) count *= shape[axis];
    for (; at < count; ++at) {
        error = got[at] == want[at] ? 0 : fabs((double)got[at] - want[at]);
        if (!(error <= tolerance[at])) break; /* also a NaN */
        largest = fmax(largest, error);
        part = fmax(part, error / tolerance[at]);
    }
    if (at == count) {
        printf("ok: %s, largest error %.2e, at most %.2g of a tolerance\n", name, largest, part);
        return;
    }
    fprintf(stderr, "%s [", name);
    for (int axis = 0, step = count; axis < rank; ++axis) {
        step /= shape[axis];
        fprintf(stderr, axis == 0 ? "%d" : ", %d", at / step % shape[axis]);
    }
    fprintf(stderr, "]: %.9g; expected %.9g within %.3g\n", got[at], want[at], tolerance[at]);
    exit(1);
}
@if data_file

static void read_numbers(FILE *data, void *to, size_t bytes)
{
    if (fread(to, 1, bytes, data) == bytes) return;
    fprintf(stderr, "the file of numbers is too short\n");
    exit(2);
}

static FILE *open_numbers(void)
{
    char path[sizeof __FILE__ + 2];
    snprintf(path, sizeof path, "%.*sbin", (int)sizeof __FILE__ - 2, __FILE__);
    FILE *data = fopen(path, "rb");
    if (data != NULL) return data;
    perror(path);
    exit(2);
}
@end

int main(void)
{
@if data_file
    FILE *data = open_numbers();
@reads@
    fclose(data);
@end
@if norm
    for (int b = 0; b < B; ++b)
        for (int t = 0; t < @rows_of_inputs@; ++t)
            norm(@width_of_inputs@, inputs[b][t], @input_norm@, normed_inputs[b][t]);
@end
    for (int b = 0; b < B; ++b)
        for (int h = 0; h < H; ++h)
            for (int t = 0; t < Q; ++t)
                for (int c = 0; c < D_K; ++c) {
@if W_query
                    real sum = @b_query@;
                    for (int i = 0; i < @width_of_query@; ++i) sum += @tokens_of_query@[b][t][i] * @W_query@;
                    queries[b][h][t][c] = sum;
@else
                    queries[b][h][t][c] = @query@;
@end
                }
    for (int b = 0; b < B; ++b)
        for (int h = 0; h < KV_H; ++h)
            for (int t = 0; t < K - PAST; ++t)
                for (int c = 0; c < D_K; ++c) {
@if W_key
                    real sum = @b_key@;
                    for (int i = 0; i < @width_of_key@; ++i) sum += @tokens_of_key@[b][t][i] * @W_key@;
                    keys[b][h][PAST + t][c] = sum;
@else
                    keys[b][h][PAST + t][c] = @key@;
@end
                }
    for (int b = 0; b < B; ++b)
        for (int h = 0; h < KV_H; ++h)
            for (int t = 0; t < K - PAST; ++t)
                for (int c = 0; c < D_V; ++c) {
@if W_value
                    real sum = @b_value@;
                    for (int i = 0; i < @width_of_value@; ++i) sum += @tokens_of_value@[b][t][i] * @W_value@;
                    values[b][h][PAST + t][c] = sum;
@else
                    values[b][h][PAST + t][c] = @value@;
@end
                }
@if query_norm
    for (int b = 0; b < B; ++b)
@if query_norm_spans_all_heads
        for (int t = 0; t < Q; ++t) {
            real merged[H * D_K];
            for (int h = 0; h < H; ++h)
                for (int c = 0; c < D_K; ++c) merged[h * D_K + c] = queries[b][h][t][c];
            norm(H * D_K, merged, @query_norm@, merged);
            for (int h = 0; h < H; ++h)
                for (int c = 0; c < D_K; ++c) queries[b][h][t][c] = merged[h * D_K + c];
        }
@else
        for (int t = 0; t < Q; ++t)
            for (int h = 0; h < H; ++h)
                norm(D_K, queries[b][h][t], @query_norm@, queries[b][h][t]);
@end
@end
@if key_norm
    for (int b = 0; b < B; ++b)
@if key_norm_spans_all_heads
        for (int t = 0; t < K - PAST; ++t) {
            real merged[KV_H * D_K];
            for (int h = 0; h < KV_H; ++h)
                for (int c = 0; c < D_K; ++c) merged[h * D_K + c] = keys[b][h][PAST + t][c];
            norm(KV_H * D_K, merged, @key_norm@, merged);
            for (int h = 0; h < KV_H; ++h)
                for (int c = 0; c < D_K; ++c) keys[b][h][PAST + t][c] = merged[h * D_K + c];
        }
@else
        for (int t = 0; t < K - PAST; ++t)
            for (int h = 0; h < KV_H; ++h)
                norm(D_K, keys[b][h][PAST + t], @key_norm@, keys[b][h][PAST + t]);
@end
@end
@if qk_norm
    for (int b = 0; b < B; ++b)
        for (int t = 0; t < Q; ++t)
            for (int h = 0; h < H; ++h)
            {
                real squares = 0, *x = queries[b][h][t];
                for (int c = 0; c < D_K; ++c) squares += x[c] * x[c];
                for (int c = 0; c < D_K; ++c) x[c] /= sqrt@f@(squares + (real)1e-06);
            }
    for (int b = 0; b < B; ++b)
        for (int t = 0; t < K - PAST; ++t)
            for (int h = 0; h < KV_H; ++h)
            {
                real squares = 0, *x = keys[b][h][PAST + t];
                for (int c = 0; c < D_K; ++c) squares += x[c] * x[c];
                for (int c = 0; c < D_K; ++c) x[c] /= sqrt@f@(squares + (real)1e-06);
            }
@end
@if rotate
    for (int n = 0; n < @pairs@; ++n) {  // pairs (a, b) of the columns, by the angle position * frequency
        double frequency = pow(@rope_base@, -2.0 * n / @rope_dims@);
@if rope_linear
        frequency /= @rope_factor@;
@end
@if rope_by_parts
        const double turns = frequency * @rope_length@ / (2 * acos(-1.0));
        const double kept = fmin(fmax((turns - @rope_low@) / (@rope_high@ - @rope_low@), 0), 1);
        frequency = (1 - kept) * frequency / @rope_factor@ + kept * frequency;
@end
        for (int b = 0; b < B; ++b)
            for (int h = 0; h < H; ++h)
                for (int t = 0; t < Q; ++t) {
                    const double angle = (PAST + t) * frequency;
                    real *x = queries[b][h][t], a = x[@first_of_pair@], b_ = x[@second_of_pair@];
                    const real c = (real)cos(angle), s = (real)sin(angle);
                    x[@first_of_pair@] = a * c - b_ * s, x[@second_of_pair@] = a * s + b_ * c;
                }
        for (int b = 0; b < B; ++b)
            for (int h = 0; h < KV_H; ++h)
                for (int t = PAST; t < K; ++t) {
                    const double angle = t * frequency;
                    real *x = keys[b][h][t], a = x[@first_of_pair@], b_ = x[@second_of_pair@];
                    const real c = (real)cos(angle), s = (real)sin(angle);
                    x[@first_of_pair@] = a * c - b_ * s, x[@second_of_pair@] = a * s + b_ * c;
                }
    }
@end
@if append_cache
    for (int b = 0; b < B; ++b)
        for (int h = 0; h < KV_H; ++h)
            for (int t = 0; t < PAST; ++t)
                for (int c = 0; c < D_K; ++c) keys[b][h][t][c] = past_key[b][h][t][c];
    for (int b = 0; b < B; ++b)
        for (int h = 0; h < KV_H; ++h)
            for (int t = 0; t < PAST; ++t)
                for (int c = 0; c < D_V; ++c) values[b][h][t][c] = past_value[b][h][t][c];
@end
@if product
@if offsets
    static const int offset[] = {@offsets@};  // from a query to its position among the keys
@end
@if kv_lengths
    static const int kv_lengths[] = {@kv_lengths@};
@end
@if sinks
    static const real sinks[] = {@sinks@};
@end
    for (int b = 0; b < B; ++b)
        for (int h = 0; h < H; ++h)
            for (int i = 0; i < Q; ++i) {
                const int g = h / (H / KV_H);  // the key head
@if positions
                const int p = i + offset[@sequence_of_offset@];
@end
                real scores[K], *weights = attention_weights[b][h][i];
                for (int j = 0; j < K; ++j) {
                    scores[j] = 0;
                    for (int c = 0; c < D_K; ++c) scores[j] += queries[b][h][i][c] * keys[b][g][j][c];
                }
@if scale
@if divides_by_root
                for (int j = 0; j < K; ++j) scores[j] /= sqrt@f@(D_K);
@else
                for (int j = 0; j < K; ++j) scores[j] *= @scale@;
@end
@end
@if softcap
                for (int j = 0; j < K; ++j) scores[j] = @softcap@ * tanh@f@(scores[j] / @softcap@);
@end
@if alibi
@if alibi_slopes
                static const real slopes[H] = {@alibi_slopes@};
@end
                const real slope = @slope@;
                for (int j = 0; j < K; ++j) scores[j] += slope * (j - p);
@end
@add_masks@
@if masks_before_softmax
                for (int j = 0; j < K; ++j)
                    if (!(@rules@)) scores[j] = -INFINITY;
@end
                real row_max = @least_row_max@, total = 0;
                for (int j = 0; j < K; ++j) row_max = fmax@f@(row_max, scores[j]);
@if row_may_be_empty
                if (row_max == -INFINITY) row_max = 0;  // no key: weights 0
@end
@if sinks
                total = exp@f@(@sink@ - row_max);
@end
                for (int j = 0; j < K; ++j) total += weights[j] = exp@f@(scores[j] - row_max);
@if row_may_be_empty
                for (int j = 0; j < K; ++j) weights[j] /= total == 0 ? 1 : total;
@else
                for (int j = 0; j < K; ++j) weights[j] /= total;
@end
@if renormalize
@if rules
                for (int j = 0; j < K; ++j)
                    if (!(@rules@)) weights[j] = 0;
@end
                total = 0;
                for (int j = 0; j < K; ++j) total += weights[j];
@if masked_rows
                for (int j = 0; j < K; ++j) weights[j] /= total == 0 ? 1 : total;
@else
                for (int j = 0; j < K; ++j) weights[j] /= total;
@end
@end
@if drop
                for (int j = 0; j < K; ++j) weights[j] *= @dropout_kept@ * @kept_weight@;
@end
                for (int c = 0; c < D_V; ++c) {
                    @heads@[b][h][i][c] = 0;
                    for (int j = 0; j < K; ++j) @heads@[b][h][i][c] += weights[j] * values[b][g][j][c];
                }
            }
@end
@if recurrence
    for (int b = 0; b < B; ++b)
        for (int g = 0; g < KV_H; ++g) {
            real state[D_K][D_V];
            for (int i = 0; i < D_K; ++i)
                for (int c = 0; c < D_V; ++c) state[i][c] = @first_state@;
            for (int t = 0; t < Q; ++t) {
                const real *k = keys[b][g][t], *v = values[b][g][t];
@if decay
                for (int i = 0; i < D_K; ++i)
                    for (int c = 0; c < D_V; ++c)
                        state[i][c] *= exp@f@(decay[b][g][t][@column_of_decay@]);
@end
                for (int c = 0; c < D_V; ++c) {
                    real written = v[c];
@if beta
                    for (int i = 0; i < D_K; ++i) written -= k[i] * state[i][c];
                    written *= beta[b][g][t][0];
@end
                    for (int i = 0; i < D_K; ++i) state[i][c] += k[i] * written;
                }
                for (int h = g * (H / KV_H); h < (g + 1) * (H / KV_H); ++h)
                    for (int c = 0; c < D_V; ++c) {
                        real output = 0;
                        for (int i = 0; i < D_K; ++i) output += queries[b][h][t][i] * state[i][c];
                        @heads@[b][h][t][c] = @scale@ * output;
                    }
            }
        }
    // The factor of the value of token s in the output of token t.
    for (int b = 0; b < B; ++b)
        for (int h = 0; h < H; ++h)
            for (int t = 0; t < Q; ++t) {
                const int g = h / (H / KV_H);  // the key head
                real r[D_K];
                for (int i = 0; i < D_K; ++i) r[i] = queries[b][h][t][i];
                for (int s = t; s >= 0; --s) {
                    real w = 0;
                    for (int i = 0; i < D_K; ++i) w += r[i] * keys[b][g][s][i];
@if beta
                    w *= beta[b][g][s][0];
@end
                    attention_weights[b][h][t][s] = @scale@ * w;
@if beta
                    for (int i = 0; i < D_K; ++i) r[i] -= w * keys[b][g][s][i];
@end
@if decay
                    for (int i = 0; i < D_K; ++i) r[i] *= exp@f@(decay[b][g][s][@column_of_decay@]);
@end
                }
            }
@end
@if merge_heads
@if !project_out
    for (int b = 0; b < B; ++b)
        for (int h = 0; h < H; ++h)
            for (int i = 0; i < Q; ++i)
                for (int c = 0; c < D_V; ++c)
                    context_vectors[b][0][i][h * D_V + c] = head_outputs[b][h][i][c];
@end
@end
@if project_out
    for (int b = 0; b < B; ++b)
        for (int i = 0; i < Q; ++i)
            for (int o = 0; o < D_OUT; ++o) {
                real sum = @b_out@;
                for (int h = 0; h < H; ++h)
                    for (int c = 0; c < D_V; ++c)
                        sum += head_outputs[b][h][i][c] * @W_out@;
                context_vectors[b][0][i][o] = sum;
            }
@end
@checks@
    return 0;
}
