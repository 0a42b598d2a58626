#!/usr/bin/env python3
"""Writes data/golden/torch_input.json: inputs of torch.rand and torch.randn, and the weights drawn after them.

    python3 tests/make_torch_input.py

Run by hand; its output is committed and tests/cli/golden_test.cpp reads that. Needs PyTorch and NumPy. What
must agree to the last bit is kept as a hash (FNV-1a over the numbers' bytes, little-endian, the low 32 bits);
normals, which agree to 2e-6, as their first and last three numbers.
"""
import json
import pathlib

import torch
from make_torch_bits import fnv
from torch import nn

FILE = pathlib.Path(__file__).resolve().parent.parent / "data/golden/torch_input.json"
SIZES = [*range(1, 41), 100, 1000, 4096]
INITS = ["linear", "rand", "xavier", "mha"]


def weight(init, d_in, dtype):
    if init == "linear":
        return nn.Linear(d_in, 2, bias=False, dtype=dtype).weight
    if init == "rand":
        return torch.rand(d_in, 2, dtype=dtype)
    if init == "xavier":
        return nn.init.xavier_uniform_(torch.empty(2, d_in, dtype=dtype))
    return nn.MultiheadAttention(d_in, 1, dtype=dtype).in_proj_weight[:d_in]


def shape_of(size, at):
    if size % 6 == 0:
        return [2, 3, size // 6]
    return [size, 1] if at % 2 == 0 else [1, size]


def case_of(draw, dtype, size, at):
    shape, seed, skip = shape_of(size, at), 1000 * at + size, at % 3
    init = INITS[(at + size) % len(INITS)] if shape[-1] <= 40 else "linear"
    torch.manual_seed(seed)
    if skip:
        torch.rand(skip)
    values = getattr(torch, draw)(shape, dtype=dtype)
    flat = values.flatten()
    drawn = {"hash": fnv(values.numpy())} if draw == "rand" else {"ends": [*flat[:3].tolist(), *flat[-3:].tolist()]}
    return {"draw": draw, "dtype": str(dtype).removeprefix("torch."), "shape": shape, "seed": seed, "skip": skip,
            "init": init, **drawn, "weight": fnv(weight(init, shape[-1], dtype).detach().numpy())}


cases = [case_of(draw, dtype, size, at) for size in SIZES for at, (draw, dtype) in enumerate(
    (draw, dtype) for draw in ("rand", "randn") for dtype in (torch.float32, torch.float64))]
about = f"Inputs of PyTorch {torch.__version__}'s CPU generator, and the weight of the query that is drawn after them."
lines = ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases)
FILE.write_text(f'{{"about":"{about}","cases":[\n{lines}\n]}}\n')
print(len(cases), "cases with PyTorch", torch.__version__)
