"""Models' definitions in float64, their files, and the cases that tests read."""
import math

import numpy as np

from data_files.tensors import MODELS, Tensor, nested, safetensors_bytes, write, write_json


def layer_norm(x, weight, bias, eps):
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + eps) * weight + bias


def rms_norm(x, weight, eps):
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + eps) * weight


def split_heads(x, heads):
    """(tokens, heads * d) to (heads, tokens, d)."""
    return x.reshape(len(x), heads, -1).transpose(1, 0, 2)


def join_heads(x):
    return x.transpose(1, 0, 2).reshape(x.shape[1], -1)


def rope(x, base, dims):
    """Turns the pairs (i, i + dims/2) of the first `dims` by position * base^(-2i/dims)."""
    half = dims // 2
    angles = np.outer(np.arange(x.shape[1]), base ** (-2.0 * np.arange(half) / dims))
    a, b = x[..., :half], x[..., half:dims]
    turned = [a * np.cos(angles) - b * np.sin(angles), b * np.cos(angles) + a * np.sin(angles)]
    return np.concatenate(turned + [x[..., dims:]], axis=-1)


def softmax(scores):
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


def attend(q, k, v, causal, window=None):
    """Weights and head outputs; with grouped heads, query head h uses key head h // group."""
    group = len(q) // len(k)
    k, v = k.repeat(group, 0), v.repeat(group, 0)
    scores = q @ k.transpose(0, 2, 1) / math.sqrt(q.shape[-1])
    i, j = np.ogrid[:scores.shape[1], :scores.shape[2]]
    if causal:
        scores = np.where(j <= i, scores, -np.inf)
    if window is not None:
        scores = np.where(j > i - window, scores, -np.inf)
    weights = softmax(scores)
    return weights, weights @ v


def linear(x, weight, bias=None):
    """nn.Linear: weight (out, in)."""
    return x @ weight.T + (0 if bias is None else bias)


# ---- model files -----------------------------------------------------------------------------

class Weights:
    """Named tensors with random values; w["name"] are the values as stored, in float64."""

    def __init__(self, seed, dtype="F32"):
        self.tensors = {}
        self.random, self.dtype = np.random.default_rng(seed), dtype

    def normal(self, name, *shape, centre=0.0, dtype=None):
        self.put(name, centre + self.random.standard_normal(shape) * 0.3, dtype)

    def linear(self, name, d_out, d_in, bias=True, dtype=None):
        self.normal(name + ".weight", d_out, d_in, dtype=dtype)
        if bias:
            self.normal(name + ".bias", d_out, dtype=dtype)

    def norm(self, name, width, bias=True, dtype=None):
        self.normal(name + ".weight", width, centre=1.0, dtype=dtype)
        if bias:
            self.normal(name + ".bias", width, dtype=dtype)

    def put(self, name, values, dtype=None):
        self.tensors[name] = Tensor(values, dtype or self.dtype)

    def __getitem__(self, name):
        return self.tensors[name].values

    def renamed(self, rename):
        return {rename(name): tensor for name, tensor in self.tensors.items()}


def write_model(folder, tensors, config):
    write(MODELS / folder / "model.safetensors", safetensors_bytes(tensors, {"format": "pt"}))
    write_json(MODELS / folder / "config.json", config, indent=2)


def write_sharded(folder, shards, config):
    """Files model-0000n-of-0000m.safetensors and the index that maps tensors to files."""
    weight_map = {}
    for n, tensors in enumerate(shards, 1):
        file = f"model-{n:05}-of-{len(shards):05}.safetensors"
        write(MODELS / folder / file, safetensors_bytes(tensors, {"format": "pt"}))
        weight_map |= {name: file for name in tensors}
    total = sum(tensor.stored.nbytes for tensors in shards for tensor in tensors.values())
    write_json(MODELS / folder / "model.safetensors.index.json",
               {"metadata": {"total_size": total}, "weight_map": weight_map}, indent=2)
    write_json(MODELS / folder / "config.json", config, indent=2)


CASES = []


def fifteen_digits(array):
    """What a float64 keeps of any decimal: shorter than all 17, and off by 5e-16 of a value."""
    return np.vectorize(lambda value: float(f"{value:.15g}"))(array)


def add_case(case_id, family, path, steps=("inputs", "queries", "keys", "values"), **fields):
    """Keeps a request (plain fields) with the arrays it gives; of the steps, those named."""
    optional = {"inputs", "queries", "keys", "values"} - set(steps)
    CASES.append({"id": case_id, "family": family, "path": path} | {
        name: nested(fifteen_digits(value)) if isinstance(value, np.ndarray) else value
        for name, value in fields.items() if name not in optional})


def hidden_states(seed, tokens, width):
    """Sixteenths, so that float32 and a short decimal hold them."""
    return np.round(np.random.default_rng(seed).standard_normal((tokens, width)) * 16) / 16
