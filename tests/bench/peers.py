#!/usr/bin/env python3
"""Attention side by side: attn_bench against PyTorch and ONNX Runtime on the same shapes.

    peers.py                              every shape, on one thread and on two
    peers.py --quick --threads 2          fewer shapes
    peers.py --table                      then a table like that of `attn help numbers`

Each row is a peer's time over attn's: medians over pairs of runs, one of attn_bench and one of the
peer straight after each other, their order turned round in every other pair, so that a machine
whose speed drifts favours neither. A run is a process of its own; it times inside itself, after a
warm-up, and checks a few rows of the answer against plain float64 arithmetic.

A peer that is not installed is left out, and the script says what would bring it in:
    PyTorch, ONNX Runtime   torch, onnxruntime and onnx (to write its models) by pip in this Python
                            or in the one that --python names

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

from peer_jobs import JOBS

HERE = pathlib.Path(__file__).resolve()

# heads, queries, keys, width; each is run full and, where it is square, causal
SHAPES = [(1, 1024, 1024, 64), (12, 1024, 1024, 64), (12, 4096, 4096, 64), (1, 16384, 16384, 64),
          (8, 2048, 2048, 128), (8, 1, 65536, 64)]


def cases(shapes):
    for heads, queries, keys, width in shapes:
        for causal in (False, True) if queries == keys else (False,):
            yield dict(heads=heads, queries=queries, keys=keys, width=width, causal=causal)


class Failed(Exception):
    """What a process said last when it failed."""


def ask(command, **more_environment):
    """The JSON that a process prints. It sees nothing that would choose a BLAS kernel for it."""
    env = {**os.environ, **more_environment}
    for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
        env.pop(name, None)
    try:
        done = subprocess.run([str(word) for word in command], env=env, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    except OSError as error:
        raise Failed(str(error)) from error
    if done.returncode != 0:
        said = done.stderr.strip() or f"exit code {done.returncode}"
        raise Failed(said.splitlines()[-1])
    return json.loads(done.stdout)


def attn_run(bench, shape, threads, seconds):
    dimensions = f"{shape['heads']},{shape['keys']},{shape['width']}"
    command = [bench, "--shape", dimensions, "--queries", shape["queries"],
               "--threads", threads, "--seconds", seconds, "--json"]
    try:
        return ask(command + ["--causal"] * shape["causal"])
    except Failed as failed:
        sys.exit(f"peers.py: {bench}: {failed}")


# Peers in Python: this script again, in a Python that has them, as `peers.py --job JOB`. An empty
# shape asks which ones there are.

class InPython:
    def __init__(self, name, job, python):
        self.name, self.job, self.python = name, job, python
        self.family = name.split(",")[0]

    def takes(self, shape):
        return shape["causal"] or self.job["method"] != "GroupQueryAttention"  # always causal

    def run(self, shape, threads, seconds):
        job = dict(self.job, **shape, threads=threads, seconds=seconds)
        count = str(threads)  # for OpenBLAS, which torch.set_num_threads may not reach
        return ask([self.python, HERE, "--job", json.dumps(job)],
                   OMP_NUM_THREADS=count, OPENBLAS_NUM_THREADS=count)


def find_in_python(peer, title, python, packages):
    try:
        found = ask([python, HERE, "--job", json.dumps(dict(peer=peer))])
    except Failed as failed:
        print(f"left out: {title} ({failed}). Install {packages} by pip and name that Python: "
              "--python PYTHON", file=sys.stderr)
        return []
    return [InPython(f"{title} {found['version']}, {method}", dict(peer=peer, method=method), python)
            for method in found["methods"]]


# The comparison.

def name_of(shape):
    tokens = str(shape["queries"])
    if shape["queries"] != shape["keys"]:
        tokens += f" x {shape['keys']}"
    causal = " causal" if shape["causal"] else ""
    return f"({shape['heads']}, {tokens}, {shape['width']}){causal}"


def compare(peer, shape, threads, options):
    """A row: the peer compared with attn."""
    attn, other = [], []
    for pair in range(options.pairs):
        turns = [lambda: attn.append(attn_run(options.bench, shape, threads, options.seconds)),
                 lambda: other.append(peer.run(shape, threads, options.seconds))]
        for turn in turns if pair % 2 == 0 else reversed(turns):
            turn()
    ratios = [run["seconds"] / own["seconds"] for run, own in zip(other, attn)]
    return dict(case=name_of(shape), threads=threads, peer=peer.name, family=peer.family,
                peer_seconds=statistics.median(run["seconds"] for run in other),
                attn_seconds=statistics.median(run["seconds"] for run in attn),
                percent=statistics.median(run["percent_of_peak"] for run in attn),
                ratio=statistics.median(ratios), ratios=ratios,
                error=max(run["error"] for run in other))


def line_of(row):
    return (f"{row['case']:<26} {row['threads']:>7}  {row['peer']:<40} "
            f"{row['peer_seconds'] * 1e3:>10.3f} {row['attn_seconds'] * 1e3:>10.3f} "
            f"{row['ratio']:>11.2f}  ({min(row['ratios']):.2f} to {max(row['ratios']):.2f})")


def table_of(rows, threads):
    """Markdown: a line for each shape; of a peer's methods the fastest one."""
    families = list(dict.fromkeys(row["family"] for row in rows))
    titles = ["heads, tokens, width", "`attn`, % of peak", *families]
    lines = [f"{processor()}, {' / '.join(map(str, threads))} threads:", "",
             "| " + " | ".join(titles) + " |", "|---" * len(titles) + "|"]
    for case in dict.fromkeys(row["case"] for row in rows):
        of_case = [row for row in rows if row["case"] == case]

        def cell(figure):
            return " / ".join(figure([row for row in of_case if row["threads"] == count])
                              for count in threads)

        def percent(found):
            return f"{statistics.median(row['percent'] for row in found):.0f}" if found else "-"

        def best(family):
            return lambda found: min((f"{row['ratio']:.2f}" for row in found
                                      if row["family"] == family), key=float, default="-")

        lines.append("| " + " | ".join([case.strip("()").replace(")", ""), cell(percent),
                                        *(cell(best(family)) for family in families)]) + " |")
    return "\n".join(lines)


def processor():
    info = pathlib.Path("/proc/cpuinfo")
    for line in info.read_text().splitlines() if info.exists() else []:
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def main():
    bench = HERE.parents[2] / "build/release/tests/attn_bench"
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="only the first size and the last two")
    parser.add_argument("--threads", type=lambda text: [int(count) for count in text.split(",")],
                        default=[1, 2], metavar="N,...",
                        help="numbers of threads (default 1,2)")
    parser.add_argument("--seconds", type=float, default=1, help="time of one run (default 1)")
    parser.add_argument("--pairs", type=int, default=5, help="pairs of runs a row (default 5)")
    parser.add_argument("--bench", default=bench, help="attn_bench (default the release build's)")
    parser.add_argument("--python", default=sys.executable, metavar="PYTHON",
                        help="a Python that has torch, onnxruntime and onnx (default this one)")
    parser.add_argument("--table", action="store_true", help="a table in Markdown at the end")
    options = parser.parse_args()
    if not pathlib.Path(options.bench).exists():
        sys.exit(f"peers.py: {options.bench}: no attn_bench; expected the release preset's build, "
                 "with its tests")
    threads, rows = options.threads, []
    peers = [*find_in_python("torch", "PyTorch", options.python, "torch"),
             *find_in_python("onnxruntime", "ONNX Runtime", options.python, "onnxruntime and onnx")]
    if not peers:
        sys.exit("peers.py: no peer to compare with")
    print(f"{'shape':<26} threads  {'peer':<40} {'peer ms':>10} {'attn ms':>10} peer / attn")
    for shape in cases([SHAPES[0], *SHAPES[-2:]] if options.quick else SHAPES):
        for count in threads:
            for peer in (peer for peer in peers if peer.takes(shape)):
                try:
                    rows.append(compare(peer, shape, count, options))
                    print(line_of(rows[-1]), flush=True)
                except Failed as failed:
                    print(f"left out: {name_of(shape)}, {peer.name}: {failed}",
                          file=sys.stderr, flush=True)
    if options.table:
        print("\n" + table_of(rows, threads))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--job"]:
        asked = json.loads(sys.argv[2])
        print(json.dumps(JOBS[asked["peer"]](asked)))
    else:
        main()
