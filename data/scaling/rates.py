"""Rates of attn on this machine, measured: runs the program and takes times, memory and results."""

import ast
import dataclasses
import json
import os
import pathlib
import random
import shutil
import struct
import subprocess
import sys
import time

from random_model import SHAPE, SMALL, write_model


@dataclasses.dataclass(frozen=True)
class Run:
    """Commands that ran at the same time: the time from the start of the first to the end of the last; the most
    that one of them took of a processor; the most memory of one. On a machine with other load, the time of a
    processor says better than the time what a free machine would need."""
    wall: float
    cpu: float
    memory: int


def run(commands):
    started = time.monotonic()
    jobs = []
    for command in commands:
        job = subprocess.Popen([str(word) for word in command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        jobs.append((command, job))
    cpu = memory = 0
    for command, job in jobs:
        said = job.stderr.read().decode(errors="replace").strip()
        _, status, used = os.wait4(job.pid, 0)
        job.returncode = os.waitstatus_to_exitcode(status)
        job.stderr.close()
        if job.returncode != 0:
            sys.exit(f"scaling: {' '.join(map(str, command))}: {said or f'exit code {job.returncode}'}")
        cpu = max(cpu, used.ru_utime + used.ru_stime)
        memory = max(memory, used.ru_maxrss * (1 if sys.platform == "darwin" else 1024))
    return Run(time.monotonic() - started, cpu, memory)


def output_of(command, text=""):
    done = subprocess.run(command, input=text, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"scaling: {' '.join(map(str, command))}: {done.stderr.strip() or f'exit code {done.returncode}'}")
    return done.stdout


def best(commands, repeat):
    """The least of each number over `repeat` runs."""
    runs = [run(commands) for _ in range(repeat)]
    return Run(min(r.wall for r in runs), min(r.cpu for r in runs), min(r.memory for r in runs))


class Attn:
    """The program, a folder for files, and what the questions have in common."""

    def __init__(self, program, work, layer, repeat):
        self.program, self.work, self.layer, self.repeat = program, pathlib.Path(work).resolve(), layer, repeat
        version = output_of([program, "--version"])
        if not version.startswith("attn "):
            sys.exit(f"scaling: {program}: not attn; expected the path of attn")
        has_mpi = any(line.startswith("MPI: ") and line != "MPI: none" for line in version.splitlines())
        self.mpi = shutil.which("mpirun") if has_mpi else None
        self.has_parts = subprocess.run([program, "partial", "-h"], stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL).returncode == 0

    def operands(self, tokens, split):
        """Flags of random queries, keys and values, made at the first call: (heads, tokens, d) if `split`, else
        with concatenated heads, (tokens, heads d)."""
        flags = []
        for seed, (name, heads) in enumerate([("query", self.layer.heads), ("key", self.layer.kv_heads),
                                              ("value", self.layer.kv_heads)], 1):
            shape = f"{heads},{tokens},{self.layer.d}" if split else f"{tokens},{heads * self.layer.d}"
            path = self.work / f"{name}-{shape.replace(',', 'x')}.npy"
            if not path.exists():
                run([[self.program, "self", "--randn", shape, "--seed", seed, "--init", "none", "--emit", "inputs",
                      "-o", path]])
            flags += ["--" + name, path]
        if not split:
            flags += ["--heads", self.layer.heads, "--kv-heads", self.layer.kv_heads]
        return flags

    def contexts(self, tokens, causal, output, *flags, mode=("sdpa",), split=False):
        """A command for the context vectors, on one thread."""
        return [self.program, *mode, *self.operands(tokens, split), *(["--causal"] if causal else []),
                "--threads", 1, "--emit", "context_vectors", *flags, "-o", self.work / output]

    def partial(self, tokens, causal, first, end, output):
        return self.contexts(tokens, causal, output, "--kv-range", f"{first}:{end}", mode=("partial", "sdpa"))

    def merge(self, parts, output):
        return [self.program, "merge", *[self.work / part for part in parts], "-o", self.work / output]

    def on_ranks(self, n, command):
        """One process a rank. Root may run them, and more of them than there are processors, as in a container."""
        return [self.mpi, "--allow-run-as-root", "--oversubscribe", "-n", n, *command]

    def join_rows(self, names, output):
        """Concatenates .npy files of matrices of float32."""
        rows, blocks = 0, []
        for name in names:
            data = (self.work / name).read_bytes()
            start = 10 + struct.unpack_from("<H", data, 8)[0]
            shape = ast.literal_eval(data[10:start].decode())["shape"]
            rows += shape[0]
            blocks.append(data[start:])
        head = str({"descr": "<f4", "fortran_order": False, "shape": (rows, *shape[1:])}).encode()
        head += b" " * (-(11 + len(head)) % 64) + b"\n"
        with open(self.work / output, "wb") as file:
            file.writelines([b"\x93NUMPY\x01\x00", struct.pack("<H", len(head)), head, *blocks])

    def dry_run(self, tokens, causal):
        """What `attn batch --dry-run` says of the question."""
        flags = self.operands(tokens, False)
        request = {"mode": "sdpa", "causal": causal, "emit": ["context_vectors"]}
        request |= {str(name)[2:].replace("-", "_"): value if isinstance(value, int) else str(value)
                    for name, value in zip(flags[::2], flags[1::2])}
        cost = json.loads(output_of([self.program, "batch", "--dry-run"], json.dumps(request)))
        return {key: cost[key] for key in ("flops", "memory_bytes")}

    def same(self, a, b):
        """Whether two results differ by no more than rounding, for numbers of about 1 in float32."""
        return subprocess.run([self.program, "compare", self.work / a, self.work / b, "--atol", "1e-5"],
                              stdout=subprocess.DEVNULL).returncode == 0

    def reading_rate(self, tokens):
        """Bytes a second of .npy files in the system's cache: one query on many keys."""
        command = self.contexts(tokens, False, "one.npy", "--rows", "0:1")
        size = 2 * tokens * self.layer.kv_heads * self.layer.d * 4
        return size / best([command], self.repeat).wall

    def merging_rate(self, tokens):
        """Bytes a second of parts that `attn merge` joins."""
        parts = ["early.npz", "late.npz"]
        for part, first, end in [(parts[0], 0, tokens // 2), (parts[1], tokens // 2, tokens)]:
            run([self.partial(tokens, False, first, end, part)])
        size = sum((self.work / part).stat().st_size for part in parts)
        return size / best([self.merge(parts, "merged.npy")], self.repeat).wall

    def passing_rate(self, tokens):
        """The time in which MPI starts two processes, and the bytes a second, at least, that each passes to the
        other: half of the keys and values, in a time that includes starting, reading and computing on few queries."""
        few = self.work / "few.npy"
        run([[self.program, "self", "--randn", f"4,{self.layer.row()}", "--init", "none", "--emit", "inputs", "-o", few]])
        start = best([self.on_ranks(2, [self.program, "--version"])], self.repeat).wall
        command = self.contexts(tokens, False, "passed.npy", "--query", few)
        size = tokens * self.layer.kv_row() * 4 / 2
        done = best([self.on_ranks(2, command)], self.repeat).wall
        return {"start_seconds": start, "passed_bytes_per_second": size / done}


class Corpus:
    """Texts of random token ids, and a model with random weights, in the folder of `attn`."""

    def __init__(self, attn, small):
        self.attn, self.shape = attn, dict(SMALL if small else SHAPE)
        self.model = attn.work / "model"
        self.bytes = write_model(self.model, self.shape)
        self.start = best([self.scan(self.texts(1, 1), "rate.json")], attn.repeat).cpu  # reading the model once

    def texts(self, count, tokens):
        """A file of `count` texts of `tokens` tokens each."""
        path = self.attn.work / f"texts-{count}x{tokens}.ndjson"
        generator = random.Random(1)
        with open(path, "w") as file:
            for number in range(count):
                ids = [generator.randrange(self.shape["vocab"]) for _ in range(tokens)]
                file.write(json.dumps({"id": number, "token_ids": ids}) + "\n")
        return path

    def scan(self, texts, output, *flags):
        return [self.attn.program, "scan", self.model, texts, "--jobs", 1, "--threads", 1, *flags,
                "-o", self.attn.work / output]

    def rate(self, count, tokens, progress):
        """Tokens a second of one core, after it has read the model."""
        progress(f"statistics of {count} texts of {tokens} tokens")
        done = best([self.scan(self.texts(count, tokens), "rate.json")], self.attn.repeat)
        return {"text_tokens": tokens, "texts": count, "seconds": done.wall, "cpu_seconds": done.cpu,
                "memory_bytes": done.memory, "tokens_per_second": count * tokens / (done.cpu - self.start)}
