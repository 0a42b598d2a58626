"""Writes a model of Qwen3's architecture with random weights: python3 random_model.py FOLDER [--layers N] ...
The default is the shape of Qwen3-0.6B, 1.2 GB of bfloat16. The same settings give the same bytes."""

import argparse
import json
import pathlib
import random
import struct

SHAPE = {"layers": 28, "width": 1024, "heads": 16, "kv-heads": 8, "head-dim": 128, "ff": 3072, "vocab": 151936}
SMALL = {"layers": 2, "width": 64, "heads": 4, "kv-heads": 2, "head-dim": 32, "ff": 128, "vocab": 256}
BLOCK = 1 << 22  # elements made at a time

# The high byte of a bfloat16 has the sign and seven bits of the exponent. These two, with any low byte, are
# plus or minus 2^-7 to 2^-5: a standard deviation of 0.018, about that of the usual initialisation.
HIGH = bytes(0x3C if byte < 128 else 0xBC for byte in range(256))
ONE = b"\x80\x3f"


def config(shape):
    return {
        "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "dtype": "bfloat16", "hidden_act": "silu",
        "attention_bias": False, "tie_word_embeddings": True, "max_position_embeddings": 40960, "rms_norm_eps": 1e-6,
        "rope_theta": 1000000, "num_hidden_layers": shape["layers"], "hidden_size": shape["width"],
        "intermediate_size": shape["ff"], "num_attention_heads": shape["heads"],
        "num_key_value_heads": shape["kv-heads"], "head_dim": shape["head-dim"], "vocab_size": shape["vocab"]}


def tensors(shape):
    """Names and shapes in the order of the file: norms have one axis and are 1, matrices are random."""
    width, ff, d = shape["width"], shape["ff"], shape["head-dim"]
    queries, keys = shape["heads"] * d, shape["kv-heads"] * d
    layer = {"input_layernorm": [width], "post_attention_layernorm": [width], "self_attn.q_norm": [d],
             "self_attn.k_norm": [d], "self_attn.q_proj": [queries, width], "self_attn.k_proj": [keys, width],
             "self_attn.v_proj": [keys, width], "self_attn.o_proj": [width, queries], "mlp.gate_proj": [ff, width],
             "mlp.up_proj": [ff, width], "mlp.down_proj": [width, ff]}
    yield "model.embed_tokens.weight", [shape["vocab"], width]
    for number in range(shape["layers"]):
        for name, axes in layer.items():
            yield f"model.layers.{number}.{name}.weight", axes
    yield "model.norm.weight", [width]


def elements(axes):
    return axes[0] * (axes[1] if len(axes) == 2 else 1)


def write_model(folder, shape):
    """Writes config.json and model.safetensors, and returns the bytes of the latter."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config(shape), indent=1) + "\n")
    header, at = {}, 0
    for name, axes in tensors(shape):
        header[name] = {"dtype": "BF16", "shape": axes, "data_offsets": [at, at + 2 * elements(axes)]}
        at += 2 * elements(axes)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    generator = random.Random(1)
    with open(folder / "model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for _, axes in tensors(shape):
            left = elements(axes)
            while left:
                count = min(left, BLOCK)
                block = bytearray(ONE * count)
                if len(axes) == 2:
                    block[0::2] = generator.randbytes(count)
                    block[1::2] = generator.randbytes(count).translate(HIGH)
                file.write(block)
                left -= count
        return file.tell()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    for name, default in SHAPE.items():
        parser.add_argument("--" + name, type=int, default=default)
    given = vars(parser.parse_args())
    shape = {name: given[name.replace("-", "_")] for name in SHAPE}
    if min(shape.values()) < 1:
        parser.error("every size is at least 1")
    print(f"{given['folder']}: {write_model(given['folder'], shape):,} bytes")


if __name__ == "__main__":
    main()
