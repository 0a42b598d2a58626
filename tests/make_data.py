#!/usr/bin/env python3
"""Writes data/arrays/ and data/models/: files in the formats that NumPy and model hubs use, and
what they hold or give.

    python3 tests/make_data.py

Run by hand; its output is committed and the tests read that. Needs NumPy alone (1.24 wrote what is
committed) and is deterministic. .npy and .npz are written by NumPy. .safetensors are written by
`safetensors_bytes` below in the layout of the safetensors package: tensors by falling dtype then by
name, a compact header padded with spaces to a multiple of 8.

What the models give is computed here in float64 from the definition of each model, weights as they
are stored (bfloat16 and float16 included), and owes nothing to attn.
"""
import json
import math
import pathlib
import struct

import numpy as np

DATA = pathlib.Path(__file__).resolve().parent.parent / "data"
ARRAYS = DATA / "arrays"
MODELS = DATA / "models"


# ---- tensors and .safetensors ----------------------------------------------------------------

NUMPY_TYPES = {"BOOL": "|b1", "U8": "|u1", "I8": "|i1", "I16": "<i2", "U16": "<u2", "F16": "<f2",
               "BF16": "<u2", "I32": "<i4", "U32": "<u4", "F32": "<f4", "F64": "<f8", "I64": "<i8",
               "U64": "<u8"}  # in the package's order


def to_bfloat16(values):
    """The upper halves of float32, rounded to nearest, ties to even; finite values only."""
    bits = np.asarray(values, "<f4").view("<u4").astype(np.uint64)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype("<u2")


class Tensor:
    """Numbers as a file has them: `stored` for its bytes, `values` what they mean in float64."""

    def __init__(self, values, dtype="F32", bits=False):
        self.dtype = dtype
        if dtype == "BF16":
            self.stored = np.asarray(values, "<u2") if bits else to_bfloat16(values)
            floats = (self.stored.astype("<u4") << 16).view("<f4")
            self.values = floats.astype(np.float64)
        else:
            self.stored = np.asarray(values).astype(NUMPY_TYPES[dtype])
            self.values = self.stored.astype(np.float64)

    @property
    def shape(self):
        return self.stored.shape


def safetensors_bytes(tensors, metadata=None):
    rank = list(NUMPY_TYPES).index
    names = sorted(tensors, key=lambda name: (-rank(tensors[name].dtype), name))
    header, offset = {}, 0
    if metadata:
        header["__metadata__"] = metadata
    for name in names:
        size = tensors[name].stored.nbytes
        header[name] = {"dtype": tensors[name].dtype, "shape": list(tensors[name].shape),
                        "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + b"".join(
        np.ascontiguousarray(tensors[name].stored).tobytes() for name in names)


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())


def write_json(path, value, indent=None):
    separators = (",", ":") if indent is None else None
    text = json.dumps(value, indent=indent, separators=separators, sort_keys=indent is not None)
    write(path, text + "\n")


# ---- arrays ----------------------------------------------------------------------------------

def number(value):
    """A float64 as JSON: integers without a point, non-finite numbers as strings."""
    value = float(value)
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 and math.copysign(1, value) < 0:
        return value  # -0.0
    return int(value) if value == int(value) and abs(value) < 2**53 else value


def nested(array):
    array = np.asarray(array)
    return number(array) if array.ndim == 0 else [nested(part) for part in array]


class ArrayFiles:
    def __init__(self):
        self.readable, self.refused = [], []

    def expect(self, file, array, name=None, dtype=None):
        array = np.asarray(array)
        record = {"file": file}
        if name is not None:
            record["array"] = name
        self.readable.append(record | {
            "dtype": dtype or array.dtype.str, "shape": list(array.shape),
            "values": nested(array.astype(np.float64))})

    def npy(self, file, array, version=None):
        with open(ARRAYS / file, "wb") as out:
            np.lib.format.write_array(out, np.asanyarray(array), version=version)
        self.expect(file, array)

    def npz(self, file, arrays, save=np.savez):
        save(ARRAYS / file, **arrays)
        for name, array in arrays.items():
            self.expect(file, array, name)

    def safetensors(self, file, tensors, metadata=None):
        write(ARRAYS / file, safetensors_bytes(tensors, metadata))
        for name, tensor in tensors.items():
            self.expect(file, tensor.values, name, tensor.dtype)

    def refuse(self, file, reason, name=None):
        record = {"file": file}
        if name is not None:
            record["array"] = name
        self.refused.append(record | {"reason": reason})


def sample(dtype, count):
    """Numbers that the type, and float32, hold exactly."""
    dtype, k = np.dtype(dtype), np.arange(count)
    if dtype.kind == "f":
        values = k / 4 - 2
    elif dtype.kind == "b":
        values = k % 3 == 1
    elif dtype == np.dtype("i1"):
        values = k * 3 - 50
    elif dtype == np.dtype("u1"):
        values = k * 7
    elif dtype.kind == "u":
        values = k * 1871
    else:
        values = (k - 9) * 40001
    return values.astype(dtype)


def float32_bits(random):
    """128 finite float32: bit patterns at random after those that a reader may get wrong."""
    edges = [0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007FFFFF, 0x807FFFFF, 0x00800000,
             0x00800001, 0x7F7FFFFF, 0xFF7FFFFF, 0x3F800000, 0x3F7FFFFF, 0x3F800001, 0x3DCCCCCD,
             0x4B7FFFFF, 0x4B800000, 0x5F000000, 0x60AD78EC, 0x15AE43FD, 0x0DA24260]
    bits = random.integers(0, 2**32, 1000, dtype=np.uint64).astype("<u4")
    bits = bits[(bits & 0x7F800000) != 0x7F800000]
    return np.concatenate([np.array(edges, "<u4"), bits])[:128].view("<f4").reshape(16, 8)


def make_arrays():
    ARRAYS.mkdir(parents=True, exist_ok=True)
    files = ArrayFiles()
    random = np.random.default_rng(20240601)

    types = {"f4": "<f4", "f8": "<f8", "f4_big": ">f4", "f8_big": ">f8", "f2": "<f2",
             "f2_big": ">f2", "i4": "<i4", "i8_big": ">i8", "i8": "<i8", "i1": "|i1", "u1": "|u1",
             "u2": "<u2", "b1": "|b1"}
    for name, dtype in types.items():
        files.npy(f"matrix_{name}.npy", sample(dtype, 18).reshape(6, 3))
        files.npy(f"batch_{name}.npy", sample(dtype, 36).reshape(2, 6, 3))
    matrix, batch = sample("<f4", 18).reshape(6, 3), sample("<f4", 36).reshape(2, 6, 3)
    files.npy("matrix_f4_fortran.npy", np.asfortranarray(matrix))
    files.npy("matrix_f4_big_fortran.npy", np.asfortranarray(matrix.astype(">f4")))
    files.npy("batch_f4_fortran.npy", np.asfortranarray(batch))
    files.npy("matrix_f4_version_2.npy", matrix, version=(2, 0))
    files.npy("matrix_f4_version_3.npy", matrix, version=(3, 0))
    files.npy("scalar_f8.npy", np.array(2.75))
    files.npy("vector_f4.npy", sample("<f4", 5))
    files.npy("empty_f4.npy", np.zeros((0, 3), "<f4"))
    files.npy("rank_4_f4.npy", sample("<f4", 24).reshape(2, 2, 3, 2))
    files.npy("bits_f4.npy", float32_bits(random))
    # subnormals, the largest, both zeros, and two numbers that float32 has and float16 rounds
    halves = [0x0000, 0x8000, 0x0001, 0x8001, 0x03FF, 0x0400, 0x7BFF, 0xFBFF, 0x3555, 0x2E66]
    files.npy("bits_f2.npy", np.array(halves, "<u2").view("<f2").reshape(2, 5))
    files.npy("nonfinite_f4.npy", np.array([[1, np.nan, 2], [np.inf, 3, -np.inf]], "<f4"))
    files.npy("beyond_f4_i8.npy", np.array([[2**24 + 1, -2**24 - 1, 2**53]], "<i8"))
    files.npy("beyond_f4_f8.npy", np.array([[0.1, 1e39, 1e-46]], "<f8"))

    np.save(ARRAYS / "objects.npy", np.array([[1, "a"], [None, 2.5]], object), allow_pickle=True)
    files.refuse("objects.npy", "dtype object: pickled Python objects")
    np.save(ARRAYS / "structured.npy", np.array([(1, 2.5), (3, 4.5)], [("a", "<i4"), ("b", "<f4")]))
    files.refuse("structured.npy", "structured dtype: a record of fields")
    np.save(ARRAYS / "text.npy", np.array([["ab", "c"], ["", "d\u00e9"]], "<U2"))
    files.refuse("text.npy", "dtype text")
    np.save(ARRAYS / "complex.npy", matrix.astype("<c8"))
    files.refuse("complex.npy", "dtype complex")
    np.save(ARRAYS / "dates.npy", np.array([["2024-01-01", "2024-01-02"]], "<M8[D]"))
    files.refuse("dates.npy", "dtype date")

    several = {"inputs": matrix, "batch": batch.astype("<f8"), "mask": np.tri(3, dtype=bool),
               "ids": sample("<i8", 4), "fortran": np.asfortranarray(matrix)}
    files.npz("several_stored.npz", several)
    files.npz("several_deflated.npz", several, np.savez_compressed)
    files.npz("single.npz", {"arr_0": matrix})
    large = ((np.arange(131 * 130) % 61) / 8 - 3).astype("<f4").reshape(131, 130)
    np.savez_compressed(ARRAYS / "large_deflated.npz", x=large)
    files.readable.append({"file": "large_deflated.npz", "array": "x", "dtype": "<f4",
                           "shape": [131, 130],
                           "rule": "element i in C order is (i mod 61) / 8 - 3"})
    np.savez(ARRAYS / "objects_beside.npz", x=matrix, names=np.array(["a", None], object))
    files.expect("objects_beside.npz", matrix, "x")
    files.refuse("objects_beside.npz", "dtype object: pickled Python objects", "names")

    tensors = {}
    for dtype, plain in NUMPY_TYPES.items():
        values = sample("<f4" if dtype == "BF16" else plain, 6).reshape(2, 3)
        tensors[f"matrix_{dtype.lower()}"] = Tensor(values, dtype)
    tensors["batch"] = Tensor(batch)
    tensors["scalar"] = Tensor(np.array(2.75))
    tensors["empty"] = Tensor(np.zeros((0, 3)))
    # bfloat16: subnormals, the largest, both zeros, a third
    brains = [0x0000, 0x8000, 0x0001, 0x8001, 0x007F, 0x0080, 0x7F7F, 0xFF7F, 0x3EAB, 0x3DCD]
    tensors["bits_bf16"] = Tensor(brains, "BF16", bits=True)
    files.safetensors("types.safetensors", tensors,
                      {"format": "np", "note": "quote \" backslash \\ \u00e9 \u4e2d"})
    files.safetensors("single.safetensors", {"inputs": Tensor(matrix)})
    files.safetensors("names.safetensors", {
        "a b": Tensor([[1, 2]]), "caf\u00e9": Tensor([[3, 4]]), "quote\"": Tensor([[5, 6]]),
        "tab\t": Tensor([[7, 8]]), "": Tensor([[9, 10]]), "\U0001f600": Tensor([[11, 12]])})

    write_json(ARRAYS / "expected.json", {
        "about": "What the files of this folder hold: values in C order as float64, or why a file "
                 "(or one array of it) is refused. Booleans are 0 and 1.",
        "readable": files.readable, "refused": files.refused})


# ---- the models' definitions, in float64 -----------------------------------------------------

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


COMMON = {"transformers_version": "4.57.6", "initializer_range": 0.02, "use_cache": True}


def make_gpt2():
    width, heads, layers, vocabulary, positions, inner = 12, 3, 2, 11, 8, 4
    w = Weights(1)
    w.normal("wte.weight", vocabulary, width)
    w.normal("wpe.weight", positions, width)
    for n in range(layers):
        h = f"h.{n}."
        w.norm(h + "ln_1", width)
        w.put(h + "attn.bias", np.tri(positions).reshape(1, 1, positions, positions))
        w.put(h + "attn.masked_bias", np.array(-1e4))
        for name, d_in, d_out in (("attn.c_attn", width, 3 * width), ("attn.c_proj", width, width),
                                  ("mlp.c_fc", width, inner), ("mlp.c_proj", inner, width)):
            w.normal(h + name + ".weight", d_in, d_out)  # Conv1D: (in, out)
            w.normal(h + name + ".bias", d_out)
        w.norm(h + "ln_2", width)
    w.norm("ln_f", width)
    config = COMMON | {
        "activation_function": "gelu_new", "architectures": ["GPT2LMHeadModel"], "attn_pdrop": 0.1,
        "bos_token_id": 10, "embd_pdrop": 0.1, "eos_token_id": 10, "layer_norm_epsilon": 1e-05,
        "model_type": "gpt2", "n_embd": width, "n_head": heads, "n_inner": inner, "n_layer": layers,
        "n_positions": positions, "reorder_and_upcast_attn": False, "resid_pdrop": 0.1,
        "scale_attn_by_inverse_layer_idx": False, "scale_attn_weights": True,
        "torch_dtype": "float32", "vocab_size": vocabulary}
    write_model("gpt2", w.tensors, config)
    prefixed = w.renamed(lambda name: "transformer." + name)
    second = ("transformer.h.1.", "transformer.ln_f")
    write_sharded("gpt2_prefixed", [
        {name: t for name, t in prefixed.items() if name.startswith(second) == side}
        for side in (False, True)], config)

    def run(layer, inputs):
        h = f"h.{layer}.attn."
        q, k, v = np.split(inputs @ w[h + "c_attn.weight"] + w[h + "c_attn.bias"], 3, axis=1)
        q, k, v = (split_heads(x, heads) for x in (q, k, v))
        weights, outputs = attend(q, k, v, causal=True)
        context = join_heads(outputs) @ w[h + "c_proj.weight"] + w[h + "c_proj.bias"]
        return {"heads": heads, "kv_heads": heads, "causal": True, "inputs": inputs, "queries": q,
                "keys": k, "values": v, "attention_weights": weights, "context_vectors": context}

    def norm(layer, x):
        return layer_norm(x, w[f"h.{layer}.ln_1.weight"], w[f"h.{layer}.ln_1.bias"], 1e-5)

    ids = [3, 0, 10, 7, 3]
    embedded = w["wte.weight"][ids] + w["wpe.weight"][: len(ids)]
    add_case("gpt2-0-ids", "gpt2", "gpt2", layer=0, token_ids=ids, norm=True,
             **run(0, norm(0, embedded)))
    hidden = hidden_states(101, 5, width)
    add_case("gpt2-1-hidden", "gpt2", "gpt2", (), layer=1, hidden=hidden, norm=False,
             **run(1, hidden))
    add_case("gpt2-1-norm", "gpt2", "gpt2", (), layer=1, hidden=hidden, norm=True,
             **run(1, norm(1, hidden)))
    CASES.append({"id": "gpt2_prefixed-0-ids", "family": "gpt2", "path": "gpt2_prefixed",
                  "same_as": "gpt2-0-ids"})
    CASES.append({"id": "gpt2_prefixed-1-norm", "family": "gpt2", "path": "gpt2_prefixed",
                  "same_as": "gpt2-1-norm"})


def make_llama_like(family, seed, hidden, heads, kv_heads, head_dim, layer_types, theta, eps,
                    qkv_bias=False, window=None, vocabulary=11, inner=4, config=None):
    """Llama, Mistral and Qwen2 differ in biases, windows and sizes; one dtype for each layer."""
    w = Weights(seed, layer_types[0])
    w.normal("model.embed_tokens.weight", vocabulary, hidden)
    for n, dtype in enumerate(layer_types):
        m = f"model.layers.{n}."
        w.norm(m + "input_layernorm", hidden, bias=False, dtype=dtype)
        for name, size in (("q", heads), ("k", kv_heads), ("v", kv_heads)):
            w.linear(f"{m}self_attn.{name}_proj", size * head_dim, hidden, qkv_bias, dtype)
        w.linear(m + "self_attn.o_proj", hidden, heads * head_dim, False, dtype)
        w.norm(m + "post_attention_layernorm", hidden, bias=False, dtype=dtype)
        w.linear(m + "mlp.gate_proj", inner, hidden, False, dtype)
        w.linear(m + "mlp.up_proj", inner, hidden, False, dtype)
        w.linear(m + "mlp.down_proj", hidden, inner, False, dtype)
    w.norm("model.norm", hidden, bias=False)
    write_model(family, w.tensors, COMMON | {
        "attention_dropout": 0.0, "bos_token_id": 1, "eos_token_id": 2, "hidden_act": "silu",
        "hidden_size": hidden, "intermediate_size": inner, "max_position_embeddings": 32,
        "model_type": family, "num_attention_heads": heads, "num_hidden_layers": len(layer_types),
        "num_key_value_heads": kv_heads, "rms_norm_eps": eps, "rope_theta": theta,
        "tie_word_embeddings": True, "vocab_size": vocabulary,
        "torch_dtype": "bfloat16" if "BF16" in layer_types else "float32"} | config)

    def run(layer, inputs):
        a = f"model.layers.{layer}.self_attn."
        q, k, v = (split_heads(linear(inputs, w[f"{a}{name}_proj.weight"],
                                      w[f"{a}{name}_proj.bias"] if qkv_bias else None), size)
                   for name, size in (("q", heads), ("k", kv_heads), ("v", kv_heads)))
        q, k = rope(q, theta, head_dim), rope(k, theta, head_dim)
        weights, outputs = attend(q, k, v, causal=True, window=window)
        return {"heads": heads, "kv_heads": kv_heads, "causal": True, "sliding_window": window,
                "rope": {"style": "half", "base": theta, "dims": head_dim},
                "inputs": inputs, "queries": q, "keys": k, "values": v,
                "attention_weights": weights,
                "context_vectors": linear(join_heads(outputs), w[a + "o_proj.weight"])}

    def norm(layer, x):
        return rms_norm(x, w[f"model.layers.{layer}.input_layernorm.weight"], eps)

    return w, run, norm


def make_llama():
    w, run, norm = make_llama_like(
        "llama", 2, hidden=16, heads=4, kv_heads=2, head_dim=4, layer_types=["BF16", "F16"],
        theta=10000.0, eps=1e-5, config={
            "architectures": ["LlamaForCausalLM"], "attention_bias": False, "head_dim": 4,
            "mlp_bias": False, "pretraining_tp": 1, "rope_scaling": None})
    ids = [5, 1, 9, 2, 0]
    add_case("llama-0-ids", "llama", "llama", layer=0, token_ids=ids, norm=True,
             **run(0, norm(0, w["model.embed_tokens.weight"][ids])))
    hidden = hidden_states(102, 5, 16)
    add_case("llama-1-hidden", "llama", "llama", (), layer=1, hidden=hidden, norm=False,
             **run(1, hidden))


def make_mistral():
    w, run, norm = make_llama_like(
        "mistral", 3, hidden=16, heads=4, kv_heads=2, head_dim=6, layer_types=["F32"], theta=1e6,
        eps=1e-5, window=3, config={
            "architectures": ["MistralForCausalLM"], "head_dim": 6, "sliding_window": 3})
    hidden = hidden_states(103, 6, 16)
    add_case("mistral-0-norm", "mistral", "mistral", ("keys",), layer=0, hidden=hidden,
             norm=True, **run(0, norm(0, hidden)))


def make_qwen2():
    """Its sliding_window is 2 and without effect: use_sliding_window is false."""
    w, run, norm = make_llama_like(
        "qwen2", 4, hidden=16, heads=4, kv_heads=2, head_dim=4, layer_types=["F32"], theta=1e6,
        eps=1e-6, qkv_bias=True, config={
            "architectures": ["Qwen2ForCausalLM"], "max_window_layers": 1, "rope_scaling": None,
            "sliding_window": 2, "use_sliding_window": False})
    ids = [10, 4, 4, 8, 6]
    add_case("qwen2-0-ids", "qwen2", "qwen2", ("queries", "keys", "values"), layer=0,
             token_ids=ids, norm=True, **run(0, norm(0, w["model.embed_tokens.weight"][ids])))


def make_bert():
    width, heads, vocabulary, positions, inner = 12, 4, 11, 8, 4
    w = Weights(5)
    for name, size in (("word", vocabulary), ("position", positions), ("token_type", 2)):
        w.normal(f"bert.embeddings.{name}_embeddings.weight", size, width)
    w.norm("bert.embeddings.LayerNorm", width)
    b = "bert.encoder.layer.0."
    for name in ("query", "key", "value"):
        w.linear(f"{b}attention.self.{name}", width, width)
    w.linear(b + "attention.output.dense", width, width)
    w.norm(b + "attention.output.LayerNorm", width)
    w.linear(b + "intermediate.dense", inner, width)
    w.linear(b + "output.dense", width, inner)
    w.norm(b + "output.LayerNorm", width)
    config = COMMON | {
        "architectures": ["BertModel"], "attention_probs_dropout_prob": 0.1,
        "classifier_dropout": None, "hidden_act": "gelu", "hidden_dropout_prob": 0.1,
        "hidden_size": width,
        "intermediate_size": inner, "layer_norm_eps": 1e-12, "max_position_embeddings": positions,
        "model_type": "bert", "num_attention_heads": heads, "num_hidden_layers": 1,
        "pad_token_id": 0, "position_embedding_type": "absolute", "torch_dtype": "float32",
        "type_vocab_size": 2,
        "vocab_size": vocabulary}
    write_model("bert", w.tensors, config)
    # bert-base-uncased's own file: LayerNorm.gamma and .beta; and BertModel alone: no prefix
    write_model("bert_gamma", w.renamed(
        lambda name: name.removeprefix("bert.").replace("LayerNorm.weight", "LayerNorm.gamma")
        .replace("LayerNorm.bias", "LayerNorm.beta")), config)

    ids = [2, 9, 9, 5, 1]
    e = "bert.embeddings."
    embedded = (w[e + "word_embeddings.weight"][ids]
                + w[e + "position_embeddings.weight"][: len(ids)]
                + w[e + "token_type_embeddings.weight"][0])
    inputs = layer_norm(embedded, w[e + "LayerNorm.weight"], w[e + "LayerNorm.bias"], 1e-12)
    q, k, v = (split_heads(linear(inputs, w[f"{b}attention.self.{name}.weight"],
                                  w[f"{b}attention.self.{name}.bias"]), heads)
               for name in ("query", "key", "value"))
    weights, outputs = attend(q, k, v, causal=False)
    dense = b + "attention.output.dense."
    add_case("bert-0-ids", "bert", "bert", ("inputs", "queries"), layer=0, token_ids=ids,
             norm=True, heads=heads, kv_heads=heads, causal=False, inputs=inputs, queries=q,
             keys=k, values=v, attention_weights=weights,
             context_vectors=linear(join_heads(outputs), w[dense + "weight"], w[dense + "bias"]))
    CASES.append({"id": "bert_gamma-0-ids", "family": "bert", "path": "bert_gamma",
                  "same_as": "bert-0-ids"})


def make_neox():
    width, heads, layers, vocabulary, positions, inner = 16, 2, 2, 11, 8, 4
    head_dim, percent, base, eps = width // heads, 0.5, 10000, 1e-5
    dims = int(head_dim * percent)
    w = Weights(6, "F16")
    w.normal("gpt_neox.embed_in.weight", vocabulary, width)
    for n in range(layers):
        g = f"gpt_neox.layers.{n}."
        w.norm(g + "input_layernorm", width)
        w.norm(g + "post_attention_layernorm", width)
        w.put(g + "attention.bias", np.tri(positions).reshape(1, 1, positions, positions), "BOOL")
        w.put(g + "attention.masked_bias", np.array(-1e9), "F32")
        w.put(g + "attention.rotary_emb.inv_freq", base ** (-np.arange(0, dims, 2) / dims), "F32")
        w.linear(g + "attention.query_key_value", 3 * width, width)
        w.linear(g + "attention.dense", width, width)
        w.linear(g + "mlp.dense_h_to_4h", inner, width)
        w.linear(g + "mlp.dense_4h_to_h", width, inner)
    w.norm("gpt_neox.final_layer_norm", width)
    w.normal("embed_out.weight", vocabulary, width)
    write_model("neox", w.tensors, COMMON | {
        "architectures": ["GPTNeoXForCausalLM"], "attention_bias": True, "bos_token_id": 0,
        "eos_token_id": 0, "hidden_act": "gelu", "hidden_size": width, "intermediate_size": inner,
        "layer_norm_eps": eps, "max_position_embeddings": positions, "model_type": "gpt_neox",
        "num_attention_heads": heads, "num_hidden_layers": layers, "rotary_emb_base": base,
        "rotary_pct": percent, "tie_word_embeddings": False, "torch_dtype": "float16",
        "use_parallel_residual": True, "vocab_size": vocabulary})

    def run(layer, inputs):
        a = f"gpt_neox.layers.{layer}.attention."
        joined = linear(inputs, w[a + "query_key_value.weight"], w[a + "query_key_value.bias"])
        # (tokens, heads, 3, d): q, k, v of head 0, then of head 1
        q, k, v = joined.reshape(len(inputs), heads, 3, head_dim).transpose(2, 1, 0, 3)
        q, k = rope(q, base, dims), rope(k, base, dims)
        weights, outputs = attend(q, k, v, causal=True)
        context = linear(join_heads(outputs), w[a + "dense.weight"], w[a + "dense.bias"])
        return {"heads": heads, "kv_heads": heads, "causal": True,
                "rope": {"style": "half", "base": base, "dims": dims}, "inputs": inputs,
                "queries": q, "keys": k, "values": v, "attention_weights": weights,
                "context_vectors": context}

    def norm(layer, x):
        g = f"gpt_neox.layers.{layer}.input_layernorm."
        return layer_norm(x, w[g + "weight"], w[g + "bias"], eps)

    ids = [1, 8, 3, 3, 6]
    add_case("neox-0-ids", "neox", "neox", layer=0, token_ids=ids, norm=True,
             **run(0, norm(0, w["gpt_neox.embed_in.weight"][ids])))
    hidden = hidden_states(106, 5, width)
    add_case("neox-1-hidden", "neox", "neox", (), layer=1, hidden=hidden, norm=False,
             **run(1, hidden))
    add_case("neox-1-norm", "neox", "neox", (), layer=1, hidden=hidden, norm=True,
             **run(1, norm(1, hidden)))


def make_mha():
    """State dicts of torch.nn.MultiheadAttention."""
    width, heads, context_width = 8, 2, 5

    def case(name, w, weights, biases, inputs, others, steps):
        # `others` give the keys and values; the inputs themselves in self-attention
        q, k, v = (split_heads(linear(x, weight, bias), heads)
                   for x, weight, bias in zip((inputs, others, others), weights, biases))
        fields = {"heads": heads, "kv_heads": heads, "hidden": inputs}
        if others is not inputs:
            fields["context"] = others
        for key, causal in (("", False), ("_causal", True)):
            attention, outputs = attend(q, k, v, causal)
            fields["attention_weights" + key] = attention
            fields["context_vectors" + key] = linear(
                join_heads(outputs), w["out_proj.weight"],
                w["out_proj.bias"] if "out_proj.bias" in w.tensors else None)
        write(MODELS / f"mha/{name}.safetensors", safetensors_bytes(w.tensors))
        add_case("mha-" + name, "mha", f"mha/{name}.safetensors", steps, causal="both", norm=False,
                 queries=q, keys=k, values=v, **fields)

    packed = Weights(7)
    packed.normal("in_proj_weight", 3 * width, width)
    packed.normal("in_proj_bias", 3 * width)
    packed.linear("out_proj", width, width)
    x = hidden_states(107, 5, width)
    case("packed", packed, np.split(packed["in_proj_weight"], 3),
         np.split(packed["in_proj_bias"], 3), x, x, ("queries", "values"))

    plain = Weights(8)
    plain.normal("in_proj_weight", 3 * width, width)
    plain.linear("out_proj", width, width, bias=False)
    x = hidden_states(108, 5, width)
    case("no_bias", plain, np.split(plain["in_proj_weight"], 3), (None,) * 3, x, x, ())

    apart = Weights(9)  # kdim = vdim = 5
    apart.normal("q_proj_weight", width, width)
    apart.normal("k_proj_weight", width, context_width)
    apart.normal("v_proj_weight", width, context_width)
    apart.normal("in_proj_bias", 3 * width)
    apart.linear("out_proj", width, width)
    case("kdim", apart, [apart[f"{name}_proj_weight"] for name in "qkv"],
         np.split(apart["in_proj_bias"], 3), hidden_states(109, 5, width),
         hidden_states(110, 6, context_width), ())


def make_notebook():
    """State dicts of the classes that the notebooks build, and two of them as .npz and .json."""
    d_in, d_out, tokens = 3, 2, 6
    mask = np.triu(np.ones((tokens, tokens)), 1)  # their buffer: 1 where a key is blocked
    x = hidden_states(111, tokens, d_in)
    names = ("W_query", "W_key", "W_value")

    def add(name, steps=("queries", "keys", "values"), **fields):
        add_case("notebook-" + name, "notebook", f"notebook/{name}", steps, norm=False, hidden=x,
                 **fields)

    def save(name, w):
        write(MODELS / f"notebook/{name}", safetensors_bytes(w.tensors))

    # SelfAttention_v1: nn.Parameter(torch.rand(d_in, d_out)), not causal
    for stem, width in (("selfattention_v1", d_out), ("selfattention_v1_square", d_in)):
        w = Weights(12 + width)
        for key in names:
            w.normal(key, d_in, width)
        q, k, v = ((x @ w[key])[None] for key in names)
        attention, outputs = attend(q, k, v, causal=False)
        steps = {"heads": 1, "kv_heads": 1, "causal": False, "layout": "in_out", "queries": q,
                 "keys": k, "values": v, "attention_weights": attention,
                 "context_vectors": outputs[0]}
        save(stem + ".safetensors", w)
        add(stem + ".safetensors", ("queries",), **steps)
        if width == d_out:
            np.savez(MODELS / "notebook" / (stem + ".npz"),
                     **{name: tensor.stored for name, tensor in w.tensors.items()})
            CASES.append({"id": f"notebook-{stem}.npz", "family": "notebook",
                          "path": f"notebook/{stem}.npz",
                          "same_as": f"notebook-{stem}.safetensors"})

    # CausalAttention: nn.Linear, with qkv_bias
    w = Weights(16)
    w.put("mask", mask)
    for key in names:
        w.linear(key, d_out, d_in)
    q, k, v = (linear(x, w[key + ".weight"], w[key + ".bias"])[None] for key in names)
    attention, outputs = attend(q, k, v, causal=True)
    save("causalattention.safetensors", w)
    add("causalattention.safetensors", heads=1, kv_heads=1, causal=True, layout="out_in", queries=q,
        keys=k, values=v, attention_weights=attention, context_vectors=outputs[0])

    # MultiHeadAttentionWrapper: independent heads side by side, no output projection
    w = Weights(17)
    for head in range(2):
        w.put(f"heads.{head}.mask", mask)
        for key in names:
            w.linear(f"heads.{head}.{key}", d_out, d_in, bias=False)
    q, k, v = (np.stack([linear(x, w[f"heads.{head}.{key}.weight"]) for head in range(2)])
               for key in names)
    attention, outputs = attend(q, k, v, causal=True)
    save("multiheadattentionwrapper.safetensors", w)
    add("multiheadattentionwrapper.safetensors", heads=2, kv_heads=2, causal=True, layout="out_in",
        style="wrapper", queries=q, keys=k, values=v, attention_weights=attention,
        context_vectors=join_heads(outputs))

    # MultiHeadAttention: one projection split into heads, output projection
    w, width, heads = Weights(18), 4, 2
    w.put("mask", mask)
    for key in names:
        w.linear(key, width, d_in, bias=False)
    w.linear("out_proj", width, width)
    q, k, v = (split_heads(linear(x, w[key + ".weight"]), heads) for key in names)
    attention, outputs = attend(q, k, v, causal=True)
    save("multiheadattention.safetensors", w)
    add("multiheadattention.safetensors", heads=heads, kv_heads=heads, causal=True, layout="out_in",
        style="split", queries=q, keys=k, values=v, attention_weights=attention,
        context_vectors=linear(join_heads(outputs), w["out_proj.weight"], w["out_proj.bias"]))
    write_json(MODELS / "notebook/multiheadattention.json",
               {name: nested(w[name]) for name in w.tensors})
    CASES.append({"id": "notebook-multiheadattention.json", "family": "notebook",
                  "path": "notebook/multiheadattention.json",
                  "same_as": "notebook-multiheadattention.safetensors"})


def make_models():
    for folder in ("mha", "notebook"):
        (MODELS / folder).mkdir(parents=True, exist_ok=True)
    for make in (make_gpt2, make_llama, make_mistral, make_qwen2, make_bert, make_neox, make_mha,
                 make_notebook):
        make()
    write_json(MODELS / "expected.json", {
        "about": "What each model's attention gives, in float64 from the weights as stored. path: "
                 "a folder or file beside this one. token_ids or hidden: what goes in; norm: "
                 "whether the layer's own input norm comes before the attention (with token_ids "
                 "of BERT: the norm of its embeddings). inputs: what the attention module is "
                 "given. queries, keys, values: (heads, tokens, d), after rope. attention_weights: "
                 "(heads, queries, keys). context_vectors: after the output projection, without "
                 "residual. Steps that a case leaves out are left to its weights and context. "
                 "same_as: the case whose request and arrays hold for this path too.",
        "cases": CASES})


if __name__ == "__main__":
    make_arrays()
    make_models()
