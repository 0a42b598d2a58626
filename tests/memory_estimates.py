#!/usr/bin/env python3
"""The memory estimate of `attn batch --dry-run`, compared with the peak that the system measures.

    python3 tests/memory_estimates.py ATTN

Questions whose answers take 20 to 100 MB: every mode, with what takes most of it: inputs in each format and type,
parameters, projections, scores of the reference, arrays that are written, masks, caches, text. Each runs by itself. What
it takes beyond an idle program is at most 1.5 times what was said, and what was said at most twice what it takes. What
the estimate counts is in core/dry_run_test.cpp. Needs the standard library only.
"""
import array
import json
import os
import random
import sys
import tempfile

sys.dont_write_bytecode = True
from hostile import run  # noqa: E402
from support.array_files import npy_head  # noqa: E402

MB = 1 << 20
IDLE = 6 * MB  # the program itself
MOST_LOW, MOST_HIGH = 1.5, 2.0
CODES = {"<f4": "f", "<f8": "d", "|b1": "b"}


def npy(name, *shape, kind="<f4"):
    """A file of numbers that repeat."""
    rng = random.Random(str(shape))
    numbers = array.array(CODES[kind], (rng.random() < 0.7 if kind == "|b1" else rng.uniform(-1, 1) for _ in range(4099)))
    left = numbers.itemsize
    for length in shape:
        left *= length
    with open(name, "wb") as file:
        file.write(npy_head(shape, kind))
        for at in range(0, left, len(numbers) * numbers.itemsize):
            file.write(numbers.tobytes()[:left - at])
    return name


def text(name, rows, columns, digits=8):
    rng = random.Random(1)
    block = ["%.*f" % (digits, rng.uniform(-1, 1)) for _ in range(1009 + columns)]
    with open(name, "w") as file:
        for row in range(rows):
            line = ",".join(block[row * 7 % 1009:row * 7 % 1009 + columns])
            file.write(line + "\n" if name.endswith("csv") else "[%s]\n" % line)
    return name


def operands(n, m, d, heads=1, batch=1, **kind):
    return {"mode": "sdpa", "query": npy("q.npy", batch, heads, n, d, **kind), "key": npy("k.npy", batch, heads, m, d, **kind),
            "value": npy("v.npy", batch, heads, m, d, **kind)}


QUESTIONS = {  # name: the request, made in an empty folder
    "inputs in npy": lambda: {"mode": "self", "inputs": npy("x.npy", 200000, 32), "token": 5, "d_out": 4},
    "inputs in npy of float64": lambda: {"mode": "self", "inputs": npy("x.npy", 200000, 32, kind="<f8"), "rows": [5, 9],
                                         "d_out": 4},
    "inputs in CSV": lambda: {"mode": "causal", "inputs": text("x.csv", 60000, 40), "token": 5, "d_out": 4},
    "inputs in lines of JSON": lambda: {"mode": "causal", "inputs": text("x.ndjson", 60000, 40, 17), "rows": [3, 4],
                                        "d_out": 4, "dtype": "float64"},
    "inputs in the request": lambda: {"mode": "self", "inputs": [[0.125 * (i % 9), 2] for i in range(500000)], "token": 1},
    "words": lambda: {"mode": "self", "text": " ".join("w%d" % (i % 5000) for i in range(100000)), "embed_dim": 64,
                      "vocab_size": 5000, "token": 7},
    "parameters": lambda: {"mode": "self", "inputs": npy("x.npy", 3, 1000), "d_k": 3000, "d_v": 3000},
    "parameters of heads": lambda: {"mode": "multihead", "inputs": npy("x.npy", 3, 700), "heads": 20, "kv_heads": 4,
                                    "d_k": 4000, "d_v": 4000, "d_out": 2000, "qkv_bias": True},
    "heads side by side": lambda: {"mode": "multihead", "inputs": npy("x.npy", 3, 700), "style": "wrapper", "heads": 30,
                                   "d_out": 200},
    "projections": lambda: {"mode": "causal", "inputs": npy("x.npy", 3000, 60), "d_out": 900, "emit": ["queries", "keys"]},
    "another context": lambda: {"mode": "cross", "inputs": npy("x.npy", 5, 20), "context": npy("c.npy", 100000, 50),
                                "d_k": 40, "d_v": 40},
    "many queries": lambda: operands(150000, 3, 32),
    "many keys": lambda: operands(3, 150000, 32),
    "many keys in float64": lambda: operands(3, 80000, 32) | {"dtype": "float64", "threads": 8},
    "many heads": lambda: operands(5, 5, 16, heads=9000, batch=2),
    "a cache": lambda: operands(1, 5, 32, heads=4) | {"past_key": npy("pk.npy", 1, 4, 40000, 32),
                                                       "past_value": npy("pv.npy", 1, 4, 40000, 32)},
    "scores of the reference": lambda: operands(1500, 1500, 8) | {"kernel": "reference"},
    "all arrays": lambda: operands(500, 700, 8) | {"emit": ["all"]},
    "written weights": lambda: operands(800, 1200, 8, heads=2) | {"emit": ["attention_weights"], "precision": 4},
    "written scores of float64": lambda: operands(600, 900, 8) | {"emit": ["scores"], "dtype": "float64", "precision": 20},
    "means over heads": lambda: operands(500, 600, 4, heads=20) | {"emit": ["attention_weights"], "average_heads": True},
    "an additive mask": lambda: operands(2000, 2000, 8) | {"mask": npy("m.npy", 2000, 2000)},
    "a boolean mask": lambda: operands(2000, 2000, 8) | {"mask": npy("m.npy", 2000, 2000, kind="|b1"), "mask_true": "keep"},
    "dropout and a window": lambda: operands(1000, 40000, 64) | {
        "dropout": 0.3, "window": [3, 100], "causal": True, "causal_align": "bottom-right", "emit": ["context_vectors"]},
    "linear attention": lambda: {"mode": "linear", "inputs": npy("x.npy", 20000, 64), "heads": 4, "d_out": 128,
                                 "emit": ["context_vectors"]},
}


def in_child(work):
    """Child processes inherit this process's peak of memory, so it uses little."""
    pid = os.fork()
    if pid == 0:
        work()
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0


def write(question):
    with open("request.ndjson", "w") as file:
        json.dump(question(), file)


def measure(question):
    """The estimate and the use."""
    for name in os.listdir("."):
        os.remove(name)
    in_child(lambda: write(question))
    cost = json.loads(run.Run(["batch", "--jobs", "1", "--dry-run", "request.ndjson"]).out)
    done = run.Run(["batch", "--jobs", "1", "request.ndjson", "-o", "answer"])
    assert done.code == 0 and "memory_bytes" in cost, (cost, done.err)
    return cost["memory_bytes"], done.mb * MB - IDLE


run.ATTN = os.path.abspath(sys.argv[1])
wrong = 0
with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    for name, question in QUESTIONS.items():
        said, used = measure(question)
        is_wrong = used > MOST_LOW * said or said > MOST_HIGH * used or max(said, used) < 20 * MB
        wrong += is_wrong
        if is_wrong or "-v" in sys.argv:
            print("%s: said %.1f MB, used %.1f MB" % (name, said / MB, used / MB))
    os.chdir("/")
print("%d questions, %d estimates are wrong" % (len(QUESTIONS), wrong))
sys.exit(1 if wrong else 0)
