@# Gradients, after the program of attention.py: by autograd in PyTorch, explicitly in NumPy.
@# Backward pass of y = x W^T + b: gradients of x, W and b.
@def linear_back to grad x W b
@let source $x
@if grouped.$W: @let source $x[..., None, :, :]
@if in_out.$W: grad_$W = (@source@.swapaxes(-2, -1) @ $grad).reshape(-1, *$W.shape).sum(0)
@if !in_out.$W: grad_$W = ($grad.swapaxes(-2, -1) @ @source@).reshape(-1, *$W.shape).sum(0)
@if $b: grad_$b = $grad.sum(-2).reshape(-1, *$b.shape).sum(0)
@let y $grad @ $W
@if in_out.$W: @let y $grad @ $W.swapaxes(-2, -1)
@if grouped.$W: @let y (@y@).sum(-3)
$to = @y@
@end
@def project_back by tokens x W b
@if splits !takes_heads: $by = $by.swapaxes(-3, -2).reshape(@batch_axis@$tokens, -1)
@if $W: @linear_back $by $by $x $W $b
@if !$W grouped: $by = $by.sum(-3)
@end
@def norm_back by x norm
@let is_rms False
@if rms.$norm: @let is_rms True
$by = norm_back($x, $by, $norm_weight, @eps.$norm@, @is_rms@)
@end
@def norm_heads_back by x tokens heads norm
@if spans_all_heads.$norm
$by, $x = (x.swapaxes(-3, -2).reshape(@batch_axis@$tokens, -1) for x in ($by, $x))
@norm_back $by $x $norm
$by = split($by, $heads)
@else
@norm_back $by $x $norm
@end
@end
@# Sums over the query heads of each key head.
@def of_key_heads grad
$grad = $grad.reshape(@batch_axis@@KV_H@, @H/KV_H@, *$grad.shape[-2:]).sum(-3)
@end
@def softmax_back
grad_attention_weights = grad_head_outputs @ values.swapaxes(-2, -1)
grad_values = attention_weights.swapaxes(-2, -1) @ grad_head_outputs
@if !drop: grad_weights_before_dropout = grad_attention_weights
@if drop: grad_weights_before_dropout = grad_attention_weights * dropout_kept * @kept_weight@
@let by_weights grad_weights_before_dropout
@let weights @result@
@if prob_mod
@let weights softmax_weights
@let by_weights by_weights
softmax_weights, weight = weight, np.where(weight == 0, 1, weight)  # whose derivative may be infinite at 0
by_weights = grad_weights_before_dropout * @prob_mod_slope@
@end
# Masked keys have weights of 0.
row_sums = (@weights@ * @by_weights@).sum(-1, keepdims=True)
by_scores = @weights@ * (@by_weights@ - row_sums)
@if grad_sink
@if renormalize: grad_sink = np.zeros(sink.size)
@if !renormalize
by_sink = -np.exp(sink - row_max) / @total@ * row_sums
@if many_sinks: grad_sink = by_sink.reshape(-1, @H@, @Q@).sum((0, 2))
@if !many_sinks: grad_sink = by_sink.sum().reshape(1)
@end
@end
@if additive_masks

def broadcast_back(x, shape):  # sums over the axes along which this shape broadcasts
    return x.sum(tuple(axis for axis, size in enumerate(shape) if size == 1), keepdims=True)

@end
@for mask in @additive_masks@
grad_$mask = broadcast_back(by_scores, $mask.shape)
@end
@if score_mod: by_scores = np.where(by_scores == 0, 0, by_scores * @score_mod_slope@)
grad_capped_scores = by_scores
@if softcap: by_scores = by_scores * (1 - np.tanh(@scaled@ / @softcap@) ** 2)
grad_scaled_scores = by_scores
@if scales
@if divides_by_root !head_scales: by_scores = by_scores / math.sqrt(@D_K@)
@if head_scales: by_scores = by_scores * np.array([@head_scales@], dtype=@real@)@of_heads@
@if !divides_by_root !head_scales: by_scores = by_scores * @scale@
@end
grad_scores = by_scores
grad_queries = grad_scores @ keys
grad_keys = grad_scores.swapaxes(-2, -1) @ queries
@end
@# Each query head has a state of its own here.
@def linear_attention_back
@let of_head
@let of_columns .sum(-1)
@if decay: @if one_column.decay: @let of_columns .sum((-2, -1))[..., None]
@if shares_keys
@let of_head .repeat(@H/KV_H@, -3)
values = values.repeat(@H/KV_H@, -3)
@end
@let decayed before
@if decay: @let decayed factor * before
grad_queries, grad_keys, grad_values = np.zeros_like(queries), np.zeros_like(keys), np.zeros_like(values)
@if decay: grad_decay = np.zeros_like(decay)
@if beta: grad_beta = np.zeros_like(beta)
by_state = np.zeros_like(state@of_head@)
for t in reversed(range(@Q@)):
    q, k, v, before = queries[..., t, :, None], keys[..., t, :, None], values[..., t, None, :], states[t]@of_head@
    by_output = @scale@ * grad_head_outputs[..., t, None, :]
    @if decay !decay_plain: factor = np.exp(decay[..., t, :, None])
    @if decay decay_plain: factor = decay[..., t, :, None]
    @if beta: rate = beta[..., t, :, None]
    @if beta: rest = v - k.swapaxes(-2, -1) @ (@decayed@)
    @if beta: written = rate * rest
    @if !beta: written = v
    @if !bonus: grad_queries[..., t, :] = ((@decayed@ + k * written) * by_output).sum(-1)
    @if !bonus: by_state = by_state + q * by_output
    by_written = k.swapaxes(-2, -1) @ by_state
    grad_keys[..., t, :] = (by_state * written).sum(-1)
@if beta
    grad_values[..., t, :] = (rate * by_written)[..., 0, :]
    grad_beta[..., t, :] = (by_written * rest).sum(-1)
    grad_keys[..., t, :] -= (@decayed@ * (rate * by_written)).sum(-1)
    by_state = by_state - k * (rate * by_written)
@else
    grad_values[..., t, :] = by_written[..., 0, :]
@end
    @if decay decay_plain: grad_decay[..., t, :] = (by_state * before)@of_columns@
    @if decay !decay_plain: grad_decay[..., t, :] = (factor * by_state * before)@of_columns@
    @if decay: by_state = factor * by_state
@if bonus
    own = bonus[..., :, None]
    grad_queries[..., t, :] = ((before + own * k * v) * by_output).sum(-1)
    grad_keys[..., t, :] += (own * q * by_output * v).sum(-1)
    grad_values[..., t, :] += (own * q * k).sum(-2) * by_output[..., 0, :]
    by_state = by_state + q * by_output
@end
@if past_state: grad_past_state = by_state
@for x in decay beta past_state
@if shares_keys $x: @of_key_heads grad_$x
@end
@end

@if backward

@if loss_sum: loss = context_vectors.sum().reshape(1)
@if loss_mean: loss = context_vectors.mean().reshape(1)
@if loss_mse: loss = ((context_vectors - target) ** 2).mean().reshape(1)
@if torch
for x in (@heads@, attention_weights, rotated_queries, rotated_keys, own_values):
    x.retain_grad()
@if !linear
for x in (scores, @scaled@, @capped@, @result@):
    x.retain_grad()
@end
@if loss: loss.backward()
@if !loss: context_vectors.backward(grad_output)
@grad_leaves@ = (x.grad for x in leaves)
grad_head_outputs = @heads@.grad
grad_queries, grad_keys, grad_values = rotated_queries.grad, rotated_keys.grad, own_values.grad
@if !linear
grad_attention_weights, grad_weights_before_dropout = attention_weights.grad, @result@.grad
grad_scores, grad_scaled_scores, grad_capped_scores = scores.grad, @scaled@.grad, @capped@.grad
@if grad_sink: grad_sink = sinks.grad
@end
@else
@if loss_sum: grad_output = np.ones_like(context_vectors)
@if loss_mean: grad_output = np.full_like(context_vectors, 1 / context_vectors.size)
@if loss_mse: grad_output = 2 * (context_vectors - target) / context_vectors.size
grad_head_outputs = grad_output
@if W_out: @linear_back grad_head_outputs grad_head_outputs @x@ W_out b_out
@if merge_heads: grad_head_outputs = grad_head_outputs.reshape(@batch_axis@@Q@, @H@, -1).swapaxes(-3, -2)
@if linear: @linear_attention_back
@if !linear: @softmax_back
@if shares_keys: @of_key_heads grad_keys
@if shares_keys: @of_key_heads grad_values
@if append_cache
grad_past_key, grad_keys = grad_keys[..., :@PAST@, :], grad_keys[..., @PAST@:, :]
grad_past_value, grad_values = grad_values[..., :@PAST@, :], grad_values[..., @PAST@:, :]
@end
by_queries, by_keys, by_values = grad_queries, grad_keys, grad_values
@if rotate
by_queries, by_keys = rotate(by_queries, -@query_positions@), rotate(by_keys, -@key_positions@)
@end
@if qk_norm
@for x in queries keys
@if linear: length = np.sqrt((long_$x ** 2).sum(-1, keepdims=True) + 1e-6)
@if !linear: length = np.maximum(np.sqrt((long_$x ** 2).sum(-1, keepdims=True)), 1e-12)
unit = long_$x / length
by_$x = (by_$x - unit * (unit * by_$x).sum(-1, keepdims=True)) / length
@end
@end
@if any_norm

def norm_back(x, grad, weight, eps, is_rms):  # gradient of x from that of its norm
    if not is_rms: x = x - x.mean(-1, keepdims=True)
    factor = 1 / np.sqrt((x ** 2).mean(-1, keepdims=True) + eps)
    grad = grad * weight * factor
    if not is_rms: grad = grad - grad.mean(-1, keepdims=True)
    return grad - x * factor ** 2 * (grad * x).mean(-1, keepdims=True)

@end
@if query_norm: @norm_heads_back by_queries given_queries @Q@ @H@ query_norm
@if key_norm: @norm_heads_back by_keys given_keys @K-PAST@ @KV_H@ key_norm
@project_back by_queries @Q@ @source_of_queries@ W_query b_query
@project_back by_keys @K-PAST@ @source_of_keys@ W_key b_key
@project_back by_values @K-PAST@ @source_of_values@ W_value b_value
@if grad_inputs
@let by_inputs by_queries
@let by_context by_keys
@if !grad_context: @append by_inputs + by_keys
@if !grad_context !grad_value_input: @append by_inputs + by_values
@if !grad_value_input: @append by_context + by_values
grad_inputs = @by_inputs@
@if norm: @norm_back grad_inputs inputs norm
@if grad_context: grad_context = @by_context@
@if grad_value_input: grad_value_input = by_values
@else
grad_query, grad_key, grad_value = by_queries, by_keys, by_values
@end
@end
@for x in decay beta
@if grad_$x: @if shared.grad_$x: grad_$x = grad_$x.sum(-3, @keep@)
@end
@for x in @gradients@
@check $x
@end
@end
