@# What programs in Python share. @np@ is the module of arrays; @array@, @to@, ... are what NumPy and
@# PyTorch spell differently.

@def header
# @command@
# Computes the same in @library@ and compares with attn's numbers: attn help repro
import math
@if data_file: import pathlib
import sys

import numpy as np
@end

@def operands
@if data_file: data = np.load(pathlib.Path(__file__).with_suffix(".npz"))
@for x in @operands@
@array $x $x
@end
@end

@def array name from
@if data_file
@let in_type
@if rounded !boolean.$from: @let in_type @as_real@
@if torch: $name = torch.from_numpy(data["$from"])@in_type@
@if !torch: $name = data["$from"]@reshape.$from@@in_type@
@else
@let type @real@
@if boolean.$from: @let type @bool@
$name = @array@(@literal.$from@, dtype=@type@)
@end
@end

@def check_function

def check(name, got, want, tolerance):
    @if torch rounded: got, want, tolerance = (x.float().numpy() for x in (got, want, tolerance))
    @if !torch rounded: got, want, tolerance = (x.astype(np.float32) for x in (got, want, tolerance))
    @if torch !rounded !backward: got, want, tolerance = got.numpy(), want.numpy(), tolerance.numpy()
    @if torch backward: got, want, tolerance = got.detach().numpy(), want.numpy(), tolerance.numpy()
    @if backward: tolerance = np.broadcast_to(tolerance, want.shape)
    if got.shape != want.shape:
        sys.exit(f"{name}: shape {got.shape}; expected {want.shape}")
    error = np.where(got == want, 0, np.abs(got - want))
    wrong = np.argwhere(~(error <= tolerance)).tolist()  # also a NaN
    if wrong:
        at = tuple(wrong[0])
        sys.exit(f"{name} {wrong[0]}: {got[at]}; expected {want[at]} within {tolerance[at]:.3g}")
    part = np.max(error / tolerance)
    print(f"ok: {name}, largest error {error.max():.2e}, at most {part:.2g} of a tolerance")

@end

@def frequencies
@if frequencies
frequencies = @array@([@frequencies@], dtype=@np@.float64)
@else
frequencies = @rope_base@ ** (-2 * @np@.arange(@pairs@, dtype=@np@.float64) / @rope_dims@)
@end
@end

@def keys
@once j = @np@.arange(@K@)  # keys
@end

@def positions
@let offset @offset@
@if many_offsets: @let offset  + @array@([@offsets@])@of_batch@
@once p = @np@.arange(@Q@)[:, None]@offset@  # positions of the queries among the keys
@keys
@end

@# What formulas name besides positions.
@def formula_names
@positions
@once head = @np@.arange(@H@)@of_heads@
@if batch_axis: @once entry = @np@.arange(@B@)@of_batch@
@if !batch_axis: @once entry = @np@.arange(1)
@if lets: @once @lets@
@end

@def slopes
@positions
@let distance -abs(j - p)
@if alibi_signed: @let distance (j - p)
@if alibi_slopes
@let slopes [@alibi_slopes@]
@else
@let slopes [2 ** (-8 * h / @first_heads@) for h in range(1, @first_heads+1@)]
@if other_heads: @append slopes + [2 ** (-8 * h / @other_heads@) for h in range(1, @other_heads_end@, 2)]
@end
slopes = @array@(@slopes@, dtype=@real@)@of_heads@
@end

@# Sets allowed to the keys that masks, causality, a window and lengths leave.
@def rules
@let allowed
@if causal: @positions
@if window: @positions
@for mask in @boolean_masks@
@if keeps_true: @append allowed & $mask
@if !keeps_true: @append allowed & ~$mask
@end
@if causal: @append allowed & (j <= p)
@if mask_formula
@formula_names
@append allowed & @mask_formula@
@end
@if keys_before: @append allowed & (p - @keys_before@ <= j)
@if keys_after: @append allowed & (j <= p + @keys_after@)
@if kv_lengths: @keys
@if kv_lengths batch_axis
kv_lengths = @array@([@kv_lengths@])@of_batch@
@append allowed & (j < kv_lengths)
@end
@if kv_lengths !batch_axis: @append allowed & (j[None] < @kv_lengths@)
@end

@# The mask of one operator for all steps from scores to weights, attn_mask. Sets bias to its name,
@# or to nothing.
@def operator_mask
@let bias
@if alibi
@slopes
@let bias slopes * @distance@@as_real@
@end
@for mask in @additive_masks@
@append bias + $mask
@end
@if bias: attn_mask = @bias@
@if has_rules
@rules
@let mask @allowed@
@if torch mask_formula: @let mask torch.atleast_2d(@allowed@)
@if !bias: attn_mask = @mask@
@if bias: @mask_by_rules
@let bias attn_mask
@end
@end
