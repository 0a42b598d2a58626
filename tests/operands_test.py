"""Orders of axes, sequences in a row, scales, sources of values and gates, against NumPy in float64.

    python3 tests/operands_test.py ATTN [SEED]

Each question in every kernel that runs here, again from its saved result, by attn check, right and wrong, and by attn repro.
"""

import json
import math
import random
import subprocess
import sys
import tempfile

import wrong  # exit code 77 without NumPy
import numpy as np
from positions_test import rotated
from wrong.question import published_slopes

ORDERS = {"bhsd": (0, 1, 2, 3), "bshd": (0, 2, 1, 3), "sbhd": (2, 0, 1, 3)}
THREE = ("query", "key", "value")


def attention(query, key, value, allowed=True, bias=0):
    key, value = (x.repeat(query.shape[1] // key.shape[1], 1) for x in (key, value))
    scores = np.where(allowed, query @ key.swapaxes(-1, -2) / math.sqrt(query.shape[-1]) + bias, -np.inf)
    exponentials = np.exp(scores - np.maximum(scores.max(-1, keepdims=True), -1e300))
    weights = exponentials / np.maximum(exponentials.sum(-1, keepdims=True), 1e-300)
    return weights, weights @ value


def recurrence(query, key, value, factors, bonus, scale, state, normalizes=False):
    group, outputs, states = query.shape[1] // key.shape[1], [], []
    for i in range(query.shape[2]):
        added = key[:, :, i, :, None] * value[:, :, i, None]
        before, state = state, factors[:, :, i, :, None] * state + added
        read = state if bonus is None else before + bonus[:, :, None] * added
        outputs.append(scale * (query[:, :, i, None] @ read.repeat(group, 1))[:, :, 0])
        states.append(state)
    outputs, states = np.stack(outputs, 2), np.stack(states, 2)
    if normalizes:  # RetNet's parallel form (arXiv 2307.08621, section 2.3)
        ends = np.cumprod(factors[..., 0], -1)  # no factor is 0
        decays = np.tril(ends[..., None] / ends[:, :, None]).repeat(group, 1)
        rows = scale * query @ key.repeat(group, 1).swapaxes(-1, -2) * decays / np.sqrt(decays.sum(-1, keepdims=True))
        outputs = rows / np.maximum(np.abs(rows.sum(-1, keepdims=True)), 1) @ value.repeat(group, 1)
    return outputs, states


def float8(x, dtype):
    """To nearest, ties to even; smaller than the largest number."""
    fraction, least = {"float8_e4m3fn": (3, -6), "float8_e5m2": (2, -14)}[dtype]
    step = 2.0 ** (np.maximum(np.floor(np.log2(np.maximum(np.abs(x), 1e-99))), least) - fraction)
    return np.rint(x / step) * step


class Tester:
    def __init__(self, attn, folder, seed):
        self.attn, self.folder, self.dice, self.count = attn, folder, random.Random(seed), 0
        (line,) = [line for line in self.run("--version").splitlines() if line.startswith("kernels: ")]
        self.kernels, draws = line.split()[1:], np.random.default_rng(seed)
        self.draws, self.normal = draws, lambda *shape: draws.normal(size=shape)

    def run(self, *words, code=0):
        result = subprocess.run([self.attn, *words], capture_output=True, text=True, check=False)
        assert result.returncode == code, (words, result.stdout[-2000:], result.stderr)
        return result.stdout

    def answer(self, request, *words):
        with open(f"{self.folder}/question.json", "w", encoding="utf-8") as file:
            json.dump({key: x.tolist() if isinstance(x, np.ndarray) else x for key, x in request.items()}, file)
        return json.loads(self.run(request["mode"], f"{self.folder}/question.json", *words))

    def ask(self, request, want, kernels=None, repro=True):
        mode, dtype = request["mode"], "float64" if request["dtype"] == "float64" else "float32"
        tolerance = 2e-5 if dtype == "float32" else 1e-12
        question, saved, theirs, program = (f"{self.folder}/{name}" for name in (
            "question.json", "saved.json", "theirs.npz", "program.py"))
        for kernel in kernels or self.kernels:
            answer = self.answer({**request, "kernel": kernel, "emit": list(want)})
            for name, array in want.items():
                np.testing.assert_allclose(np.array(answer[name]), array, tolerance, tolerance, err_msg=f"{kernel} {name}")
            self.count += 1
        self.answer(request)
        self.run(mode, question, "--emit", "all", "-o", saved)
        with open(saved, encoding="utf-8") as file:
            assert file.read() == self.run(mode, "--config", saved, "--emit", "all"), request
        for error in (0, 0.1):
            np.savez(theirs, **{name: (array + error).astype(dtype) for name, array in want.items()})
            said = self.run("check", mode, question, "--against", theirs, code=int(error != 0))
            assert "order" not in said and "axes" not in said, said
        if repro:
            self.run("repro", mode, question, "-o", program)
            subprocess.run([sys.executable, program], check=True, capture_output=True)


def check_orders(t):
    for name, order in ORDERS.items():
        for batch, heads, kv_heads, queries, past, fresh, width in (
                (2, 4, 2, 5, 0, 7, 6), (1, 2, 2, 1, 3, 4, 8), (3, 3, 1, 33, 5, 40, 5)):
            query, key, value = (t.normal(batch, *shape) for shape in (
                (heads, queries, width), (kv_heads, past + fresh, width), (kv_heads, past + fresh, 3)))
            weights, context = attention(query, key, value)
            parts = {"query": query, "key": key[:, :, past:], "value": value[:, :, past:]}
            more = {"past_key": key[:, :, :past], "past_value": value[:, :, :past]} if past else {}
            base = {"mode": "sdpa", "dtype": t.dice.choice(["float32", "float64"]), "qkv_format": name}
            t.ask({**base, **{part: x.transpose(order) for part, x in {**parts, **more}.items()}},
                  {"attention_weights": weights, "context_vectors": context.transpose(order), "present_key": key.transpose(order)})
            entry = (0, 1, 2) if name == "bhsd" else (1, 0, 2)  # one batch entry
            t.ask({**base, **{part: x[0].transpose(entry) for part, x in {**parts, **more}.items()}},
                  {"context_vectors": context[0].transpose(entry)}, ["reference"])
            if past == 0:  # heads in the columns
                rows = [x.transpose(2, 0, 1, 3).reshape(x.shape[2], batch, -1) for x in (*parts.values(), context)]
                t.ask({"mode": "sdpa", "dtype": "float64", "batch_first": False, "heads": heads, "kv_heads": kv_heads,
                       **dict(zip(THREE, rows))}, {"context_vectors": rows[3]}, ["reference"])


def check_layers(t):
    for mode, more in (("self", {}), ("causal", {"seed": 3}), ("multihead", {"heads": 2, "init": "mha"}),
                       ("cross", {"heads": 2}), ("linear", {"heads": 2})):
        inputs = {"inputs": t.normal(3, 5, 4), **({"context": t.normal(3, 7, 4)} if mode == "cross" else {})}
        base = {"mode": mode, "dtype": "float64", **more}
        answer = t.answer({**base, **inputs})
        t.ask({**base, "batch_first": False, **{name: x.swapaxes(0, 1) for name, x in inputs.items()}},
              {"context_vectors": np.array(answer["context_vectors"]).swapaxes(0, 1),
               "attention_weights": np.array(answer["attention_weights"])})


def check_value_inputs(t):
    for batch, heads, queries, keys, sizes in ((2, 2, 3, 5, (4, 3, 6)), (1, 1, 1, 1, (2, 2, 3)), (3, 4, 6, 2, (8, 5, 1))):
        inputs = [t.normal(batch, length, size) for length, size in zip((queries, keys, keys), sizes)]
        request = {"mode": "cross", "dtype": "float64", "heads": heads, "init": "mha", "qkv_bias": True,
                   **dict(zip(("inputs", "context", "value_input"), inputs))}
        made = {name: np.array(array) for name, array in t.answer(request, "--emit", "all").items()}
        three = [(x @ made[f"W_{name}"].T + made[f"b_{name}"]).reshape(batch, x.shape[1], heads, -1).swapaxes(1, 2)
                 for name, x in zip(THREE, inputs)]
        weights, context = attention(*three)
        joined = context.swapaxes(1, 2).reshape(batch, queries, -1)
        t.ask(request, {"attention_weights": weights, "context_vectors": joined @ made["W_out"].T + made["b_out"]})


def check_recurrences(t):
    for batch, heads, kv_heads, tokens, width, columns in ((2, 4, 2, 70, 16, 16), (1, 2, 2, 1, 3, 1), (2, 2, 1, 33, 5, 5),
                                                           (1, 1, 1, 150, 8, 8)):
        for has_bonus, form, normalizes in ((True, "plain", 0), (True, "log", 0), (False, "plain", 0), (True, None, 0),
                                            (False, "log", 1), (False, None, 1)):
            dtype, columns = t.dice.choice(["float32", "float64"]), 1 if normalizes else columns
            query, key, value, past = (t.normal(batch, *shape).astype(dtype) for shape in (
                (heads, tokens, width), (kv_heads, tokens, width), (kv_heads, tokens, 3), (kv_heads, width, 3)))
            factors = t.draws.uniform(0, 1, (batch, kv_heads, tokens, columns)).astype(dtype)
            if normalizes: factors, past = factors ** 0.1, 0 * past
            else: factors[:, :, tokens // 2] = 0
            bonus = t.normal(kv_heads, width).astype(dtype) if has_bonus else None
            decay = factors if form == "plain" else np.maximum(np.log(np.maximum(factors, 1e-30)), -700)
            exact = np.ones_like(factors) if form is None else factors if form == "plain" else np.exp(decay.astype(float))
            request = {"mode": "linear", "dtype": dtype, "query": query, "key": key, "value": value, "scale": 0.5,
                       **({"normalize": "retention"} if normalizes else {"past_state": past}),
                       **({"bonus": bonus} if has_bonus else {}),
                       **({"decay_form": form, "decay": decay} if form else {})}
            given = [None if x is None else x.astype(float) for x in (query, key, value, exact, bonus)]
            outputs, states = recurrence(*given, 0.5, past.astype(float), normalizes)
            t.ask(request, {"context_vectors": outputs, "present_state": states[:, :, -1]}, repro=tokens < 50)
            weights = np.array(t.answer(request)["attention_weights"])
            of_past, _ = recurrence(*given[:2], 0 * given[2], *given[3:], 0.5, past.astype(float), normalizes)
            np.testing.assert_allclose(weights @ value.repeat(heads // kv_heads, 1) + of_past, outputs, 1e-3, 1e-4)


def check_packed(t):
    for heads, kv_heads, queries, keys, width in ((4, 2, (3, 5, 1), (3, 5, 1), 6), (2, 1, (70, 2, 60), (90, 2, 41), 16),
                                                  (2, 2, (1, 4), (6, 7), 8), (1, 1, (0, 3), (2, 5), 4)):
        rules = ({"causal": True}, {"window": [2, 1]}, {"causal": True, "window": [1, -1]},
                 {"causal": True, "rope": "half"}, {"window": [3, 1], "rope": "interleaved"},
                 *(({"alibi": True}, {"alibi": True, "causal": True}) if queries == keys else ()))
        for more, align in (({}, ""), *((more, align) for more in rules for align in ("top-left", "bottom-right"))):
            dtype, contexts = t.dice.choice(["float32", "float64"]), []
            parts = [[t.normal(length, count, width).astype(dtype) for length in lengths]
                     for lengths, count in ((queries, heads), (keys, kv_heads), (keys, kv_heads))]
            for three in zip(*parts):
                q, k = np.indices((len(three[0]), len(three[1])))
                q = q + (len(three[1]) - len(three[0]) if align == "bottom-right" else 0)
                left, right = (999 if x < 0 else x for x in more.get("window", [-1, -1]))
                allowed = ((k <= q) | ("causal" not in more)) & (k >= q - left) & (k <= q + right)
                *turned, value = (x.astype(float).swapaxes(0, 1)[None] for x in three)
                if "rope" in more:
                    angles = 1e4 ** (-2 * np.arange(width // 2) / width), 1, np.zeros(width // 2, int)
                    turned = [rotated(x, np.arange(x.shape[2])[None, None], more["rope"], angles) for x in turned]
                bias = -published_slopes(heads)[:, None, None] * np.abs(k - q) if "alibi" in more else 0
                _, context = attention(*turned, value, allowed, bias)
                contexts.append(context[0].swapaxes(0, 1))
            operands = {name: np.concatenate(part) for name, part in zip(THREE, parts)}
            together = t.dice.choice([THREE[1:], ()] if queries != keys or heads != kv_heads else [THREE[1:], THREE, ()])
            if together:  # in one file
                name = "".join(part[0] for part in together)
                np.save(f"{t.folder}/{name}.npy", np.stack([operands.pop(part) for part in together], 1))
                operands[name] = name + ".npy"
            t.ask({"mode": "sdpa", "dtype": dtype, "cu_seqlens": np.cumsum((0, *queries)), **more,
                   **({"causal_align": align} if more else {}),
                   **({"cu_seqlens_k": np.cumsum((0, *keys))} if queries != keys else {}),
                   **operands}, {"context_vectors": np.concatenate(contexts)})


def check_scales(t):
    sizes = {"batch": 2, "heads": 3, "tokens": 5, "d": 4}
    for (name, order), has_past in ((item, past) for item in ORDERS.items() for past in (False, True)):
        axes = [tuple(sizes)[i] for i in order]
        for kept in ((), ("heads",), ("batch", "heads"), ("batch", "heads", "tokens"), ("d",)):
            query, fresh, *stored = t.normal(2, 3, 2, 4), t.normal(2, 3, 3, 4), t.normal(2, 3, 5, 4), t.normal(2, 3, 5, 4)
            full = t.draws.uniform(0.001, 0.01, [sizes[axis] if axis in kept else 1 for axis in axes])
            scale = full if "d" in kept else full.reshape([sizes[axis] for axis in axes if axis in kept] or [1])
            used = [stored[0] * full.transpose(np.argsort(order)), stored[1] * 0.02]
            _, context = attention(query, *(np.concatenate((x, fresh), 2) if has_past else x for x in used))
            names = ("past_key", "past_value", "key", "value") if has_past else ("key", "value")
            t.ask({"mode": "sdpa", "dtype": "float64", "qkv_format": name, "key_scale": scale, "value_scale": 0.02,
                   "query": query.transpose(order),
                   **{part: x.transpose(order) for part, x in zip(names, (*stored, fresh, fresh))}},
                  {"context_vectors": context.transpose(order)}, ["reference"])


def check_held(t):
    """Keys and values, given or drawn, and parameters in float8, with scales and without."""
    for dtype in ("float8_e4m3fn", "float8_e5m2"):
        base = {"mode": "sdpa", "dtype": dtype}
        for has_past in (False, True):
            for kept in ((), (1,), (3,), (2, 3), (2, 3, 5)):
                query, fresh, *stored = (t.normal(2, 3, n, 4).astype("f4").astype(float) for n in (2, 3, 5, 5))
                scale = t.draws.uniform(0.02, 0.2, kept) if kept else np.ones(1)
                factors = [scale.reshape(((1,) * (kept == (3,)) + kept + (1, 1, 1, 1))[:4]), 0.05 if kept else 1]
                used = [float8(x / factor, dtype) * factor for x, factor in zip(stored, factors)]
                last = float8(fresh, dtype)
                _, context = attention(query, *(np.concatenate((x, last), 2) if has_past else x for x in used))
                names = ("past_key", "past_value", "key", "value") if has_past else THREE[1:]
                t.ask({**base, **({"key_scale": scale, "value_scale": 0.05} if kept else {}), "query": query,
                       **dict(zip(names, (*stored, fresh, fresh)))}, {"context_vectors": context}, repro=False)
        for mode, more in (("self", {}), ("causal", {"qkv_bias": True}), ("multihead", {"heads": 2, "init": "normal,0,3"}),
                           ("sdpa", {"heads": 2, "randn": [2, 5, 4]})):
            emit = ["queries", "keys", "values"] if mode == "sdpa" else [
                name for name in ("W_query", "W_key", "W_value", "W_out", "b_query", "b_key", "b_value", "b_out")
                if (name[2:] != "out" or mode == "multihead") and (name[0] == "W" or name == "b_out" or "qkv_bias" in more)]
            inputs = {} if mode == "sdpa" else {"inputs": t.normal(5, 4)}
            asked = {"mode": mode, **inputs, **more, "seed": 5, "emit": [*emit, "context_vectors"]}
            exact, held = t.answer(asked), t.answer({**asked, "dtype": dtype})
            for name in emit:
                want = np.array(exact[name])
                assert (np.array(held[name]) == (want if name == "queries" else float8(want, dtype))).all(), (mode, name)
            if inputs:  # given, and not drawn
                with open(f"{t.folder}/exact.json", "w", encoding="utf-8") as file:
                    json.dump(exact, file)
                again = t.answer({"mode": mode, **inputs, "weights": f"{t.folder}/exact.json", "dtype": dtype})
                assert again["context_vectors"] == held["context_vectors"], mode
            t.count += 1


def check_saved(t):
    """A result asked again is the same bytes: orders of axes, drawn inputs, and settings that follow or not."""
    orders = {"self": ("--no-batch-first", "--batch-first"), "multihead": ("--heads 2 --no-batch-first", "--heads 1"),
              "sdpa": ("--qkv-format bshd", "--qkv-format bhsd", "--heads 2 --no-batch-first"), "linear": ("--no-batch-first",)}
    for mode, drawn in ((mode, drawn) for mode in orders for drawn in ("--rand 4,4", "--randn 2,4,4", "--rand 4,4 --randint 0,9")):
        for order in ("", *orders[mode]):
            for more in ("", "--seed 3", "--emit all", "--scale 0.5", "--dtype float64", *(("--decay -0.1", ) if mode == "linear" else (
                    "--window 1,1 --causal-align top-left", "--alibi", "--dropout 0.5", "--mask-method neg-inf"))):
                t.run(mode, *drawn.split(), *order.split(), *more.split(), "-o", f"{t.folder}/saved.json")
                with open(f"{t.folder}/saved.json", encoding="utf-8") as file:
                    assert file.read() == t.run(mode, "--config", f"{t.folder}/saved.json"), (mode, drawn, order, more)
                t.count += 1


def main(attn, seed=1):
    with tempfile.TemporaryDirectory() as folder:
        t = Tester(attn, folder, int(seed))
        for check in (check_orders, check_layers, check_value_inputs, check_recurrences, check_packed, check_scales, check_held, check_saved):
            check(t)
    print(f"{t.count} answers: all as expected")


if __name__ == "__main__":
    main(*sys.argv[1:])
