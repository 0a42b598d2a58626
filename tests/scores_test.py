"""Settings of scores against NumPy in float64, written apart from attn: ALiBi by distance, T5's biases from a table, a scale
for each head, cosine attention, and numbers in the softmax's denominator.

    python3 tests/scores_test.py ATTN [QUESTIONS [SEED]]

Generated questions with grouped heads, caches and other options, by every kernel, one row and head, from a result's config
and by attn repro's program; attn check judges NumPy's result.
"""

import json
import math
import random
import subprocess
import sys
import tempfile

import wrong  # exit code 77 without NumPy
import numpy as np
from wrong.question import published_slopes

SHAPES = ((1, 1, 1, 1, 1, 0, 1), (2, 4, 2, 5, 5, 3, 8), (1, 6, 3, 37, 70, 0, 16), (2, 3, 1, 70, 20, 50, 5),
          (1, 8, 8, 129, 129, 0, 4), (3, 2, 2, 1, 300, 9, 6), (1, 2, 1, 20, 7, 0, 4))


def bucket(relative, bidirectional, count, most):
    """transformers' T5Attention._relative_position_bucket, of key - query."""
    first = np.zeros_like(relative)
    if bidirectional:
        count //= 2
        first = (relative > 0) * count
        distance = np.abs(relative)
    else:
        distance = -np.minimum(relative, 0)
    exact = count // 2
    with np.errstate(divide="ignore"):
        ratio = np.log(distance / exact) / math.log(most / exact) * (count - exact)
    far = exact + np.minimum(np.floor(np.where(distance < exact, 0, ratio) + 1e-9), count - 1 - exact).astype(int)
    return first + np.where(distance < exact, distance, far)


def draw(dice, seed):
    batch, heads, kv_heads, queries, keys, past, width = dice.choice(SHAPES)
    draws = np.random.default_rng(seed)
    dtype = dice.choice(["float32", "float64"])
    array = lambda *shape: draws.normal(size=shape).astype(dtype)
    asked = {"mode": "sdpa", "dtype": dtype, "query": array(batch, heads, queries, width),
             "key": array(batch, kv_heads, keys, width), "value": array(batch, kv_heads, keys, 3)}
    if past:
        asked |= {"past_key": array(batch, kv_heads, past, width), "past_value": array(batch, kv_heads, past, 3)}
    likely = lambda share=0.4: dice.random() < share
    if likely(): asked |= {"causal": True, "causal_align": dice.choice(["top-left", "bottom-right"])}
    if likely(0.2): asked["softcap"] = 3
    if likely(): asked["scale"] = [round(dice.uniform(-0.5, 3), 2) for _ in range(heads)] if heads > 1 else 0.7
    if likely():
        asked["alibi"] = True
        if likely(0.7): asked["alibi_distance"] = dice.choice(["absolute", "signed"])
    if likely():
        rows = dice.choice([4, 9, 32])
        asked["relative_bias"] = draws.normal(size=(rows, heads)).round(3)
        if likely(): asked["relative_buckets"] = dice.randrange(4, rows + 1)
        if likely(): asked["relative_max_distance"] = dice.choice([17, 40.5])
        if likely(0.3): asked["score_mod"] = "score * 0.5 + h"
    if likely(): asked["qk_norm"] = True
    if likely(): asked["softmax_plus"] = dice.choice([1, 0.25, 7])
    elif likely(): asked["sink"] = [0.5]
    return asked


def answer(asked):
    """The context vectors and weights."""
    query, key, value = (asked[name].astype(float) for name in ("query", "key", "value"))
    unit = lambda x: x / np.maximum(np.sqrt((x * x).sum(-1, keepdims=True)), 1e-12) if asked.get("qk_norm") else x
    query, key = unit(query), unit(key)
    if "past_key" in asked:
        key, value = (np.concatenate([asked[name].astype(float), x], 2) for name, x in
                      (("past_key", key), ("past_value", value)))
    heads, queries, keys, width = *query.shape[1:3], key.shape[2], query.shape[3]
    key, value = (x.repeat(heads // x.shape[1], 1) for x in (key, value))
    scale = np.reshape(asked.get("scale", 1 / math.sqrt(width)), (-1, 1, 1))
    scores = query @ key.swapaxes(-1, -2) * scale
    if "softcap" in asked: scores = asked["softcap"] * np.tanh(scores / asked["softcap"])
    offset = keys - queries if asked.get("causal_align") == "bottom-right" else \
        asked["past_key"].shape[2] if "past_key" in asked else 0
    relative = np.arange(keys) - np.arange(queries)[:, None] - offset
    if asked.get("alibi"):
        distance = relative if asked.get("alibi_distance") == "signed" else -np.abs(relative)
        scores = scores + published_slopes(heads)[:, None, None] * distance
    if "relative_bias" in asked:
        table = asked["relative_bias"]
        buckets = bucket(relative, not asked.get("causal"), asked.get("relative_buckets", len(table)),
                         asked.get("relative_max_distance", 128))
        scores = scores + np.moveaxis(table[buckets], -1, 0)
    if "score_mod" in asked: scores = scores * 0.5 + np.arange(heads)[:, None, None]
    if asked.get("causal"): scores = np.where(relative > 0, -np.inf, scores)
    more = asked.get("softmax_plus", 0) + (math.exp(asked["sink"][0]) if "sink" in asked else 0)
    peak = np.maximum(scores.max(-1, keepdims=True), 0)
    powers = np.exp(scores - peak)
    sums = powers.sum(-1, keepdims=True) + more * np.exp(-peak)
    weights = np.divide(powers, sums, out=np.zeros_like(powers), where=sums != 0)
    return weights @ value, weights


def run(*words):
    return subprocess.run(words, capture_output=True, text=True, check=False)


def check(attn, folder, asked, kernels, dice):
    want, weights = answer(asked)
    request, theirs = f"{folder}/request.json", f"{folder}/theirs.npy"
    with open(request, "w", encoding="utf-8") as file:
        json.dump({key: x.tolist() if isinstance(x, np.ndarray) else x for key, x in asked.items()}, file)
    tolerance = {"rtol": 0, "atol": 2e-4 if asked["dtype"] == "float32" else 1e-11}
    shown = {key: x for key, x in asked.items() if not isinstance(x, np.ndarray)}
    context = lambda *words: json.loads(run(attn, "sdpa", *words, "--format", "json").stdout)["context_vectors"]
    for kernel in kernels:
        done = run(attn, "sdpa", request, "--kernel", kernel, "-o", f"{folder}/result.json")
        assert done.returncode == 0, (shown, done.stderr)
        with open(f"{folder}/result.json", encoding="utf-8") as file: result = json.load(file)
        np.testing.assert_allclose(result["context_vectors"], want, **tolerance, err_msg=f"{shown} {kernel}")
        np.testing.assert_allclose(result["attention_weights"], weights, **tolerance, err_msg=f"{shown} {kernel}")
    if asked.get("alibi"):
        assert result["config"]["alibi_distance"] == asked.get("alibi_distance", "absolute")
        assert ("--alibi-distance" in done.stderr) == (not asked.get("causal") and "alibi_distance" not in asked), shown
    row, head = dice.randrange(want.shape[2]), dice.randrange(want.shape[1])
    done = run(attn, "sdpa", request, "--token", str(row), "--head", str(head), "--format", "json")
    np.testing.assert_allclose(json.loads(done.stdout)["attention_weights"], weights[:, [head]][:, :, [row]], **tolerance)
    assert context(request, "--config", f"{folder}/result.json") == result["context_vectors"], shown
    if asked.get("alibi_distance") == "signed":  # of a version without the key
        del result["config"]["alibi_distance"]
        with open(f"{folder}/old.json", "w", encoding="utf-8") as file: json.dump(result, file)
        with open(request, encoding="utf-8") as file: plain = json.load(file)
        del plain["alibi"], plain["alibi_distance"]
        with open(f"{folder}/plain.json", "w", encoding="utf-8") as file: json.dump(plain, file)
        assert context(f"{folder}/plain.json", "--config", f"{folder}/old.json") == result["context_vectors"], shown
    np.save(theirs, want.astype(asked["dtype"]))
    judged = run(attn, "check", "sdpa", request, "--against", theirs)
    assert judged.returncode == 0, (shown, judged.stdout, judged.stderr)
    if want.size < 1000:
        program = run(attn, "repro", request, "--to", "numpy").stdout
        done = subprocess.run([sys.executable, "-"], input=program, capture_output=True, text=True, check=False)
        assert done.returncode == 0, (shown, done.stdout, done.stderr)


def main(attn, count=60, seed=1):
    dice = random.Random(int(seed))
    words = run(attn, "--version").stdout
    (line,) = [line for line in words.splitlines() if line.startswith("kernels: ")]
    with tempfile.TemporaryDirectory() as folder:
        for i in range(int(count)):
            check(attn, folder, draw(dice, i), ["reference", *line.split()[1:]], dice)
    print(f"{count} questions: all as expected")


if __name__ == "__main__":
    main(*sys.argv[1:])
