@# A program in NumPy, or in PyTorch with its own functions where they compute the same.

@if torch
@let library PyTorch
@let np torch
@let array torch.tensor
@let bool torch.bool
@let keep keepdim=True
@let max amax
@let swap transpose
@let join torch.cat
@let repeat repeat_interleave
@let copy clone
@let to to
@else
@let library NumPy
@let np np
@let array np.array
@let bool bool
@let keep keepdims=True
@let max max
@let swap swapaxes
@let join np.concatenate
@let repeat repeat
@let copy copy
@let to astype
@end
@let real @np@.@dtype@
@let as_real .@to@(@real@)
@let of_batch .reshape(-1, 1, 1)
@let of_heads
@if heads_axis: @let of_batch .reshape(-1, 1, 1, 1)
@if heads_axis: @let of_heads .reshape(-1, 1, 1)
@# Whether scaled_dot_product_attention computes the same. Some backends take the root of the scale.
@let operator
@if torch !backward !score_formulas !prob_mod scale_is_positive !linear !softcap !sinks !renormalize !drop !masked_rows: @let operator yes
@# Whether flex_attention computes the same: its functions see one query, one key and their score.
@let flex
@if torch !backward formulas !prob_mod !relative_bias !softcap !alibi !additive_masks !boolean_masks !head_scales !kv_lengths !many_offsets !sinks !renormalize !drop: @let flex yes

@def normed to x norm
@if torch
@let bias None
@if $norm_bias: @let bias $norm_bias
@if rms.$norm: $to = F.rms_norm($x, (@width.$norm@,), $norm_weight, @eps.$norm@)
@if !rms.$norm: $to = F.layer_norm($x, (@width.$norm@,), $norm_weight, @bias@, @eps.$norm@)
@else
@if rms.$norm
$to = $x / np.sqrt(($x ** 2).mean(-1, keepdims=True) + @eps.$norm@) * $norm_weight
@else
@let bias
@if $norm_bias: @let bias  + $norm_bias
centred = $x - $x.mean(-1, keepdims=True)
$to = centred / np.sqrt((centred ** 2).mean(-1, keepdims=True) + @eps.$norm@) * $norm_weight@bias@
@end
@end
@end

@# Sets y to x W^T + b. A grouped W has matrices of each head.
@def projected x W b
@let w $W
@if grouped.$W
@if !in_out.$W: @let w $W.@swap@(-2, -1)
@let y $x[..., None, :, :] @ @w@
@if $b: @append y + $b[:, None]
@else
@if torch
@if in_out.$W: @let w $W.T
@let y F.linear($x, @w@)
@if $b: @let y F.linear($x, @w@, $b)
@else
@if !in_out.$W: @let w $W.T
@let y $x @ @w@
@if $b: @append y + $b
@end
@end
@end

@def project to x heads W b
@let y $x
@if $W: @projected $x $W $b
@if !$W grouped: @let y $x[..., None, :, :].@repeat@($heads, -3)
@if splits: $to = split(@y@, $heads)
@if !splits: $to = @y@
@end

@def norm_heads x tokens heads norm
@if spans_all_heads.$norm
merged = $x.@swap@(-3, -2).reshape(@batch_axis@$tokens, -1)
@normed merged merged $norm
$x = split(merged, $heads)
@else
@normed $x $x $norm
@end
@end

@# A masked key has a gradient of 0, also by a formula whose slope is infinite.
@def own_slope x
$x = $x.clone()
$x.register_hook(lambda grad: grad.nan_to_num(0, math.inf, -math.inf))
@end

@# Sets weights to the softmax of scores.
@def softmax
@let by_library
@if torch !sinks: @let by_library yes
@if backward masked_rows: @let by_library
@if by_library
@let weights F.softmax(@scores@, -1)
@if masked_rows: @let weights F.softmax(@scores@, -1).nan_to_num(0)
@else
@let constant
@if torch backward: @let constant .detach()
row_max = @scores@.@max@(-1, @keep@)@constant@
@let total exp_scores.sum(-1, @keep@)
@if sinks
@if torch backward: sinks = @array@([@sinks@], dtype=@real@, requires_grad=True)
@if torch backward: sink = sinks@of_heads@
@if torch !backward: sink = @array@([@sinks@], dtype=@real@)@of_heads@
@if !torch: sink = @array@([@sinks@], dtype=@real@)@of_heads@
row_max = @np@.maximum(row_max, sink)@constant@
@let total (exp_scores.sum(-1, @keep@) + @np@.exp(sink - row_max))
@end
@if masked_rows !sinks: row_max = row_max.clip(min=@np@.finfo(@real@).min)
exp_scores = @np@.exp(@scores@ - row_max)
@if masked_rows !sinks
# The sum is at least 1, but 0 of a query with no key, whose weights are 0.
@let total exp_scores.sum(-1, @keep@).clip(min=1)
@end
@let weights exp_scores / @total@
@end
@end

@def check name
@array expected $name
@array tolerance $name_tolerance
check("$name", $name, expected, tolerance)
@end

@# Sets y to the heads' outputs, by functions whose names are those of the formulas.
@def flex_outputs
@let block_mask None
@let score_function None
@if has_rules
@let block_mask block_mask

def mask_mod(entry, head, p, j):
    @if offset: p = p@offset@
    return @allowed@

block_mask = create_block_mask(mask_mod, @B@, @H@, @Q@, @K@, device="cpu")
@end
@if score_mod
@let score_function score_mod

def score_mod(score, entry, head, p, j):
    @if offset: p = p@offset@
    return @score_mod@

@end
flex_outputs = flex_attention(
    queries.reshape(@B@, @H@, @Q@, @D_K@), keys.reshape(@B@, @H@, @K@, @D_K@),
    values.reshape(@B@, @H@, @K@, @D_V@), score_mod=@score_function@, block_mask=@block_mask@, scale=@scale@)
@let y flex_outputs.reshape(@batch_axis@@heads_axis@@Q@, @D_V@)
@end

@def mask_by_rules
attn_mask = torch.where(@allowed@, attn_mask, -math.inf)
@end

@header
@if torch
import torch
import torch.nn.functional as F
@if flex: from torch.nn.attention.flex_attention import create_block_mask, flex_attention
@end

@operands
@check_function
@if torch backward
leaves = @leaves@
for x in leaves: x.requires_grad_()
@end
@if norm: @normed normed_inputs inputs norm
@let splits
@if heads_axis !grouped: @let splits yes
@if takes_heads
queries = query
keys = key
values = value
@else
@if splits
@if norm

@end
def split(x, heads):  # (..., tokens, heads * d) to (..., heads, tokens, d)
    return x.reshape(*x.shape[:-1], heads, -1).@swap@(-3, -2)

@end
@project queries @source_of_queries@ @H@ W_query b_query
@project keys @source_of_keys@ @KV_H@ W_key b_key
@project values @source_of_values@ @KV_H@ W_value b_value
@end
@if backward any_norm !torch: given_queries, given_keys = queries, keys
@if query_norm: @norm_heads queries @Q@ @H@ query_norm
@if key_norm: @norm_heads keys @K-PAST@ @KV_H@ key_norm
@if qk_norm
@if backward !torch: long_queries, long_keys = queries, keys
@for x in queries keys
@if linear: $x = $x / @np@.sqrt(($x ** 2).sum(-1, @keep@) + 1e-6)
@if !linear torch: $x = F.normalize($x, dim=-1)
@if !linear !torch: $x = $x / np.maximum(np.sqrt(($x ** 2).sum(-1, @keep@)), 1e-12)
@end
@end
@if rotate
@frequencies
@let first [..., 0:@rope_dims@:2]
@let second [..., 1:@rope_dims@:2]
@if rope_half: @let first [..., :@pairs@]
@if rope_half: @let second [..., @pairs@:@rope_dims@]

def rotate(x, positions):  # pairs (a, b) of the columns, by the angle position * frequency
    angles = positions@of_axes@ * frequencies
    a, b, cos, sin = x@first@, x@second@, @np@.cos(angles)@times@, @np@.sin(angles)@times@
    y = x.@copy@()
    y@first@, y@second@ = a * cos - b * sin, a * sin + b * cos
    return y

queries = rotate(queries, @query_positions@)
keys = rotate(keys, @key_positions@)
@end
@if torch backward
rotated_queries, rotated_keys, own_values = queries.clone(), keys.clone(), values.clone()
queries, keys, values = rotated_queries, rotated_keys, own_values
@end
@if append_cache
keys = @join@([past_key, keys], -2)
values = @join@([past_value, values], -2)
@end
@if operator
@let mask_argument , is_causal=True
@if alibi: @let mask_argument
@if additive_masks: @let mask_argument
@if !only_causal: @let mask_argument
@if !mask_argument
@operator_mask
@if bias: @let mask_argument , attn_mask=attn_mask
@end
@let sharing
@if shares_keys: @let sharing , enable_gqa=True
@heads@ = F.scaled_dot_product_attention(
    queries, keys, values@mask_argument@, scale=@scale@@sharing@)
@end
@if !operator !linear
@if shares_keys: keys, values = keys.@repeat@(@H/KV_H@, -3), values.@repeat@(@H/KV_H@, -3)
@step scores scores = queries @ keys.@swap@(-2, -1)
@if scales
@if divides_by_root !head_scales: scaled_scores = scores / math.sqrt(@D_K@)
@if head_scales: scaled_scores = scores * @array@([@head_scales@], dtype=@real@)@of_heads@
@if !divides_by_root !head_scales: scaled_scores = scores * @scale@
@let scores scaled_scores
@end
@let scaled @scores@
@if softcap: @step scores capped_scores = @softcap@ * @np@.tanh(@scores@ / @softcap@)
@let capped @scores@
@if alibi
@slopes
@step scores alibi_scores = @scores@ + slopes * @distance@@as_real@
@end
@for formula in @score_formulas@
@formula_names
score = @scores@
@if torch backward: @own_slope score
@if rounded: @step scores $formula_scores = (@$formula@)@as_real@
@if !rounded: @step scores $formula_scores = @$formula@
@end
@if additive_masks
@for mask in @additive_masks@
@append scores + $mask
@end
@step scores biased_scores = @scores@
@end
@if has_rules
@rules
allowed = @allowed@
@if !renormalize: @step scores biased_scores = @np@.where(allowed, @scores@, -math.inf)
@end
@softmax
@let result attention_weights
@if drop: @let result weights_before_dropout
@if renormalize
@step weights unmasked_weights = @weights@
@if has_rules: @step weights masked_weights = @np@.where(allowed, unmasked_weights, 0)
@let total @weights@.sum(-1, @keep@)
@if masked_rows
total = @total@
@let total @np@.where(total == 0, 1, total)
@end
@result@ = @weights@ / @total@
@else
@result@ = @weights@
@end
@if prob_mod
@formula_names
weight = @result@
@if torch backward: @own_slope weight
@if rounded: @result@ = (@prob_mod@)@as_real@
@if !rounded: @result@ = @prob_mod@
@if has_rules: @result@ = @np@.where(allowed, @result@, 0)
@for mask in @additive_masks@
@result@ = @np@.where($mask == -math.inf, 0, @result@)
@end
@end
@if drop: attention_weights = weights_before_dropout * dropout_kept * @kept_weight@
@let y attention_weights @ values
@if flex: @flex_outputs
@heads@ = @y@
@end
@if linear
@if past_state: state = past_state
@if !past_state: state = @np@.zeros((@batch_axis@@kv_heads_axis@@D_K@, @D_V@), dtype=@real@)
outputs = []
@if backward !torch: states = []
for t in range(@Q@):
    @if backward !torch: states.append(state)
    q, k, v = queries[..., t, None, :], keys[..., t, :, None], values[..., t, None, :]
    @if bonus: read = state + bonus[..., :, None] * k * v
    @if decay !decay_plain: state = @np@.exp(decay[..., t, :, None]) * state
    @if decay decay_plain: state = decay[..., t, :, None] * state
    @if beta: v = beta[..., t, :, None] * (v - k.@swap@(-2, -1) @ state)
    @step of_head state = state + k * v
@if bonus: @let of_head read
@if shares_keys: @let of_head @of_head@.@repeat@(@H/KV_H@, -3)
    outputs.append(@scale@ * (q @ @of_head@))
@heads@ = @join@(outputs, -2)

# The factor of the value of token s in the output of token t.
@if shares_keys
keys = keys.@repeat@(@H/KV_H@, -3)
@if decay: decay = decay.@repeat@(@H/KV_H@, -3)
@if beta: beta = beta.@repeat@(@H/KV_H@, -3)
@if bonus: bonus = bonus.@repeat@(@H/KV_H@, -2)
@end
@let of_beta
@if beta: @let of_beta  * beta[..., s, :]
attention_weights = @np@.zeros((@batch_axis@@heads_axis@@Q@, @Q@), dtype=@real@)
for t in range(@Q@):
    r = queries[..., t, :]
    for s in range(t, -1, -1):
        @if bonus: k = keys[..., s, :] * (bonus if s == t else 1)
        @if bonus: w = (r * k).sum(-1, @keep@)
        @if !bonus: w = (r * keys[..., s, :]).sum(-1, @keep@)@of_beta@
        attention_weights[..., t, s] = @scale@ * w[..., 0]
        @if beta: r = r - w * keys[..., s, :]
        @if decay: @let factor @np@.exp(decay[..., s, :])
        @if decay decay_plain: @let factor decay[..., s, :]
        @if bonus decay: r = r * (@factor@ if s < t else 1)
        @if !bonus decay: r = r * @factor@

@if normalize
# RetNet divides row t by max(sqrt(sum of its decays), |sum of its weights|).
total, totals = @np@.zeros((1,), dtype=@real@), []
for t in range(@Q@):
    @if decay: total = @np@.exp(decay[..., t, :]) * total
    total = total + 1
    totals.append(total)
divisor = @np@.maximum(@np@.sqrt(@np@.stack(totals, -2)), abs(attention_weights.sum(-1, @keep@)))
attention_weights, @heads@ = attention_weights / divisor, @heads@ / divisor
@end
@end
@if merge_heads: context_vectors = head_outputs.@swap@(-3, -2).reshape(@batch_axis@@Q@, @H*D_V@)
@if W_out
@let x head_outputs
@if merge_heads: @let x context_vectors
@if merge_heads backward: @step x joined_heads = context_vectors
@projected @x@ W_out b_out
context_vectors = @y@
@end
@if !operator: @check attention_weights
@check context_vectors
