"""The errors of real programs: for each convention, the changes of a program that apply to a question.

ALTERNATIVES has a function for each convention, from a question to a list of `Departure`.
"""

import dataclasses

import numpy as np

from .question import geometric_slopes, published_slopes

LOWEST = {"float32": float(np.finfo(np.float32).min), "float16": -65504.0, "bfloat16": -3.3895313892515355e38}


@dataclasses.dataclass
class Departure:
    convention: str
    label: str
    changes: dict  # of the fields of a Program
    also: tuple = ()  # other conventions under which the same error may be reported
    arrays: tuple = ()  # that must be known to tell

    def apply(self, program):
        """None where the change cannot be combined with those that the program already has."""
        values = {}
        for name, value in self.changes.items():
            old = getattr(program, name)
            if isinstance(old, dict):
                value = old | value
            elif isinstance(old, frozenset):
                value = old | value
            values[name] = value
        return dataclasses.replace(program, **values)


def has_booleans(q, name=None):
    return [n for n in ("mask", "padding") if (m := getattr(q, n)) is not None and m.dtype == bool and name in (None, n)]


def has_exclusions(q):
    return q.causal or q.window is not None or q.kv_lengths is not None or bool(has_booleans(q))


def mask_polarity(q):
    found, keeps = [], q.mask_true != "drop"
    names = has_booleans(q)
    for name in names:
        only = "" if len(names) == 1 else name + " "
        found.append(Departure("mask_polarity", only + "inverted", {"true_keeps": {name: not keeps}}))
        also = ("mask_method", "masked_value")
        found.append(Departure("mask_polarity", name + " added as 0 and 1", {"mask_use": {name: "added"}}, also))
        found.append(Departure("mask_polarity", name + " ignored", {"mask_use": {name: "ignored"}}, also))
    if len(names) == 2:
        found.append(Departure("mask_polarity", "both inverted", {"true_keeps": {n: not keeps for n in names}}))
    for name in ("mask", "padding"):
        mask = getattr(q, name)
        if mask is not None and mask.dtype != bool:
            also = ("mask_method", "masked_value")
            found.append(Departure("mask_polarity", name + " not added", {"mask_use": {name: "ignored"}}, also))
            if np.isfinite(mask).all():
                found.append(Departure("mask_polarity", name + " subtracted", {"mask_use": {name: "negated"}}, also))
    return found


def masked_value(q):
    if not has_exclusions(q) or q.renormalize:
        return []
    found = []
    for label, value in [("-1e9", -1e9), ("-10000", -1e4), ("-1e4 plus", None), ("-100", -100.0), ("-10", -10.0),
                         ("0", 0.0), ("1e-9", 1e-9)] + [(f"the lowest {t}", v) for t, v in LOWEST.items()]:
        if value is not None:
            found.append(Departure("masked_value", label, {"masked_value": value}, ("mask_method",)))
    for label, value in [("-1e9", -1e9), ("-10000", -1e4), ("-100", -100.0), ("the lowest float16", LOWEST["float16"]),
                         ("the lowest float32", LOWEST["float32"])]:
        found.append(Departure("masked_value", label + " added",
                               {"masked_value": value, "masked_value_added": True}, ("mask_method",)))
    found.append(Departure("masked_value", "NaN without keys", {"empty_rows": np.nan}))
    return found


def causal_align(q):
    found = []
    uses_offsets = q.causal or q.window is not None
    top, lengths = np.full(q.entries, q.past), q.kv_lengths or [q.keys] * q.entries
    choices = {"top-left": top, "bottom-right": np.array(lengths) - q.queries,
               "bottom-right of all keys": np.full(q.entries, q.keys - q.queries),
               "cache not counted": np.zeros(q.entries, int)}
    if uses_offsets:
        for label, offsets in choices.items():
            if (offsets != q.offsets()).any():
                found.append(Departure("causal_align", label, {"offsets": offsets},
                                       () if label in ("top-left", "bottom-right") else ("causal", "kv_lengths")))
                if q.causal and q.window is not None:
                    found.append(Departure("causal_align", label + " for the window alone", {"window_offsets": offsets},
                                           ("window_left", "window_right")))
    if q.causal:
        found.append(Departure("causal_align", "itself excluded", {"causal_shift": -1}, ("causal",)))
        found.append(Departure("causal_align", "one later key", {"causal_shift": 1}, ("causal",)))
    return found


def causal(q):
    if not q.causal:
        return [Departure("causal", "on", {"causal": True})]
    return [Departure("causal", "off", {"causal": False}),
            Departure("causal", "the upper triangle is kept", {"causal_reversed": True}),
            Departure("causal", "only later keys are kept", {"causal_reversed": True, "causal_shift": 1})]


def window_left(q):
    left = q.window[0] if q.window else -1
    if left < 0:
        return []
    values = {left - 1, left + 1, 2 * left, left // 2, -1} - {left, -2}
    return [Departure("window_left", str(v), {"left": v}) for v in sorted(values) if v >= -1 and (v >= 0 or v == -1)]


def window_right(q):
    right = q.window[1] if q.window else -1
    if right < 0:
        return []
    values = {right - 1 if right else 1, right + 1, 2 * right, right // 2, -1} - {right}
    return [Departure("window_right", str(v), {"right": v}) for v in sorted(values)]


def scale(q):
    asked = q.scale if q.scale is not None else 1 / np.sqrt(q.d)
    width = q.heads * q.d
    choices = {"1": 1.0, "1/sqrt(d_k)": 1 / np.sqrt(q.d), "1/d_k": 1 / q.d, "twice": asked * asked,
               "1/sqrt(width)": 1 / np.sqrt(width), "sqrt(d_k)": np.sqrt(q.d), "1/sqrt(d_v)": 1 / np.sqrt(q.d_v),
               "fourth root": q.d ** -0.25}
    return [Departure("scale", label, {"scale": float(value)}) for label, value in choices.items()
            if abs(value - asked) > 1e-6]


def rope_pairs(q):
    if not q.rope:
        return [Departure("rope_pairs", "half", {"rope": "half"})] if q.d % 2 == 0 else []
    other = "interleaved" if q.rope == "half" else "half"
    return [Departure("rope_pairs", other, {"rope": other}), Departure("rope_pairs", "none", {"rope": None})]


def rope_base(q):
    if not q.rope:
        return []
    values = {1000.0, 10000.0, 100000.0, 500000.0, 1000000.0} - {q.rope_base}
    found = [Departure("rope_base", repr(v), {"rope_base": v}) for v in sorted(values)]
    if q.rope_scaling != 1:
        found.append(Departure("rope_base", "angles not divided", {"rope_scaling": 1.0}, ("rope_positions",)))
    return found


def rope_dims(q):
    if not q.rope or q.d < 4:
        return []
    dims = q.rope_dims or q.d
    found = [Departure("rope_dims", str(v), {"rope_dims": v, "rope_width": 0})
             for v in sorted({q.d, q.d // 2, q.d // 4} - {dims}) if v >= 2 and v % 2 == 0]
    if dims != q.d:
        found.append(Departure("rope_dims", "angles of the whole width", {"rope_width": q.d}, ("rope_base",)))
    return found


def rope_positions(q):
    if not q.rope:
        return []
    found = [Departure("rope_positions", "from 1", {"first_query": q.past + 1, "first_key": q.past + 1}),
             Departure("rope_positions", "queries from 1", {"first_query": q.past + 1})]
    if q.past:
        found.append(Departure("rope_positions", "from 0", {"first_query": 0, "first_key": 0}))
        found.append(Departure("rope_positions", "queries from 0", {"first_query": 0}))
    if q.queries != q.new_keys:
        found.append(Departure("rope_positions", "queries at the end", {"first_query": q.keys - q.queries}))
    return found


def rope_keys(q):
    if not q.rope:
        return []
    return [Departure("rope_keys", "keys not rotated", {"key_turns": 0}),
            Departure("rope_keys", "queries not rotated", {"query_turns": 0}),
            Departure("rope_keys", "keys twice", {"key_turns": 2}),
            Departure("rope_keys", "both twice", {"query_turns": 2, "key_turns": 2}),
            Departure("rope_keys", "both backwards", {"query_turns": -1, "key_turns": -1}, ("rope_positions",))]


def head_groups(q):
    return [Departure("head_groups", "interleaved", {"groups": "tiled"})] if 1 < q.kv_heads < q.heads else []


def softcap(q):
    if not q.softcap:
        return [Departure("softcap", repr(v), {"softcap": v}) for v in (30.0, 50.0)]
    others = {20.0, 30.0, 50.0} - {q.softcap}
    return [Departure("softcap", "off", {"softcap": 0}),
            Departure("softcap", "tanh(x / c)", {"softcap_factor": 1.0})] + \
        [Departure("softcap", repr(v), {"softcap": v}) for v in sorted(others)]


def softcap_order(q):
    if not q.softcap:
        return []
    found = [Departure("softcap_order", "before the scale", {"order": ("softcap", "scale", "alibi", "additive", "block")})]
    if has_exclusions(q) and not q.renormalize:
        found.append(Departure("softcap_order", "after the masks",
                               {"order": ("scale", "alibi", "additive", "block", "softcap")}))
    if q.mask is not None and q.mask.dtype != bool or q.padding is not None and q.padding.dtype != bool:
        found.append(Departure("softcap_order", "after the additive mask",
                               {"order": ("scale", "alibi", "additive", "softcap", "block")}))
    if q.alibi:
        found.append(Departure("softcap_order", "after alibi",
                               {"order": ("scale", "alibi", "softcap", "additive", "block")}))
    return found


def alibi_sign(q):
    return [Departure("alibi_sign", "+", {"slopes": -q.slopes()})] if q.alibi else []


def alibi_slopes(q):
    if not q.alibi:
        return []
    slopes, geometric = q.slopes(), geometric_slopes(q.heads)
    choices = {"from head 0": geometric * 2 ** (8 / q.heads), "in the reverse order": slopes[::-1],
               "half as steep": 2.0 ** (-4.0 * np.arange(1, q.heads + 1) / q.heads),
               "published": published_slopes(q.heads), "geometric": geometric}
    found = [Departure("alibi_slopes", label, {"slopes": value}) for label, value in choices.items()
             if not np.allclose(value, slopes)]
    found += [Departure("alibi_slopes", "none", {"slopes": None}, ("alibi_sign",)),
              Departure("alibi_slopes", "of the absolute distance", {"alibi_distance": "absolute"}, ("alibi_sign",)),
              Departure("alibi_slopes", "scaled with the scores",
                        {"order": ("alibi", "scale", "softcap", "additive", "block")}, ("softcap_order",))]
    return found


def sink(q):
    if q.sink is None:
        return [Departure("sink", "0", {"sink": [0.0] * q.heads, "axis": "keys"})]
    found = [Departure("sink", "none", {"sink": None}), Departure("sink", "0", {"sink": [0.0] * q.heads}),
             Departure("sink", "negated", {"sink": [-s for s in q.sink]})]
    if q.heads > 1:
        found.append(Departure("sink", "the first for all heads", {"sink": [q.sink[0]] * q.heads}))
        found.append(Departure("sink", "heads reversed", {"sink": q.sink[::-1]}))
    return found


def kv_lengths(q):
    if q.kv_lengths is None:
        return []
    keys, asked = q.keys, q.kv_lengths
    choices = {"ignored": None, "one more": [min(n + 1, keys) for n in asked], "one less": [max(n - 1, 0) for n in asked],
               "the longest for all": [max(asked)] * q.entries, "the first for all": [asked[0]] * q.entries}
    found = []
    for label, lengths in choices.items():
        if lengths == asked or (label != "ignored" and lengths is None):
            continue
        found.append(Departure("kv_lengths", label, {"kv_lengths": lengths}))
        if q.align == "bottom-right" and (q.causal or q.window is not None):
            offsets = np.array(lengths or [keys] * q.entries) - q.queries
            found.append(Departure("kv_lengths", label + ", also in the alignment",
                                   {"kv_lengths": lengths, "offsets": offsets}, ("causal_align",)))
    return found


def softmax_axis(q):
    if q.sink is not None or q.renormalize or q.kv_lengths is not None or q.window or q.mask is not None or \
            q.padding is not None:
        return []
    found = [Departure("softmax_axis", "queries", {"axis": "queries"})] if q.queries > 1 else []
    if q.heads > 1 and not q.causal:
        found.append(Departure("softmax_axis", "heads", {"axis": "heads"}))
    if q.entries > 1 and not q.causal:
        found.append(Departure("softmax_axis", "batch", {"axis": "batch"}))
    return found


def transposed(q):
    if q.mode == "sdpa":
        return [] if q.form == "packed" else [
            Departure("transposed", name, {"transposed": frozenset([name])})
            for name, array in q.operands.items() if array.shape[-1] == array.shape[-2] > 1]
    square = [t for t, w in q.weights.items() if w.shape[0] == w.shape[1] > 1]
    found = [Departure("transposed", t, {"transposed": frozenset([t])}) for t in square]
    if len(square) > 1:
        found.append(Departure("transposed", "all", {"transposed": frozenset(square)}))
    if len({"query", "key", "value"} & set(square)) == 3 and "out" in square:
        found.append(Departure("transposed", "query, key, value",
                               {"transposed": frozenset(["query", "key", "value"])}))
    return found


def heads_split(q):
    if q.heads == 1 or q.mode == "sdpa" and q.form != "packed":
        return []
    found = [Departure("heads_split", "without transposing", {"split": "reshape"}),
             Departure("heads_split", "interleaved", {"split": "interleaved"}),
             Departure("heads_split", "joined without transposing", {"merge": "reshape"}),
             Departure("heads_split", "split and joined without transposing", {"split": "reshape", "merge": "reshape"}),
             Departure("heads_split", "split and joined interleaved",
                       {"split": "interleaved", "merge": "interleaved"})]
    return found


def bias(q):
    found = [Departure("bias", f"without that of {t}", {"without_bias": frozenset([t])}) for t in q.biases]
    if len(found) > 1:
        found.append(Departure("bias", "without any", {"without_bias": frozenset(q.biases)}))
    if len(found) > 3 and "out" in q.biases:
        found.append(Departure("bias", "without those of query, key, value",
                               {"without_bias": frozenset(["query", "key", "value"])}))
    return found


def out_proj(q):
    if "out" not in q.weights or q.weights["out"].shape[0] != q.weights["out"].shape[1]:
        return []
    return [Departure("out_proj", "left out", {"projects_out": False})]


def exchanged(q):
    def shape(name):
        return (q.operands if q.mode == "sdpa" else q.weights)[name].shape

    found = []
    for label, use in {"query and key": ("key", "query", "value"), "key and value": ("query", "value", "key"),
                       "query and value": ("value", "key", "query")}.items():
        if all(shape(a) == shape(b) for a, b in zip(("query", "key", "value"), use)):
            found.append(Departure("exchanged", label, {"use": use}))
    return found


def dropout(q):
    if not q.dropout:
        found = []
        for p in (0.1, 0.2, 0.5):
            keep = np.random.RandomState(7).random_sample((q.entries, q.heads, q.queries, q.keys)) >= p
            found.append(Departure("dropout", f"left on, {p}", {"dropout_mask": keep / (1 - p)},
                                   arrays=("attention_weights",)))
        return found
    return [Departure("dropout", "off", {"dropout_mask": None}),
            Departure("dropout", "not rescaled", {"dropout_mask": np.asarray(q.dropout_mask > 0, np.float64)})]


def precision(q):
    found = []
    for kind in ("float16", "bfloat16"):
        for what in ("operands", "projected", "scores", "weights", "outputs"):
            if what == "projected" and q.mode == "sdpa" or what == "outputs" and "out" not in q.weights:
                continue
            found.append(Departure("precision", f"{what} in {kind}", {"rounded": {what: kind}}))
        found.append(Departure("precision", f"scores and weights in {kind}", {"rounded": {"scores": kind, "weights": kind}}))
    found += [Departure("precision", f"{what} accumulated in float16", {"accumulated": frozenset([what])})
              for what in ("scores", "outputs")]
    return found


def mask_method(q):
    if not has_exclusions(q):
        return []
    return [Departure("mask_method", "weights not renormalized", {"blocking": "after"})]


ALTERNATIVES = {f.__name__: f for f in (
    mask_polarity, masked_value, causal_align, causal, window_left, window_right, scale, rope_pairs, rope_base,
    rope_dims, rope_positions, rope_keys, head_groups, softcap, softcap_order, alibi_sign, alibi_slopes, sink,
    kv_lengths, softmax_axis, transposed, heads_split, bias, exchanged, dropout, precision, mask_method,
    out_proj)}

# What a question must have for a convention to matter.
NEEDS = {
    "mask_polarity": ("boolean_mask",), "masked_value": ("boolean_mask", "empty_rows"),
    "causal_align": ("causal", "lengths_differ"), "causal": ("causal",), "window_left": ("window",),
    "window_right": ("window", "full_window"), "rope_pairs": ("rope",), "rope_base": ("rope",), "rope_dims": ("rope",),
    "rope_positions": ("rope", "cache"), "rope_keys": ("rope",), "head_groups": ("groups", "heads"),
    "softcap": ("softcap",), "softcap_order": ("softcap",), "alibi_sign": ("alibi",), "alibi_slopes": ("alibi", "heads"),
    "sink": ("sink",), "kv_lengths": ("kv_lengths",), "transposed": ("square",), "heads_split": ("heads",),
    "bias": ("bias", "projections"), "exchanged": ("same_widths", "square"), "dropout": ("dropout",),
    "mask_method": ("causal",), "out_proj": ("out", "square", "projections"),
}
