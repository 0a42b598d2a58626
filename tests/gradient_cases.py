"""Judges generated gradients with `attn check --search`: right ones are never wrong, and of wrong ones the cause is named.

    python3 tests/gradient_cases.py ATTN [--count 300] [--seed 1] [--jobs 2] [--case N] [--dump DIR]

The gradients come from NumPy (Backward of tests/wrong), in float32, float16 and bfloat16. Every second case has one
departure of OF_GRADIENTS. In float32 the search must name its convention, or another that gives the same numbers; in
the smaller types nearly all must be called wrong whose root mean square error is 10 times that of the right program.
"""

import collections
import dataclasses
import json
import pathlib
import random
import sys
import tempfile

import wrong  # exit code 77 without NumPy
import numpy as np

from check_cases import round_operands
from wrong.cases import error_of, fill_dropout_mask, with_causes
from wrong.departures import NEEDS, OF_GRADIENTS
from wrong.files import write_arrays
from wrong.program import Backward, Program, round_to, run, shaped
from wrong.programs import answers_of_cases, judged, keep, words_of_cases
from wrong.question import random_question

STEPS = ("operands", "projected", "scores", "weights", "outputs", "gradients")


def gradients_of(q, p, kind, loss, numbers):
    """By name, as a program of that type stores them; `kind` float64 is the truth."""
    if kind in ("float16", "bfloat16"):
        p = dataclasses.replace(p, rounded=dict.fromkeys(STEPS, kind))
    dtype = np.float64 if kind == "float64" else np.float32
    with np.errstate(all="ignore"):
        context = run(q, p, dtype)["context_vectors"]
        upstream = {"sum": np.ones_like(context), "mean": np.ones_like(context) / context.size, "grad_output": numbers,
                    "mse": 2 * (context - numbers) / context.size}[loss]
        made = Backward(q, p, dtype).gradients(np.asarray(upstream, dtype))
    return {n: np.asarray(shaped(q, n, a)) for n, a in made.items()}


def root_mean_square(array):
    return np.sqrt(np.mean(np.square(array))) if array.size else 0.0


def visible(made, right, truth, kind):
    """The names of the arrays that show what is wrong."""
    def shows(name):
        off, rounded = made[name] - truth[name], right[name] - truth[name]
        if kind == "float32": return error_of(made[name], truth[name]) > 3e-3
        return root_mean_square(off) > 10 * root_mean_square(rounded) + 0.02 * root_mean_square(truth[name])
    return [n for n in made if np.isfinite(made[n]).all() and shows(n)]


def run_case(task):
    options, index = task
    rng = random.Random(f"{options.seed}/{index}")
    kind = rng.choice(["float32", "float32", "float16", "bfloat16"])
    convention = rng.choice(list(OF_GRADIENTS)) if index % 2 else None
    q = random_question(rng, NEEDS.get(convention, ()), ["renormalize", "empty_rows"], longest=24)
    if kind != "float32":
        round_operands(q, kind)
    loss = rng.choice(["sum", "mean", "mse", "grad_output"])
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        if q.dropout:
            fill_dropout_mask(q, options.attn, folder)
        p = Program.of(q)
        context = run(q, p)["context_vectors"]
        numbers = np.random.RandomState(rng.randrange(2**32)).standard_normal(context.shape).astype(np.float32)
        numbers = (round_to(numbers, kind, np.float64) if kind != "float32" else numbers).astype(np.float64)
        truth, right = (gradients_of(q, p, k, loss, numbers) for k in ("float64", kind))
        if not all(np.isfinite(a).all() for a in right.values()):
            return None
        made, label, names = right, "right", list(right)
        if convention:
            departures = OF_GRADIENTS[convention](q)
            if not departures:
                return None
            cause = rng.choice(departures)
            made, label = gradients_of(q, with_causes(p, [cause]), kind, loss, numbers), f"{convention} {cause.label}"
            shown = visible(made, right, truth, kind)
            if not shown:
                return None
            names = [n for n in made if n in shown or (np.isfinite(made[n]).all() and rng.random() < 0.5)]
        q.write(folder)
        request = json.loads((folder / "request.json").read_text())
        if loss in ("mse", "grad_output"):
            request["target" if loss == "mse" else loss] = shaped(q, "context_vectors", numbers).tolist()
        (folder / "request.json").write_text(json.dumps(request))
        theirs = write_arrays(folder, "npz", {n: made[n].astype("float16" if kind == "float16" else "float32") for n in names})
        command = [options.attn, "check", q.mode, "request.json", *q.flags(), "--backward",
                   *(["--loss", loss] if loss != "grad_output" else []), "--against", theirs, "--type", kind]
        answer, error = judged(command + ["--search"] * (convention is not None and kind == "float32"), folder)
        verdict = answer.get("verdict", "error")
        matches = [[c["convention"] for c in m["changes"]] for m in answer.get("matches", [])]
        outcome = "right" if not convention else "wrong"
        said = error or "; ".join(f"{a['name']} {a['verdict']} {a['bound']} {a['finding']}" for a in answer["arrays"])
        if convention and kind == "float32" and verdict == "wrong":
            outcome = "named" if [convention] in matches else "another" if any(len(m) == 1 for m in matches) else "missed"
            said = str(matches)
        if convention and verdict == "right within its type" and kind != "float32":
            outcome = "not seen"
        is_good = outcome == "not seen" or (verdict != "error" and outcome != "missed" and
                                            (verdict == "wrong") == (convention is not None))
        if options.dump and not is_good:
            keep(options, index, folder, command, f"{label}\n{said}", answer)
    return kind, outcome if is_good else "not as it should be", f"{index} {q.mode} {kind} {loss}, {label}: {verdict}, {said}", is_good


def main():
    options = words_of_cases(300).parse_args()
    counts, lines = collections.Counter(), []
    for answer in answers_of_cases(options, run_case):
        if answer is None:
            continue
        kind, outcome, line, is_good = answer
        counts[kind, outcome] += 1
        if not is_good or outcome in ("another", "not seen") or options.case is not None:
            lines.append(line)
    print("\n".join(lines))
    print(dict(sorted(counts.items())))
    of = collections.Counter()
    for (_, outcome), count in counts.items():
        of[outcome] += count
    bad = of["not as it should be"]
    print(f"{sum(of.values())} cases, {bad} not as they should be; seed {options.seed}")
    sys.exit(1 if bad or of["not seen"] > 0.05 * (of["wrong"] + of["not seen"]) or not of["named"] else 0)


if __name__ == "__main__":
    main()
