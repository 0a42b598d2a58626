"""Judges generated results with dropout by the masks that attn draws; each is rounded and rescaled as some kernel does.

    python3 tests/dropout_cases.py ATTN [--count 450] [--seed 1] [--jobs 2] [--case N]

Right results are right. The search names flags that draw the mask of other draws, or the one weight that another
decision was made for.
"""

import collections
import pathlib
import shlex
import subprocess
import sys
import tempfile

import wrong  # exit code 77 without NumPy
import numpy as np

from wrong.files import read_npz, write_safetensors
from wrong.program import round_to
from wrong.programs import answers_of_cases, judged, words_of_cases

# How far n weights of m heads move each generator; a GPU has more threads than these weights.
STREAMS = {"mt19937": lambda n, m: 2 * n, "mkl": lambda n, m: 1, "cuda": lambda n, m: 4,
           "cuda --dropout-kernel math": lambda n, m: 4, "cuda --dropout-kernel efficient": lambda n, m: -(-n // 4) * 4,
           "cuda --dropout-kernel flash": lambda n, m: 32 * m}


def rounder(kind):
    return np.float32 if kind == "float32" else lambda x: round_to(np.float32(x), kind, np.float32)


def result(q, k, v, see, kept, p, kind, way):
    """In float32, with each step rounded, or with a scale that is rounded or that of the output."""
    last = rounder(kind)
    to, step = np.float32 if way == "float32" else last, last if way == "rounded" else np.float32
    s = np.where(see, step(q @ k.swapaxes(-1, -2) * np.float32(q.shape[-1] ** -0.5)), -np.inf)
    w = np.exp(s - s.max(-1, keepdims=True))
    w, scale = to(w / w.sum(-1, keepdims=True)) * kept, np.float32(1) / np.float32(1 - p)
    if way != "output": w, scale = to(w * (last if way == "scale" else np.float32)(scale)), np.float32(1)
    return {"attention_weights": last(w * scale), "context_vectors": last(w @ v * scale)}


def write(path, arrays, kind):
    bits = lambda x: (x.view(np.uint32) >> 16).astype(np.uint16) if kind == "bfloat16" else x.astype(kind)
    write_safetensors(path, {name: bits(np.ascontiguousarray(x, np.float32)) for name, x in arrays.items()})


def run_case(task):
    options, index = task
    rng = np.random.default_rng((options.seed, index))
    b, h, d, kind = *rng.integers(1, 4, 2), rng.choice([4, 8, 16, 64]), str(rng.choice(["float32", "float16", "bfloat16"]))
    t, s = rng.integers(2, 40, 2) if rng.random() < 0.8 else rng.integers(40, 130, 2)
    heads, causal, p = rng.choice([1, h]), rng.random() < 0.5, float(rng.choice([0.1, 0.3, 0.5, 0.9]))
    q, k, v = (rounder(kind)(rng.normal(size=(b, n, x, d)) * 1.5) for n, x in ((h, t), (heads, s), (heads, s)))
    see = np.tril(np.ones((t, s), bool)) if causal else np.ones((t, s), bool)
    operands = q, *(np.repeat(x, h // heads, 1) for x in (k, v)), see
    way, given = str(rng.choice(["float32", "rounded", "scale", "output"])), int(rng.integers(3))
    what, asked, other = ("right", "draws", "flipped")[index % 3], *map(str, rng.choice(list(STREAMS), 2))
    skips = [0, STREAMS[asked](b * h * t * s, b * h) if other == asked else 0][:: rng.choice([1, -1])]
    flags = ["question.safetensors", "--dropout", str(p), "--dtype", kind, "--dropout-seed", str(rng.integers(2**62))]
    flags += ["--causal", "--causal-align", "top-left"] * bool(causal)
    drawn = lambda stream, skip: [*flags, "--dropout-stream", *stream.split(), "--dropout-skip", str(skip)]
    with tempfile.TemporaryDirectory() as folder:
        def mask_of(flags):
            subprocess.run([options.attn, "sdpa", *flags, "--emit", "dropout_mask", "-o", "mask.npz"], cwd=folder, check=True,
                           capture_output=True)
            mask = read_npz(pathlib.Path(folder, "mask.npz"))["dropout_mask"].reshape(b, h, t, s)
            return (mask.view(np.uint16) if mask.dtype.kind == "V" else mask) != 0

        write(pathlib.Path(folder, "question.safetensors"), {"query": q, "key": k, "value": v}, kind)
        question = drawn(asked, skips[0])
        own, text = mask_of(question), ""
        kept = mask_of(drawn(other, skips[1])) if what == "draws" else own.copy()
        if what == "flipped":
            at = tuple(int(rng.integers(n)) for n in own.shape[:3])
            at += int(result(*operands, True, p, kind, way)["attention_weights"][at].argmax()),
            kept[at] ^= True
            text = f"{'keeps' if kept[at] else 'drops'} weight {list(at)},"
        arrays = list(result(*operands, kept, p, kind, way).items())
        write(pathlib.Path(folder, "theirs.safetensors"), dict(arrays[given % 2 : given + 1]), kind)
        answer, outcome = judged([options.attn, "check", "sdpa", *question, "--against", "theirs.safetensors", "--search"], folder, 60)

        def is_named(change):
            if what == "flipped": return change["found"].startswith(text)
            if change["convention"] != "dropout_draws": return False
            flag = change["flag"]  # none without --dropout-kernel
            return not flag or not ((mask_of(question + shlex.split(flag)) != kept) & see).any()
        if answer:
            outcome = "called wrong" if answer["verdict"] == "wrong" else "right"
            if ((kept != own) & see).any():
                changes = [change for match in answer["matches"] for change in match["changes"]] if "matches" in answer else []
                outcome = "named" if any(map(is_named, changes)) else "missed"
    return what, outcome, f"{index} {what}: {outcome}: {kind} {way} {given} {own.shape} of {d}, p {p}, {asked}, {other}"


def main():
    options, counts = words_of_cases(450).parse_args(), collections.Counter()
    for what, outcome, line in answers_of_cases(options, run_case):
        counts[what, outcome] += 1
        if outcome not in ("right", "named") or options.case is not None: print(line)
    print(", ".join(f"{what} {outcome}: {count}" for (what, outcome), count in sorted(counts.items())))
    sys.exit(any(outcome not in ("right", "named") for _, outcome in counts))


if __name__ == "__main__":
    main()
