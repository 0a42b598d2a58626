@# A program in C99 with loops over all axes: (batch, heads, rows, columns), of size 1 where the
@# question has none. The steps on scores are in one loop over (b, h, i): batch, head and query.

@let f
@let type double
@if float32: @let f f
@if float32: @let type float

@def array name from
@let type real
@if boolean.$from: @let type unsigned char
@if data_file: static @type@ $name@extents.$from@;
@if !data_file
static const @type@ $name@extents.$from@ =
    @literal.$from@;
@end
@end

@# The arguments of a norm after x.
@def norm_arguments norm
@let bias NULL
@if $norm_bias: @let bias $norm_bias
@let is_rms 0
@if rms.$norm: @let is_rms 1
@let arguments $norm_weight, @bias@, @is_rms@, (real)@eps.$norm@
@end

@# Where column c of head h is, in x without W and in W.
@def indices_of W
@let head 0
@if grouped: @let head h
@if grouped: @let column c
@let index [b][t][@column@]
@if takes_heads: @let index [b][h][t][c]
@let weight [@head@][@column@][i]
@if $W: @if in_out.$W: @let weight [@head@][i][@column@]
@end

@# Element (b, h, row, c) of heads, for @rows@ rows: from x by W and b, or x itself. Columns of all
@# heads are together, but for a grouped W.
@def project heads x count width W b
@indices_of $W
@let first 0
@if $b: @let first $b[@head@][@column@]
    for (int b = 0; b < B; ++b)
        for (int h = 0; h < $count; ++h)
            for (int t = 0; t < @rows@; ++t)
                for (int c = 0; c < $width; ++c) {
@if $W
                    real sum = @first@;
                    for (int i = 0; i < @width.$W@; ++i) sum += $x[b][t][i] * $W@weight@;
                    $heads[b][h][@row@][c] = sum;
@else
                    $heads[b][h][@row@][c] = $x@index@;
@end
                }
@end

@def norm_heads heads count norm
@norm_arguments $norm
    for (int b = 0; b < B; ++b)
@if spans_all_heads.$norm
        for (int t = 0; t < @rows@; ++t) {
            real merged[$count * D_K];
            for (int h = 0; h < $count; ++h)
                for (int c = 0; c < D_K; ++c) merged[h * D_K + c] = $heads[b][h][@row@][c];
            norm($count * D_K, merged, @arguments@, merged);
            for (int h = 0; h < $count; ++h)
                for (int c = 0; c < D_K; ++c) $heads[b][h][@row@][c] = merged[h * D_K + c];
        }
@else
        for (int t = 0; t < @rows@; ++t)
            for (int h = 0; h < $count; ++h)
                norm(D_K, $heads[b][h][@row@], @arguments@, $heads[b][h][@row@]);
@end
@end

@def unit heads count
    for (int b = 0; b < B; ++b)
        for (int t = 0; t < @rows@; ++t)
            for (int h = 0; h < $count; ++h)
            {
                real squares = 0, *x = $heads[b][h][@row@];
                for (int c = 0; c < D_K; ++c) squares += x[c] * x[c];
                @if linear: for (int c = 0; c < D_K; ++c) x[c] /= sqrt@f@(squares + (real)1e-06);
                @if !linear: for (int c = 0; c < D_K; ++c) x[c] /= fmax@f@(sqrt@f@(squares), (real)1e-12);
            }
@end

@# Rows @first@ to @rows@ of heads, whose position is @position@.
@def rotate heads count
        for (int b = 0; b < B; ++b)
            for (int h = 0; h < $count; ++h)
                for (int t = @first@; t < @rows@; ++t) {
                    const double angle = @position@ * frequency;
                    real *x = $heads[b][h][t], a = x[@a@], b_ = x[@b@];
                    const real c = (real)(cos(angle)@times@), s = (real)(sin(angle)@times@);
                    x[@a@] = a * c - b_ * s, x[@b@] = a * s + b_ * c;
                }
@end

@def rotate_all queries keys
    for (int n = 0; n < @pairs@; ++n) {  // pairs (a, b) of the columns, by the angle position * frequency
@if frequencies
        static const double frequencies[] = {@frequencies@};
        const double frequency = frequencies[n];
@else
        const double frequency = pow(@rope_base@, -2.0 * n / @rope_dims@);
@end
@let first 0
@let rows Q
@let position @query_position@
@rotate $queries H
@let first @key_first@
@let rows @key_rows@
@let position @key_position@
@rotate $keys KV_H
    }
@end

@# Sets rules to the condition of a key j that query i may attend to.
@def rules
@let rules
@for mask in @boolean_masks@
@if keeps_true: @append rules && $mask@element.$mask@
@if !keeps_true: @append rules && !$mask@element.$mask@
@end
@if causal: @append rules && j <= p
@if mask_formula: @append rules && @mask_formula@
@if keys_before: @append rules && p - @keys_before@ <= j
@if keys_after: @append rules && j <= p + @keys_after@
@if many_kv_lengths: @append rules && j < kv_lengths[b]
@if kv_lengths !many_kv_lengths: @append rules && j < kv_lengths[0]
@end

@def check name
    check("$name", @rank.$name@, (const int[]){@shape.$name@}, &$name[0][0][0][0],
          &expected_$name[0][0][0][0], &$name_tolerance[0][0][0][0]@each@);
@end

// @command@
// Computes the same in C99 and compares with attn's numbers: attn help repro
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
@if backward: #include <string.h>

typedef @type@ real;
enum { B = @B@, H = @H@, KV_H = @KV_H@, Q = @Q@, PAST = @PAST@, K = @K@, D_K = @D_K@, D_V = @D_V@, D_OUT = @D_OUT@ };

@for x in @operands@
@array $x $x
@end

static real queries[B][H][Q][D_K], keys[B][KV_H][K][D_K], values[B][KV_H][K][D_V];
static real attention_weights[B][H][Q][K];
@if merge_heads: @once static real head_outputs[B][H][Q][D_V];
@if W_out: @once static real head_outputs[B][H][Q][D_V];
static real context_vectors@extents.context_vectors@;
@if norm: static real normed_inputs@extents.inputs@;
@if backward: @backward_arrays
@for x in @compared@
@array $x_tolerance $x_tolerance
@end
@for x in @compared@
@array expected_$x $x
@end
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
@if backward any_norm: @norm_back_function
@if remainders

// With the divisor's sign.
static double remainder_of(double x, double y)
{
    const double rest = fmod(x, y);
    return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
}
@end
@if divides

static double floor_quotient(double x, double y)
{
    return y == 0 ? x / y : rint((x - remainder_of(x, y)) / y);
}
@end

@let of_all
@let each
@let tolerance tolerance[at]
@if backward: @let of_all , int of_all
@if backward: @let each , 0
@if backward: @let tolerance tolerance[of_all ? 0 : at]
static void check(const char *name, int rank, const int *shape, const real *got, const real *want,
                  const real *tolerance@of_all@)
{
    int count = 1, at = 0;
    double error = 0, largest = 0, part = 0;
    for (int axis = 0; axis < rank; ++axis) count *= shape[axis];
    for (; at < count; ++at) {
        error = got[at] == want[at] ? 0 : fabs((double)got[at] - want[at]);
        if (!(error <= @tolerance@)) break; /* also a NaN */
        largest = fmax(largest, error);
        part = fmax(part, error / @tolerance@);
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
    fprintf(stderr, "]: %.9g; expected %.9g within %.3g\n", got[at], want[at], @tolerance@);
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
@for x in @operands@
    read_numbers(data, $x, sizeof $x);
@end
@for x in @compared@
    read_numbers(data, $x_tolerance, sizeof $x_tolerance);
@end
@for x in @compared@
    read_numbers(data, expected_$x, sizeof expected_$x);
@end
    fclose(data);
@end
@if norm
@norm_arguments norm
    for (int b = 0; b < B; ++b)
        for (int t = 0; t < @Q@; ++t)
            norm(@D_IN@, inputs[b][t], @arguments@, normed_inputs[b][t]);
@end
@let row t
@let rows Q
@let column h * D_K + c
@if one_head: @let column c
@project queries @source_of_queries@ H D_K W_query b_query
@let row PAST + t
@let rows K - PAST
@let column h * D_K + c
@project keys @source_of_keys@ KV_H D_K W_key b_key
@let column h * D_V + c
@project values @source_of_values@ KV_H D_V W_value b_value
@let row t
@let rows Q
@if backward any_norm
    memcpy(given_queries, queries, sizeof queries);
    memcpy(given_keys, keys, sizeof keys);
@end
@if query_norm: @norm_heads queries H query_norm
@let row PAST + t
@let rows K - PAST
@if key_norm: @norm_heads keys KV_H key_norm
@if qk_norm
    @if backward: memcpy(long_queries, queries, sizeof queries);
    @if backward: memcpy(long_keys, keys, sizeof keys);
@let row t
@let rows Q
@unit queries H
@let row PAST + t
@let rows K - PAST
@unit keys KV_H
@end
@if rotate
@let a 2 * n
@let b 2 * n + 1
@if rope_half: @let a n
@if rope_half: @let b n + @pairs@
@let key_first PAST
@let key_rows K
@let query_position (PAST + t)
@let key_position t
@rotate_all queries keys
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
@if !linear
    @if positions: static const int offset[] = {@offsets@};  // from a query to its position among the keys
    @lets@
    @if kv_lengths: static const int kv_lengths[] = {@kv_lengths@};
@let sink sinks[0]
@if many_sinks: @let sink sinks[h]
    @if sinks: static const real sinks[] = {@sinks@};
    for (int b = 0; b < B; ++b)
        for (int h = 0; h < H; ++h)
            for (int i = 0; i < Q; ++i) {
                const int g = h / (H / KV_H);  // the key head
@if positions
@let sequence 0
@if many_offsets: @let sequence b
                const int p = i + offset[@sequence@];
@end
                real scores[K], *weights = attention_weights[b][h][i];
                for (int j = 0; j < K; ++j) {
                    scores[j] = 0;
                    for (int c = 0; c < D_K; ++c) scores[j] += queries[b][h][i][c] * keys[b][g][j][c];
                }
                @if head_scales: static const real scales[H] = {@head_scales@};
                @if head_scales: for (int j = 0; j < K; ++j) scores[j] *= scales[h];
                @if scales !head_scales divides_by_root: for (int j = 0; j < K; ++j) scores[j] /= sqrt@f@(D_K);
                @if scales !head_scales !divides_by_root: for (int j = 0; j < K; ++j) scores[j] *= (real)@scale@;
                @if softcap backward: memcpy(uncapped_scores[b][h][i], scores, sizeof scores);
                @if softcap: for (int j = 0; j < K; ++j) scores[j] = (real)@softcap@ * tanh@f@(scores[j] / (real)@softcap@);
@if alibi
@if alibi_slopes
                static const real slopes[H] = {@alibi_slopes@};
@let slope slopes[h]
@else
@let slope pow@f@(2, (real)-8 * (h + 1) / H)
@if other_heads: @let slope h < @first_heads@ ? pow@f@(2, (real)-8 * (h + 1) / @first_heads@) : pow@f@(2, (real)-8 * (2 * (h - @first_heads@) + 1) / @other_heads@)
@end
@let distance (j < p ? j - p : p - j)
@if alibi_signed: @let distance (j - p)
                const real slope = @slope@;
                for (int j = 0; j < K; ++j) scores[j] += slope * @distance@;
@end
    @if relative_bias:             for (int j = 0; j < K; ++j) scores[j] = @relative_bias@;
                @if score_mod backward: memcpy(unmodified_scores[b][h][i], scores, sizeof scores);
    @if score_mod:             for (int j = 0; j < K; ++j) scores[j] = @score_mod@;
@for mask in @additive_masks@
                for (int j = 0; j < K; ++j) scores[j] += $mask@element.$mask@;
@end
@rules
@let least_row_max -INFINITY
@if sinks: @let least_row_max @sink@
@if has_rules !renormalize
                for (int j = 0; j < K; ++j)
                    if (!(@rules@)) scores[j] = -INFINITY;
@end
                real row_max = @least_row_max@, total = 0;
                for (int j = 0; j < K; ++j) row_max = fmax@f@(row_max, scores[j]);
                @if masked_rows !sinks: if (row_max == -INFINITY) row_max = 0;  // no key: weights 0
                @if sinks: total = exp@f@(@sink@ - row_max);
                for (int j = 0; j < K; ++j) total += weights[j] = exp@f@(scores[j] - row_max);
@if masked_rows !sinks
                for (int j = 0; j < K; ++j) weights[j] /= total == 0 ? 1 : total;
@else
                for (int j = 0; j < K; ++j) weights[j] /= total;
@end
                @if grad_sink !renormalize: sink_weights[b][h][i] = exp@f@(@sink@ - row_max) / total;
@if renormalize
@if has_rules
                for (int j = 0; j < K; ++j)
                    if (!(@rules@)) weights[j] = 0;
@end
                total = 0;
                for (int j = 0; j < K; ++j) total += weights[j];
                @if masked_rows: for (int j = 0; j < K; ++j) weights[j] /= total == 0 ? 1 : total;
                @if !masked_rows: for (int j = 0; j < K; ++j) weights[j] /= total;
@end
                @if backward: memcpy(softmax_weights[b][h][i], weights, sizeof scores);
@if prob_mod
                for (int j = 0; j < K; ++j) weights[j] = @prob_mod@;
@if has_rules
                for (int j = 0; j < K; ++j)
                    if (!(@rules@)) weights[j] = 0;
@end
@for mask in @additive_masks@
                for (int j = 0; j < K; ++j)
                    if ($mask@element.$mask@ == -INFINITY) weights[j] = 0;
@end
@end
@if drop
                for (int j = 0; j < K; ++j) weights[j] *= dropout_kept@element.dropout_kept@ * (real)@kept_weight@;
@end
                for (int c = 0; c < D_V; ++c) {
                    @heads@[b][h][i][c] = 0;
                    for (int j = 0; j < K; ++j) @heads@[b][h][i][c] += weights[j] * values[b][g][j][c];
                }
            }
@end
@# The outputs of all query heads at token t.
@def read_state
                for (int h = g * (H / KV_H); h < (g + 1) * (H / KV_H); ++h)
                    for (int c = 0; c < D_V; ++c) {
                        real output = 0;
                        for (int i = 0; i < D_K; ++i) output += queries[b][h][t][i] * @read@;
                        @heads@[b][h][t][c] = (real)@scale@ * output;
                    }
@end
@if linear
@let exp exp@f@
@if decay_plain: @let exp
@let read state[i][c]
@if bonus: @let read (state[i][c] + bonus[g][i] * k[i] * v[c])
@let of_own
@let earlier
@if bonus: @let of_own  * (s == t ? bonus[g][i] : 1)
@if bonus: @let earlier if (s < t) 
@let first_state 0
@if past_state: @let first_state past_state[b][g][i][c]
@let column i
@if decay: @if one_column.decay: @let column 0
    for (int b = 0; b < B; ++b)
        for (int g = 0; g < KV_H; ++g) {
            real state[D_K][D_V];
            for (int i = 0; i < D_K; ++i)
                for (int c = 0; c < D_V; ++c) state[i][c] = @first_state@;
            for (int t = 0; t < Q; ++t) {
                const real *k = keys[b][g][t], *v = values[b][g][t];
                @if bonus: @read_state
@if decay
                for (int i = 0; i < D_K; ++i)
                    for (int c = 0; c < D_V; ++c)
                        state[i][c] *= @exp@(decay[b][g][t][@column@]);
@end
                for (int c = 0; c < D_V; ++c) {
                    real written = v[c];
@if beta
                    for (int i = 0; i < D_K; ++i) written -= k[i] * state[i][c];
                    written *= beta[b][g][t][0];
@end
                    for (int i = 0; i < D_K; ++i) state[i][c] += k[i] * written;
                }
                @if !bonus: @read_state
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
                    for (int i = 0; i < D_K; ++i) w += r[i] * keys[b][g][s][i]@of_own@;
                    @if beta: w *= beta[b][g][s][0];
                    attention_weights[b][h][t][s] = (real)@scale@ * w;
                    @if beta: for (int i = 0; i < D_K; ++i) r[i] -= w * keys[b][g][s][i];
                    @if decay: @earlier@for (int i = 0; i < D_K; ++i) r[i] *= @exp@(decay[b][g][s][@column@]);
                }
            }
@end
@if merge_heads !W_out
    for (int b = 0; b < B; ++b)
        for (int h = 0; h < H; ++h)
            for (int i = 0; i < Q; ++i)
                for (int c = 0; c < D_V; ++c)
                    context_vectors[b][0][i][h * D_V + c] = head_outputs[b][h][i][c];
@end
@if W_out
@let first 0
@if b_out: @let first b_out[0][o]
@let weight W_out[0][o][h * D_V + c]
@if in_out.W_out: @let weight W_out[0][h * D_V + c][o]
    for (int b = 0; b < B; ++b)
        for (int i = 0; i < Q; ++i)
            for (int o = 0; o < D_OUT; ++o) {
                real sum = @first@;
                for (int h = 0; h < H; ++h)
                    for (int c = 0; c < D_V; ++c)
                        sum += head_outputs[b][h][i][c] * @weight@;
                context_vectors[b][0][i][o] = sum;
            }
@end
@check attention_weights
@check context_vectors
@if backward: @backward
    return 0;
}
