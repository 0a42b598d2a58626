#!/usr/bin/env python3
"""Writes data/gguf: blocks of few bits with their values, and a tiny model.

    python3 tests/make_gguf_data.py

Requires NumPy, gguf 0.19 and safetensors. The values are those of gguf.quants.dequantize. The tiny
model has the conventions of llama.cpp's converter: rows of queries and keys for rotation in pairs, a
name for each tensor, dimensions innermost first; tiny.safetensors has the tensors as transformers
has them.
"""
import json
import pathlib

import gguf
import numpy as np
from gguf import GGMLQuantizationType as Type
from gguf.quants import dequantize, quantize
from safetensors.numpy import save_file

FOLDER = pathlib.Path(__file__).parent.parent / "data" / "gguf"
# Where a block has its float16 scales.
SCALES = {"Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0], "Q2_K": [80, 82],
          "Q3_K": [108], "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208], "IQ4_NL": [0],
          "IQ4_XS": [0], "MXFP4": []}
# Zero, negative zero, subnormals, the largest, infinity, NaN, ordinary ones.
HALVES = [0x0000, 0x8000, 0x0001, 0x83ff, 0x7bff, 0xfc00, 0x7e00, 0x2e66, 0xa800]


def make_blocks(random):
    arrays = {}
    for name, places in SCALES.items():
        values, size = gguf.GGML_QUANT_SIZES[Type[name]]
        blocks = random.integers(0, 256, size=(len(HALVES), size), dtype=np.uint8)
        for place in places:
            order = random.permutation(len(HALVES)) if place != places[0] else range(len(HALVES))
            for block, half in zip(blocks, order):
                block[place:place + 2] = np.array([HALVES[half]], dtype="<u2").view(np.uint8)
        if name == "MXFP4":
            blocks[:, 0] = [0, 1, 2, 126, 127, 128, 200, 254, 255]
        with np.errstate(all="ignore"):
            read = dequantize(blocks, Type[name])
        arrays[name + ".blocks"], arrays[name + ".values"] = blocks, read.reshape(len(HALVES), values)
    save_file(arrays, FOLDER / "blocks.safetensors")


def in_pairs(weight, heads):
    """Rows in halves of a head as rows in pairs."""
    shape = weight.shape
    return weight.reshape(heads, 2, shape[0] // heads // 2, shape[1]).swapaxes(1, 2).reshape(shape)


def make_model(random):
    words, width, heads, key_heads, inner = 16, 32, 4, 2, 64
    writer = gguf.GGUFWriter(FOLDER / "tiny.gguf", "llama")
    writer.data_alignment = 64
    writer.add_uint32("general.alignment", 64)
    for key, value in (("context_length", 64), ("embedding_length", width), ("block_count", 1),
                       ("feed_forward_length", inner), ("attention.head_count", heads),
                       ("attention.head_count_kv", key_heads), ("rope.dimension_count", 8)):
        writer.add_uint32("llama." + key, value)
    writer.add_float32("llama.attention.layer_norm_rms_epsilon", 1e-5)
    writer.add_float32("llama.rope.freq_base", 5e5)
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list([f"<{i}>" for i in range(words)])
    for key, value in (("int8", np.int8(-3)), ("uint16", np.uint16(65535)), ("int64", np.int64(-2**40))):
        writer.add_key_value("test." + key, int(value), gguf.GGUFValueType[key.upper()])
    writer.add_float64("test.float64", 0.1)
    writer.add_bool("test.bool", True)
    writer.add_array("test.nested", [[1, 2], [3], [4, 5, 6]])
    published = {}

    def add(stored, name, shape, type_name, order=None):
        weight = random.standard_normal(shape).astype(np.float32)
        kind = Type[type_name]
        data = weight.astype(np.float16) if type_name == "F16" else weight
        if type_name not in ("F32", "F16"):
            data = quantize(weight, kind)
        published[name] = (data.astype(np.float32) if type_name in ("F32", "F16")
                           else dequantize(data, kind))
        if order:
            data = in_pairs(data, order)
        writer.add_tensor(stored, np.ascontiguousarray(data), raw_dtype=kind)

    layer = "model.layers.0."
    add("token_embd.weight", "model.embed_tokens.weight", (words, width), "Q5_1")
    add("blk.0.attn_q.weight", layer + "self_attn.q_proj.weight", (width, width), "Q8_0", heads)
    add("blk.0.attn_k.weight", layer + "self_attn.k_proj.weight", (width // 2, width), "Q4_0", key_heads)
    add("blk.0.attn_v.weight", layer + "self_attn.v_proj.weight", (width // 2, width), "F16")
    add("blk.0.attn_output.weight", layer + "self_attn.o_proj.weight", (width, width), "Q8_0")
    add("blk.0.attn_norm.weight", layer + "input_layernorm.weight", (width,), "F32")
    add("blk.0.ffn_norm.weight", layer + "post_attention_layernorm.weight", (width,), "F32")
    add("blk.0.ffn_gate.weight", layer + "mlp.gate_proj.weight", (inner, width), "Q4_0")
    add("blk.0.ffn_up.weight", layer + "mlp.up_proj.weight", (inner, width), "Q4_1")
    add("blk.0.ffn_down.weight", layer + "mlp.down_proj.weight", (width, inner), "Q5_0")
    add("output_norm.weight", "model.norm.weight", (width,), "F32")
    writer.add_tensor("rope_freqs.weight", np.array([1, 1.5, 4, 8], dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    save_file({name: np.ascontiguousarray(array) for name, array in published.items()},
              FOLDER / "tiny.safetensors")
    (FOLDER / "tiny.json").write_text(json.dumps({
        "attention_bias": False, "hidden_act": "silu", "hidden_size": width, "intermediate_size": inner,
        "max_position_embeddings": 64, "mlp_bias": False, "model_type": "llama",
        "num_attention_heads": heads, "num_hidden_layers": 1, "num_key_value_heads": key_heads,
        "rms_norm_eps": float(np.float32(1e-5)), "rope_scaling": {"rope_type": "divisors", "divisors": [1.0, 1.5, 4.0, 8.0]},
        "rope_theta": 500000.0, "tie_word_embeddings": True, "vocab_size": words}, indent=1) + "\n")


def main():
    FOLDER.mkdir(exist_ok=True)
    random = np.random.default_rng(1)
    make_blocks(random)
    make_model(random)


if __name__ == "__main__":
    main()
