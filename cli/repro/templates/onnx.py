@# A program around a model of ONNX operators in ONNX's text form. All arrays of heads are (batch,
@# heads, rows, columns), with sizes of 1 where the question has no axis. NumPy computes masks, alibi
@# and the tables of rotations, which are inputs of the model, as in exported models.
@#
@# Attention, RotaryEmbedding and the norms are ONNX's own operators in float32. In float64 they are
@# made of others: the first two have no float64 form in onnxruntime, and the attributes `scale` and
@# `epsilon` are float32 in each.

@let library NumPy
@let np np
@let array np.array
@let bool bool
@let real np.@dtype@
@let as_real .astype(@real@)
@let batch_axis yes
@let of_batch .reshape(-1, 1, 1, 1)
@let torch
@let of_heads .reshape(-1, 1, 1)
@let real_type double
@if float32: @let real_type float
@# Whether Attention computes the same. Its text puts the soft cap after the mask in some versions
@# and before it in others, runtimes take the root of the scale, and a query with no key gives NaN.
@let masks @additive_masks@
@if has_rules: @let masks rules
@if alibi: @let masks alibi
@let operator
@if float32 !score_mod !prob_mod scale_is_positive !linear !sinks !renormalize !drop !masked_rows
@if !softcap: @let operator Attention
@if !masks: @let operator Attention
@end
@# Where a cache shifts the queries, versions of the operator differ in what is causal.
@let is_causal
@if only_causal !additive_masks !alibi !append_cache: @let is_causal 1
@# What the model takes. Masks and a first state may be a part of other arrays.
@for x in @operands@
@let fed.$x $x
@end
@for x in past_state @boolean_masks@
@let fed.$x
@end
@if operator
@for x in @additive_masks@
@let fed.$x
@end
@end
@let feeds
@for x in @operands@
@let feeds @feeds@ @fed.$x@
@end

@def number name value
    @once $name = Constant <value = @real_type@ {$value}> ()
@end

@def integer n
    @once i_$n = Constant <value_ints = [$n]> ()
@end

@def shape a b c d
    @once i_$a_$b_$c_$d = Constant <value_ints = [$a, $b, $c, $d]> ()
@end

@# $x normed over its last axis.
@def normed to x norm
@if float32
@let arguments $x, $norm_weight
@if $norm_bias: @let arguments $x, $norm_weight, $norm_bias
@let operation LayerNormalization
@if rms.$norm: @let operation RMSNormalization
    $to = @operation@ <axis = -1, epsilon = @eps_attribute.$norm@> (@arguments@)
@else
    @once axes_last = Constant <value_ints = [-1]> ()
@let deviation $x
@if !rms.$norm
    $to_mean = ReduceMean ($x, axes_last)
    @step deviation $to_deviation = Sub ($x, $to_mean)
@end
    $to_squares = Mul (@deviation@, @deviation@)
    $to_variance = ReduceMean ($to_squares, axes_last)
@number $norm_eps @eps.$norm@
    $to_shifted = Add ($to_variance, $norm_eps)
    $to_root = Sqrt ($to_shifted)
    $to_unit = Div (@deviation@, $to_root)
@if $norm_bias
    $to_scaled = Mul ($to_unit, $norm_weight)
    $to = Add ($to_scaled, $norm_bias)
@else
    $to = Mul ($to_unit, $norm_weight)
@end
@end
@end

@# x W^T + b of tokens (batch, rows, columns); grouped: (batch, heads, rows, columns).
@def multiply to x W b
@let w $W
@let tokens $x
@let b $b
@let product $to
@if $b: @let product $to_product
@if !in_out.$W
@let axes 1, 0
@if grouped.$W: @let axes 0, 2, 1
    @step w $W_transposed = Transpose <perm = [@axes@]> ($W)
@end
@if grouped.$W
@integer 1
    @step tokens $to_tokens = Unsqueeze ($x, i_1)
@end
    @product@ = MatMul (@tokens@, @w@)
@if $b
    @if grouped.$W: @step b $b_rows = Unsqueeze ($b, i_1)
    $to = Add ($to_product, @b@)
@end
@end

@# (batch, rows, count * width) to (batch, count, rows, width); one: count is 1.
@def split to x count rows width one
@if $one
@integer 1
    $to = Unsqueeze ($x, i_1)
@else
@shape @B@ $rows $count $width
    $to_rows = Reshape ($x, i_@B@_$rows_$count_$width)
    $to = Transpose <perm = [0, 2, 1, 3]> ($to_rows)
@end
@end

@def merge to x rows merged one
@if $one
@integer 1
    $to = Squeeze ($x, i_1)
@else
    $to_by_token = Transpose <perm = [0, 2, 1, 3]> ($x)
    @once i_@B@_$rows_$merged = Constant <value_ints = [@B@, $rows, $merged]> ()
    $to = Reshape ($to_by_token, i_@B@_$rows_$merged)
@end
@end

@# The projection of tokens x, or x itself, as heads.
@def project to x W b count rows width one
@if grouped
@if $W
@multiply $to $x $W $b
@else
@integer 1
    $to_tokens = Unsqueeze ($x, i_1)
@shape @B@ $count $rows $width
    $to = Expand ($to_tokens, i_@B@_$count_$rows_$width)
@end
@else
@if $W
@multiply $to_merged $x $W $b
@split $to $to_merged $count $rows $width $one
@else
@split $to $x $count $rows $width $one
@end
@end
@end

@def norm_heads x norm count rows width merged one
@if spans_all_heads.$norm
@merge merged_$x $x $rows $merged $one
@normed normed_$x_merged merged_$x $norm
@split normed_$x normed_$x_merged $count $rows $width $one
@else
@normed normed_$x $x $norm
@end
@end

@def unit x
    $x_squares = Mul ($x, $x)
@integer 3
    $x_sum = ReduceSum ($x_squares, i_3)
@if linear
@number tiny 1e-06
    $x_shifted = Add ($x_sum, tiny)
    $x_length = Sqrt ($x_shifted)
@else
@number least 1e-12
    $x_norm = Sqrt ($x_sum)
    $x_length = Max ($x_norm, least)
@end
    unit_$x = Div ($x, $x_length)
@end

@# name is x before other steps.
@def rotate name x
@if float32
@let pairs 1
@if rope_half: @let pairs 0
    rotated_$name = RotaryEmbedding <interleaved = @pairs@, rotary_embedding_dim = @rope_dims@>
        ($x, cos_cache, sin_cache, positions_of_$name)
@else
    swapped_$name = MatMul ($x, swap)
    $name_by_cos = Mul ($x, cos_of_$name)
    $name_by_sin = Mul (swapped_$name, sin_of_$name)
    rotated_$name = Add ($name_by_cos, $name_by_sin)
@end
@end

@# Each head of keys for all query heads that share it.
@def repeat to x width
@integer 2
    $to_single = Unsqueeze ($x, i_2)
    @once i_@B@_@KV_H@_@H/KV_H@_@K@_$width = Constant <value_ints = [@B@, @KV_H@, @H/KV_H@, @K@, $width]> ()
    $to_copies = Expand ($to_single, i_@B@_@KV_H@_@H/KV_H@_@K@_$width)
@shape @B@ @H@ @K@ $width
    $to = Reshape ($to_copies, i_@B@_@H@_@K@_$width)
@end

@def check name
@array expected $name
@array tolerance $name_tolerance
check("$name", $name.reshape(expected.shape), expected, tolerance)
@end

@def mask_by_rules
attn_mask = np.where(@allowed@, attn_mask, -math.inf)@as_real@
@end

@header
import onnx.checker
import onnx.parser

@operands
@check_function
@if rotate
@frequencies
angles = np.arange(@max(PAST+Q,K)@)[:, None] * frequencies  # (positions, pairs)
@if float32
cos_cache, sin_cache = (np.cos(angles)@times@)@as_real@, (np.sin(angles)@times@)@as_real@
positions_of_queries = np.tile(np.arange(@PAST@, @PAST+Q@), (@B@, 1))
positions_of_keys = np.tile(np.arange(@PAST@, @K@), (@B@, 1))
@let feeds @feeds@ cos_cache sin_cache positions_of_queries positions_of_keys
@else
# x * cos + (x @ swap) * sin; in float64 RotaryEmbedding has no form.
@if rope_half
first = np.arange(@pairs@)
second = first + @pairs@
@else
first = np.arange(@pairs@) * 2
second = first + 1
@end
cos, sin, swap = np.ones((@max(PAST+Q,K)@, @D_K@)), np.zeros((@max(PAST+Q,K)@, @D_K@)), np.zeros((@D_K@, @D_K@))
cos[:, first], sin[:, first] = np.cos(angles)@times@, np.sin(angles)@times@
cos[:, second], sin[:, second] = np.cos(angles)@times@, np.sin(angles)@times@
swap[second, first], swap[first, second] = -1, 1
cos_of_queries, sin_of_queries = cos[@PAST@:@PAST+Q@], sin[@PAST@:@PAST+Q@]
cos_of_keys, sin_of_keys = cos[@PAST@:@K@], sin[@PAST@:@K@]
@let feeds @feeds@ swap cos_of_queries sin_of_queries cos_of_keys sin_of_keys
@end
@end
@let attn_mask
@if operator !is_causal
@operator_mask
@if bias
shape = np.broadcast_shapes(attn_mask.shape, (@Q@, @K@))
@step attn_mask attn_mask = np.ascontiguousarray(np.broadcast_to(attn_mask, shape))
@end
@end
@if !operator !linear
@if head_scales
scale = np.array([@head_scales@], dtype=@real@)@of_heads@
@let feeds @feeds@ scale
@end
@if alibi
@slopes
alibi = slopes * @distance@@as_real@
@let feeds @feeds@ alibi
@end
@if has_rules
@rules
allowed = @allowed@
@let feeds @feeds@ allowed
@end
@if score_mod
@formula_names
@arrays.score@
@let feeds @feeds@@inputs.score@
@end
@if prob_mod
@formula_names
@arrays.weight@
@let feeds @feeds@@inputs.weight@
@end
@if sinks
# One more column of scores, without values.
sink = np.zeros((@B@, @H@, @Q@, 1), dtype=@real@) + np.array([@sinks@], dtype=@real@)@of_heads@
@let feeds @feeds@ sink
@end
@end
@if linear
# The weights are the outputs of values that are unit vectors.
units = np.zeros((@B@, @KV_H@, @Q@, @Q@), dtype=@real@) + np.eye(@Q@, dtype=@real@)
@if past_state: state = np.concatenate([past_state, np.zeros((@B@, @KV_H@, @D_K@, @Q@), dtype=@real@)], -1)
@if !past_state: state = np.zeros((@B@, @KV_H@, @D_K@, @D_V+Q@), dtype=@real@)
@let feeds @feeds@ units state
@end

feeds = {
@for x in @feeds@ @attn_mask@
    "$x": $x,
@end
}
@let context @full.context_vectors@
@if merge_heads: @let context @B@, @Q@, @D_OUT@
@if W_out: @let context @B@, @Q@, @D_OUT@
types = {"float32": "float", "float64": "double", "bool": "bool", "int64": "int64"}
operands = ", ".join(f"{types[x.dtype.name]}{list(x.shape)} {name}" for name, x in feeds.items())
model = onnx.parser.parse_model("""
<ir_version: 10, opset_import: ["" : 23]>
attention (""" + operands + """)
    => (@real_type@[@full.attention_weights@] attention_weights, @real_type@[@context@] context_vectors)
{
@if norm: @normed normed_inputs inputs norm
@let queries queries
@let keys keys
@let values values
@if takes_heads
@let queries query
@let keys key
@let values value
@else
@project queries @source_of_queries@ W_query b_query @H@ @Q@ @D_K@ one_head
@project keys @source_of_keys@ W_key b_key @KV_H@ @K-PAST@ @D_K@ one_kv_head
@project values @source_of_values@ W_value b_value @KV_H@ @K-PAST@ @D_V@ one_kv_head
@end
@if query_norm
@norm_heads @queries@ query_norm @H@ @Q@ @D_K@ @H*D_K@ one_head
@let queries normed_@queries@
@end
@if key_norm
@norm_heads @keys@ key_norm @KV_H@ @K-PAST@ @D_K@ @KV_H*D_K@ one_kv_head
@let keys normed_@keys@
@end
@if qk_norm
@unit @queries@
@unit @keys@
@let queries unit_@queries@
@let keys unit_@keys@
@end
@if rotate
@rotate queries @queries@
@rotate keys @keys@
@let queries rotated_queries
@let keys rotated_keys
@end
@if operator
@let arguments @queries@, @keys@, @values@
@if attn_mask: @let arguments @arguments@, attn_mask
@if append_cache !attn_mask: @let arguments @arguments@,
@if append_cache: @let arguments @arguments@, past_key, past_value
@let attributes scale = @scale_attribute@, qk_matmul_output_mode = 3
@if softcap: @let attributes @attributes@, softcap = @softcap_attribute@
@if is_causal: @let attributes @attributes@, is_causal = 1
    @heads@, present_key, present_value, attention_weights = Attention <@attributes@>
        (@arguments@)
@end
@if !operator append_cache
    all_keys = Concat <axis = 2> (past_key, @keys@)
    all_values = Concat <axis = 2> (past_value, @values@)
@let keys all_keys
@let values all_values
@end
@if !operator !linear
@if shares_keys
@repeat repeated_keys @keys@ @D_K@
@repeat repeated_values @values@ @D_V@
@let keys repeated_keys
@let values repeated_values
@end
    transposed_keys = Transpose <perm = [0, 1, 3, 2]> (@keys@)
    @step scores scores = MatMul (@queries@, transposed_keys)
@if scales
@if !head_scales: @number scale @scale@
    @step scores scaled_scores = Mul (scores, scale)
@end
@if softcap
@number softcap @softcap@
    part_of_cap = Div (@scores@, softcap)
    bounded_part = Tanh (part_of_cap)
    @step scores capped_scores = Mul (bounded_part, softcap)
@end
    @if alibi: @step scores alibi_scores = Add (@scores@, alibi)
@if score_mod
    score = Identity (@scores@)
    @lines.score@
@let scores @result.score@
@end
@for mask in @additive_masks@
    @step scores scores_with_$mask = Add (@scores@, $mask)
@end
@if has_rules !renormalize
@number minus_infinity -inf
    @step scores biased_scores = Where (allowed, @scores@, minus_infinity)
@end
@let modified attention_weights
@if drop: @let modified weights_before_dropout
@let result @modified@
@if prob_mod: @let result weight
@let weights @result@
@if renormalize: @let weights unmasked_weights
@if sinks
    scores_and_sink = Concat <axis = 3> (@scores@, sink)
    weights_and_sink = Softmax <axis = 3> (scores_and_sink)
@integer 3
@integer @K@
@integer 0
    @weights@ = Slice (weights_and_sink, i_0, i_@K@, i_3)
@else
@if masked_rows
    weights_or_nan = Softmax <axis = 3> (@scores@)
    has_no_key = IsNaN (weights_or_nan)
@number zero 0
    @weights@ = Where (has_no_key, zero, weights_or_nan)
@else
    @weights@ = Softmax <axis = 3> (@scores@)
@end
@end
@if renormalize
@if has_rules
@number zero 0
    @step weights masked_weights = Where (allowed, unmasked_weights, zero)
@end
@integer 3
    @step total total = ReduceSum (@weights@, i_3)
@if masked_rows
@number zero 0
    has_no_weight = Equal (total, zero)
@number one 1
    @step total divisor = Where (has_no_weight, one, total)
@end
    @result@ = Div (@weights@, @total@)
@end
@if prob_mod
    @lines.weight@
@number zero 0
@let kept @result.weight@
@if has_rules
    weights_by_rules = Where (allowed, @kept@, zero)
@let kept weights_by_rules
@end
@for mask in @additive_masks@
@number minus_infinity -inf
    blocked_by_$mask = Equal ($mask, minus_infinity)
    weights_by_$mask = Where (blocked_by_$mask, zero, @kept@)
@let kept weights_by_$mask
@end
    @modified@ = Identity (@kept@)
@end
@if drop
@number kept_weight @kept_weight@
    grown_weights = Mul (weights_before_dropout, kept_weight)
@number zero 0
    attention_weights = Where (dropout_kept, grown_weights, zero)
@end
    @heads@ = MatMul (attention_weights, @values@)
@end
@if linear
@# The weights are the outputs of values that are unit vectors, in columns after those of the values.
@# The reference of ONNX scans the first axis only.
    values_and_units = Concat <axis = 3> (@values@, units)
    q_by_token = Transpose <perm = [2, 0, 1, 3]> (@queries@)
    k_by_token = Transpose <perm = [2, 0, 1, 3]> (@keys@)
    v_by_token = Transpose <perm = [2, 0, 1, 3]> (values_and_units)
@let scanned q_by_token, k_by_token, v_by_token
@let inputs @real_type@[@B@, @H@, @D_K@] q, @real_type@[@B@, @KV_H@, @D_K@] k, @real_type@[@B@, @KV_H@, @D_V+Q@] v
@let count 3
@if decay
    g_by_token = Transpose <perm = [2, 0, 1, 3]> (decay)
@let scanned @scanned@, g_by_token
@let inputs @inputs@, @real_type@[@B@, @KV_H@, @columns.decay@] g
@let count 4
@end
@if beta
    b_by_token = Transpose <perm = [2, 0, 1, 3]> (beta)
@let scanned @scanned@, b_by_token
@let inputs @inputs@, @real_type@[@B@, @KV_H@, 1] b
@if decay: @let count 5
@if !decay: @let count 4
@end
@integer 2
@integer 3
@if shares_keys
    @once i_@B@_@KV_H@_@H/KV_H@_@D_K@_@D_V+Q@ = Constant <value_ints = [@B@, @KV_H@, @H/KV_H@, @D_K@, @D_V+Q@]> ()
@shape @B@ @H@ @D_K@ @D_V+Q@
@end
@let state @real_type@[@B@, @KV_H@, @D_K@, @D_V+Q@]
    last_state, outputs_by_token = Scan <num_scan_inputs = @count@, body = step (@state@ before, @inputs@) => (@state@ after, @real_type@[@B@, @H@, @D_V+Q@] output) {
        k_column = Unsqueeze (k, i_3)
        v_row = Unsqueeze (v, i_2)
@let state before
@if decay
        @if decay_plain: factor = Identity (g)
        @if !decay_plain: factor = Exp (g)
        factor_column = Unsqueeze (factor, i_3)
        @step state decayed = Mul (factor_column, before)
@end
@let written v_row
@if beta
        k_row = Unsqueeze (k, i_2)
        held = MatMul (k_row, @state@)
        difference = Sub (v_row, held)
        b_row = Unsqueeze (b, i_2)
        @step written written = Mul (b_row, difference)
@end
        update = Mul (k_column, @written@)
        @step of_head after = Add (@state@, update)
@if bonus
        u_column = Unsqueeze (bonus, i_2)
        own = Mul (u_column, update)
        @step of_head read = Add (before, own)
@end
@if shares_keys
        single = Unsqueeze (@of_head@, i_2)
        copies = Expand (single, i_@B@_@KV_H@_@H/KV_H@_@D_K@_@D_V+Q@)
        @step of_head repeated = Reshape (copies, i_@B@_@H@_@D_K@_@D_V+Q@)
@end
        q_row = Unsqueeze (q, i_2)
        output_row = MatMul (q_row, @of_head@)
        output = Squeeze (output_row, i_2)
    }>
        (state, @scanned@)
    outputs_by_head = Transpose <perm = [1, 2, 0, 3]> (outputs_by_token)
@number scale @scale@
    scaled_outputs = Mul (outputs_by_head, scale)
@integer @D_V@
@integer 0
    @heads@ = Slice (scaled_outputs, i_0, i_@D_V@, i_3)
@integer @D_V+Q@
    attention_weights = Slice (scaled_outputs, i_@D_V@, i_@D_V+Q@, i_3)
@end
@if merge_heads
@let merged context_vectors
@if W_out: @let merged merged_heads
@merge @merged@ @heads@ @Q@ @H*D_V@ one_head
@end
@if W_out
@let outputs merged_heads
@if !merge_heads
@integer 1
    @step outputs outputs = Squeeze (@heads@, i_1)
@end
@multiply context_vectors @outputs@ W_out b_out
@end
}
""")
onnx.checker.check_model(model, full_check=True)
try:
    from onnxruntime import InferenceSession
    run = InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run
except ImportError:
    from onnx.reference import ReferenceEvaluator
    run = ReferenceEvaluator(model).run
attention_weights, context_vectors = run(None, feeds)
@check attention_weights
@check context_vectors
