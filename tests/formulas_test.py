"""Masks, scores and weights by formulas, against NumPy and against the options that do the same.

    python3 tests/formulas_test.py ATTN [FORMULAS [SEED]]

1. Generated formulas of every operation, variable, kind of number and type: the reference's scores, masks and weights are
   NumPy's to the bit.
2. Formulas of scores in every kernel that runs here, with grouped heads, caches and other options, against NumPy in
   float64; attn check judges the kernels' results right, and the same without the formula wrong, by name.
3. Every option that a formula can replace: the same bits.
4. Masks with a flag of their own: block masks, lengths of each query and neighborhoods of grids against loops, in every
   kernel, with caches, alignments, batch entries and heads.
"""

import json
import math
import random
import subprocess
import sys
import tempfile

import wrong  # exit code 77 without NumPy
import numpy as np

BATCH, HEADS, QUERIES, KEYS = 2, 3, 5, 7
COMPARISONS = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal, "==": np.equal,
               "!=": np.not_equal}
ARITHMETIC = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide}
SPECIAL = {"Infinity": math.inf, "-Infinity": -math.inf, "NaN": math.nan}


def remainder(x, y):
    """torch.remainder: fmod with the divisor's sign; a zero keeps the dividend's."""
    rest = np.fmod(x, y)
    return np.where((rest != 0) & ((rest < 0) != (y < 0)), rest + y, rest)


def floor_quotient(x, y):
    rest = np.fmod(x, y)
    whole = (x - rest) / y - ((rest != 0) & ((rest < 0) != (y < 0)))
    floor = np.floor(whole)
    return np.where(y == 0, x / y, np.where(whole - floor > 0.5, floor + 1, floor))


def by_float64(name, x):
    """A function of the C library, rounded once."""
    function = getattr(math, name)

    def value(number):
        try:
            return function(float(number))
        except OverflowError:
            return math.inf
        except ValueError:
            return -math.inf if number == 0 else math.nan

    return np.vectorize(value, otypes=[np.float64])(x).astype(x.dtype)


class Generator:
    """Random formulas: (text, values, whether they are real)."""

    def __init__(self, dice, real, given):
        self.dice, self.real, self.given = dice, real, given
        index = np.indices((BATCH, HEADS, QUERIES, KEYS)).astype(np.float64)
        self.values = dict(zip("bhqk", index), q_len=np.float64(QUERIES), kv_len=np.float64(KEYS),
                           heads=np.float64(HEADS))
        self.arrays = {"doc": [dice.randrange(4) for _ in range(KEYS + 2)],
                       "t": [[dice.uniform(-1, 1) for _ in range(4)] for _ in range(HEADS)],
                       "w": [dice.choice([0.5, -2.25, 3.0, 0.1]) for _ in range(BATCH)]}

    def leaf(self):
        kind = self.dice.randrange(7 if self.given is None else 8)
        b, h, k = (self.values[name].astype(int) for name in "bhk")
        if kind == 0:
            number = self.dice.randrange(9)
            return str(number), np.float64(number), False
        if kind == 1:
            text = self.dice.choice(["0.1", "2.5", "1e-3", ".75", "7.0"])
            return text, self.real(float(text)), True
        if kind == 2:
            return "doc[k]", np.float64(self.arrays["doc"])[k], False
        if kind == 3:
            return "t[h, k % 4]", self.real(np.array(self.arrays["t"])[h, k % 4]), True
        if kind == 4:
            return "w[b]", self.real(np.array(self.arrays["w"])[b]), True
        if kind < 7:
            name = self.dice.choice(list(self.values))
            return name, self.values[name], False
        return self.given[0], self.given[1], True

    def formula(self, depth):
        if depth == 0 or self.dice.random() < 0.2:
            return self.leaf()
        operation = self.dice.choice([*COMPARISONS, *ARITHMETIC, "//", "%", "&&", "||", "!", "negative", "?", "min", "max",
                                      "abs", "floor", "exp", "log", "tanh", "sqrt"])
        text, x, is_real = self.formula(depth - 1)
        if operation == "!":
            return f"!({text})", np.float64(x == 0), False
        if operation == "negative":
            return f"-({text})", -x, is_real
        if operation in ("abs", "floor"):
            return f"{operation}({text})", getattr(np, operation)(x), is_real
        if operation in ("exp", "log", "tanh"):
            return f"{operation}({text})", by_float64(operation, self.real(x)), True
        if operation == "sqrt":
            return f"sqrt({text})", np.sqrt(self.real(x)), True
        other, y, other_is_real = self.formula(depth - 1)
        if operation in ("&&", "||"):
            both = np.logical_and if operation == "&&" else np.logical_or
            return f"({text}) {operation} ({other})", np.float64(both(x != 0, y != 0)), False
        if operation == "?":
            third, z, third_is_real = self.formula(depth - 1)
            is_real = other_is_real or third_is_real
            y, z = (self.real(y), self.real(z)) if is_real else (y, z)
            return f"({text} ? {other} : {third})", np.where(x != 0, y, z), is_real
        is_real = is_real or other_is_real or operation == "/"
        x, y = (self.real(x), self.real(y)) if is_real else (x, y)
        if operation in ("min", "max"):
            function = np.minimum if operation == "min" else np.maximum
            return f"{operation}({text}, {other})", function(x, y), is_real
        if operation in COMPARISONS:
            return f"({text}) {operation} ({other})", np.float64(COMPARISONS[operation](x, y)), False
        function = {"//": floor_quotient, "%": remainder}.get(operation) or ARITHMETIC[operation]
        return f"({text}) {operation} ({other})", function(x, y), is_real


def numbers(nested):
    return np.array([[[[float(SPECIAL.get(x, x)) for x in row] for row in rows] for rows in heads] for heads in nested])


def answers(attn, folder, requests, *flags):
    path = f"{folder}/requests.ndjson"
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(json.dumps(request) + "\n" for request in requests)
    result = subprocess.run([attn, "batch", path, *flags], capture_output=True, text=True, check=False)
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert len(lines) == len(requests), result.stderr
    for request, line in zip(requests, lines):
        assert "error" not in line, (request.get("mask_mod"), request.get("score_mod"), line)
    return lines


def check_values(attn, folder, dice, count):
    requests, wanted = [], []
    for i in range(count):
        real = dice.choice([np.float32, np.float64])
        draws = np.random.default_rng(i)
        query, key = (draws.integers(-8, 9, (BATCH, HEADS, length, 1)) / 4 for length in (QUERIES, KEYS))
        scores = real(query @ key.swapaxes(-1, -2))
        array = dice.choice(["mask", "biased_scores", "attention_weights"])
        given = {"mask": None, "biased_scores": ("score", scores), "attention_weights": ("p", real(np.full(scores.shape, 1)))}
        if array == "attention_weights":  # one key has all the weight
            query = key = np.zeros((BATCH, HEADS, 1, 1))
        generator = Generator(dice, real, given[array])
        if array == "attention_weights":
            for name, value in generator.values.items():
                generator.values[name] = value[:, :, :1, :1] if value.shape else np.float64(
                    {"q_len": 1, "kv_len": 1}.get(name, value))
            generator.given = ("p", real(np.ones((BATCH, HEADS, 1, 1))))
        text, value, is_real = generator.formula(dice.randrange(1, 5))
        flag = {"mask": "mask_mod", "biased_scores": "score_mod", "attention_weights": "prob_mod"}[array]
        requests.append({"mode": "sdpa", "dtype": real.__name__, "query": query.tolist(), "key": key.tolist(),
                         "value": np.ones((*key.shape[:3], 1)).tolist(), "scale": 1, "let": generator.arrays, flag: text,
                         "emit": [array]})
        shape = (BATCH, HEADS, query.shape[2], key.shape[2])
        wanted.append(np.broadcast_to(real(value) if flag != "mask_mod" else np.float64(value != 0), shape))
    for request, want, answer in zip(requests, wanted, answers(attn, folder, requests)):
        got = numbers(answer[request["emit"][0]]).astype(want.dtype)
        assert np.array_equal(got, want, equal_nan=True), (request, got, want)
    return count


# Formulas of scores that a rounding error changes little, as Python functions of the same names.
SCORES = {
    "score - 0.1 * abs(q - k)": lambda e: e.score - 0.1 * abs(e.q - e.k),
    "score + t[h] * (k - q)": lambda e: e.score + e.t[e.h] * (e.k - e.q),
    "q >= k ? score : -inf": lambda e: np.where(e.q >= e.k, e.score, -np.inf),
    "score * (doc[q] == doc[k] ? 1 : 0.5)": lambda e: e.score * np.where(e.doc[e.q] == e.doc[e.k], 1, 0.5),
    "tanh(score / 2) * 2": lambda e: np.tanh(e.score / 2) * 2,
    "score + r[abs(q - k)]": lambda e: e.score + e.r[abs(e.q - e.k)],
    "max(score, -1) - min(score, 2)": lambda e: np.maximum(e.score, -1) - np.minimum(e.score, 2),
    "score * (b + 1) - h": lambda e: e.score * (e.b + 1) - e.h,
    "score + exp(-0.1 * abs(q - k)) - log(1 + k) + sqrt(q + 1)": lambda e: (
        e.score + np.exp(-0.1 * abs(e.q - e.k)) - np.log(1 + e.k) + np.sqrt(e.q + 1)),
    "score + pow(0.9, abs(q - k))": lambda e: e.score + 0.9 ** abs(e.q - e.k),
    "score - k % 7 * 0.1 + (q // 8 == k // 8)": lambda e: e.score - e.k % 7 * 0.1 + (e.q // 8 == e.k // 8),
    "floor(score * 0) + (k < 5 && q > 3 || !(h == 1))": lambda e: 0 * e.score + ((e.k < 5) & (e.q > 3) | (e.h != 1)),
    "abs(-score) + m[b, h, q % 4] * (q_len - kv_len + heads) % 3.5": lambda e: (
        abs(e.score) + (e.m[e.b, e.h, e.q % 4] * (e.q_len - e.kv_len + e.heads)) % 3.5),
}
SIZES = ((2, 4, 2, 70, 150, 16), (1, 2, 2, 1, 300, 8), (2, 2, 1, 3, 40, 5), (1, 4, 1, 130, 129, 20))


class Names(dict):
    __getattr__ = dict.__getitem__


def softmax_context(scores, value):
    exponentials = np.exp(scores - scores.max(-1, keepdims=True))
    return exponentials / exponentials.sum(-1, keepdims=True) @ value


def check_kernels(attn, folder, dice, share):
    words = subprocess.run([attn, "--version"], capture_output=True, text=True, check=True).stdout
    (line,) = [line for line in words.splitlines() if line.startswith("kernels: ")]
    checked = 0
    for text, function in SCORES.items():
        for batch, heads, kv_heads, queries, keys, width in SIZES:
            if dice.random() > share:
                continue
            draws = np.random.default_rng(checked)
            dtype = dice.choice(["float32", "float64"])
            query, key, value = (draws.normal(size=size).astype(dtype) for size in (
                (batch, heads, queries, width), (batch, kv_heads, keys, width), (batch, kv_heads, keys, 3)))
            arrays = {"t": 0.1 * np.arange(1, heads + 1), "doc": np.arange(512) // 50, "r": 0.01 * np.arange(512),
                      "m": draws.normal(size=(batch, heads, 4))}
            b, h, q, k = np.indices((batch, heads, queries, keys))
            group = heads // kv_heads
            scores = query.astype(float) @ key.astype(float).repeat(group, 1).swapaxes(-1, -2) / math.sqrt(width)
            names = Names(arrays, score=scores, b=b, h=h, q=q, k=k, q_len=queries, kv_len=keys, heads=heads)
            want = softmax_context(function(names), value.astype(float).repeat(group, 1))
            request = {"mode": "sdpa", "dtype": dtype, "query": query.tolist(), "key": key.tolist(),
                       "value": value.tolist(), "score_mod": text, "emit": ["context_vectors"],
                       "let": {name: array.tolist() for name, array in arrays.items() if name + "[" in text}}
            for kernel in line.split()[1:]:
                (answer,) = answers(attn, folder, [dict(request, kernel=kernel)])
                np.testing.assert_allclose(numbers(answer["context_vectors"]), want, rtol=0,
                                           atol=1e-4 if dtype == "float32" else 1e-12, err_msg=f"{text} {kernel}")
                checked += 1
            question, theirs = f"{folder}/question.json", f"{folder}/theirs.npy"
            without = softmax_context(scores, value.astype(float).repeat(group, 1))
            with open(question, "w", encoding="utf-8") as file:
                json.dump(request, file)
            for array in (want, without):
                is_right = np.abs(array - want).max() < 1e-12  # of few keys a formula may do nothing
                np.save(theirs, array.astype(dtype))
                command = [attn, "check", "sdpa", question, "--against", theirs, "--search"]
                result = subprocess.run(command, capture_output=True, text=True, check=False)
                assert (result.returncode == 0) == is_right, (text, result.stdout, result.stderr)
                assert is_right or "score-mod left out" in result.stdout, (text, result.stdout)
                checked += 1
    return checked


def check_options(attn, folder):
    """The same bits from an option and from the formula that says it."""
    draws = np.random.default_rng(0)
    slopes = {"s": [2.0 ** (-2 * i) for i in range(1, 5)]}
    pairs = (
        ({"causal": True, "causal_align": "top-left"}, {"mask_mod": "k <= q"}),
        ({"causal": True, "causal_align": "bottom-right"}, {"mask_mod": "!(k > q)", "causal_align": "bottom-right"}),
        ({"window": [2, 1]}, {"mask_mod": "q - 2 <= k && k < q + 2"}),
        ({"window": [3, 3]}, {"mask_mod": "abs(q - k) <= 3"}),
        ({"kv_lengths": [4, 9]}, {"mask_mod": "k < n[b]", "let": {"n": [4, 9]}}),
        ({"mask": (draws.random((6, 9)) < 0.6).tolist(), "mask_true": "keep"}, {"mask_mod": "m[q, k]"}),
        ({"mask": draws.normal(size=(2, 4, 6, 9)).tolist()}, {"score_mod": "score + m[b, h, q, k]"}),
        ({"softcap": 1.5}, {"score_mod": "1.5 * tanh(score / 1.5)"}),
        ({"scale": 0.3}, {"scale": 1, "score_mod": "score * 0.3"}),
        ({"scale": [0.3, -1, 2, 1]}, {"scale": 1, "score_mod": "score * s[h]", "let": {"s": [0.3, -1, 2, 1.0]}}),
        ({"alibi": True}, {"score_mod": "score - s[h] * abs(k - q)", "let": slopes}),
        ({"alibi": True, "alibi_distance": "signed"}, {"score_mod": "score + s[h] * (k - q)", "let": slopes}),
    )
    for dtype in ("float32", "float64"):
        operands = {name: draws.normal(size=(2, heads, length, 5)).astype(dtype).tolist()
                    for name, heads, length in (("query", 4, 6), ("key", 2, 9), ("value", 2, 9))}
        for option, formula in pairs:
            formula = dict(formula)
            if "mask" in option:
                formula["let"] = {"m": option["mask"]}
            base = {"mode": "sdpa", "dtype": dtype, "emit": ["biased_scores", "attention_weights", "context_vectors"],
                    **operands}
            one, other = answers(attn, folder, [{**base, **option}, {**base, **formula}])
            for name in base["emit"]:
                assert one[name] == other[name], (option, formula, name)
    return 2 * len(pairs)


def neighbors(size, token, reach, step):
    """NATTEN's rule along one axis: among the tokens with the same remainder, the window of 2 * reach + 1 nearest ones,
    moved inside."""
    own = list(range(token % step, size, step))
    first = min(max(own.index(token) - reach, 0), len(own) - 2 * reach - 1)
    return own[first:first + 2 * reach + 1]


def drawn_mask(dice, draws, batch, heads, queries, keys, offset):
    """Settings, and the mask that they mean, (batch, heads, queries, keys)."""
    kind = dice.choice(["blocks", "lengths", "grid"])
    mask = np.zeros((batch, heads, queries, keys), dtype=bool)
    if kind == "lengths":
        lengths = draws.integers(0, keys + 1, (dice.choice([1, batch]), queries))
        mask[:] = np.arange(keys) < lengths[:, None, :, None]
        return {"kv_lengths": lengths.tolist()}, mask
    if kind == "blocks":
        while True:
            size = [dice.randrange(1, queries + 2), dice.randrange(1, keys + 2)]
            counts = [-(-length // one) for length, one in zip((queries, keys), size)]
            is_plain = [-(-length // count) for length, count in zip((queries, keys), counts)] == size
            if is_plain or dice.random() < 0.5:
                break
        axes = dice.choice([[], [heads], [1, heads], [batch, 1], [batch, heads]])
        blocks = draws.random((*axes, *counts)) < 0.5
        mask[:] = blocks.repeat(size[0], -2).repeat(size[1], -1)[..., :queries, :keys]
        named = {"block_size": size} if not is_plain or dice.random() < 0.5 else {}
        return {"block_mask": blocks.tolist(), **named}, mask
    sides = {24: [[24], [4, 6], [2, 3, 4]], 150: [[150], [15, 10], [5, 5, 6]], 49: [[7, 7]]}[keys]
    grid = dice.choice(sides)
    step = dice.choice([1, 1, 2, 3])
    step = step if min(grid) >= step else 1
    sizes = [dice.randrange(1, length // step + 1, 2) for length in grid]
    for query in range(queries):
        rows = np.unravel_index(query + offset, grid)
        near = [neighbors(*axis, step) for axis in zip(grid, map(int, rows), (size // 2 for size in sizes))]
        seen = np.zeros(grid, dtype=bool)
        seen[np.ix_(*near)] = True
        mask[:, :, query] = seen.reshape(-1)
    return {"grid": grid, "neighborhood": sizes, **({"dilation": step} if step > 1 else {})}, mask


def check_named_masks(attn, folder, dice, count):
    kernels = subprocess.run([attn, "--version"], capture_output=True, text=True, check=True).stdout
    (line,) = [line for line in kernels.splitlines() if line.startswith("kernels: ")]
    requests, wanted = [], []
    for i in range(count):
        draws = np.random.default_rng(i)
        batch, heads, keys = dice.choice([1, 2]), dice.choice([1, 2, 4]), dice.choice([24, 150, 49])
        queries = dice.choice([1, keys // 3, keys])
        offset = keys - queries
        settings, mask = drawn_mask(dice, draws, batch, heads, queries, keys, offset)
        if dice.random() < 0.4:
            settings["causal"] = True
            mask &= np.arange(queries)[:, None] + offset >= np.arange(keys)
        query, key, value = (draws.normal(size=(batch, heads, *size)) for size in ((queries, 8), (keys, 8), (keys, 3)))
        dtype = dice.choice(["float32", "float64"])
        request = {"mode": "sdpa", "dtype": dtype, "query": query.tolist(), "key": key.tolist(), "value": value.tolist(),
                   **settings}
        if "causal" in settings or "grid" in settings:
            request["causal_align"] = "bottom-right"
        scores = np.where(mask, query @ key.swapaxes(-1, -2) / math.sqrt(8), -np.inf)
        with np.errstate(invalid="ignore"):
            context = np.where(mask.any(-1, keepdims=True), softmax_context(scores, value), 0)
        requests += [{**request, "emit": ["mask"]}] + [{**request, "emit": ["context_vectors"], "kernel": kernel}
                                                       for kernel in line.split()[1:]]
        wanted += [mask] + [context] * len(line.split()[1:])
    for request, want, answer in zip(requests, wanted, answers(attn, folder, requests)):
        got = numbers(answer[request["emit"][0]])
        close = 2e-5 if request["dtype"] == "float32" else 1e-12
        assert np.allclose(got, want, rtol=0, atol=close), {key: request[key] for key in request if key not in (
            "query", "key", "value")}
    return len(requests)


def check_top_k(attn, folder, dice, count):
    """--top-k with masks, ties and caches; attn check judges it right, and the same without it wrong."""
    requests, wanted = [], []
    for i in range(count):
        draws = np.random.default_rng(i)
        queries, keys, most = dice.choice([1, 4, 9]), dice.choice([1, 9, 30]), dice.choice([1, 2, 5, 40])
        query, key, value = (draws.integers(-3, 4, (2, 2, *size)) / 2 for size in ((queries, 3), (keys, 3), (keys, 2)))
        mask = np.arange(keys) <= np.arange(queries)[:, None] + keys - queries if dice.random() < 0.5 else np.ones(
            (queries, keys), dtype=bool)
        scores = np.where(mask, query @ key.swapaxes(-1, -2), -np.inf)
        kept = np.argsort(np.argsort(-scores, -1, kind="stable"), -1) < most
        wanted.append(kept & mask)
        requests.append({"mode": "sdpa", "query": query.tolist(), "key": key.tolist(), "value": value.tolist(), "scale": 1,
                         "dtype": dice.choice(["float32", "float64"]), "top_k": most, "emit": ["mask", "attention_weights"],
                         **({} if mask.all() else {"causal": True, "causal_align": "bottom-right"})})
    for request, want, answer in zip(requests, wanted, answers(attn, folder, requests)):
        assert np.array_equal(numbers(answer["mask"]), want), request
        scores = np.where(want, np.array(request["query"]) @ np.array(request["key"]).swapaxes(-1, -2), -np.inf)
        with np.errstate(invalid="ignore"):
            weights = np.nan_to_num(softmax_context(scores, np.eye(want.shape[-1])))
        assert np.allclose(numbers(answer["attention_weights"]), weights, atol=1e-6), request
    question, theirs = f"{folder}/top.json", f"{folder}/top.npy"
    draws = np.random.default_rng(count)
    query, key, value = (draws.normal(size=(1, 2, size, 8)) for size in (20, 30, 30))
    scores = query @ key.swapaxes(-1, -2)
    highest = np.argsort(np.argsort(-scores, -1), -1) < 4
    with open(question, "w", encoding="utf-8") as file:
        json.dump({"query": query.tolist(), "key": key.tolist(), "value": value.tolist(), "scale": 1, "top_k": 4}, file)
    for kept in (highest, np.ones_like(highest)):
        np.save(theirs, softmax_context(np.where(kept, scores, -np.inf), value).astype(np.float32))
        command = [attn, "check", "sdpa", question, "--against", theirs]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (result.returncode == 0) == (kept is highest), result.stdout + result.stderr
    return len(requests)


def main(attn, count=600, seed=1):
    dice = random.Random(int(seed))
    np.seterr(all="ignore")
    with tempfile.TemporaryDirectory() as folder:
        values = check_values(attn, folder, dice, int(count))
        kernels = check_kernels(attn, folder, dice, 0.3 if int(count) <= 600 else 1)
        options = check_options(attn, folder)
        masks = check_named_masks(attn, folder, dice, int(count) // 10)
        masks += check_top_k(attn, folder, dice, int(count) // 10)
    print(f"{values} formulas, {kernels} results of kernels, {options} options, {masks} named masks: all as expected")


if __name__ == "__main__":
    main(*sys.argv[1:])
