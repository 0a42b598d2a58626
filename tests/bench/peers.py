#!/usr/bin/env python3
"""Attention side by side: attn_bench against ONNX Runtime and PyTorch on the same shapes.

    peers.py                              every shape, on one thread and on two
    peers.py --quick --threads 2 --json   fewer shapes, one line of JSON a row

Each row is a peer's time over attn's: medians over pairs of runs, one of attn_bench and one of the
peer straight after each other, their order turned round in every other pair, so that a machine
whose speed drifts favours neither. A run is a process of its own; it times inside itself, after a
warm-up, and checks a few rows of the answer against plain float64 arithmetic.

A peer that is not installed is left out, and the script says what would bring it in:
    ONNX Runtime  node, `npm install --ignore-scripts onnxruntime-node` in any folder outside the
                  repository (--onnxruntime-node names it), and Python's onnx to write the models
    PyTorch       torch in this Python or in the one that --torch-python names

com.microsoft.Attention is not among them: it projects its input first, which is another question.
attn asks the system for large pages; GLIBC_TUNABLES=glibc.malloc.hugetlb=1 gives them to peers too.
"""
import argparse
import contextlib
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve()
TOLERANCE = 1e-4

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


def attn_seconds(bench, shape, threads, seconds):
    dimensions = f"{shape['heads']},{shape['keys']},{shape['width']}"
    command = [bench, "--shape", dimensions, "--queries", shape["queries"],
               "--threads", threads, "--seconds", seconds, "--json"]
    try:
        return ask(command + ["--causal"] * shape["causal"])["seconds"]
    except Failed as failed:
        sys.exit(f"peers.py: {bench}: {failed}")


# ONNX Runtime: a model of one node, run by onnxruntime_peer.js.

class OnnxRuntime:
    # operator: its domain, and where the heads are: rows (1, tokens, heads * width) or
    # heads (1, heads, tokens, width)
    OPERATORS = {
        "MultiHeadAttention": ("com.microsoft", "rows"),
        "Attention": ("", "heads"),
        "GroupQueryAttention": ("com.microsoft", "rows"),  # always causal
    }

    def __init__(self, operator, version, modules, folder):
        self.name = f"ONNX Runtime {version}, {operator}"
        self.operator, self.modules, self.folder = operator, modules, folder
        self.domain, self.layout = self.OPERATORS[operator]

    def takes(self, shape):
        return shape["causal"] or self.operator != "GroupQueryAttention"

    def run(self, shape, threads, seconds):
        job = dict(shape, threads=threads, seconds=seconds, tolerance=TOLERANCE, layout=self.layout,
                   model=self.model(shape["heads"], shape["causal"]))
        script = HERE.with_name("onnxruntime_peer.js")
        return ask(["node", script, json.dumps(job)], NODE_PATH=self.modules)

    def model(self, heads, causal):
        from onnx import TensorProto, helper
        inputs = {name: (TensorProto.FLOAT, [1, None, None]) for name in "qkv"}
        names, outputs = list("qkv"), ["out"]
        if self.operator == "Attention":
            attributes = dict(is_causal=int(causal))
            inputs = {name: (TensorProto.FLOAT, [1, heads, None, None]) for name in "qkv"}
        elif self.operator == "MultiHeadAttention":
            attributes = dict(num_heads=heads, unidirectional=int(causal))
        else:
            attributes = dict(num_heads=heads, kv_num_heads=heads)
            inputs.update(last=(TensorProto.INT32, [1]), total=(TensorProto.INT32, [1]))
            names, outputs = [*"qkv", "", "", "last", "total"], ["out", "", ""]
        node = helper.make_node(self.operator, names, outputs, domain=self.domain, **attributes)
        graph = helper.make_graph(
            [node], "attention",
            [helper.make_tensor_value_info(name, *of) for name, of in inputs.items()],
            [helper.make_tensor_value_info("out", TensorProto.FLOAT, None)])
        opsets = [helper.make_opsetid("", 23), helper.make_opsetid("com.microsoft", 1)]
        # Not checked by onnx, which may be older than the operator; ONNX Runtime checks it.
        model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
        path = pathlib.Path(self.folder, f"{self.operator}-{heads}-{int(causal)}.onnx")
        path.write_bytes(model.SerializeToString())
        return str(path)


def find_onnxruntime(installed, folder):
    modules = [os.environ.get("NODE_PATH", "")]
    if installed:
        modules = [str(pathlib.Path(installed).resolve() / "node_modules"), *modules]
    modules = os.pathsep.join(modules)
    try:
        version = ask(["node", HERE.with_name("onnxruntime_peer.js")], NODE_PATH=modules)["version"]
    except Failed:
        print("left out: ONNX Runtime. Install node, run `npm install --ignore-scripts "
              "onnxruntime-node` in a folder of its own, then --onnxruntime-node FOLDER",
              file=sys.stderr)
        return []
    try:
        import onnx  # noqa: F401
    except ImportError:
        print("left out: ONNX Runtime. This Python has no onnx to write its models with: "
              "python3-onnx in Debian, with Debian's python3", file=sys.stderr)
        return []
    return [OnnxRuntime(operator, version, modules, folder) for operator in OnnxRuntime.OPERATORS]


# PyTorch: this script again, as `peers.py --torch-job JOB`.

class Torch:
    def __init__(self, version, method, python):
        self.name, self.method, self.python = f"PyTorch {version}, {method}", method, python

    def takes(self, _):
        return True

    def run(self, shape, threads, seconds):
        job = dict(shape, threads=threads, seconds=seconds, tolerance=TOLERANCE, method=self.method)
        count = str(threads)  # for OpenBLAS, which torch.set_num_threads may not reach
        return ask([self.python, HERE, "--torch-job", json.dumps(job)],
                   OMP_NUM_THREADS=count, OPENBLAS_NUM_THREADS=count)


def find_torch(python):
    try:
        found = ask([python, HERE, "--torch-job", "{}"])
    except Failed:
        print("left out: PyTorch. Install torch 2 with pip, or python3-torch in Debian, and name "
              "its Python: --torch-python PYTHON", file=sys.stderr)
        return []
    if not found["fast"]:
        print("note: this PyTorch multiplies with the reference BLAS, many times slower than "
              "OpenBLAS: install libopenblas0 in Debian", file=sys.stderr)
    return [Torch(found["version"], method, python) for method in found["methods"]]


def torch_job(job):
    import torch
    if not job:
        fused = hasattr(torch.nn.functional, "scaled_dot_product_attention")
        torch.ones(64, 64) @ torch.ones(64, 64)
        maps = pathlib.Path("/proc/self/maps")  # what this process has loaded, on Linux
        fast = (torch.backends.mkl.is_available() or not maps.exists()
                or any(name in maps.read_text() for name in ("openblas", "blis", "mkl")))
        return dict(version=".".join(torch.__version__.split(".")[:2]), fast=fast,
                    methods=["fused kernel", "math kernel"] if fused else ["matmul and softmax"])
    torch.set_num_threads(job["threads"])
    causal, scale = job["causal"], job["width"] ** -0.5
    q, k, v = (2 * torch.rand(1, job["heads"], job[tokens], job["width"]) - 1
               for tokens in ("queries", "keys", "keys"))
    if causal:
        blocked = torch.full((job["queries"], job["keys"]), float("-inf")).triu_(1)

    def matmul_and_softmax():
        scores = (q * scale) @ k.transpose(-2, -1)
        if causal:
            scores += blocked
        return torch.softmax(scores, -1) @ v

    def scaled_dot_product_attention():
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)

    def timed():
        start = time.perf_counter()
        compute()
        return time.perf_counter() - start

    def times(seconds):
        taken = [timed()]
        while sum(taken) < seconds:
            taken.append(timed())
        return taken

    compute, choice = matmul_and_softmax, contextlib.nullcontext()
    if job["method"] != "matmul and softmax":
        compute, choice = scaled_dot_product_attention, torch_kernel(job["method"])
    with torch.no_grad(), choice:
        answer = compute()
        error = torch_error(job, q, k, v, answer)
        if not error < job["tolerance"]:
            raise ArithmeticError(f"its answer is wrong by {error}")
        times(job["seconds"] / 4)  # warm-up
        return dict(seconds=statistics.median(times(job["seconds"])), error=error)


def torch_kernel(method):
    """Nothing but this kernel of scaled_dot_product_attention."""
    import torch
    fused = method == "fused kernel"
    try:
        from torch.nn.attention import SDPBackend, sdpa_kernel
        return sdpa_kernel(SDPBackend.FLASH_ATTENTION if fused else SDPBackend.MATH)
    except ImportError:  # before 2.3
        return torch.backends.cuda.sdp_kernel(
            enable_flash=fused, enable_math=not fused, enable_mem_efficient=False)


def torch_error(job, q, k, v, answer):
    """The largest error in a few rows of the first and the last head."""
    import torch
    errors = []
    for head in (0, job["heads"] - 1):
        for t in (0, job["queries"] // 3, job["queries"] - 1):
            visible = t + 1 if job["causal"] else job["keys"]
            scores = k[0, head, :visible].double() @ q[0, head, t].double() / job["width"] ** 0.5
            weights = torch.exp(scores) / torch.exp(scores).sum()
            row = weights @ v[0, head, :visible].double()
            errors.append((row - answer[0, head, t]).abs().max())
    return float(torch.stack(errors).max())


# The comparison.

def name_of(shape):
    tokens = str(shape["queries"])
    if shape["queries"] != shape["keys"]:
        tokens += f" x {shape['keys']}"
    causal = " causal" if shape["causal"] else ""
    return f"({shape['heads']}, {tokens}, {shape['width']}){causal}"


def compare(peer, shape, threads, options):
    """A row of the table."""
    attn, other = [], []
    for pair in range(options.pairs):
        turns = [lambda: attn.append(attn_seconds(options.bench, shape, threads, options.seconds)),
                 lambda: other.append(peer.run(shape, threads, options.seconds))]
        for turn in turns if pair % 2 == 0 else reversed(turns):
            turn()
    ratios = [run["seconds"] / own for run, own in zip(other, attn)]
    return dict(case=name_of(shape), threads=threads, peer=peer.name,
                peer_seconds=statistics.median(run["seconds"] for run in other),
                attn_seconds=statistics.median(attn), ratio=statistics.median(ratios),
                ratios=ratios, error=max(run["error"] for run in other))


def line_of(row):
    return (f"{row['case']:<26} {row['threads']:>7}  {row['peer']:<40} "
            f"{row['peer_seconds'] * 1e3:>10.3f} {row['attn_seconds'] * 1e3:>10.3f} "
            f"{row['ratio']:>11.2f}  ({min(row['ratios']):.2f} to {max(row['ratios']):.2f})")


def main():
    bench = HERE.parents[2] / "build/release/tests/attn_bench"
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="only the first size and the last two")
    parser.add_argument("--threads", default="1,2", help="numbers of threads (default 1,2)")
    parser.add_argument("--seconds", type=float, default=1, help="time of one run (default 1)")
    parser.add_argument("--pairs", type=int, default=5, help="pairs of runs a row (default 5)")
    parser.add_argument("--only", default="", metavar="TEXT", help="only peers with this in a name")
    parser.add_argument("--bench", default=bench, help="attn_bench (default the ci build's)")
    parser.add_argument("--onnxruntime-node", metavar="DIR",
                        help="where `npm install onnxruntime-node` was run (default NODE_PATH)")
    parser.add_argument("--torch-python", default=sys.executable, metavar="PYTHON",
                        help="a Python that has torch (default this one)")
    parser.add_argument("--json", action="store_true", help="one line of JSON a row")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        peers = [*find_onnxruntime(options.onnxruntime_node, folder),
                 *find_torch(options.torch_python)]
        peers = [peer for peer in peers if options.only.lower() in peer.name.lower()]
        if not peers:
            sys.exit("peers.py: no peer to compare with")
        if not options.json:
            print(f"{'shape':<26} threads  {'peer':<40} {'peer ms':>10} {'attn ms':>10} "
                  "peer / attn")
        for shape in cases([SHAPES[0], *SHAPES[-2:]] if options.quick else SHAPES):
            for threads in map(int, options.threads.split(",")):
                for peer in (peer for peer in peers if peer.takes(shape)):
                    try:
                        row = compare(peer, shape, threads, options)
                        print(json.dumps(row) if options.json else line_of(row), flush=True)
                    except Failed as failed:
                        print(f"left out: {name_of(shape)}, {peer.name}: {failed}",
                              file=sys.stderr, flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--torch-job"]:
        print(json.dumps(torch_job(json.loads(sys.argv[2]))))
    else:
        main()
