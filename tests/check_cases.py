"""Judges generated right results by `attn check`: none is wrong.

    python3 tests/check_cases.py ATTN [--count 1000] [--seed 1] [--jobs 2] [--case N] [--dump DIR]

The results come from NumPy (tests/wrong) and, if it is installed, from PyTorch, in float32, float16
and bfloat16, in several orders of computation. In half of the questions the operands are rounded to
the type first, so that both programs have the same numbers.
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

from wrong.cases import ARRAYS, MASKED_LATER, chosen_names, fill_dropout_mask
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


def by_numpy(q, kind, rng):
    """Arrays, and how they were computed."""
    p = Program.of(q)
    if rng.random() < 0.3:
        p = dataclasses.replace(p, scale_is_folded=True)
    how = "scale folded into the queries, " if p.scale_is_folded else ""
    if kind == "float32":
        made, how = run(q, p, np.float32), how + "float32"
    elif kind == "float16" and rng.random() < 0.5:
        made, how = run(q, p, np.float16), how + "all in float16"
    else:
        made = run(q, dataclasses.replace(p, rounded=dict.fromkeys(EVERYTHING, kind)), np.float32)
        how += "products in float32"
    if p.scale_is_folded:
        made = {name: array for name, array in made.items() if name not in ("scores", "scaled_scores")}
    return made, how


def fused_or_plain_or_none(q, kind, is_fused):
    return None if torch is None else fused_or_plain(q, getattr(torch, kind), is_fused)


def by_torch(q, kind, rng):
    is_fused = not (q.softcap or q.sink or q.dropout or q.renormalize) and rng.random() < 0.6
    return fused_or_plain(q, getattr(torch, kind), is_fused), "fused" if is_fused else "step by step"


def run_case(task):
    options, index = task
    rng = random.Random(f"{options.seed}/{index}")
    library = "torch" if torch is not None and index % 2 else "numpy"
    kind = rng.choice(["float32", "float32", "float16", "bfloat16"])
    unwanted = ["renormalize", "projections"] if library == "torch" else []
    q = random_question(rng, unwanted=unwanted[:1])
    if kind != "float32" and rng.random() < 0.5:
        round_operands(q, kind)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        if q.dropout:
            fill_dropout_mask(q, options.attn, folder)
        made, how = (by_torch if library == "torch" else by_numpy)(q, kind, rng)
        known = [n for n in ARRAYS if n in made and (n not in MASKED_LATER or not q.renormalize)]
        names = [n for n in chosen_names(rng, known) if n in known] or ["context_vectors"]
        arrays, file_kind = {n: np.asarray(shaped(q, n, made[n])) for n in names}, "npz"
        if kind == "bfloat16":
            arrays = {n: round_to(a.astype(np.float32), kind, np.float32) for n, a in arrays.items()}
            if rng.random() < 0.5:
                file_kind = "safetensors"
                arrays = {n: (np.ascontiguousarray(a).view(np.uint32) >> 16).astype(np.uint16) for n, a in arrays.items()}
        else:
            arrays = {n: a.astype(kind) for n, a in arrays.items()}
            file_kind = rng.choice(["npz", "safetensors"] + ["json"] * (kind == "float32"))
        q.write(folder)
        theirs = write_arrays(folder, file_kind, arrays)
        command = [options.attn, "check", q.mode, "request.json", *q.flags(), "--against", theirs]
        if any(np.count_nonzero(np.isfinite(a) & (a != np.trunc(a))) < 8 for a in arrays.values()) or rng.random() < 0.2:
            command += ["--type", kind]  # few numbers do not show it
        began = time.monotonic()
        answer, said = judged(command, folder)
        took = time.monotonic() - began
        if answer:
            said = "; ".join(f"{a['name']} {a['verdict']}, bound {a['bound']}" for a in answer["arrays"])
        verdict = answer.get("verdict", "error")
        if options.dump and (verdict in ("wrong", "error") or options.case is not None):
            keep(options, index, folder, command, f"{library} {kind}, {how}\n{said}", answer)
    bounds = [a["bound"] for a in answer.get("arrays", []) if isinstance(a["bound"], (int, float))]
    return library, kind, verdict, f"{index} {q.mode} {library} {kind}, {how}: {said}", max(bounds, default=0), took


def main():
    options = words_of_cases(1000).parse_args()
    counts, bounds, lines, times = collections.defaultdict(collections.Counter), collections.defaultdict(list), [], []
    for library, kind, verdict, line, bound, took in answers_of_cases(options, run_case):
        counts[library, kind][verdict] += 1
        bounds[library, kind].append(bound)
        times.append(took)
        if verdict in ("wrong", "error") or options.case is not None:
            lines.append(line)
    for line in lines:
        print(line)
    for row in sorted(counts):
        values = sorted(bounds[row])
        print(*row, dict(counts[row]), f"error as a multiple of the bound: median {values[len(values) // 2]:.3g}, "
              f"largest {values[-1]:.3g}")
    alarms = sum(count["wrong"] + count["error"] for count in counts.values())
    print(f"{len(times)} right results, {alarms} judged otherwise; {sum(times):.1f} seconds; seed {options.seed}")
    sys.exit(1 if alarms else 0)


if __name__ == "__main__":
    main()
