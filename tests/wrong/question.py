"""Random questions about attention, and attn's command for each."""

import dataclasses
import json

import numpy as np

# How often each part occurs that is not asked for.
CHANCES = {
    "rope": 0.3, "rope_dims": 0.25, "rope_base": 0.3, "rope_scaling": 0.1, "softcap": 0.2, "alibi": 0.15, "sink": 0.15,
    "causal": 0.5, "lengths_differ": 0.5, "window": 0.25, "boolean_mask": 0.25, "additive_mask": 0.15, "padding": 0.15,
    "kv_lengths": 0.2, "cache": 0.2, "groups": 0.35, "heads": 0.6, "scale": 0.25, "bias": 0.4, "dropout": 0.1,
    "renormalize": 0.15, "square": 0.3, "projections": 0.7, "empty_rows": 0.1, "batch": 0.5, "same_widths": 0.4,
    "full_window": 0.5, "out": 0.7, "packed": 0.3, "odd_heads": 0.2, "high_scores": 0.3,
}


def geometric_slopes(heads):
    return 2.0 ** (-8.0 * np.arange(1, heads + 1) / heads)


def published_slopes(heads):
    """Those of the ALiBi paper's own code."""
    power = 2 ** int(np.floor(np.log2(heads)))
    slopes = list(geometric_slopes(power))
    if power < heads:
        slopes += list(geometric_slopes(2 * power))[0::2][: heads - power]
    return np.array(slopes)


@dataclasses.dataclass
class Question:
    """Sizes, operands and settings. Operands hold float32 numbers, as float64."""
    mode: str = "sdpa"
    batch: int = 0  # 0: no batch axis
    heads: int = 1
    kv_heads: int = 1
    queries: int = 1
    new_keys: int = 1
    past: int = 0
    d: int = 2  # of a head
    d_v: int = 2
    form: str = "4d"  # of the operands of sdpa: 2d, 3d, 4d, packed
    x: object = None  # (batch, queries, d_in)
    context: object = None  # (batch, new_keys, d_context)
    weights: dict = dataclasses.field(default_factory=dict)  # by tensor: (out, in)
    biases: dict = dataclasses.field(default_factory=dict)
    operands: dict = dataclasses.field(default_factory=dict)  # of sdpa: (batch, heads, len, d)
    past_key: object = None  # (batch, kv_heads, past, d)
    past_value: object = None
    scale: object = None
    softcap: float = 0
    alibi: bool = False
    alibi_slopes: object = None  # None: as published; "geometric", or a list
    rope: object = None  # "half", "interleaved"
    rope_base: float = 10000
    rope_dims: int = 0  # 0: all
    rope_scaling: float = 1
    sink: object = None
    causal: bool = False
    align: object = None
    window: object = None
    mask: object = None
    mask_true: object = None
    padding: object = None
    kv_lengths: object = None
    dropout: float = 0
    dropout_mask: object = None  # (batch, heads, queries, keys), from attn itself
    renormalize: bool = False

    def slopes(self):
        """Of ALiBi, one per head."""
        if self.alibi_slopes is None: return published_slopes(self.heads)
        if self.alibi_slopes == "geometric": return geometric_slopes(self.heads)
        return np.array(self.alibi_slopes)

    @property
    def keys(self):
        return self.past + self.new_keys

    @property
    def entries(self):
        return max(self.batch, 1)

    @property
    def has_heads_axis(self):
        return self.mode in ("multihead", "cross") or \
            (self.mode == "sdpa" and self.form != "2d")

    def offsets(self):
        """From a query's index to its position among the keys, one per batch entry."""
        if self.align != "bottom-right":
            return np.full(self.entries, self.past)
        lengths = self.kv_lengths if self.kv_lengths is not None else [self.keys] * self.entries
        return np.array(lengths) - self.queries

    def request(self):
        """The document of attn's INPUT."""
        def listed(array, axes):
            array = np.asarray(array)
            if axes == 4:
                array = array[0] if not self.batch else array
                array = array[..., 0, :, :] if not self.has_heads_axis else array
            elif axes == 3 and not self.batch:
                array = array[0]
            return with_infinities(array.tolist())

        request = {}
        if self.mode == "sdpa":
            for name, array in self.operands.items():
                if self.form == "packed":
                    joined = array.transpose(0, 2, 1, 3)
                    request[name] = listed(joined.reshape(*joined.shape[:2], -1), 3)
                else:
                    request[name] = listed(array, 4)
        else:
            request["inputs"] = listed(self.x, 3)
            if self.context is not None:
                request["context"] = listed(self.context, 3)
        if self.past:
            request["past_key"], request["past_value"] = listed(self.past_key, 4), listed(self.past_value, 4)
        if self.mask is not None:
            request["mask"] = with_infinities(self.mask.tolist())
        if self.padding is not None:
            request["key_padding_mask"] = with_infinities(self.padding.tolist())
        return request

    def settings(self, weights_file="weights.npz"):
        """As keys of a request."""
        given = {}
        if self.mode in ("multihead", "cross") or self.form == "packed":
            given |= {"heads": self.heads, "kv_heads": self.kv_heads if self.kv_heads != self.heads else None}
        if self.weights:
            given |= {"weights": weights_file, "family": "notebook", "weights_layout": "out-in"}
        if self.causal and self.mode in ("cross", "sdpa") or not self.causal and self.mode == "multihead":
            given["causal"] = self.causal
        given |= {"causal_align": self.align, "window": self.window, "mask_true": self.mask_true,
                  "kv_lengths": self.kv_lengths, "mask_method": "renormalize" if self.renormalize else None,
                  "scale": self.scale, "softcap": self.softcap or None, "sink": self.sink}
        if self.alibi:
            given |= {"alibi": True, "alibi_slopes": self.alibi_slopes}
        if self.rope:
            given |= {"rope": self.rope, "rope_base": self.rope_base, "rope_dims": self.rope_dims or None,
                      "rope_scaling": self.rope_scaling if self.rope_scaling != 1 else None}
        if self.dropout:
            given |= {"dropout": self.dropout, "dropout_seed": 5}
        return {key: value for key, value in given.items() if value is not None}

    def flags(self, weights_file="weights.npz"):
        flags = []
        for key, value in self.settings(weights_file).items():
            name = key.replace("_", "-")
            if isinstance(value, bool):
                flags += ["--" + name if value else "--no-" + name]
            elif isinstance(value, str):
                flags += ["--" + name, value]
            else:
                flags += ["--" + name, ",".join(map(repr, value)) if isinstance(value, (list, tuple)) else repr(value)]
        return flags

    def write(self, folder):
        """request.json and weights.npz."""
        (folder / "request.json").write_text(json.dumps(self.request()))
        if self.weights:
            names = {"query": "W_query", "key": "W_key", "value": "W_value", "out": "out_proj"}
            np.savez(folder / "weights.npz",
                     **{f"{names[t]}.weight": w.astype(np.float32) for t, w in self.weights.items()},
                     **{f"{names[t]}.bias": b.astype(np.float32) for t, b in self.biases.items()})


    def in_files(self, rng, by_columns=0.2):
        """Its operands as words of a command, each in a file of the folder, of any type, and as often in this order."""
        words = []
        for name, values in self.request().items():
            array = np.array(values)
            if array.dtype != bool:
                array = np.array(values, rng.choice((np.float64, np.float32, np.float16)))
            np.save(name, np.asfortranarray(array) if rng.random() < by_columns else array)
            words += ["--" + name.replace("_", "-")] * (name != "inputs") + [name + ".npy"]
        return words

    def draw(self, rng):
        """Flags by which attn draws the parameters, which become none."""
        self.weights = {}
        flags = ["--seed", str(rng.randint(0, 99)), "--d-k", str(self.heads * self.d), "--d-v", str(self.heads * self.d_v),
                 "--init", rng.choice(["linear", "rand", "xavier"] + ["mha"] * (self.mode in ("multihead", "cross")))]
        flags += ["--qkv-bias"] * (rng.random() < 0.3)
        if self.mode == "multihead" and rng.random() < 0.5:
            return flags + ["--style", "wrapper"]
        return flags + [rng.choice(["--out-proj", "--no-out-proj"])] * (self.mode in ("multihead", "cross"))


def with_infinities(numbers):
    """JSON has none."""
    if isinstance(numbers, list):
        return [with_infinities(number) for number in numbers]
    return "-Infinity" if numbers == -np.inf else numbers


def random_question(rng, wanted=(), unwanted=(), longest=40, more_keys=9):
    """A question with the wanted parts, where its mode allows them. `rng` is a random.Random."""
    draws = np.random.RandomState(rng.randrange(2**32))
    has = {part: part not in unwanted and (part in wanted or rng.random() < chance)
           for part, chance in CHANCES.items()}
    q = Question()

    def numbers(*shape, spread=1.0):
        return (draws.standard_normal(shape) * spread).astype(np.float32).astype(np.float64)

    # Sizes and mode.
    q.batch = rng.randint(1, 3) if has["batch"] else 0
    if has["heads"] or has["groups"] or has["odd_heads"]:
        q.heads = rng.choice([3, 5, 6]) if has["odd_heads"] else rng.choice([2, 4, 8])
    q.kv_heads = rng.choice([g for g in range(1, q.heads + 1) if q.heads % g == 0 and (g > 1 or q.heads < 4)]) \
        if has["groups"] else q.heads
    q.queries = rng.choice([rng.randint(1, 6), rng.randint(3, 16), rng.randint(1, longest)])
    q.new_keys = rng.choice([q.queries + rng.randint(1, more_keys), max(1, q.queries - rng.randint(1, 5))]) \
        if has["lengths_differ"] else q.queries
    q.d = 2 * rng.randint(1, 8)
    if has["rope_dims"]:
        q.d = max(q.d, 4)
    if not has["rope"] and rng.random() < 0.3:
        q.d = rng.choice([1, 3, 5, 7])
    q.d_v = q.d if has["same_widths"] or rng.random() < 0.5 else rng.randint(1, 12)
    if has["projections"]:
        modes = ["multihead", "multihead", "cross"] if q.heads > 1 else ["self", "causal", "multihead", "cross"]
        if has["lengths_differ"]:
            modes = ["cross"]
        q.mode = rng.choice(modes)
        if q.mode in ("self", "causal", "multihead"):
            q.new_keys = q.queries
    else:
        q.form = "packed" if has["packed"] else "4d" if q.batch else "2d" if q.heads == 1 else "3d"
    if has["cache"] and q.form != "packed":
        q.past = rng.randint(1, 8)

    # Operands.
    sharpness = 1.6 if has["high_scores"] else 1.0
    if q.mode == "sdpa":
        q.operands = {"query": numbers(q.entries, q.heads, q.queries, q.d, spread=sharpness),
                      "key": numbers(q.entries, q.kv_heads, q.new_keys, q.d, spread=sharpness),
                      "value": numbers(q.entries, q.kv_heads, q.new_keys, q.d_v)}
    else:
        d_in = q.heads * q.d if has["square"] else rng.randint(2, 24)
        d_context = d_in if has["square"] or q.mode != "cross" else rng.choice([d_in, rng.randint(2, 16)])
        q.x = numbers(q.entries, q.queries, d_in)
        if q.mode == "cross":
            q.context = numbers(q.entries, q.new_keys, d_context)
        widths = {"query": (q.heads * q.d, d_in), "key": (q.kv_heads * q.d, d_context),
                  "value": (q.kv_heads * q.d_v, d_context)}
        if q.mode in ("multihead", "cross") and (has["out"] or q.mode == "multihead"):
            width = q.heads * q.d_v
            widths["out"] = (width if has["square"] or rng.random() < 0.6 else rng.randint(1, 16), width)
        for tensor, shape in widths.items():
            q.weights[tensor] = numbers(*shape, spread=sharpness / shape[1] ** 0.5)
            if has["bias"]:
                q.biases[tensor] = numbers(shape[0], spread=0.7)
    if q.past:
        q.past_key = numbers(q.entries, q.kv_heads, q.past, q.d, spread=sharpness)
        q.past_value = numbers(q.entries, q.kv_heads, q.past, q.d_v)

    draw_settings(q, rng, draws, has, numbers)
    return q


def draw_settings(q, rng, draws, has, numbers):
    if has["scale"]:
        q.scale = rng.choice([1.0, 0.25, 0.5, 0.2, 0.7])
    if has["softcap"]:
        q.softcap = rng.choice([1.0, 2.0, 3.5, 5.0, 20.0])
    q.alibi = has["alibi"]
    if q.alibi and rng.random() < 0.4:
        of_heads = [round(rng.uniform(0.05, 0.9), 2) for _ in range(q.heads)]
        q.alibi_slopes = rng.choice(["geometric", of_heads])
    if has["rope"] and q.d % 2 == 0:
        q.rope = rng.choice(["half", "interleaved"])
        if has["rope_base"]:
            q.rope_base = rng.choice([100.0, 500.0, 1000.0, 500000.0, 1000000.0])
        if has["rope_dims"] and q.d >= 4:
            q.rope_dims = 2 * rng.randint(1, q.d // 2 - 1)
        if has["rope_scaling"]:
            q.rope_scaling = rng.choice([2.0, 4.0])
    if has["sink"]:
        q.sink = [round(float(s), 2) for s in draws.uniform(-1, 2, q.heads)]
    q.causal = q.mode == "causal" or (has["causal"] and q.mode != "self")
    if has["window"]:
        longest = max(2, q.keys // 2)
        left, right = rng.randint(0, longest), rng.randint(0, longest)
        q.window = rng.choice([(left, -1), (left, 0)]) if not has["full_window"] else (left, right)
    if q.causal and q.queries != q.new_keys or (rng.random() < 0.4 and (q.causal or q.window or q.alibi)):
        q.align = rng.choice(["top-left", "bottom-right"])

    def mask_shape():
        return rng.choice([(q.queries, q.keys), (1, q.keys), (q.heads, q.queries, q.keys), (q.heads, 1, q.keys),
                           (q.entries, 1, q.queries, q.keys), (q.entries, q.heads, q.queries, q.keys)])

    def additive(shape):
        mask = numbers(*shape, spread=1.5)
        mask[draws.random_sample(shape) < 0.2] = -np.inf
        return mask

    if has["boolean_mask"]:
        q.mask = draws.random_sample(mask_shape()) < 0.7
    elif has["additive_mask"]:
        q.mask = additive(mask_shape())
    if has["padding"]:
        shape = (q.entries, q.keys)
        is_boolean = q.mask is None or q.mask.dtype == bool or rng.random() < 0.5
        q.padding = draws.random_sample(shape) < 0.7 if is_boolean else additive(shape)
    if has["empty_rows"] and q.mask is not None and q.mask.dtype == bool:
        q.mask[..., rng.randrange(q.mask.shape[-2]), :] = False
    if any(m is not None and m.dtype == bool for m in (q.mask, q.padding)):
        q.mask_true = rng.choice(["keep", "drop"])
        for name in ("mask", "padding"):
            mask = getattr(q, name)
            if mask is not None and mask.dtype == bool and q.mask_true == "drop":
                setattr(q, name, ~mask)
    if has["kv_lengths"]:
        q.kv_lengths = [rng.randint(0 if has["empty_rows"] else 1, q.keys) for _ in range(q.entries)]
    if has["dropout"]:
        q.dropout = rng.choice([0.1, 0.2, 0.5])
    q.renormalize = has["renormalize"] and (q.causal or q.mask is not None or q.window is not None)
