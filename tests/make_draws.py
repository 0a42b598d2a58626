#!/usr/bin/env python3
"""Writes data/golden/draws.json: parameters and operands as programs in PyTorch and NumPy draw them, and what follows.

    python3 tests/make_draws.py

Run by hand; its output is committed and tests/cli/golden_test.cpp reads that. Needs PyTorch and NumPy. Arrays are kept
as hashes, as in make_torch_input.py. `next` is that of four numbers of rand in float32 after all others. Normals are in
float32, whose bits do not depend on the C library.
"""
import json
import pathlib

import numpy as np
import torch
from make_torch_bits import fnv
from torch import nn
from torch.nn import init

FILE = pathlib.Path(__file__).resolve().parent.parent / "data/golden/draws.json"
FUNCTIONS = {"xavier_uniform": init.xavier_uniform_, "xavier_uniform,0.5": lambda w: init.xavier_uniform_(w, 0.5),
             "xavier_normal,2": lambda w: init.xavier_normal_(w, 2), "kaiming_uniform": init.kaiming_uniform_,
             "kaiming_uniform,0.1": lambda w: init.kaiming_uniform_(w, 0.1), "kaiming_normal": init.kaiming_normal_,
             "uniform,-0.1,0.3": lambda w: init.uniform_(w, -0.1, 0.3), "normal,0.5,2": lambda w: init.normal_(w, 0.5, 2),
             "trunc_normal,0,0.02": lambda w: init.trunc_normal_(w, 0, 0.02),
             "trunc_normal,0.5,1.5": lambda w: init.trunc_normal_(w, 0.5, 1.5),
             "trunc_normal,0,8": lambda w: init.trunc_normal_(w, 0, 8)}
LETTERS = {"query": "W_query", "key": "W_key", "value": "W_value", "out": "W_out"}
cases = []


def add(words, seed, arrays, following, dtype="float32"):
    cases.append({"words": [*words, "--seed", str(seed), "--dtype", dtype], "dtype": dtype, "next": fnv(following),
                  "hashes": {name: fnv(np.ascontiguousarray(array)) for name, array in arrays.items()}})


def torch_case(words, seed, draw, dtype="float32"):
    torch.manual_seed(seed)
    arrays = {name: array.detach().numpy() for name, array in draw(getattr(torch, dtype)).items()}
    add(words, seed, arrays, torch.rand(4).numpy(), dtype)


for at, (name, function) in enumerate(FUNCTIONS.items()):  # around 16 numbers, and in pieces of 16
    for d_in, d_out in ((3, 1), (5, 3), (4, 4), (17, 1), (8, 9)):
        for dtype in ("float32", "float64") if "uniform" in name else ("float32",):
            torch_case(["self", "--rand", f"2,{d_in}", "--d-out", str(d_out), "--init", name], at, lambda t: {
                "inputs": torch.rand(2, d_in, dtype=t),
                **{LETTERS[part]: function(torch.empty(d_out, d_in, dtype=t)) for part in ("query", "key", "value")}}, dtype)
for order in (["key", "query", "value"], ["out", "value", "query", "key"]):
    all_parts = order if "out" in order else [*order, "out"]
    torch_case(["multihead", "--randn", "4,8,32", "--d-out", "16", "--heads", "2", "--draw-order", ",".join(order)], 1337,
               lambda t: {"inputs": torch.randn(4, 8, 32), **{LETTERS[part]: nn.Linear(
                   *((16, 16) if part == "out" else (32, 16))).weight if part == "out" else nn.Linear(
                       32, 16, bias=False).weight for part in all_parts}})


def joined(_):
    x, layer, out = torch.randn(2, 5, 8), nn.Linear(8, 24), nn.Linear(8, 8)
    parts = zip(("query", "key", "value"), layer.weight.chunk(3), layer.bias.chunk(3))
    return {"inputs": x, "W_out": out.weight, "b_out": out.bias,
            **{name: array for part, w, b in parts for name, array in ((f"W_{part}", w), (f"b_{part}", b))}}


def cross(_):
    layer = nn.MultiheadAttention(4, 2, kdim=3, vdim=3)
    return {"W_out": layer.out_proj.weight, "W_query": layer.q_proj_weight, "W_key": layer.k_proj_weight,
            "W_value": layer.v_proj_weight}


torch_case(["multihead", "--randn", "2,5,8", "--heads", "2", "--qkv-joined", "--qkv-bias"], 123, joined)
torch_case(["cross", "four.json", "--context", "three.json", "--heads", "2", "--init", "mha"], 11, cross)
torch_case(["self", "--rand", "3,5", "--randint", "0,536870912", "--init", "randint,-3,4"], 3, lambda t: {
    "inputs": torch.randint(0, 536870912, (3, 5)).to(t),
    **{LETTERS[part]: torch.randint(-3, 4, (5, 5)).to(t) for part in ("query", "key", "value")}}, "float64")
for shape in ((6, 3), (2, 4, 6, 8)):
    torch_case(["sdpa", "--randn", ",".join(map(str, shape)), "--dropout", "0.5"], 7, lambda t: {
        **{name: torch.randn(shape) for name in ("query", "key", "value")},
        "dropout_mask": 2 * torch.empty(*shape[:-1], shape[-2]).bernoulli_(0.5)})
for name, function in {"rand": np.random.rand, "randn": np.random.randn,
                       "randint,-5,300": lambda *shape: np.random.randint(-5, 300, shape),
                       "normal,1,0.5": lambda *shape: np.random.normal(1, 0.5, shape)}.items():
    np.random.seed(42)
    drawn = {"inputs": np.random.randn(3, 5), **{LETTERS[part]: function(5, 3) for part in ("query", "key", "value")}}
    add(["self", "--randn", "3,5", "--d-out", "3", "--init", name, "--rng", "numpy"], 42,
        {key: array.astype(np.float32) for key, array in drawn.items()}, np.random.rand(4).astype(np.float32))

about = f"Draws of PyTorch {torch.__version__}'s CPU generator, and of NumPy {np.__version__}'s np.random."
lines = ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases)
FILE.write_text(f'{{"about":"{about}","cases":[\n{lines}\n]}}\n')
print(len(cases), "cases with PyTorch", torch.__version__)
