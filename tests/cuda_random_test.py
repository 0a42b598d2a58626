"""Draws of PyTorch's CUDA stream: an H100's own, and generated questions against Philox in NumPy.

    python3 tests/cuda_random_test.py ATTN [--count N] [--seed N]

data/golden/cuda_random.json lists commands, and cuda_random.npz the arrays that PyTorch drew on an H100 for each: masks as
bits, and the first, middle and last parts of large tensors. Uniform numbers and masks must be equal bit for bit, and
normals within the error of a GPU's logarithm and sine. Generated questions draw inputs, parameters and dropout with random
shapes, types, GPUs, offsets and attention kernels.
"""

import argparse
import json
import math
import pathlib
import random
import shlex
import subprocess
import tempfile
from fractions import Fraction

import wrong  # exit code 77 without NumPy
import numpy as np

from wrong.program import round_to

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "data" / "golden"
BYTES = {"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2}
TOLERANCE = {"float64": 1e-12, "float32": 4e-6, "float16": 2e-3, "bfloat16": 2e-2}


def run(attn, folder, words):
    done = subprocess.run([attn, *map(str, words)], capture_output=True, text=True, cwd=folder, check=False)
    assert done.returncode == 0, (words, done.stderr)
    return json.loads(done.stdout)


def typed(array, kind):
    """The numbers of the type that decimals mean, in float64."""
    numbers = np.array(array, dtype=kind if kind in ("float64", "float32") else np.float32)
    return (round_to(numbers, kind, np.float32) if BYTES[kind] == 2 else numbers).astype(np.float64)


def check_recorded(attn, folder):
    records = json.loads((GOLDEN / "cuda_random.json").read_text())["records"]
    drawn = np.load(GOLDEN / "cuda_random.npz")
    failed = []
    for record in records:
        expected, kind = drawn[record["key"]], record.get("dtype")
        if "shape" in record:
            b, h, q, k = record["shape"]
            np.save(folder / "q.npy", np.zeros((b, h, q, 1)))
            np.save(folder / "k.npy", np.zeros((b, h, k, 1)))
        np.save(folder / "x.npy", np.zeros((2, record.get("inputs", 1))))
        result = run(attn, folder, shlex.split(record["args"]) + ["--emit", record["array"]])[record["array"]]
        if record["kind"] == "mask":
            got = np.array(result).reshape(record["shape"]) != 0
            got = np.packbits(np.tril(got) if record.get("causal") else got)
        else:
            got = typed(result, kind).ravel()
            if expected.dtype == np.int16:
                expected = (expected.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
            expected = expected.astype(np.float64).ravel()
        if part := record.get("parts"):
            middle = len(got) // 2
            got = np.concatenate([got[:part], got[middle : middle + part], got[-part:]])
        off = np.abs(got.astype(np.float64) - expected).max() if got.shape == expected.shape else math.inf
        if off > (TOLERANCE[kind] if record["kind"] == "randn" else 0):
            failed.append((record["key"], record["args"], off))
    print(f"{len(records)} draws of a GPU, {len(failed)} wrong", failed[:5])
    return not failed


def philox(key, low, high, rounds=10):
    """Salmon et al. 2011: the words of counters, (4, ...)."""
    c = [(np.asarray(half, np.uint64) >> np.uint64(32 * i)) & np.uint64(2**32 - 1) for half in np.broadcast_arrays(low, high)
         for i in (0, 1)]
    k = [key & (2**32 - 1), key >> 32]
    for _ in range(rounds):
        a, b = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [(b >> np.uint64(32)) ^ c[1] ^ np.uint64(k[0]), b & np.uint64(2**32 - 1),
             (a >> np.uint64(32)) ^ c[3] ^ np.uint64(k[1]), a & np.uint64(2**32 - 1)]
        k = [(k[0] + 0x9E3779B9) % 2**32, (k[1] + 0xBB67AE85) % 2**32]
    return np.stack(c)


class Gpu:
    def __init__(self, seed, offset, processors, threads):
        self.seed, self.offset, self.blocks = seed % 2**64, offset, processors * (threads // 256)

    def threads(self, n):
        return 256 * min(self.blocks, -(-n // 256))

    def words(self, counters, threads, which, rounds=10):
        return np.take_along_axis(philox(self.seed, counters, threads, rounds), which[None], 0)[0]

    def uniform01(self, n, kind):
        i, t, draws = np.arange(n, dtype=np.uint64), self.threads(n), 2 if kind == "float64" else 4
        at = [self.offset // 4 + i // (t * draws), i % t, (i // t % draws * (4 // draws)).astype(np.int64)]
        self.offset += 4 * -(-n // (t * draws))
        word = self.words(*at)
        if draws == 4:
            return word.astype(np.float32) * np.float32(2**-32) + np.float32(2**-33)
        at[2] += 1
        return (word ^ self.words(*at) << np.uint64(21)).astype(np.float64) * 2**-53 + 2**-54

    def uniform(self, n, bound, kind):
        """uniform_(-bound, bound), with a fused multiply-add."""
        work = np.float64 if kind == "float64" else np.float32
        u = self.uniform01(n, kind)
        low, high = typed([-bound, bound], kind)
        width = Fraction(typed([work(high) - work(low)], kind)[0])
        value = typed([work(float(Fraction(float(x)) * width + Fraction(low))) for x in u], kind)
        return np.where(value == high, low, value)

    def keeps(self, shape, p, kind, kernel):
        """One call of dropout over (batch, heads, queries, keys)."""
        n = math.prod(shape)
        i, start = np.arange(n, dtype=np.uint64), self.offset
        if kernel == "flash":
            b, h, q, k = np.indices(shape)
            lane, byte = q % 8 * 4 + k % 8 // 2, k % 32 // 8 * 4 + q % 16 // 8 * 2 + k % 2
            self.offset += 32 * shape[0] * shape[1]
            low = (start + (b * shape[1] + h) * 32 + lane).astype(np.uint64)
            word = self.words(low, (q // 16 + (k // 32 << 32)).astype(np.uint64), byte // 4, 7)
            return (word >> (8 * (byte % 4)).astype(np.uint64) & np.uint64(255)) <= math.floor(float(np.float32(1) - np.float32(p)) * 255)
        if kernel == "efficient":
            self.offset += -(-n // 4) * 4
            place = start // 4 + i // 4, i * 0, (i % 4).astype(np.int64)
        else:
            v, t = 16 // (4 if kernel else BYTES[kind]), self.threads(n)
            while n % v:
                v //= 2
            self.offset += 4 * -(-n // (4 * t))
            place = (start // 4 + i // (4 * t), i % t, (i // t % 4).astype(np.int64)) if v == 1 else (
                start // 4 + i // v // t * max(1, v // 4) + i % v // 4, i // v % t, (i % v % 4).astype(np.int64))
        u = self.words(*place).astype(np.float32) * np.float32(2**-32) + np.float32(2**-33)
        kept = u > np.float32(p) if kernel == "efficient" else u < (1 - p if kind == "float64" and not kernel else np.float32(1 - p))
        return kept.reshape(shape)


def check_generated(attn, folder, count, seed):
    """Layers whose draws follow one another: inputs, parameters, dropout."""
    dice, failed = random.Random(seed), []
    for n in range(count):
        kind, batch, tokens = dice.choice(list(BYTES)), dice.randint(1, 3), dice.choice((1, 4, 6, 9, 33, 70))
        heads, width, p = dice.randint(1, 3), dice.choice((1, 3, 4, 8)), dice.choice((0.1, 0.3, 0.5, 0.9))
        drawn_there, style = dice.random() < 0.7, dice.choice(("split", "wrapper"))
        kernel, bias = dice.choice((None, "math", "efficient", "flash")), dice.random() < 0.5
        gpu = Gpu(dice.choice((0, 1, 123, -1, 2**63 + 5)), 4 * dice.randint(0, 9), dice.choice((1, 2, 40)), dice.choice((256, 1024, 1536)))
        d_in, per_head = dice.randint(1, 5), heads if style == "wrapper" else 1
        command = ["multihead", "--rand", f"{batch},{tokens},{d_in}", "--heads", heads, "--style", style, "--no-out-proj",
                   "--d-out", width * (heads if style == "split" else 1), "--seed", gpu.seed, "--dtype", kind, "--dropout", p,
                   "--multiprocessors", gpu.blocks // 4 if gpu.blocks % 4 == 0 else gpu.blocks,
                   "--threads-per-multiprocessor", 1024 if gpu.blocks % 4 == 0 else 256,
                   "--device" if drawn_there else "--dropout-stream", "cuda",
                   "--rng-skip" if drawn_there else "--dropout-skip", gpu.offset, "--emit",
                   "inputs,W_query,W_value,dropout_mask" + (",b_key" if bias else "")]
        command += ["--qkv-bias"] * bias + (["--dropout-kernel", kernel] if kernel else [])
        result = run(attn, folder, command)
        wanted = {}
        if drawn_there:
            wanted["inputs"] = gpu.uniform01(batch * tokens * d_in, kind).astype(np.float64)
            wanted["inputs"] = np.where(typed(wanted["inputs"], kind) == 1, 0, typed(wanted["inputs"], kind))
            for _ in range(per_head):
                for name in ("query", "key", "value"):
                    rows = width * heads // per_head if style == "split" else width
                    bound = math.sqrt(3) * (math.sqrt(2 / 6) / math.sqrt(d_in))
                    wanted.setdefault("W_" + name, []).append(gpu.uniform(rows * d_in, bound, kind))
                    if bias:
                        wanted.setdefault("b_" + name, []).append(gpu.uniform(rows, 1 / math.sqrt(d_in), kind))
        calls = [gpu.keeps((batch, heads // per_head, tokens, tokens), p, kind, kernel) for _ in range(per_head)]
        wanted["dropout_mask"] = np.concatenate(calls, 1)
        for name in ("inputs", "W_query", "W_value", "b_key", "dropout_mask"):
            if name in wanted and name in result:
                got = np.array(result[name]).ravel() != 0 if name == "dropout_mask" else typed(result[name], kind).ravel()
                if not np.array_equal(got, np.array(wanted[name]).ravel()):
                    failed.append((n, name, " ".join(map(str, command))))
        if drawn_there and result["rng_consumed"] != gpu.offset:
            failed.append((n, "rng_consumed", result["rng_consumed"], gpu.offset, command))
    print(f"{count} generated questions, {len(failed)} wrong", failed[:5])
    return not failed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("attn", type=pathlib.Path)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    attn = options.attn.resolve()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        recorded = check_recorded(attn, folder)
        return 0 if check_generated(attn, folder, options.count, options.seed) and recorded else 1


if __name__ == "__main__":
    raise SystemExit(main())
