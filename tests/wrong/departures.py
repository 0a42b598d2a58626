"""The errors of real programs: for each convention, the changes of a program that apply to a question.

Each function is a convention: from a question, it yields rows of a label, the changes of the fields of a Program,
other conventions under which the same error may be reported, and the arrays that must be known to tell. ALTERNATIVES
has them by name, as lists of `Departure`.
"""

import dataclasses

import numpy as np

from .question import geometric_slopes, published_slopes

LOWEST = {"float32": float(np.finfo(np.float32).min), "float16": -65504.0, "bfloat16": -3.3895313892515355e38}


@dataclasses.dataclass
class Departure:
    convention: str
    label: str
    changes: dict
    also: tuple = ()
    arrays: tuple = ()

    def apply(self, program):
        """None where the change cannot be combined with those that the program already has."""
        values = {}
        for name, value in self.changes.items():
            old = getattr(program, name)
            values[name] = old | value if isinstance(old, (dict, frozenset)) else value
        return dataclasses.replace(program, **values)


def has_booleans(q, name=None):
    return [n for n in ("mask", "padding") if (m := getattr(q, n)) is not None and m.dtype == bool and name in (None, n)]


def has_exclusions(q):
    return q.causal or q.window is not None or q.kv_lengths is not None or bool(has_booleans(q))


def mask_polarity(q):
    keeps, names, also = q.mask_true != "drop", has_booleans(q), ("mask_method", "masked_value")
    for name in names:
        only = "" if len(names) == 1 else name + " "
        yield only + "inverted", {"true_keeps": {name: not keeps}}
        yield name + " added as 0 and 1", {"mask_use": {name: "added"}}, also
        yield name + " ignored", {"mask_use": {name: "ignored"}}, also
    if len(names) == 2:
        yield "both inverted", {"true_keeps": {n: not keeps for n in names}}
    for name in ("mask", "padding"):
        mask = getattr(q, name)
        if mask is not None and mask.dtype != bool:
            yield name + " not added", {"mask_use": {name: "ignored"}}, also
            if np.isfinite(mask).all():
                yield name + " subtracted", {"mask_use": {name: "negated"}}, also


def masked_value(q):
    if not has_exclusions(q) or q.renormalize:
        return
    added = {"-1e9": -1e9, "-10000": -1e4, "-100": -100.0, "the lowest float16": LOWEST["float16"],
             "the lowest float32": LOWEST["float32"]}
    values = {"-1e9": -1e9, "-10000": -1e4, "-100": -100.0, "-10": -10.0, "0": 0.0, "1e-9": 1e-9} | \
        {f"the lowest {t}": v for t, v in LOWEST.items()}
    for label, value in values.items():
        yield label, {"masked_value": value}, ("mask_method",)
    for label, value in added.items():
        yield label + " added", {"masked_value": value, "masked_value_added": True}, ("mask_method",)
    yield "NaN without keys", {"empty_rows": np.nan}


def causal_align(q):
    top, lengths = np.full(q.entries, q.past), q.kv_lengths or [q.keys] * q.entries
    choices = {"top-left": top, "bottom-right": np.array(lengths) - q.queries,
               "bottom-right of all keys": np.full(q.entries, q.keys - q.queries),
               "cache not counted": np.zeros(q.entries, int)}
    for label, offsets in choices.items() if q.causal or q.window is not None else ():
        if (offsets != q.offsets()).any():
            yield label, {"offsets": offsets}, () if label in ("top-left", "bottom-right") else ("causal", "kv_lengths")
            if q.causal and q.window is not None:
                yield label + " for the window alone", {"window_offsets": offsets}, ("window_left", "window_right")
    if q.causal:
        yield "itself excluded", {"causal_shift": -1}, ("causal",)
        yield "one later key", {"causal_shift": 1}, ("causal",)


def causal(q):
    yield ("off" if q.causal else "on"), {"causal": not q.causal}
    if q.causal:
        yield "the upper triangle is kept", {"causal_reversed": True}
        yield "only later keys are kept", {"causal_reversed": True, "causal_shift": 1}


def window_left(q):
    left = q.window[0] if q.window else -1
    if left >= 0:
        for v in sorted({left - 1, left + 1, 2 * left, left // 2, -1} - {left}):
            yield str(v), {"left": v}


def window_right(q):
    right = q.window[1] if q.window else -1
    if right >= 0:
        for v in sorted({right - 1 if right else 1, right + 1, 2 * right, right // 2, -1} - {right}):
            yield str(v), {"right": v}


def scale(q):
    asked = q.scale if q.scale is not None else 1 / np.sqrt(q.d)
    width = q.heads * q.d
    choices = {"1": 1.0, "1/sqrt(d_k)": 1 / np.sqrt(q.d), "1/d_k": 1 / q.d, "twice": asked * asked,
               "1/sqrt(width)": 1 / np.sqrt(width), "sqrt(d_k)": np.sqrt(q.d), "1/sqrt(d_v)": 1 / np.sqrt(q.d_v),
               "fourth root": q.d ** -0.25}
    for label, value in choices.items():
        if abs(value - asked) > 1e-6:
            yield label, {"scale": float(value)}


def rope_pairs(q):
    if q.rope or q.d % 2 == 0:
        other = "interleaved" if q.rope == "half" else "half"
        yield other, {"rope": other}
    if q.rope:
        yield "none", {"rope": None}


def rope_base(q):
    if not q.rope:
        return
    for v in sorted({1000.0, 10000.0, 100000.0, 500000.0, 1000000.0} - {q.rope_base}):
        yield repr(v), {"rope_base": v}
    if q.rope_scaling != 1:
        yield "angles not divided", {"rope_scaling": 1.0}, ("rope_positions",)


def rope_dims(q):
    if not q.rope or q.d < 4:
        return
    dims = q.rope_dims or q.d
    for v in sorted({q.d, q.d // 2, q.d // 4} - {dims}):
        if v >= 2 and v % 2 == 0:
            yield str(v), {"rope_dims": v, "rope_width": 0}
    if dims != q.d:
        yield "angles of the whole width", {"rope_width": q.d}, ("rope_base",)


def rope_positions(q):
    if not q.rope:
        return
    yield "from 1", {"first_query": q.past + 1, "first_key": q.past + 1}
    yield "queries from 1", {"first_query": q.past + 1}
    if q.past:
        yield "from 0", {"first_query": 0, "first_key": 0}
        yield "queries from 0", {"first_query": 0}
    if q.queries != q.new_keys:
        yield "queries at the end", {"first_query": q.keys - q.queries}


def rope_keys(q):
    if q.rope:
        yield "keys not rotated", {"key_turns": 0}
        yield "queries not rotated", {"query_turns": 0}
        yield "keys twice", {"key_turns": 2}
        yield "both twice", {"query_turns": 2, "key_turns": 2}
        yield "both backwards", {"query_turns": -1, "key_turns": -1}, ("rope_positions",)


def head_groups(q):
    if 1 < q.kv_heads < q.heads:
        yield "interleaved", {"groups": "tiled"}


def softcap(q):
    if q.softcap:
        yield "off", {"softcap": 0}
        yield "tanh(x / c)", {"softcap_factor": 1.0}
    for v in sorted({20.0, 30.0, 50.0} - {q.softcap or 20.0}):
        yield repr(v), {"softcap": v}


def softcap_order(q):
    if not q.softcap:
        return
    yield "before the scale", {"order": ("softcap", "scale", "alibi", "additive", "block")}
    if has_exclusions(q) and not q.renormalize:
        yield "after the masks", {"order": ("scale", "alibi", "additive", "block", "softcap")}
    if any(mask is not None and mask.dtype != bool for mask in (q.mask, q.padding)):
        yield "after the additive mask", {"order": ("scale", "alibi", "additive", "softcap", "block")}
    if q.alibi:
        yield "after alibi", {"order": ("scale", "alibi", "softcap", "additive", "block")}


def alibi_sign(q):
    if q.alibi:
        yield "+", {"slopes": -q.slopes()}


def alibi_slopes(q):
    if not q.alibi:
        return
    slopes, geometric = q.slopes(), geometric_slopes(q.heads)
    choices = {"from head 0": geometric * 2 ** (8 / q.heads), "in the reverse order": slopes[::-1],
               "half as steep": 2.0 ** (-4.0 * np.arange(1, q.heads + 1) / q.heads),
               "published": published_slopes(q.heads), "geometric": geometric}
    for label, value in choices.items():
        if not np.allclose(value, slopes):
            yield label, {"slopes": value}
    yield "none", {"slopes": None}, ("alibi_sign",)
    yield "of the signed distance", {"alibi_distance": "signed"}, ("alibi_sign",)
    yield "scaled with the scores", {"order": ("alibi", "scale", "softcap", "additive", "block")}, ("softcap_order",)


def sink(q):
    if q.sink is None:
        yield "0", {"sink": [0.0] * q.heads, "axis": "keys"}, ("denominator",)
        return
    yield "none", {"sink": None}
    yield "0", {"sink": [0.0] * q.heads}
    yield "negated", {"sink": [-s for s in q.sink]}
    if q.heads > 1:
        yield "the first for all heads", {"sink": [q.sink[0]] * q.heads}
        yield "heads reversed", {"sink": q.sink[::-1]}


def kv_lengths(q):
    if q.kv_lengths is None:
        return
    keys, asked = q.keys, q.kv_lengths
    choices = {"ignored": None, "one more": [min(n + 1, keys) for n in asked], "one less": [max(n - 1, 0) for n in asked],
               "the longest for all": [max(asked)] * q.entries, "the first for all": [asked[0]] * q.entries}
    for label, lengths in choices.items():
        if lengths == asked:
            continue
        yield label, {"kv_lengths": lengths}
        if q.align == "bottom-right" and (q.causal or q.window is not None):
            offsets = np.array(lengths or [keys] * q.entries) - q.queries
            yield label + ", also in the alignment", {"kv_lengths": lengths, "offsets": offsets}, ("causal_align",)


def softmax_axis(q):
    if q.sink is not None or q.renormalize or q.kv_lengths is not None or q.window or q.mask is not None or \
            q.padding is not None:
        return
    if q.queries > 1:
        yield "queries", {"axis": "queries"}
    if q.heads > 1 and not q.causal:
        yield "heads", {"axis": "heads"}
    if q.entries > 1 and not q.causal:
        yield "batch", {"axis": "batch"}


def transposed(q):
    if q.mode == "sdpa" and q.form == "packed":
        return
    tensors = q.operands if q.mode == "sdpa" else q.weights
    square = [name for name, array in tensors.items() if array.shape[-1] == array.shape[-2] > 1]
    for name in square:
        yield name, {"transposed": frozenset([name])}
    if q.mode == "sdpa":
        return
    if len(square) > 1:
        yield "all", {"transposed": frozenset(square)}
    if len({"query", "key", "value"} & set(square)) == 3 and "out" in square:
        yield "query, key, value", {"transposed": frozenset(["query", "key", "value"])}


def heads_split(q):
    if q.heads == 1 or q.mode == "sdpa" and q.form != "packed":
        return
    yield "without transposing", {"split": "reshape"}
    yield "interleaved", {"split": "interleaved"}
    yield "joined without transposing", {"merge": "reshape"}
    yield "split and joined without transposing", {"split": "reshape", "merge": "reshape"}
    yield "split and joined interleaved", {"split": "interleaved", "merge": "interleaved"}


def bias(q):
    for t in q.biases:
        yield f"without that of {t}", {"without_bias": frozenset([t])}
    if len(q.biases) > 1:
        yield "without any", {"without_bias": frozenset(q.biases)}
    if len(q.biases) > 2 and "out" in q.biases:
        yield "without those of query, key, value", {"without_bias": frozenset(["query", "key", "value"])}


def out_proj(q):
    if "out" in q.weights and q.weights["out"].shape[0] == q.weights["out"].shape[1]:
        yield "left out", {"projects_out": False}


def exchanged(q):
    def shape(name):
        return (q.operands if q.mode == "sdpa" else q.weights)[name].shape

    for label, use in {"query and key": ("key", "query", "value"), "key and value": ("query", "value", "key"),
                       "query and value": ("value", "key", "query")}.items():
        if all(shape(a) == shape(b) for a, b in zip(("query", "key", "value"), use)):
            yield label, {"use": use}


def dropout(q):
    if q.dropout:
        yield "off", {"dropout_mask": None}
        yield "not rescaled", {"dropout_mask": np.asarray(q.dropout_mask > 0, np.float64)}
        return
    for p in (0.1, 0.2, 0.5):
        keep = np.random.RandomState(7).random_sample((q.entries, q.heads, q.queries, q.keys)) >= p
        yield f"left on, {p}", {"dropout_mask": keep / (1 - p)}, (), ("attention_weights",)


def precision(q):
    for kind in ("float16", "bfloat16"):
        for what in ("operands", "projected", "scores", "weights", "outputs"):
            if what == "projected" and q.mode == "sdpa" or what == "outputs" and "out" not in q.weights:
                continue
            yield f"{what} in {kind}", {"rounded": {what: kind}}
        yield f"scores and weights in {kind}", {"rounded": {"scores": kind, "weights": kind}}
    for what in ("scores", "outputs"):
        yield f"{what} accumulated in float16", {"accumulated": frozenset([what])}


def mask_method(q):
    if has_exclusions(q):
        yield "weights not renormalized", {"blocking": "after"}


# Of gradients: `Program.backward`.
def grad_factor(q):
    for factor in (0.5, 3, -1): yield f"times {factor}", {"backward": {"factor": factor}}


def grad_scale(q):
    for side in ("query_scale", "key_scale"):
        for times in (0, 2): yield f"{side} {times}", {"backward": {side: times}}
    yield "twice", {"backward": {"query_scale": 2, "key_scale": 2}}


def grad_groups(q):
    if q.heads != q.kv_heads:
        for groups in ("first", "last", "mean"): yield groups, {"backward": {"groups": groups}}


def grad_dropout(q):
    if q.dropout:
        for times in (0, 2): yield f"factor {times} times", {"backward": {"dropout_factors": times}}
        yield "no mask", {"backward": {"drops": False}}
        yield "values not dropped", {"backward": {"drops_values": False}}
        yield "left out", {"backward": {"drops": False, "drops_values": False}}


def grad_softmax(q):
    yield "no term", {"backward": {"term": "none"}}
    if q.dropout: yield "term of dropped weights", {"backward": {"term": "dropped"}}


def grad_weights(q):
    others = [("causal", {"causal": False})] * q.causal + [("sink", {"sink": None})] * (q.sink is not None)
    if has_exclusions(q):
        ignored = {"mask_use": {"mask": "ignored", "padding": "ignored"}}
        others.append(("masks", {"causal": False, "left": -1, "right": -1, "kv_lengths": None, **ignored}))
    for label, without in others:
        for keeps in (True, False)[label == "sink":]:
            yield f"without {label}, {keeps}", {"backward": {"without": without, "keeps_sum": keeps}}


def grad_softcap(q):
    if q.softcap:
        for cap in ("none", "of_capped", "unscaled"): yield cap, {"backward": {"cap": cap}}


def grad_rope(q):
    if q.rope:
        for turns in (0, 1):
            for sides in (("query_turns",), ("key_turns",), ("query_turns", "key_turns")):
                yield f"{' '.join(sides)} {turns}", {"backward": dict.fromkeys(sides, turns)}


def grad_parameters(q):
    if q.weights: yield "transposed", {"backward": {"transposed": True}}
    if q.biases: yield "mean of biases", {"backward": {"mean_bias": True}}


def departures_by(convention):
    return lambda q: [Departure(convention.__name__, *row) for row in convention(q)]


ALTERNATIVES = {f.__name__: departures_by(f) for f in (
    mask_polarity, masked_value, causal_align, causal, window_left, window_right, scale, rope_pairs, rope_base,
    rope_dims, rope_positions, rope_keys, head_groups, softcap, softcap_order, alibi_sign, alibi_slopes, sink,
    kv_lengths, softmax_axis, transposed, heads_split, bias, exchanged, dropout, precision, mask_method,
    out_proj)}

OF_GRADIENTS = {f.__name__: departures_by(f) for f in (
    grad_factor, grad_scale, grad_groups, grad_dropout, grad_softmax, grad_weights, grad_softcap, grad_rope,
    grad_parameters)}

# What a question must have for a convention to matter.
NEEDS = {
    "mask_polarity": ("boolean_mask",), "masked_value": ("boolean_mask", "empty_rows"),
    "causal_align": ("causal", "lengths_differ"), "causal": ("causal",), "window_left": ("window",),
    "window_right": ("window", "full_window"), "rope_pairs": ("rope",), "rope_base": ("rope",), "rope_dims": ("rope",),
    "rope_positions": ("rope", "cache"), "rope_keys": ("rope",), "head_groups": ("groups", "heads"),
    "softcap": ("softcap",), "softcap_order": ("softcap",), "alibi_sign": ("alibi",), "alibi_slopes": ("alibi", "heads"),
    "sink": ("sink",), "kv_lengths": ("kv_lengths",), "transposed": ("square",), "heads_split": ("heads",),
    "bias": ("bias", "projections"), "exchanged": ("same_widths", "square"), "dropout": ("dropout",),
    "mask_method": ("causal",), "out_proj": ("out", "square", "projections"), "grad_groups": ("groups", "heads"),
    "grad_dropout": ("dropout",), "grad_softcap": ("softcap",), "grad_rope": ("rope",),
    "grad_weights": ("causal", "sink"), "grad_parameters": ("projections", "bias"), "grad_scale": ("same_widths",),
}
