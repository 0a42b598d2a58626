#!/usr/bin/env python3
"""attn partial and attn merge: parts of a question, joined in any grouping and order, are its result.

    python3 tests/partial_test.py ATTN [COUNT]

Modes x masks x steps of the scores x dropout x caches x parameters x types x formats x ranges x groupings, at
random. The truths: one process; and for a third of the questions `attn check`, whose bound is that of plain arithmetic in
the type. Needs NumPy. Exit code 77: skipped.
"""

import json
import os
import pathlib
import subprocess
import sys

sys.dont_write_bytecode = True
from support.array_files import safetensors  # noqa: E402
from support.asked import ATTN, SEED, check, rng, run, run_all  # noqa: E402

from wrong.question import random_question  # noqa: E402  exit code 77 without NumPy

import numpy  # noqa: E402

COUNT = int(sys.argv[2]) if len(sys.argv) > 2 else 80
FORMATS = ("npz", "safetensors", "json")
numbers = numpy.random.default_rng(SEED)


def saved(name, *shape):
    """Its rows can be read alone, unless columns come first."""
    array = numbers.normal(size=shape).astype(rng.choice((numpy.float64, numpy.float32, numpy.float16)))
    numpy.save(name, numpy.asfortranarray(array) if rng.random() < 0.2 else array)
    return name


def question():
    """The words of a question that attn accepts, and its number of keys."""
    while True:
        q = random_question(rng, unwanted=["renormalize"], longest=rng.choice((40, 150)), more_keys=rng.choice((9, 90, 700)))
        drawn = q.draw(rng) if q.weights and rng.random() < 0.5 else []
        q.write(pathlib.Path())
        words = [q.mode, *q.in_files(rng), *q.flags(), *drawn, "--dtype", rng.choice(("float32", "float64"))]
        words += ["--kernel", rng.choice(("auto", "auto", "reference", "generic"))]
        words += ["--dropout-stream", rng.choice(("mkl", "mt19937", "cuda"))] if q.dropout else []
        words += rng.choice(([], [], ["--rows", "0:1"], ["--token", "0"]))
        words += ["--emit", rng.choice(("context_vectors", "context_vectors,logsumexp", "context_vectors,head_outputs"))]
        if run(*words, "-o", "whole.npz", code=None).returncode == 0:
            return words, q.keys


def parts_of(words, keys):
    """Files of parts that cover all keys, in any order, some of them merged already."""
    ends = sorted({keys, *(rng.randrange(1, keys + 1) for _ in range(rng.randrange(5)))})
    parts = []
    for first, end in zip([0, *ends], ends):
        parts.append(f"part{first}.{rng.choice(FORMATS)}")
        run("partial", *words, "--kv-range", f"{first}:{end}", "-o", parts[-1])
    rng.shuffle(parts)
    while len(parts) > 2 and rng.random() < 0.5:
        merged = f"merged{len(parts)}.{rng.choice(FORMATS)}"
        done = run("merge", *parts[:2], "-o", merged)
        check("missing" in done.stderr, words, done.stderr)
        parts = [merged, *parts[2:]]
    return parts


def check_equal(words, whole, merged):
    """Returns the largest error, relative to 1 plus the number."""
    most = 0.0
    check(set(whole.files) == set(merged.files), words, whole.files, merged.files)
    for name in set(whole.files) - {"__metadata__"}:
        one, other = whole[name], merged[name]
        check(one.shape == other.shape and one.dtype == other.dtype, words, name, one.shape, other.shape)
        finite = numpy.isfinite(one)
        check(numpy.array_equal(one[~finite], other[~finite], equal_nan=True), words, name, "not finite")
        error = numpy.abs(one[finite].astype(float) - other[finite]) / (1 + numpy.abs(one[finite]))
        most = max(most, error.max(initial=0))
    check(most < (2e-5 if "float32" in words else 1e-13), words, "error", most)
    return most


def parts_are_the_whole():
    most, judged = {"float32": 0.0, "float64": 0.0}, 0
    for i in range(COUNT):
        words, keys = question()
        parts = parts_of(words, keys)
        run("merge", *parts, "-o", "merged.npz")
        dtype = words[words.index("--dtype") + 1]
        most[dtype] = max(most[dtype], check_equal(words, numpy.load("whole.npz"), numpy.load("merged.npz")))
        before = pathlib.Path("merged.npz").read_bytes()
        run("merge", *rng.sample(parts, len(parts)), "-o", "merged.npz")
        check(pathlib.Path("merged.npz").read_bytes() == before, words, "the order of parts changes the bytes")
        if i % 3 == 0:
            kernel = words.index("--kernel")  # check computes by none
            asked = words[:kernel] + words[kernel + 2:words.index("--emit")]
            judged += 1
            run("check", *asked, "--against", "merged.npz")
    return f"{COUNT} questions, {judged} judged by check, largest errors {most}"


def rows_of_a_range_alone_are_in_memory():
    arrays = {name: numbers.normal(size=(4, 40000, 32)).astype(numpy.float32) for name in "kv"}
    query = saved("q.npy", 4, 3, 32)
    for name, array in arrays.items():
        numpy.save(f"{name}.npy", array)
        numpy.savez(f"{name}.npz", array)
        numpy.save(f"{name}_columns.npy", numpy.asfortranarray(array))
        pathlib.Path(f"{name}.safetensors").write_bytes(safetensors({"x": ("F32", array.shape, array.tobytes())}))
    stored = (".npy", ".safetensors", "_columns.npy", ".npz")
    words = [["sdpa", "--query", query, "--key", "k" + name, "--value", "v" + name] for name in stored]
    run(*words[0], "--emit", "context_vectors", "-o", "whole.npz")
    most = []
    for i, of_file in enumerate(words):
        run("partial", *of_file, "--kv-range", f"{i * 10000}:{(i + 1) * 10000}", "-o", f"part{i}.npz")
        command = [ATTN, "partial", *of_file, "--kv-range", "7:9", "-o", "few.npz"]
        measured = "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True); " \
                   "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
        done = subprocess.run([sys.executable, "-c", measured, *command], capture_output=True, text=True, check=True)
        most.append(int(done.stdout) * (1 if sys.platform == "darwin" else 1024))
    run("merge", *(f"part{i}.npz" for i in range(4)), "-o", "merged.npz")
    check_equal(["float32"], numpy.load("whole.npz"), numpy.load("merged.npz"))
    size = sum(array.nbytes for array in arrays.values())
    for i in (0, 1):
        check(most[i] < most[3] - size / 2, "bytes in memory", stored, most, "of", size)


def parts_of_other_questions_are_refused():
    saved("x.npy", 6, 8)
    words = ["multihead", "x.npy", "--heads", "2", "--d-out", "8"]
    for seed in (1, 2):
        run(*words, "--seed", seed, "--save-weights", f"w{seed}.safetensors", "--format", "none")
    run("partial", *words, "--weights", "w1.safetensors", "--kv-range", "0:3", "-o", "a.npz")
    for changed in (["--weights", "w2.safetensors"], ["--weights", "w1.safetensors", "--scale", "0.3"]):
        run("partial", *words, *changed, "--kv-range", "3:6", "-o", "b.npz")
        done = run("merge", "a.npz", "b.npz", "-o", "c.npz", code=3)
        check("one question" in done.stderr and not os.path.exists("c.npz"), done.stderr)
    numpy.save("x.npy", numpy.load("x.npy") + 1)
    run("partial", *words, "--weights", "w1.safetensors", "--kv-range", "3:6", "-o", "b.npz")
    run("merge", "a.npz", "b.npz", "-o", "c.npz", code=3)


def changed_files_are_refused():
    run("partial", "multihead", "--example", "journey", "--heads", "3", "--kv-range", "0:4", "-o", "a.json")
    run("partial", "multihead", "--example", "journey", "--heads", "3", "--kv-range", "4:6", "-o", "b.json")
    part = json.loads(pathlib.Path("b.json").read_text())
    for key in [*part, *("kv_range",) * 6]:
        values = (None, 7, [], "x", {"a": 1}, -1, [[1e400]], "6:4", "4:7", "0:4", "99999999999999999999:2")
        documents = [{**part, key: value} for value in values if part[key] != value]
        for document in [*documents, {k: v for k, v in part.items() if k != key}]:
            pathlib.Path("changed.json").write_text(json.dumps(document))
            done = run("merge", "a.json", "changed.json", "-o", "c.npz", code=None)
            check(done.returncode in (2, 3) and done.stderr.count("\n") == 1, key, document, done)
            check(not os.path.exists("c.npz"), key, document)
    text = pathlib.Path("b.json").read_text()
    for _ in range(40):
        pathlib.Path("changed.json").write_text(text[:rng.randrange(len(text) - 2)])
        run("merge", "a.json", "changed.json", "-o", "c.npz", code=3)


run_all(parts_are_the_whole, rows_of_a_range_alone_are_in_memory, parts_of_other_questions_are_refused,
        changed_files_are_refused)
