#!/usr/bin/env python3
"""Attention side by side: attn_bench against PyTorch and ONNX Runtime on the same shapes.

    peers.py                              every shape, on one thread and on two
    peers.py --quick                      fewer shapes
    peers.py --table                      then a table like that of `attn help numbers`

Each row is a peer's time over attn's, in float32 or, where it says so, both in bfloat16: medians over pairs of runs, one of attn_bench and one of the
peer straight after each other, their order turned round in every other pair, so that a machine
whose speed drifts favours neither. A run is a process of its own; it times inside itself, after a
warm-up, and checks a few rows of the answer against plain float64 arithmetic.

A peer that is not installed is left out, and the script says what would bring it in:
    PyTorch, ONNX Runtime   torch, onnxruntime and onnx (to write its models) by pip in this Python
                            or in the one that --python names

The backward pass is compared with PyTorch's: torch.autograd.grad(out, (q, k, v), grad,
retain_graph=True), with an `out` that was computed before, against attn's whole call, which has only
q, k, v and grad and so computes the weights again.

com.microsoft.Attention is not among them: it projects its input first, which is another question.
attn asks the system for large pages; GLIBC_TUNABLES=glibc.malloc.hugetlb=1 gives them to peers too.
"""
import argparse
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
BENCH = HERE.parents[1] / "build/release/tests/attn_bench"
JOBS = HERE / "peer_jobs.py"
THREADS = 1, 2

# heads, queries, keys, width; each is run full and, where it is square, causal and backward
SHAPES = [(1, 1024, 1024, 64), (12, 1024, 1024, 64), (12, 4096, 4096, 64), (1, 16384, 16384, 64),
          (8, 2048, 2048, 128), (8, 1, 65536, 64)]


def cases(shapes):
    for heads, queries, keys, width in shapes:
        for backward in (False, True) if queries == keys else (False,):
            for causal in (False, True) if queries == keys else (False,):
                yield dict(heads=heads, queries=queries, keys=keys, width=width, causal=causal,
                           backward=backward)


class Failed(Exception):
    """What a process said last when it failed."""


def ask(*command, **environment):
    """The JSON that a process prints."""
    try:
        done = subprocess.run([str(word) for word in command], env={**os.environ, **environment},
                              text=True, capture_output=True)
    except OSError as error:
        raise Failed(str(error)) from error
    if done.returncode != 0:
        raise Failed((done.stderr.strip() or f"exit code {done.returncode}").splitlines()[-1])
    return json.loads(done.stdout)


def attn_run(shape, threads, seconds, what="attention"):
    dimensions = f"{shape['heads']},{shape['keys']},{shape['width']}"
    return ask(BENCH, "--shape", dimensions, "--queries", shape["queries"], "--threads", threads,
               "--seconds", seconds, "--json", *["--causal"] * shape["causal"],
               "--what", "backward" if shape["backward"] else what)


def peer_run(peer, shape, threads, seconds):
    job = dict(peer, **shape, threads=threads, seconds=seconds)
    count = str(threads)  # for OpenBLAS, which torch.set_num_threads may not reach
    return ask(peer["python"], JOBS, json.dumps(job), OMP_NUM_THREADS=count,
               OPENBLAS_NUM_THREADS=count)


def peers_of(python, library, title, packages):
    """The methods of a library, where that Python has it."""
    try:
        found = ask(python, JOBS, json.dumps(dict(library=library)))
    except Failed as failed:
        print(f"left out: {title} ({failed}). Install {packages} by pip and name that Python: "
              "--python PYTHON", file=sys.stderr)
        return []
    family = f"{title} {found['version']}"
    return [dict(library=library, method=method, python=python,
                 family=family + ", bfloat16" * is_bfloat16(method)) for method in found["methods"]]


def is_bfloat16(name):
    return name.endswith("bfloat16")


def name_of(shape):
    tokens = str(shape["queries"])
    if shape["queries"] != shape["keys"]:
        tokens += f" x {shape['keys']}"
    causal = " causal" if shape["causal"] else ""
    backward = " backward" if shape["backward"] else ""
    return f"({shape['heads']}, {tokens}, {shape['width']}){causal}{backward}"


def compare(peer, shape, threads, options):
    """A row: the peer compared with attn."""
    attn, other = [], []
    run = shape, threads, options.seconds
    for pair in range(options.pairs):
        turns = [lambda: attn.append(attn_run(*run, "bfloat16" if is_bfloat16(peer["method"]) else "attention")),
                 lambda: other.append(peer_run(peer, *run))]
        for turn in turns if pair % 2 == 0 else reversed(turns):
            turn()
    ratios = [run["seconds"] / own["seconds"] for run, own in zip(other, attn)]
    return dict(case=name_of(shape), threads=threads, family=peer["family"],
                peer=f"{peer['family']}, {peer['method'].removesuffix(', bfloat16')}",
                peer_seconds=statistics.median(run["seconds"] for run in other),
                attn_seconds=statistics.median(run["seconds"] for run in attn),
                percent=statistics.median(run["percent_of_peak"] for run in attn),
                ratio=statistics.median(ratios), ratios=ratios)


def line_of(row):
    return (f"{row['case']:<26} {row['threads']:>7}  {row['peer']:<40} "
            f"{row['peer_seconds'] * 1e3:>10.3f} {row['attn_seconds'] * 1e3:>10.3f} "
            f"{row['ratio']:>11.2f}  ({min(row['ratios']):.2f} to {max(row['ratios']):.2f})")


def table_of(rows):
    """Markdown: a line for each shape; of a peer's methods the fastest one."""
    families = list(dict.fromkeys(row["family"] for row in rows))
    lines = [f"{processor()}, {' / '.join(map(str, THREADS))} threads:", "",
             "| " + " | ".join(["heads, tokens, width", "`attn`, % of peak", *families]) + " |",
             "|---" * (len(families) + 2) + "|"]
    for case in dict.fromkeys(row["case"] for row in rows):

        def cell(key, choose, form, family=None):
            """A figure for each number of threads."""
            found = [[row[key] for row in rows if (row["case"], row["threads"]) == (case, count)
                      and family in (None, row["family"])
                      and (family or not is_bfloat16(row["family"]))] for count in THREADS]
            return " / ".join(format(choose(of), form) if of else "-" for of in found)

        cells = [cell("percent", statistics.median, ".0f"),
                 *(cell("ratio", min, ".2f", family) for family in families)]
        lines.append("| " + " | ".join([case.strip("()").replace(")", ""), *cells]) + " |")
    return "\n".join(lines)


def processor():
    info = pathlib.Path("/proc/cpuinfo")
    for line in info.read_text().splitlines() if info.exists() else []:
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="only the first size and the last two")
    parser.add_argument("--seconds", type=float, default=1, help="time of one run (default 1)")
    parser.add_argument("--pairs", type=int, default=5, help="pairs of runs a row (default 5)")
    parser.add_argument("--python", default=sys.executable, metavar="PYTHON",
                        help="a Python that has torch, onnxruntime and onnx (default this one)")
    parser.add_argument("--table", action="store_true", help="a table in Markdown at the end")
    options = parser.parse_args()
    if not BENCH.exists():
        sys.exit(f"peers.py: {BENCH}: no attn_bench; expected the release preset's build, "
                 "with its tests")
    rows = []
    peers = [*peers_of(options.python, "torch", "PyTorch", "torch"),
             *peers_of(options.python, "onnxruntime", "ONNX Runtime", "onnxruntime and onnx")]
    print(f"{'shape':<26} threads  {'peer':<40} {'peer ms':>10} {'attn ms':>10} peer / attn")
    for shape in cases([SHAPES[0], *SHAPES[-2:]] if options.quick else SHAPES):
        for count in THREADS:
            for peer in peers:
                if peer["method"] == "GroupQueryAttention" and not shape["causal"]:
                    continue  # it is always causal
                if peer["library"] != "torch" and shape["backward"]:
                    continue  # it has none
                try:
                    rows.append(compare(peer, shape, count, options))
                    print(line_of(rows[-1]), flush=True)
                except Failed as failed:
                    print(f"left out: {name_of(shape)}, {peer['family']}: {failed}",
                          file=sys.stderr, flush=True)
    if options.table:
        print("\n" + table_of(rows))


main()
