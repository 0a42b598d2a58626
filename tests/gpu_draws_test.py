"""Inputs, parameters and dropout recomputed from where `attn explain` says that a GPU's generator draws them.

    python3 tests/gpu_draws_test.py ATTN
"""
import json
import math
import os
import re

from support.asked import check, rng, run, run_all

NEAR = {"float32": 3e-6, "float64": 2e-9, "bfloat16": 2e-2}


def philox(key, low, high, rounds=10):
    x, y, z, w = low % 2**32, low >> 32, high % 2**32, high >> 32
    for i in range(rounds):
        a, b = 0xD2511F53 * x, 0xCD9E8D57 * z
        k0, k1 = (key + i * 0x9E3779B9) % 2**32, ((key >> 32) + i * 0xBB67AE85) % 2**32
        x, y, z, w = b >> 32 ^ y ^ k0, b % 2**32, a >> 32 ^ w ^ k1, a % 2**32
    return x, y, z, w


def drawn(words, at, is_double, bound):
    """From -bound to bound; from 0 to 1 of a bound 0; normal of None."""
    def uniform(i): return (words[i] ^ words[i + 1] << 21) * 2.0**-53 if is_double else words[i] * 2.0**-32
    if bound is not None: return uniform(at) if bound == 0 else (2 * uniform(at) - 1) * bound
    radius, is_sine = (0, at == 0) if is_double else (at & 2, at % 2 == 0)
    turns = uniform(radius + (2 if is_double else 1))
    return math.sqrt(-2 * math.log(uniform(radius) or 2.0**-33)) * (math.sin if is_sine else math.cos)(2 * math.pi * turns)


def random_question():
    mode, d, dtype = rng.choice(["self", "causal", "multihead", "sdpa"]), 4 * rng.randint(1, 9), rng.choice(list(NEAR))
    source = rng.choice(["--rand", "--randn"] + ["--text"] * (mode != "sdpa"))
    init, seed = rng.choice(["rand", "randn", "linear"] + ["mha"] * 2 * (mode == "multihead")), rng.choice([0, 7, 2**63 + 5])
    flags = [source, "b a c b", "--embed-dim", d, "--vocab-size", 90, "--embed-seed", 5] if source == "--text" else [
        source, ",".join(map(str, [rng.randint(1, 3)] * rng.randint(0, 1) + [rng.randint(1, 40), d]))]
    flags += ["--seed", seed, "--device", "cuda", "--dtype", dtype]
    if mode != "sdpa": flags += ["--init", init] + rng.choice([[], ["--qkv-bias"]])
    if mode != "sdpa" and init != "mha":
        flags += rng.choice([[], ["--qkv-joined"]]) + rng.choice([[], ["--draw-order", "value,key,query"]])
    if mode == "multihead": flags += ["--heads", rng.choice([1, 2, 4])]
    if mode == "multihead" and init != "mha": flags += rng.choice([[], ["--style", "wrapper", "--d-out", 8]])
    return mode, d, dtype, source, init, seed, flags + rng.choice([[], ["--rng-skip", 4 * rng.randint(1, 99)]]) + rng.choice(
        [[], ["--gpu", "t4"], ["--multiprocessors", 1, "--threads-per-multiprocessor", 256]])


def check_pages(count=200):
    elements = keys = 0
    for _ in range(count):
        mode, d, dtype, source, init, seed, flags = random_question()
        p, kernel = rng.choice([0.1, 0.5, 0.9]), rng.choice([None, "math", "efficient", "flash"])
        own = rng.choice([[], ["--dropout-seed", 3, "--dropout-skip", 8]])
        words = [mode, *flags, "--dropout", p, *own] + (["--dropout-kernel", kernel] if kernel else [])
        result = json.loads(run(*words, "--emit", "all").stdout)
        at = {axis: rng.randrange(result["shapes"][axis]) for axis in ("batch", "heads", "q_len")}
        page = run("explain", *words, "--full", "--precision", 9, "--batch", at["batch"], "--head", at["heads"],
                   "--token", at["q_len"], env={**os.environ, "COLUMNS": "300"}).stdout
        for name, x, thread, counter, word in re.findall(r"^ +(\w+\[\S.*\]) +(-?[\d.]+) +\d+ +(\d+) +(\d+) +(\d)$", page, re.M):
            array, is_input = result[name.split("[")[0]], name[1] != "_"
            for i in re.findall(r"(\d+)\]", name): array = array[int(i)]
            fan_in = result["shapes"]["d_out"] if "_out" in name else d
            bound = {"--rand": 0}.get(source) if is_input else {
                "rand": 0, "randn": None, "linear": fan_in**-0.5, "mha": fan_in**-0.5 if "_out" in name else (1.5 / d)**0.5}[init]
            key = 5 if is_input and source == "--text" else seed
            found = drawn(philox(key, int(counter), int(thread)), int(word), dtype == "float64", bound)
            near = lambda a, b: abs(a - b) < NEAR[dtype]
            # What rounds to the end of the interval becomes its start.
            at_end = bound is not None and near(found, bound or 1) and near(array, -bound)
            check(near(array, float(x)) and (near(found, array) or at_end), words, name, x, array, found)
            elements += 1
        mask = result["dropout_mask"]
        for axis in result["layout"]["axes"]["dropout_mask"][:-1]: mask = mask[at[axis]]
        table = re.findall(r'^ +(\d+)(?: ".*")? +(\d+) +(\d+) +(\d)(?: +(\d))? +([\d.]+) +(yes|no)$', page, re.M)
        check(len(table) == len(mask), words, page)
        for key, thread, counter, word, byte, shown, keeps in table:
            bits = philox(3 if own else seed, int(counter), int(thread), 7 if byte else 10)[int(word)]
            u = bits >> 8 * int(byte) & 255 if byte else bits * 2.0**-32
            kept = u <= int(255 * (1 - p)) if byte else u > p if kernel == "efficient" else u < 1 - p
            check(kept == (keeps == "yes") == (mask[int(key)] != 0) and abs(u - float(shown)) < 1e-7, words, key, u)
            keys += 1
    return f"{elements} elements, {keys} keys"


run_all(check_pages)
