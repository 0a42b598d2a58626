"""Judges results with large scores by `attn check`: right ones are not wrong, visibly wrong ones are.

    python3 tests/large_scores.py ATTN [--count 1000] [--seed 1] [--first 0]

Queries of generated questions are multiplied by 1 to 10^6. The results come from NumPy (tests/wrong) and, if it is
installed, from PyTorch, in several orders of computation in float32, float16 and bfloat16. Wrong results have one
departure of each convention, another scale by 20 %, or are zeros. They are visible if their error is 8 times the
largest of the right results and 2 % of the numbers. In float32 all of these are found. In float16 and bfloat16, large
scores have errors of their own that change which key a query sees, so that of such results some are within the bounds:
the test requires that most are found.
"""

import collections
import dataclasses
import pathlib
import random
import sys
import tempfile

import wrong  # exit code 77 without NumPy
import numpy as np

from check_cases import EVERYTHING, fused_or_plain_or_none, round_operands
from wrong.cases import draw_causes, with_causes
from wrong.departures import ALTERNATIVES
from wrong.files import write_arrays
from wrong.program import Program, round_to, run, shaped
from wrong.programs import judged, words_of
from wrong.question import random_question

ARRAYS = ("attention_weights", "context_vectors")
FOUND_AT_LEAST = {"float32": 1, "float16": 0.95, "bfloat16": 0.85}


def magnified(q, factor):
    def times(array):
        return (array * factor).astype(np.float32).astype(np.float64)

    for tensors in (q.operands, q.weights, q.biases):
        if "query" in tensors:
            tensors["query"] = times(tensors["query"])


def in_type(q, p, kind, order):
    """The arrays in one of four orders of computation."""
    rounded = dict.fromkeys(("operands", "projected", "outputs") if order == 1 else EVERYTHING, kind)
    if kind == "float16" and order == 3:
        made = run(q, p, np.float16)
    else:
        p = dataclasses.replace(p, scale_is_folded=order == 2, rounded={} if kind == "float32" else rounded)
        made = run(q, p, np.float32)
    return stored(q, made, kind)


def stored(q, made, kind):
    arrays = {}
    for name in ARRAYS:
        if name in made:
            array = np.asarray(shaped(q, name, made[name])).astype(np.float32)
            arrays[name] = array.astype(np.float64) if kind == "float32" else round_to(array, kind, np.float64)
    return arrays


def root_mean_square(array):
    return np.sqrt(np.mean(np.square(array))) if array.size else 0.0


def right_results(q, p, kind):
    results = [(f"numpy {order}", in_type(q, p, kind, order)) for order in range(4)]
    for is_fused in (False,) if q.softcap or q.sink else (False, True):
        made = fused_or_plain_or_none(q, kind, is_fused)
        if made is not None:
            results.append(("torch fused" if is_fused else "torch", stored(q, made, kind)))
    return [(how, arrays) for how, arrays in results if all(np.isfinite(a).all() for a in arrays.values())]


def wrong_results(q, p, kind, rng):
    yield "zeros", {"context_vectors": np.zeros_like(in_type(q, p, kind, 0)["context_vectors"])}
    scale = dataclasses.replace(p, scale=p.scale * rng.choice([0.8, 1.2]))
    yield "another scale", in_type(q, scale, kind, 0)
    for convention in rng.sample(sorted(ALTERNATIVES), 10):
        causes = draw_causes(rng, q, [convention])
        if not causes:
            continue
        try:
            made = in_type(q, with_causes(p, causes), kind, rng.randrange(2))
        except (ValueError, TypeError, IndexError):  # the departure does not fit the question's sizes
            continue
        names = rng.choice([ARRAYS, ARRAYS[1:]])
        yield f"{convention} {causes[0].label}", {name: made[name] for name in names}


def overflows(q, p):
    """Whether numbers leave the range of float16."""
    made = run(q, p)
    return max(np.abs(a[np.isfinite(a)]).max(initial=0)
               for a in (made[name] for name in ("queries", "scores", "biased_scores"))) > 3e4


def judge(options, q, folder, arrays, kind):
    theirs = write_arrays(folder, "npz", {name: array.astype(np.float32) for name, array in arrays.items()})
    answer, error = judged([options.attn, "check", q.mode, "request.json", *q.flags(), "--against", theirs,
                            "--type", kind], folder)
    return answer.get("verdict", error)


def main():
    parser = words_of(1000)
    parser.add_argument("--first", type=int, default=0)
    options = parser.parse_args()

    counts = collections.defaultdict(collections.Counter)
    alarms = 0
    for index in range(options.first, options.first + options.count):
        rng = random.Random(f"{options.seed}/{index}")
        kind = rng.choice(sorted(FOUND_AT_LEAST))
        q = random_question(rng, unwanted=["renormalize", "dropout"])
        magnified(q, 10 ** rng.uniform(0, 6))
        p = Program.of(q)
        if kind == "float16" and overflows(q, p):
            continue
        if kind != "float32" and rng.random() < 0.7:
            round_operands(q, kind)
        truth = {name: np.asarray(shaped(q, name, array)) for name, array in run(q, p).items() if name in ARRAYS}
        rights = right_results(q, p, kind)
        if not rights:
            continue
        noise = {n: max(root_mean_square(r[n] - truth[n]) for _, r in rights if n in r) for n in ARRAYS}
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            q.write(folder)
            how, right = rng.choice(rights)
            for names in (ARRAYS, ARRAYS[1:]):
                verdict = judge(options, q, folder, {n: right[n] for n in names if n in right}, kind)
                counts[kind]["right"] += 1
                if not verdict.startswith("right"):
                    alarms += 1
                    print(f"{index} {q.mode} {kind}, {how}: {verdict}")
            for label, arrays in wrong_results(q, p, kind, rng):
                if not all(np.isfinite(array).all() for array in arrays.values()):
                    continue
                if not any(root_mean_square(array - truth[n]) > max(8 * noise[n], 0.02 * root_mean_square(truth[n]))
                           for n, array in arrays.items()):
                    continue
                verdict = judge(options, q, folder, arrays, kind)
                counts[kind]["visibly wrong"] += 1
                counts[kind]["found"] += verdict == "wrong"
                if verdict != "wrong" and FOUND_AT_LEAST[kind] == 1:
                    print(f"{index} {q.mode} {kind}, {label}: {verdict}")
    missed = [kind for kind, count in counts.items() if count["found"] < FOUND_AT_LEAST[kind] * count["visibly wrong"]]
    for kind in sorted(counts):
        print(kind, dict(counts[kind]))
    print(f"{alarms} right results judged otherwise; seed {options.seed}")
    sys.exit(1 if alarms or missed or not counts else 0)


if __name__ == "__main__":
    main()
