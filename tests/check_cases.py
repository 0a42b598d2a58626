"""Judges generated right results by `attn check`: none is wrong.

    python3 tests/check_cases.py ATTN [--count 1000] [--seed 1] [--jobs 2] [--large|--noise] [--case N] [--dump DIR]

The results come from NumPy (tests/wrong) and, if it is installed, from PyTorch, in float32, float16
and bfloat16, in several orders of computation. In half of the questions the operands are rounded to
the type first, so that both programs have the same numbers.

With --large, queries are multiplied by 1 to 10^6, and wrong results are judged as well: with one departure of each
convention, another scale by 20 %, or zeros. They are visible if their error is 8 times the largest of the right results
and 2 % of the numbers. In float32 all of these are found. In float16 and bfloat16, large scores have errors of their own
that change which key a query sees, so that of such results some are within the bounds: most must be found.

With --noise, arrays in float16 and bfloat16 are judged whose expected noise may be known. Results are visibly wrong
from 10 times the largest root mean square error of the right ones on, whatever part of the numbers that is.
"""

import collections
import dataclasses
import pathlib
import random
import sys
import tempfile
import time

import wrong  # exit code 77 without NumPy
import numpy as np

from wrong.cases import ARRAYS, MASKED_LATER, chosen_names, draw_causes, fill_dropout_mask, with_causes
from wrong.departures import ALTERNATIVES
from wrong.files import write_arrays
from wrong.program import Program, round_to, run, shaped
from wrong.programs import answers_of_cases, judged, keep, words_of_cases
from wrong.question import random_question

try:
    import torch
    from wrong.torch_program import fused_or_plain
    torch.set_num_threads(1)
except ImportError:
    torch = None

EVERYTHING = ("operands", "projected", "scores", "weights", "outputs")
WEIGHTED = ("attention_weights", "context_vectors")  # what large scores change
NOISY = (*WEIGHTED, "logsumexp")
FOUND_AT_LEAST = {"float32": 1, "float16": 0.95, "bfloat16": 0.85}
FOUND_BY_NOISE_AT_LEAST = 0.99


def round_operands(q, kind):
    def rounded(array):
        return round_to(np.asarray(array, np.float64), kind, np.float64)

    for field in ("x", "context", "past_key", "past_value"):
        if getattr(q, field) is not None:
            setattr(q, field, rounded(getattr(q, field)))
    for field in ("weights", "biases", "operands"):
        setattr(q, field, {name: rounded(array) for name, array in getattr(q, field).items()})
    for field in ("mask", "padding"):
        mask = getattr(q, field)
        if mask is not None and mask.dtype != bool:
            setattr(q, field, rounded(mask))


def magnify(q, factor):
    for tensors in (q.operands, q.weights, q.biases):
        if "query" in tensors:
            tensors["query"] = (tensors["query"] * factor).astype(np.float32).astype(np.float64)


def overflows(q):
    """Whether numbers leave the range of float16."""
    made = run(q, Program.of(q))
    return max(np.abs(a[np.isfinite(a)]).max(initial=0)
               for a in (made[name] for name in ("queries", "scores", "biased_scores"))) > 3e4


def by_numpy(q, p, kind, order):
    """Arrays, and how they were computed, in one of four orders."""
    p = dataclasses.replace(p, scale_is_folded=order == 2)
    how = "scale folded into the queries, " if p.scale_is_folded else ""
    if kind == "float32":
        made, how = run(q, p, np.float32), how + "float32"
    elif kind == "float16" and order == 3:
        made, how = run(q, p, np.float16), how + "all in float16"
    else:
        rounded = ("operands", "projected", "outputs") if order == 1 else EVERYTHING
        made = run(q, dataclasses.replace(p, rounded=dict.fromkeys(rounded, kind)), np.float32)
        how += "products in float32"
    if p.scale_is_folded:
        made = {name: array for name, array in made.items() if name not in ("scores", "scaled_scores")}
    return made, how


def by_torch(q, kind, rng):
    is_fused = not (q.softcap or q.sink or q.dropout or q.renormalize) and rng.random() < 0.6
    return fused_or_plain(q, getattr(torch, kind), is_fused), "fused" if is_fused else "step by step"


def in_type(q, made, names, kind):
    """Arrays as a program of that type stores them."""
    arrays = {n: np.asarray(shaped(q, n, made[n])) for n in names}
    if kind == "bfloat16":
        return {n: round_to(a.astype(np.float32), kind, np.float32) for n, a in arrays.items()}
    return {n: a.astype(kind) for n, a in arrays.items()}


def root_mean_square(array):
    return np.sqrt(np.mean(np.square(array))) if array.size else 0.0


def wrong_results(q, p, kind, rng):
    right = by_numpy(q, p, kind, 0)[0]
    yield "zeros", {"context_vectors": np.zeros_like(right["context_vectors"])}
    yield "another scale", by_numpy(q, dataclasses.replace(p, scale=p.scale * rng.choice([0.8, 1.2])), kind, 0)[0]
    for convention in rng.sample(sorted(ALTERNATIVES), 10):
        causes = draw_causes(rng, q, [convention])
        if not causes:
            continue
        try:
            yield f"{convention} {causes[0].label}", by_numpy(q, with_causes(p, causes), kind, rng.randrange(2))[0]
        except (ValueError, TypeError, IndexError):  # the departure does not fit the question's sizes
            continue


def visibly_wrong_results(q, p, kind, rng, by_noise):
    truth = {n: np.asarray(shaped(q, n, array)) for n, array in run(q, p).items() if n in WEIGHTED}
    rights = [in_type(q, by_numpy(q, p, kind, order)[0], truth, kind) for order in range(4)]
    noise = {n: max((root_mean_square(right[n].astype(np.float64) - truth[n]) for right in rights
                     if np.isfinite(right[n]).all()), default=np.inf) for n in truth}
    for label, made in wrong_results(q, p, kind, rng):
        names = [n for n in rng.choice([WEIGHTED[:1] if by_noise else WEIGHTED, WEIGHTED[1:]]) if n in made]
        arrays = {n: a.astype(np.float64) for n, a in in_type(q, made, names, kind).items()}
        if all(np.isfinite(a).all() for a in arrays.values()) and any(
                root_mean_square(a - truth[n]) > (10 * noise[n] if by_noise else max(
                    8 * noise[n], 0.02 * root_mean_square(truth[n])))
                for n, a in arrays.items()):
            yield label, {n: a.astype(np.float32) for n, a in arrays.items()}


def run_case(task):
    """Library, type, verdict, a line about it, the largest error as a multiple of its bound, seconds; and of each visibly
    wrong result its label and verdict. Nothing for a question without right results."""
    options, index = task
    rng = random.Random(f"{options.seed}/{index}")
    library = "torch" if torch is not None and index % 2 else "numpy"
    judges_visible = options.large or options.noise
    kind = rng.choice(["float16", "bfloat16"] if options.noise else ["float32", "float32", "float16", "bfloat16"])
    unwanted = ["renormalize", "dropout"] if judges_visible else ["renormalize"] * (library == "torch")
    q = random_question(rng, unwanted=unwanted)
    if options.large:
        magnify(q, 10 ** rng.uniform(0, 6))
        if kind == "float16" and overflows(q):
            return None
    if kind != "float32" and rng.random() < 0.5:
        round_operands(q, kind)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        if q.dropout:
            fill_dropout_mask(q, options.attn, folder)
        p = Program.of(q)
        made, how = by_torch(q, kind, rng) if library == "torch" else by_numpy(q, p, kind, rng.randrange(4))
        known = [n for n in (NOISY if options.noise else WEIGHTED if options.large else ARRAYS)
                 if n in made and (n not in MASKED_LATER or not q.renormalize)]
        names = [n for n in chosen_names(rng, known) if n in known] or ["context_vectors"]
        arrays = stored = in_type(q, made, names, kind)
        if judges_visible and not all(np.isfinite(a).all() for a in arrays.values()):
            return None
        file_kind = rng.choice(["npz", "safetensors"] + ["json"] * (kind == "float32"))
        if kind == "bfloat16" and file_kind == "safetensors":
            stored = {n: (np.ascontiguousarray(a).view(np.uint32) >> 16).astype(np.uint16) for n, a in arrays.items()}
        q.write(folder)

        def command_of(file_kind, stored, has_type):
            return [options.attn, "check", q.mode, "request.json", *q.flags(), "--against",
                    write_arrays(folder, file_kind, stored), *["--type", kind] * has_type]

        # Few numbers do not show their type.
        few = any(np.count_nonzero(np.isfinite(a) & (a != np.trunc(a))) < 8 for a in arrays.values())
        command = command_of(file_kind, stored, few or judges_visible or rng.random() < 0.2)
        began = time.monotonic()
        answer, said = judged(command, folder)
        took = time.monotonic() - began
        if answer:
            said = "; ".join(f"{a['name']} {a['verdict']}, bound {a['bound']}" for a in answer["arrays"])
        verdict = answer.get("verdict", "error")
        if options.dump and (verdict in ("wrong", "error") or options.case is not None):
            keep(options, index, folder, command, f"{library} {kind}, {how}\n{said}", answer)
        visible = [(f"{index} {q.mode} {kind}, {label}", judged(command_of("npz", arrays, True), folder)[0].get("verdict"))
                   for label, arrays in (visibly_wrong_results(q, p, kind, rng, options.noise) if judges_visible else ())]
    bounds = [a["bound"] for a in answer.get("arrays", []) if isinstance(a["bound"], (int, float))]
    line = f"{index} {q.mode} {library} {kind}, {how}: {said}"
    return library, kind, verdict, line, max(bounds, default=0), took, visible


def main():
    parser = words_of_cases(1000)
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--noise", action="store_true")
    options = parser.parse_args()
    counts, bounds, lines, times = collections.defaultdict(collections.Counter), collections.defaultdict(list), [], []
    found = collections.defaultdict(list)
    at_least = dict.fromkeys(FOUND_AT_LEAST, FOUND_BY_NOISE_AT_LEAST) if options.noise else FOUND_AT_LEAST
    for answer in answers_of_cases(options, run_case):
        if answer is None:
            continue
        library, kind, verdict, line, bound, took, visible = answer
        counts[library, kind][verdict] += 1
        bounds[library, kind].append(bound)
        times.append(took)
        found[kind] += [said == "wrong" for _, said in visible]
        if verdict in ("wrong", "error") or options.case is not None:
            lines.append(line)
        if at_least[kind] == 1 or options.noise or options.case is not None:
            lines += [f"{label}: {said}" for label, said in visible if said != "wrong"]
    for line in lines:
        print(line)
    for row in sorted(counts):
        values = sorted(bounds[row])
        print(*row, dict(counts[row]), f"error as a multiple of the bound: median {values[len(values) // 2]:.3g}, "
              f"largest {values[-1]:.3g}")
    alarms = sum(count["wrong"] + count["error"] for count in counts.values())
    missed = [kind for kind, said in found.items() if sum(said) < at_least[kind] * len(said)]
    if options.large or options.noise:
        print("found:", ", ".join(f"{kind} {sum(said)} of {len(said)}" for kind, said in sorted(found.items())))
    print(f"{len(times)} right results, {alarms} judged otherwise; {sum(times):.1f} seconds; seed {options.seed}")
    sys.exit(1 if alarms or missed or not times else 0)


if __name__ == "__main__":
    main()
