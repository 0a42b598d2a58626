"""Gradients against central differences of attn's own float64 losses, and against PyTorch's autograd.

    python3 tests/gradients_test.py ATTN [--count 150] [--seed 1]

Every operand and parameter of a generated question is moved along a random direction: the loss must change by the
product of its gradient and the direction. data/golden/gradients.json holds questions as requests with PyTorch's gradients.
`attn check` judges both, in float64 and float32, with a backward pass of its own: they are right.
"""

import json
import pathlib
import random
import subprocess
import sys
import tempfile

import wrong  # exit code 77 without NumPy
import numpy as np

from wrong.programs import words_of
from wrong.question import random_question, with_infinities

STEP = 1e-5
GRADIENTS = {"inputs", "context", "value_input", "query", "key", "value", "past_key", "past_value", "past_state", "decay",
             "beta", "mask", "key_padding_mask", "sink"}
# Continuous, as differences need.
SCORE_MODS = ("score - 0.1 * abs(q - k)", "tanh(score / 3) * 3 + 0.2 * score", "score * score / 4 - exp(-abs(score))",
              "q >= k ? score * 1.5 : 0.3 * score", "max(score, -1) + min(score * 0.5, 2)", "pow(abs(score) + 1, 1.5)",
              "sqrt(score * score + 1) / (2 + h) - log(3 + score * score)", "abs(score % 2.5 - 1.25) + floor(0.2 * k)")
OF_REFERENCE = {"grad_mask", "grad_key_padding_mask"} | {"grad_" + n for n in (
    "attention_weights", "weights_before_dropout", "capped_scores", "scaled_scores", "scores", "output")}
PROB_MODS = ("p * p", "p / (p + 0.1)", "p > 0.1 ? p : 10 * p * p", "sqrt(p + 0.01) * exp(-p)")


def numbers(listed):
    return np.array(listed, dtype=object).astype(np.float64)


def run(attn, records, folder):
    path = folder / "records.ndjson"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    ran = subprocess.run([attn, "batch", path.name, "--bare", "-j", "2"], capture_output=True, text=True, cwd=folder)
    answers = [json.loads(line) for line in ran.stdout.splitlines()]
    assert len(answers) == len(records), ran.stderr
    return answers


def softmax_question(rng, index):
    """A request, and its parameters by their names in attn's results."""
    q = random_question(rng, longest=9)
    names = {"query": "W_query", "key": "W_key", "value": "W_value", "out": "W_out"}
    request = q.request() | {"mode": q.mode} | q.settings(f"{index}.npz")
    weights = {names[t]: w for t, w in q.weights.items()} | {names[t].replace("W", "b"): b for t, b in q.biases.items()}
    if rng.random() < 0.3:
        request["score_mod"] = rng.choice(SCORE_MODS)
    if rng.random() < 0.2:
        request["prob_mod"] = rng.choice(PROB_MODS)
    if rng.random() < 0.15:
        request["qk_norm"] = True
    if rng.random() < 0.1 and "sink" not in request:
        request["softmax_plus"] = 1.5
    if rng.random() < 0.1:
        request["top_k"] = rng.randint(1, 4)
    if rng.random() < 0.15:
        request["segment_ids"] = [rng.randint(0, 1) for _ in range(q.queries)]
        request["kv_segment_ids"] = [rng.randint(0, 1) for _ in range(q.keys)]
    if rng.random() < 0.15:
        request["relative_bias"] = [[rng.uniform(-1, 1) for _ in range(q.heads)] for _ in range(8)]
    if rng.random() < 0.15 and q.queries > 2:
        request["rows"] = [1, q.queries - 1]
    return request, weights


def drawn_question(rng, draws):
    """A layer whose parameters are drawn or left out, or an operator in another order of axes."""
    batch, tokens, keys, d = rng.randint(1, 2), rng.randint(1, 6), rng.randint(1, 6), rng.randint(2, 5)
    new = lambda *shape: draws.standard_normal(shape).tolist()  # noqa: E731
    kind = rng.choice(["wrapper", "none", "joined", "value_input", "order", "packed"])
    if kind == "order":
        order = rng.choice(["bshd", "sbhd"])
        axes = {"bshd": (0, 2, 1, 3), "sbhd": (2, 0, 1, 3)}[order]
        operand = lambda *shape: draws.standard_normal(shape).transpose(axes).tolist()  # noqa: E731
        return {"mode": "sdpa", "qkv_format": order, "query": operand(batch, 4, tokens, d), "key": operand(batch, 2, keys, d),
                "value": operand(batch, 2, keys, 3), "rope": rng.choice(["half", "none"]) if d % 2 == 0 else "none"}
    if kind == "packed":
        first = rng.randint(1, tokens)
        return {"mode": "sdpa", "cu_seqlens": [0, first, first + tokens], "causal": rng.random() < 0.5,
                **{name: new(first + tokens, 2, d) for name in ("query", "key", "value")}}
    request = {"inputs": new(batch, tokens, d), "seed": rng.randint(0, 99), "qkv_bias": rng.random() < 0.5}
    if kind == "wrapper":
        return request | {"mode": "multihead", "style": "wrapper", "heads": rng.randint(1, 3), "d_out": rng.randint(1, 3),
                          "dropout": rng.choice([0, 0.3])}
    if kind == "none":
        return {"mode": rng.choice(["self", "causal"]), "init": "none", "inputs": request["inputs"]}
    if kind == "value_input":
        return request | {"mode": "cross", "heads": 2, "d_out": 4, "context": new(batch, keys, 3),
                          "value_input": new(batch, keys, 2), "init": "linear"}
    return request | {"mode": "multihead", "heads": 2, "d_out": 6, "init": rng.choice(["rand", "mha", "xavier"][:3 if d == 6 else 1]),
                      "kv_heads": rng.choice([1, 2])}


def linear_question(rng, draws):
    batch, kv_heads, tokens, d, d_v = rng.randint(1, 2), rng.randint(1, 3), rng.randint(1, 7), rng.randint(1, 5), rng.randint(1, 4)
    heads = kv_heads * rng.randint(1, 2)
    new = lambda *shape: draws.standard_normal(shape)  # noqa: E731
    request = {"mode": "linear", "query": new(batch, heads, tokens, d), "key": new(batch, kv_heads, tokens, d),
               "value": new(batch, kv_heads, tokens, d_v)}
    form, by_dimension = rng.random(), rng.random() < 0.4
    if form < 0.2:  # RetNet
        request |= {"normalize": "retention", "decay": -abs(new(batch, kv_heads, tokens))}
    else:
        if rng.random() < 0.7:
            request["decay"] = -abs(new(batch, kv_heads, tokens, d if by_dimension else 1))
            if rng.random() < 0.3:
                request |= {"decay": np.exp(request["decay"]), "decay_form": "plain"}
        if rng.random() < 0.5:
            request["beta"] = draws.uniform(0, 1, (batch, kv_heads, tokens))
        elif rng.random() < 0.4:
            request["bonus"] = new(kv_heads, d).tolist()
        if rng.random() < 0.4:
            request["past_state"] = new(batch, kv_heads, d, d_v)
    if rng.random() < 0.3 and d > 1:
        request["qk_norm"] = True
    if rng.random() < 0.3 and form >= 0.2:  # heads side by side
        for key in ("query", "key", "value", "decay", "beta"):
            if key in request and request[key].ndim == 4:
                x = request[key].transpose(0, 2, 1, 3)
                request[key] = x.reshape(*x.shape[:2], -1)
            elif key in request:
                request[key] = request[key].transpose(0, 2, 1)
        request |= {"heads": heads, "kv_heads": kv_heads}
    return {key: x.tolist() if isinstance(x, np.ndarray) else x for key, x in request.items()}


def save(folder, index, weights, moved=None, by=0):
    names = {"W_out": "out_proj"}
    np.savez(folder / f"{index}.npz", **{
        f"{names.get(n.replace('b_', 'W_'), n.replace('b_', 'W_'))}.{'weight' if n[0] == 'W' else 'bias'}":
        w + by if n == moved else w for n, w in weights.items()})


def check_kernels(attn, asked, answers, folder):
    """The gradients of operands and parameters from every kernel that runs here, where it computes the question."""
    failed, compared = [], 0
    for kernel in ("generic", "avx2", "avx512", "neon"):
        records = []
        for request in asked:
            names = [n for n in answers[request["id"]] if n.startswith("grad_") and n not in OF_REFERENCE]
            records.append(request | {"kernel": kernel, "emit": names})
        for request, answer in zip(records, run(attn, records, folder)):
            if "error" in answer:
                if "kernel" not in answer["error"]["where"]:
                    failed.append((request["id"], kernel + ": " + answer["error"]["message"]))
                continue
            for name in request["emit"]:
                compared += 1
                found, expected = numbers(answer[name]), numbers(answers[request["id"]][name])
                if not np.allclose(found, expected, rtol=1e-9, atol=1e-11 * (1 + np.abs(expected).max())):
                    failed.append((request["id"], f"{name} of {kernel}: {np.abs(found - expected).max()}"))
    print(compared, "arrays of kernels")
    return failed


def check_generated(attn, options, folder):
    cases = []
    for i in range(options.count):
        rng = random.Random(f"{options.seed}/{i}")
        draws = np.random.RandomState(rng.randrange(2**32))
        request, weights = ((linear_question(rng, draws), {}) if i % 4 == 3 else
                            (drawn_question(rng, draws), {}) if i % 4 == 1 else softmax_question(rng, i))
        request |= {"dtype": "float64", "backward": True, "id": i}
        if "context" not in request and "past_key" not in request and rng.random() < 0.3 and \
                len(np.shape(request.get("inputs", 0))) == 3:
            request |= {"batch_first": False, "inputs": np.swapaxes(request["inputs"], 0, 1).tolist()}
        cases.append((i, request, weights, draws, rng))
        save(folder, i, weights)
    shapes = run(attn, [r | {"emit": ["context_vectors"]} for _, r, _, _, _ in cases], folder)
    failed, refused = [], []
    asked, moves, records = [], [], []
    for (i, request, weights, draws, rng), answer in zip(cases, shapes):
        if "error" in answer:
            refused.append((i, answer["error"]["message"]))
            continue
        shape = np.shape(answer["context_vectors"])
        kind = rng.choice(["sum", "mean", "mse", "grad_output"])
        if kind == "grad_output":
            request["grad_output"] = draws.standard_normal(shape).tolist()
        else:
            request["loss"] = kind
        if kind == "mse":
            request["target"] = draws.standard_normal(shape).tolist()
        asked.append(request)
        for name in sorted((GRADIENTS & set(request)) | set(weights)):
            at = numbers(weights[name] if name in weights else request[name])
            if at.dtype == bool or (name in ("mask", "key_padding_mask") and "mask_true" in request and
                                    isinstance(np.ravel(request[name]).tolist()[0], bool)):
                continue
            direction = draws.standard_normal(at.shape)
            moves.append((i, name, direction))
            for sign in (1, -1):
                moved = {k: v for k, v in request.items() if k != "loss"} | {"emit": ["context_vectors"]}
                moved.pop("target", None), moved.pop("grad_output", None)
                moved["backward"] = False
                if name in weights:
                    moved["weights"] = f"{i}{name}{sign}.npz"
                    save(folder, f"{i}{name}{sign}", weights, name, sign * STEP * direction)
                else:
                    moved[name] = with_infinities((at + sign * STEP * direction).tolist())
                records.append(moved)
    answers = {a["id"]: a for a in run(attn, asked, folder)}
    failed += check_kernels(attn, asked, answers, folder)
    moved = run(attn, records, folder)

    def loss(request, answer):
        y = numbers(answer["context_vectors"])
        if "grad_output" in request:
            return (y * numbers(request["grad_output"])).sum()
        if request["loss"] == "mse":
            return ((y - numbers(request["target"])) ** 2).mean()
        return y.sum() if request["loss"] == "sum" else y.mean()

    requests = {r["id"]: r for r in asked}
    for n, (i, name, direction) in enumerate(moves):
        answer, request = answers[i], requests[i]
        if "error" in answer:
            failed.append((i, answer["error"]["message"]))
            continue
        gradient = numbers(answer["grad_" + name])
        if gradient.shape != direction.shape:
            failed.append((i, f"grad_{name}: {gradient.shape}, expected {direction.shape}"))
            continue
        here, slope, size = loss(request, answer), (gradient * direction).sum(), np.abs(gradient * direction).sum()
        sides = (loss(request, moved[2 * n]) - here) / STEP, (here - loss(request, moved[2 * n + 1])) / STEP
        # Where a formula has a corner, any slope between those of its two sides.
        if not abs(slope - sum(sides) / 2) <= 1e-6 * (1 + size) + 0.6 * abs(sides[0] - sides[1]):
            failed.append((i, f"grad_{name}: {slope} and {sides}"))
    for i, said in failed[:10]:
        print(i, said, {k: v if np.ndim(v) < 1 or len(str(v)) < 30 else np.shape(v) for k, v in requests[i].items()})
    for i, said in refused[:10]:
        print("refused", i, said)
    print(f"{len(asked)} questions, {len(moves)} gradients, {len(failed)} wrong, {len(refused)} refused")
    in_float32 = [request | {"dtype": "float32"} for request in asked]
    return not failed and not refused and len(moves) > 2 * options.count and \
        check_verdicts(attn, asked, None, folder) and check_verdicts(attn, in_float32, None, folder)


def check_verdicts(attn, requests, results, folder):
    """Whether `attn check` calls every array of the results right; without results, of attn's own."""
    def write(name, records):
        (folder / name).write_text("".join(json.dumps(record) + "\n" for record in records))

    if not results:
        write("emit.ndjson", [r | {"emit": ["gradients"]} for r in requests])
        subprocess.run([attn, "batch", "emit.ndjson", "-j", "2", "-o", "theirs.ndjson"], cwd=folder, check=True)
    else:
        write("theirs.ndjson", results)
    write("asked.ndjson", [r | {"emit": ["context_vectors"]} for r in requests])
    ran = subprocess.run([attn, "check", "asked.ndjson", "--against", "theirs.ndjson", "--format", "json"],
                         capture_output=True, text=True, cwd=folder)
    judged = [json.loads(line) for line in ran.stdout.splitlines()]
    failed = [j["id"] for j in judged if j.get("verdict", "wrong") == "wrong" or j["not_compared"]]
    print(len(judged), "results judged by attn check,", len(failed), "not right:", *failed[:10], ran.stderr[:500])
    return len(judged) == len(requests) and not failed


def check_autograd(attn, folder):
    data = json.loads((pathlib.Path(__file__).parent.parent / "data/golden/gradients.json").read_text())
    wrong_arrays = []
    for case, answer in zip(data["cases"], run(attn, [c["request"] for c in data["cases"]], folder)):
        bound = data["tolerance"][case["request"].get("dtype", "float32")]
        for name, expected in case["expected"].items():
            found, expected = numbers(answer.get(name, np.nan)), numbers(expected)
            if found.shape != expected.shape or not np.allclose(found, expected, **bound):
                wrong_arrays.append((case["request"]["id"], name, answer.get("error")))
    print(len(data["cases"]), "questions of PyTorch's autograd,", len(wrong_arrays), "wrong arrays", *wrong_arrays[:5])
    theirs = [{"id": c["request"]["id"]} | c["expected"] for c in data["cases"]]
    return not wrong_arrays and data["cases"] and check_verdicts(attn, [c["request"] for c in data["cases"]], theirs, folder)


def main():
    options = words_of(150).parse_args()
    options.attn = str(pathlib.Path(options.attn).resolve())
    with tempfile.TemporaryDirectory() as name:
        results = [check_autograd(options.attn, pathlib.Path(name)),
                   check_generated(options.attn, options, pathlib.Path(name))]
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
