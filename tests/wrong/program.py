"""A program of attention that follows a question's settings, unless a departure changes them.

Written from the definitions of the operator, step by step on whole arrays of shape
(batch, heads, queries, keys).
"""

import dataclasses

import numpy as np


@dataclasses.dataclass
class Program:
    """What a program does. `Program.of(question)` does what is asked."""
    use: tuple = ("query", "key", "value")  # the projection, or operand, that is taken for each
    transposed: frozenset = frozenset()
    without_bias: frozenset = frozenset()
    split: str = "columns"  # columns, reshape, interleaved
    merge: str = "columns"  # columns, reshape, interleaved
    projects_out: bool = True
    groups: str = "blocks"  # blocks, tiled

    rope: object = None
    rope_base: float = 10000
    rope_dims: int = 0
    rope_width: int = 0  # the width in the exponent; 0: as rope_dims
    rope_scaling: float = 1
    first_query: int = 0
    first_key: int = 0
    query_turns: int = 1
    key_turns: int = 1

    scale: float = 1
    scale_is_folded: bool = False  # queries are scaled before the product
    softcap: float = 0
    softcap_factor: object = None  # c * tanh(x / c) by default
    order: tuple = ("scale", "softcap", "alibi", "additive", "block")
    slopes: object = None  # (heads,)
    alibi_distance: str = "absolute"  # or signed

    causal: bool = False
    causal_shift: int = 0
    causal_reversed: bool = False
    offsets: object = None  # (batch,)
    window_offsets: object = None
    left: int = -1
    right: int = -1
    kv_lengths: object = None
    true_keeps: dict = dataclasses.field(default_factory=lambda: {"mask": True, "padding": True})
    mask_use: dict = dataclasses.field(default_factory=lambda: {"mask": "asked", "padding": "asked"})

    blocking: str = "before"  # before; after: weights set to 0; renormalize: and divided by their sums
    masked_value: float = -np.inf
    masked_value_added: bool = False
    empty_rows: float = 0  # the weights of a query without keys; NaN where 0 is divided by 0
    axis: str = "keys"  # keys, queries, heads, batch
    sink: object = None
    dropout_mask: object = None
    rounded: dict = dataclasses.field(default_factory=dict)  # float16 or bfloat16 by what is rounded
    accumulated: frozenset = frozenset()  # the products, of scores and outputs, that add in float16
    backward: dict = dataclasses.field(default_factory=dict)  # what gradients() does otherwise

    @staticmethod
    def of(q):
        true_keeps = q.mask_true != "drop"
        scale = q.scale if q.scale is not None else 1 / np.sqrt(q.d)
        slopes = q.slopes() if q.alibi else None
        left, right = q.window or (-1, -1)
        return Program(rope=q.rope, rope_base=q.rope_base, rope_dims=q.rope_dims or q.d, rope_scaling=q.rope_scaling,
                       first_query=q.past, first_key=q.past, scale=scale, softcap=q.softcap, slopes=slopes,
                       causal=q.causal, offsets=q.offsets(), left=left, right=right, kv_lengths=q.kv_lengths,
                       true_keeps={"mask": true_keeps, "padding": true_keeps}, sink=q.sink,
                       dropout_mask=q.dropout_mask, blocking="renormalize" if q.renormalize else "before")


def round_to(array, kind, dtype):
    """Rounds to float16 or bfloat16, ties to even."""
    if kind == "float16":
        with np.errstate(over="ignore"):
            return array.astype(np.float16).astype(dtype)
    words = np.ascontiguousarray(array, np.float32).view(np.uint32).astype(np.uint64)
    rounded = ((words + 0x7FFF + ((words >> 16) & 1)) >> 16 << 16).astype(np.uint32).view(np.float32)
    return np.where(np.isfinite(array), rounded, array).astype(dtype)


def run(q, p, dtype=np.float64):
    """All arrays of attn, each (batch, heads, rows, columns) or, without heads, (batch, tokens, width)."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore", under="ignore"):
        return Run(q, p, dtype).arrays()


class Run:
    def __init__(self, q, p, dtype):
        self.q, self.p, self.dtype = q, p, dtype

    def cast(self, array, what=None):
        array = np.asarray(array, self.dtype)
        return round_to(array, self.p.rounded[what], self.dtype) if what in self.p.rounded else array

    def arrays(self):
        q, p = self.q, self.p
        queries, keys, values = self.projected()
        queries = self.rotated(queries, p.first_query, p.query_turns)
        keys = self.rotated(keys, p.first_key, p.key_turns)
        result = {"queries": queries, "keys": keys, "values": values}
        if q.past:
            keys = np.concatenate([self.cast(q.past_key, "operands"), keys], 2)
            values = np.concatenate([self.cast(q.past_value, "operands"), values], 2)
        result |= {"present_key": keys, "present_value": values}
        group = np.arange(q.heads) // (q.heads // q.kv_heads) if p.groups == "blocks" else \
            np.arange(q.heads) % q.kv_heads
        keys, values = keys[:, group], values[:, group]

        if p.scale_is_folded:
            queries = queries * self.dtype(p.scale)
        scores = self.cast(self.product("scores", queries, keys.swapaxes(-1, -2)), "scores")
        result["scores"] = scores
        self.kept = {"queries": queries, "keys": keys, "values": values, "group": group}
        scores, excluded = self.steps(scores, result)
        weights = self.weights(scores, excluded, result)
        self.kept |= {"steps": scores, "softmax": weights}
        result["weights_before_dropout"] = weights
        if p.dropout_mask is not None:
            weights = weights * self.cast(p.dropout_mask)
        weights = self.cast(weights, "weights")
        self.kept["weights"] = weights
        result["attention_weights"] = weights
        result["head_outputs"] = outputs = self.cast(self.product("outputs", weights, values), "outputs")
        result["context_vectors"] = self.joined(outputs)
        return result

    def product(self, what, left, right):
        if what in self.p.accumulated:
            return (left.astype(np.float16) @ right.astype(np.float16)).astype(self.dtype)
        return left @ right

    # Projections and heads.
    def projected(self):
        q, p = self.q, self.p
        counts = {"query": q.heads, "key": q.kv_heads, "value": q.kv_heads}
        made = []
        for place, source in zip(("query", "key", "value"), p.use):
            if q.mode == "sdpa":
                array = self.cast(q.operands[source], "operands")
                if source in p.transposed:
                    array = array.swapaxes(-1, -2)
                if q.form == "packed" and p.split != "columns":
                    columns = array.transpose(0, 2, 1, 3)
                    array = self.heads_of(columns.reshape(*columns.shape[:2], -1), counts[source])
            else:
                inputs = q.context if place != "query" and q.context is not None else q.x
                array = self.heads_of(self.linear(inputs, source), counts[source])
            made.append(self.cast(array, "projected"))
        return made

    def linear(self, inputs, tensor):
        weight = self.cast(self.q.weights[tensor], "operands")
        array = self.cast(inputs, "operands" if tensor != "out" else None) @ \
            (weight if tensor in self.p.transposed else weight.T)
        if tensor in self.q.biases and tensor not in self.p.without_bias:
            array = array + self.cast(self.q.biases[tensor], "operands")
        return array

    def heads_of(self, columns, count):
        batch, tokens, width = columns.shape
        if self.p.split == "reshape":  # .view(batch, heads, tokens, d), without a transpose
            return columns.reshape(batch, count, tokens, width // count)
        if self.p.split == "interleaved":  # .view(batch, tokens, d, heads)
            return columns.reshape(batch, tokens, width // count, count).transpose(0, 3, 1, 2)
        return columns.reshape(batch, tokens, count, width // count).transpose(0, 2, 1, 3)

    def joined(self, outputs):
        batch, heads, tokens, d = outputs.shape
        if self.q.mode == "sdpa" and self.q.form != "packed":
            return outputs
        if self.p.merge == "reshape":
            columns = outputs.reshape(batch, tokens, heads * d)
        elif self.p.merge == "interleaved":
            columns = outputs.transpose(0, 2, 3, 1).reshape(batch, tokens, heads * d)
        else:
            columns = outputs.transpose(0, 2, 1, 3).reshape(batch, tokens, heads * d)
        return self.linear(columns, "out") if "out" in self.q.weights and self.p.projects_out else columns

    def rotated(self, array, first, turns):
        p = self.p
        if p.rope is None:
            return array
        dims = min(p.rope_dims, array.shape[-1])
        width = p.rope_width or dims
        pairs = np.arange(dims // 2)
        positions = (first + np.arange(array.shape[-2])) / p.rope_scaling
        angles = turns * positions[:, None] * p.rope_base ** (-2.0 * pairs / width)
        cos, sin = self.cast(np.cos(angles)), self.cast(np.sin(angles))
        one, two = (2 * pairs, 2 * pairs + 1) if p.rope == "interleaved" else (pairs, pairs + dims // 2)
        rotated = array.copy()
        rotated[..., one] = cos * array[..., one] - sin * array[..., two]
        rotated[..., two] = sin * array[..., one] + cos * array[..., two]
        return rotated

    # Scores.
    def steps(self, scores, result):
        """The input of the softmax, and which keys are excluded after it, if not by their score."""
        q, p = self.q, self.p
        excluded, bias = self.masks()
        for stage in p.order:
            if stage == "scale":
                scores = scores * self.dtype(1 if p.scale_is_folded else p.scale)
                result["scaled_scores"] = scores
            elif stage == "softcap":
                if p.softcap:
                    factor = p.softcap if p.softcap_factor is None else p.softcap_factor
                    scores = self.dtype(factor) * np.tanh(scores / self.dtype(p.softcap))
                result["capped_scores"] = scores
            elif stage == "alibi" and p.slopes is not None:
                scores = scores + self.cast(np.asarray(p.slopes)[:, None, None] * self.distances())
            elif stage == "additive":
                for mask in bias:
                    scores = scores + self.cast(mask)
                for name, mask in self.booleans():
                    if p.mask_use[name] == "added": scores = scores + self.cast(mask)
                    if p.mask_use[name] == "multiplied": scores = scores * self.cast(mask)
            elif stage == "block" and p.blocking == "before":
                value = self.dtype(p.masked_value)
                scores = np.where(excluded, scores + value if p.masked_value_added else value, scores)
        result["biased_scores"] = scores
        return scores, None if p.blocking == "before" else excluded

    def distances(self):
        """(batch, 1, queries, keys): a key's position less the query's."""
        keys = np.arange(self.q.keys)
        at = self.p.offsets[:, None, None, None] + np.arange(self.q.queries)[:, None]
        distance = keys - at
        if self.p.alibi_distance == "absolute": return -np.abs(distance)
        return distance

    def masks(self):
        """Which keys are excluded, and the masks that are added."""
        q, p = self.q, self.p
        keys = np.arange(q.keys)
        at = p.offsets[:, None, None, None] + np.arange(q.queries)[:, None]
        excluded = np.zeros((q.entries, 1, q.queries, q.keys), bool)
        if p.causal:
            excluded |= keys < at + p.causal_shift if p.causal_reversed else keys > at + p.causal_shift
        window_at = at if p.window_offsets is None else \
            p.window_offsets[:, None, None, None] + np.arange(q.queries)[:, None]
        if p.left >= 0: excluded |= keys < window_at - p.left
        if p.right >= 0: excluded |= keys > window_at + p.right
        if p.kv_lengths is not None:
            excluded |= keys >= np.array(p.kv_lengths)[:, None, None, None]
        for name, mask in self.booleans():
            if p.mask_use[name] == "asked":
                excluded = excluded | (~mask if p.true_keeps[name] else mask)
        bias = []
        for name, mask in self.given_masks():
            if mask.dtype != bool and p.mask_use[name] != "ignored":
                bias.append(-mask if p.mask_use[name] == "negated" else mask)
        return excluded, bias

    def given_masks(self):
        """Each as (batch, heads, queries, keys), or broadcast to it."""
        if self.q.mask is not None:
            yield "mask", self.q.mask
        if self.q.padding is not None:
            yield "padding", self.q.padding[:, None, None, :]

    def booleans(self):
        return [(name, mask) for name, mask in self.given_masks() if mask.dtype == bool]

    # Weights.
    def weights(self, scores, excluded, result):
        axis = {"keys": -1, "queries": -2, "heads": 1, "batch": 0}[self.p.axis]
        largest = scores.max(axis, keepdims=True)
        sink = None
        if self.p.sink is not None:
            sink = self.cast(self.p.sink)[:, None, None]
            largest = np.maximum(largest, sink)
        largest = np.where(np.isneginf(largest), self.dtype(0), largest)
        powers = np.exp(scores - largest)
        total = powers.sum(axis, keepdims=True)
        if sink is not None:
            total = total + np.exp(sink - largest)
            self.kept["sink"] = np.exp(sink - largest) / total
        result["logsumexp"] = (np.log(total) + largest)[..., 0] if axis == -1 else None
        weights = np.where(total > 0, powers / np.where(total > 0, total, 1), self.dtype(self.p.empty_rows))
        if excluded is not None:
            weights = np.where(excluded, self.dtype(0), weights)
            if self.p.blocking == "renormalize":
                total = weights.sum(-1, keepdims=True)
                weights = weights / np.where(total > 0, total, 1)
        return weights


class Backward(Run):
    """The gradients of a loss, from those by the context vectors, in full shapes."""

    def to(self, array):
        return self.cast(array, "gradients")

    def gradients(self, upstream):
        q, p, how = self.q, self.p, self.p.backward
        made = self.arrays()
        k = self.kept
        grad, result = self.to(upstream * how.get("factor", 1)), {}
        if "out" in q.weights:
            outputs = made["head_outputs"].transpose(0, 2, 1, 3)
            grad = self.linear_back("out", outputs.reshape(*outputs.shape[:2], -1), grad, result)
        if grad.ndim == 3:
            grad = grad.reshape(*grad.shape[:2], q.heads, -1).transpose(0, 2, 1, 3)
        by = self.to(grad @ k["values"].swapaxes(-1, -2))
        softmax, weights = k["softmax"], k["weights"]
        term_weights, dropped, sink = softmax, self.dtype(1), k.get("sink")
        if "without" in how:
            other = Run(q, dataclasses.replace(p, backward={}, **how["without"]), self.dtype)
            sums = other.arrays()["logsumexp"]
            softmax = other.kept["softmax"]
            if how["keeps_sum"]:
                softmax = softmax * np.exp(sums - made["logsumexp"])[..., None]
            else:
                term_weights, sink = softmax, other.kept.get("sink")
            weights = softmax
        if p.dropout_mask is not None:
            mask, kept = self.cast(p.dropout_mask), p.dropout_mask > 0
            dropped = np.where(kept, mask.max() ** self.dtype(how.get("dropout_factors", 1)), 0) if how.get("drops", True) else 1
            weights = softmax * (mask if how.get("drops_values", True) else 1)
            by = self.to(by * dropped)
        values = self.to(weights.swapaxes(-1, -2) @ grad)
        if how.get("term") == "dropped": term_weights = k["weights"]
        term = 0 if how.get("term") == "none" else (term_weights * by).sum(-1, keepdims=True)
        if sink is not None:
            result["grad_sink"] = -(sink * term).sum((0, 2, 3))
        by = self.to(softmax * (by - term))
        for name, mask in self.given_masks():
            if mask.dtype != bool:
                given = q.mask if name == "mask" else q.padding
                shape = given.shape if name == "mask" else mask.shape
                total = by
                for axis in range(4 - len(shape)): total = total.sum(0)
                for axis, size in enumerate(shape):
                    if size == 1: total = total.sum(axis, keepdims=True)
                result["grad_" + ("mask" if name == "mask" else "key_padding_mask")] = total.reshape(given.shape)
        if p.softcap:
            scaled = made["scaled_scores"]
            x = {"of_capped": made["capped_scores"]}.get(how.get("cap"), scaled) / self.dtype(p.softcap)
            slope = 1 - np.tanh(x) ** 2
            if how.get("cap") == "none": slope = 1
            if how.get("cap") == "unscaled": slope = 1 - made["capped_scores"] ** 2
            by = self.to(by * slope)
        scale = self.dtype(p.scale)
        by_query, by_key = (self.to(by * scale ** how.get(side, 1)) for side in ("query_scale", "key_scale"))
        query, key = self.to(by_query @ k["keys"]), self.to(by_key.swapaxes(-1, -2) @ k["queries"])
        key, values = (self.grouped(array, k["group"]) for array in (key, values))
        if q.past:
            result |= {"grad_past_key": key[:, :, :q.past], "grad_past_value": values[:, :, :q.past]}
            key, values = key[:, :, q.past:], values[:, :, q.past:]
        query = self.to(self.rotated(query, p.first_query, how.get("query_turns", -1)))
        key = self.to(self.rotated(key, p.first_key, how.get("key_turns", -1)))
        sources = {"query": "inputs", "key": "context" if q.context is not None else "inputs"}
        sources["value"] = sources["key"]
        for name, array in (("query", query), ("key", key), ("value", values)):
            if q.mode == "sdpa":
                result["grad_" + name] = array
                continue
            columns = array.transpose(0, 2, 1, 3).reshape(array.shape[0], array.shape[2], -1)
            x = self.cast(q.context if sources[name] == "context" else q.x, "operands")
            of_source = self.linear_back(name, x, columns, result)
            total = "grad_" + sources[name]
            result[total] = self.to(result[total] + of_source) if total in result else of_source
        return {name: np.asarray(array, np.float64) for name, array in result.items()}

    def grouped(self, array, group):
        how = self.p.backward.get("groups", "all")
        made = []
        for head in range(self.q.kv_heads):
            own = array[:, group == head]
            made.append({"all": own.sum(1), "mean": own.mean(1), "first": own[:, 0], "last": own[:, -1]}[how])
        return self.to(np.stack(made, 1))

    def linear_back(self, tensor, x, grad, result):
        weight = self.cast(self.q.weights[tensor], "operands")
        rows = grad.reshape(-1, grad.shape[-1])
        by_weight = self.to(rows.T @ x.reshape(-1, x.shape[-1]))
        if self.p.backward.get("transposed"):
            by_weight = by_weight.T.reshape(by_weight.shape)
        result["grad_W_" + tensor] = by_weight
        if tensor in self.q.biases:
            result["grad_b_" + tensor] = self.to(rows.mean(0) if self.p.backward.get("mean_bias") else rows.sum(0))
        return self.to(grad @ weight)


def shaped(q, name, array):
    """In the axes that attn gives the array."""
    of_heads = ("grad_query", "grad_key", "grad_value")
    if name in ("grad_inputs", "grad_context"):
        return array if q.batch else array[0]
    if name in of_heads and q.form == "packed":
        array = array.transpose(0, 2, 1, 3)
        array = array.reshape(*array.shape[:2], -1)
        return array if q.batch else array[0]
    if name.startswith("grad_") and name not in (*of_heads, "grad_past_key", "grad_past_value"):
        return array  # of parameters and masks
    if name == "context_vectors" and (q.mode != "sdpa" or q.form == "packed"):
        return array if q.batch else array[0]
    if not q.has_heads_axis:
        array = array[:, 0]
    return array if q.batch else array[0]
