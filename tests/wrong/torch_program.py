"""A question in PyTorch, in any of its types on the processor. Needs torch."""

import torch

from .program import Program, Run


def fused_or_plain(q, dtype, is_fused):
    """Context vectors by scaled_dot_product_attention, or all arrays step by step; each in float64 as NumPy's."""
    p = Program.of(q)
    plain = Run(q, p, float)
    excluded, bias = plain.masks()
    excluded = torch.from_numpy(excluded)

    def cast(array):
        return torch.as_tensor(array, dtype=torch.float64).to(dtype)

    def projected(name, count):
        if q.mode == "sdpa":
            return cast(q.operands[name])
        inputs = q.context if name != "query" and q.context is not None else q.x
        bias_of = cast(q.biases[name]) if name in q.biases else None
        columns = torch.nn.functional.linear(cast(inputs), cast(q.weights[name]), bias_of)
        return columns.unflatten(-1, (count, -1)).transpose(1, 2)

    def rotated(array, first):
        if p.rope is None:
            return array
        pairs = torch.arange(p.rope_dims // 2)
        positions = (first + torch.arange(array.shape[-2])) / p.rope_scaling
        angles = positions[:, None].double() * p.rope_base ** (-2.0 * pairs.double() / p.rope_dims)
        cos, sin = angles.cos().to(dtype), angles.sin().to(dtype)
        one, two = (2 * pairs, 2 * pairs + 1) if p.rope == "interleaved" else (pairs, pairs + p.rope_dims // 2)
        turned = array.clone()
        turned[..., one] = cos * array[..., one] - sin * array[..., two]
        turned[..., two] = sin * array[..., one] + cos * array[..., two]
        return turned

    queries, keys = rotated(projected("query", q.heads), q.past), rotated(projected("key", q.kv_heads), q.past)
    values = projected("value", q.kv_heads)
    result = {"queries": queries, "keys": keys, "values": values}
    if q.past:
        keys, values = torch.cat([cast(q.past_key), keys], 2), torch.cat([cast(q.past_value), values], 2)
    keys, values = (t.repeat_interleave(q.heads // q.kv_heads, 1) for t in (keys, values))

    added = torch.zeros(q.entries, q.heads, q.queries, q.keys, dtype=torch.float64)
    if p.slopes is not None:
        added = added + torch.from_numpy(p.slopes[:, None, None] * plain.distances())
    for mask in bias:
        added = added + torch.from_numpy(mask)
    added = added.to(dtype).masked_fill(excluded, -torch.inf)
    if is_fused:
        outputs = torch.nn.functional.scaled_dot_product_attention(queries, keys, values, attn_mask=added, scale=float(p.scale))
        outputs = torch.where((added == -torch.inf).all(-1, keepdim=True), 0, outputs)
    else:
        scores = queries @ keys.transpose(-1, -2)
        scaled = scores * p.scale
        capped = p.softcap * torch.tanh(scaled / p.softcap) if p.softcap else scaled
        biased = capped + added
        if p.sink is not None:
            sinks = cast(p.sink).reshape(1, -1, 1, 1).expand(q.entries, -1, q.queries, 1)
            weights = torch.cat([biased, sinks], -1).softmax(-1)[..., :-1]
        else:
            weights = biased.softmax(-1).nan_to_num(0)  # a query without keys
        if p.dropout_mask is not None:
            weights = weights * cast(p.dropout_mask)
        outputs = weights @ values
        result |= {"scores": scores, "scaled_scores": scaled, "biased_scores": biased, "attention_weights": weights}
    result["head_outputs"] = outputs
    if q.mode != "sdpa" or q.form == "packed":
        outputs = outputs.transpose(1, 2).flatten(2)
    if "out" in q.weights:
        outputs = torch.nn.functional.linear(outputs, cast(q.weights["out"]),
                                             cast(q.biases["out"]) if "out" in q.biases else None)
    result["context_vectors"] = outputs
    return {name: array.double().numpy() for name, array in result.items()}
