#!/usr/bin/env python3
"""Writes data/golden/torch_bits.json: the bits that PyTorch gives for softmax and sums.

    ATEN_CPU_CAPABILITY=avx2 python3 tests/make_torch_bits.py

Run by hand; its output is committed and tests/core/torch_bits_test.cpp reads that. Needs PyTorch and
NumPy. Inputs are drawn from seeds, so that the test draws them again with the project's own generator; outputs are
kept as hashes (FNV-1a over the numbers' bytes, little-endian, the low 32 bits), and in full for a few
lengths, so that a failure can be looked at.
"""
import json
import pathlib

import numpy as np
import torch

FILE = pathlib.Path(__file__).resolve().parent.parent / "data/golden/torch_bits.json"
LENGTHS = [*range(1, 258), 300, 511, 512, 513, 1000, 1023, 2000]
SHOWN = [1, 2, 7, 8, 9, 17, 33]
MAGNITUDES = {  # from scores that are all but equal, by subnormal powers, to one weight of 1
    "float32": [1e-30, 1e-3, 1, 10, 50, 104, 1e4],
    "float64": [1e-300, 1e-3, 1, 10, 300, 745, 1e4]}
RENORMALIZED = 2  # the index of the magnitude whose rows are also renormalized
COLUMNS = [1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 36, 64, 100, 257]
HEADS = [*range(1, 41), 63, 64, 65, 300]


def fnv(values):
    state = 0xCBF29CE484222325
    for byte in np.ascontiguousarray(values).tobytes():
        state = (state ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return f"{state & 0xFFFFFFFF:08x}"


def bits(values):
    """Every number as its hexadecimal digits, one after the other."""
    width = 2 * values.itemsize
    return "".join(f"{x:0{width}x}" for x in values.view(f"<u{values.itemsize}").ravel().tolist())


def draw(length, at, dtype):
    """One row of scores, and which of its keys a mask keeps: the middle one and about 70 %."""
    torch.manual_seed(100 * length + at)
    magnitude = MAGNITUDES[str(dtype).removeprefix("torch.")][at]
    scores = torch.empty(length, dtype=dtype).uniform_(-magnitude, magnitude)
    kept = torch.rand(length) < 0.7
    kept[length // 2] = True
    return scores, kept


def weights_of(scores, kept):
    """(2, keys): over all keys, and over those that the mask keeps."""
    rows = torch.stack([scores, scores.masked_fill(~kept, -torch.inf)])
    return torch.softmax(rows, dim=-1)


def renormalized(scores, kept):
    weights = torch.softmax(scores[None], dim=-1) * kept
    return weights / weights.sum(dim=-1, keepdim=True)


def mean_over_heads(heads, columns, dtype):
    torch.manual_seed(1000 * heads + columns)
    return torch.empty(1, heads, 1, columns, dtype=dtype).uniform_(0, 1).mean(dim=1)


def of_type(dtype):
    name = str(dtype).removeprefix("torch.")
    magnitudes = range(len(MAGNITUDES[name]))
    softmax = {n: "".join(fnv(weights_of(*draw(n, at, dtype)).numpy()) for at in magnitudes)
               for n in LENGTHS}
    shown = {n: [bits(weights_of(*draw(n, at, dtype)).numpy()) for at in magnitudes]
             for n in SHOWN}
    again = "".join(fnv(renormalized(*draw(n, RENORMALIZED, dtype)).numpy()) for n in LENGTHS)
    means = {heads: "".join(fnv(mean_over_heads(heads, n, dtype).numpy()) for n in COLUMNS)
             for heads in HEADS}
    return {"magnitudes": MAGNITUDES[name], "softmax": softmax, "softmax_bits": shown,
            "renormalized": again, "mean_over_heads": means}


def main():
    torch.set_num_threads(1)
    capability = torch.__config__.show().split("CPU capability usage: ")[1].split()[0]
    print("PyTorch", torch.__version__, capability)
    made = {"about": "Written by tests/make_torch_bits.py, which says how each number is drawn.",
            "torch": torch.__version__, "capability": capability, "lengths": LENGTHS,
            "columns": COLUMNS, "renormalized_magnitude": RENORMALIZED,
            "float32": of_type(torch.float32), "float64": of_type(torch.float64)}
    FILE.write_text(json.dumps(made, indent=0, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
