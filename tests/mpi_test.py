#!/usr/bin/env python3
"""mpirun -n N attn: the answers of one process, to rounding, for N from 1 to 4; the same bytes for the same N.

    python3 tests/mpi_test.py ATTN [COUNT]

Random questions: modes x options x types x shapes, also with fewer rows than ranks. Then what must be refused,
bad files, full disks, failing memory, killed ranks, and batches. Needs NumPy and a build with -DATTN_MPI=ON. Exit code 77: skipped.
"""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
from support.array_files import read_safetensors  # noqa: E402
from support.asked import ATTN, check, rng, run as alone, run_all  # noqa: E402

from wrong.question import random_question  # noqa: E402  exit code 77 without NumPy

import numpy  # noqa: E402

COUNT = int(sys.argv[2]) if len(sys.argv) > 2 else 12
ENVIRONMENT = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
               "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_mpi_yield_when_idle": "1",
               "OMPI_MCA_odls_base_sigkill_timeout": "0"}


def mpirun(ranks, *words, launcher=()):
    return subprocess.run(["mpirun", "-n", str(ranks), *launcher, ATTN, *map(str, words)], env=ENVIRONMENT,
                          capture_output=True, text=True, timeout=120)


def run(ranks, *words, code=0, launcher=()):
    """The command line on so many ranks. Returns its standard error."""
    done = mpirun(ranks, *words, launcher=launcher)
    check(done.returncode == code, ranks, *words, "exit code", done.returncode, done.stdout, done.stderr)
    if code:
        errors = [line for line in done.stderr.splitlines() if line.startswith("attn: error: ")]
        check(len(errors) == 1, ranks, *words, "error lines:", done.stderr)
        check(done.stdout == "", done.stdout)
    return done.stderr if code == 0 else errors[0]


def read(path):
    """The arrays of a file by name, and its bytes before them."""
    whole = pathlib.Path(path).read_bytes()
    if path.endswith(".npy"):
        array = numpy.load(path)
        return {"": array}, whole[:len(whole) - array.nbytes]
    tensors, _, head = read_safetensors(path)
    kinds = {"F32": "<f4", "F64": "<f8"}
    return {name: numpy.frombuffer(content, kinds[dtype]).reshape(shape)
            for name, (dtype, shape, content) in tensors.items()}, head


def check_equal(path, other, *words):
    arrays, head = read(path)
    others, other_head = read(other)
    check(head == other_head, *words, "another header")
    for name, array in arrays.items():
        bound = 1e-12 if array.dtype == numpy.float64 else 3e-6
        scale = max(1.0, float(numpy.abs(array[numpy.isfinite(array)]).max(initial=0)))
        with numpy.errstate(invalid="ignore"):  # infinities of rows without keys
            same = (array == others[name]) | (numpy.abs(array - others[name]) <= bound * scale)
        check((same | numpy.isnan(array) & numpy.isnan(others[name])).all(), *words, name, array, others[name])


def write(name, *shape):
    numpy.save(name, numpy.random.default_rng(rng.getrandbits(32)).standard_normal(shape).astype("f4"))
    return name


def question():
    """Its words, and the suffix of a file for its arrays."""
    q = random_question(rng, unwanted=["renormalize", "cache"], longest=rng.choice((3, 40, 130)),
                        more_keys=rng.choice((9, 200)))
    drawn = q.draw(rng) if q.weights and rng.random() < 0.7 else []
    q.write(pathlib.Path())
    words = [q.mode, *q.in_files(rng, by_columns=0), *q.flags(), *drawn]
    words += rng.choice(([], [], ["--rows", f"{q.queries // 3}:{q.queries}"], ["--token", f"{q.queries // 2}"]))
    words += rng.choice(([], ["--dtype", "float64"])) + rng.choice(([], [], ["--kernel", "reference"]))
    if rng.random() < 0.4:
        return words, ".npy"
    return words + ["--emit", rng.choice(("context_vectors", "context_vectors,logsumexp", "logsumexp,head_outputs"))], \
        ".safetensors"


def answers_are_those_of_one_process():
    compared = 0
    for number in range(COUNT):
        words, suffix = question()
        one = "one" + suffix
        by_one = alone(*words, "-o", one, code=(0, 2))
        if by_one.returncode == 2:  # a conflict of options, which ranks report too
            error = run(rng.choice((2, 3)), *words, "-o", "many" + suffix, code=2)
            check(error == by_one.stderr.strip(), error, by_one.stderr)
            continue
        ranks = rng.choice((2, 3, 4)) if number else 1
        notes = run(ranks, *words, "-o", "many" + suffix)
        check(notes == by_one.stderr, ranks, *words, "notes:", notes, by_one.stderr)
        check_equal(one, "many" + suffix, ranks, *words)
        compared += 1
        if number % 4 == 0:
            run(ranks, *words, "-o", "again" + suffix)
            first, second = (pathlib.Path(name + suffix).read_bytes() for name in ("many", "again"))
            check(first == second, ranks, *words, "other bytes")
            if ranks == 1:
                check(first == pathlib.Path(one).read_bytes(), "one rank differs from a process")
    check(compared > COUNT // 2, "compared", compared, "of", COUNT)
    return compared


def notes_are_shown_once():
    write("q.npy", 2, 5, 8)
    notes = run(3, "sdpa", "--query", "q.npy", "--key", "q.npy", "--value", "q.npy", "--heads", 2, "-o", "many.npy")
    check(notes.count("attn: note: --heads 2: query (2, 5, 8) is read as 2 batch entries") == 1, notes)


def check_nothing_left():
    left = [path.name for path in pathlib.Path().iterdir() if path.name.startswith((".attn", "out."))]
    check(not left, "left behind:", left)


def what_is_refused():
    write("x.npy", 8, 4)
    bad = numpy.ones((8, 4))
    bad[7, 1] = numpy.nan
    numpy.save("nan.npy", bad)
    numpy.save("columns.npy", numpy.asfortranarray(numpy.ones((8, 4))))
    pathlib.Path("x.csv").write_text("1,2\n3,4\n")
    for code, expected, *words in (
            (2, "--output", "self", "x.npy"),
            (2, ".npy or .safetensors", "self", "x.csv", "-o", "out.npy"),
            (2, "attention_weights", "self", "x.npy", "-o", "out.safetensors"),
            (2, "one after the other", "linear", "x.npy", "-o", "out.npy"),
            (2, "--example", "self", "--example", "journey", "-o", "out.npy"),
            (2, "standard input", "self", "-o", "out.npy"),
            (2, "not divided among", "inspect", "x.npy"),
            (2, "--out-dir", "batch", "x.npy"),
            (2, "on a disk", "self", "x.npy", "--format", "npy", "-o", "/dev/null"),
            (2, "--d-otu", "self", "x.npy", "--d-otu", "2"),
            (3, "column-major", "self", "columns.npy", "-o", "out.npy"),
            (3, "NaN", "self", "nan.npy", "-o", "out.npy"),
            (4, "missing.npy", "self", "missing.npy", "-o", "out.npy"),
            (4, "no/out.npy", "self", "x.npy", "-o", "no/out.npy")):
        error = run(rng.choice((2, 3)), *words, code=code)
        check(expected in error, expected, error)
        check_nothing_left()
    # A machine whose file of this name is another one.
    pathlib.Path("other").mkdir()
    write("other/x.npy", 9, 4)
    elsewhere = ("sh", "-c", "[ $OMPI_COMM_WORLD_RANK = 0 ] || cd other; exec \"$@\"", "sh")
    error = run(3, "self", "x.npy", "-o", pathlib.Path("out.npy").resolve(), code=3, launcher=elsewhere)
    check("inputs: (9, 4) on rank 1, (8, 4) on rank 0" in error, error)
    shutil.copy("x.npy", "other/x.npy")
    words = ["multihead", "x.npy", "--heads", "2"]
    for rank, flags in ((0, ["--d-out", "4"]), (1, ["--d-out", "6"]), (1, ["--d-out", "4", "--qkv-bias"])):
        saved = ("w.safetensors", "other/w.safetensors")[rank]
        alone(*words, *flags, "--save-weights", saved, "--format", "none")
        if rank == 0:
            continue
        error = run(2, *words, "--weights", "w.safetensors", "-o", pathlib.Path("out.npy").resolve(), code=3,
                    launcher=elsewhere)
        check("rank 1: has other settings or sizes than rank 0; expected the same files" in error, flags, error)
        check_nothing_left()
    done, page = mpirun(3, "--version"), mpirun(2, "help", "mpi")
    check(page.returncode == 0 and page.stdout.count("## The division") <= 1, page.stdout, page.stderr)
    check(done.stdout.count("MPI: ") == 1 and "none" not in done.stdout, done.stdout)


def disks_may_be_full():
    write("x.npy", 400, 64)
    done = mpirun(2, "self", "x.npy", "-o", "out.npy",
                  launcher=("--mca", "btl", "tcp,self", "sh", "-c", "ulimit -f 60; exec \"$@\"", "sh"))
    check(done.returncode == 4 and done.stderr.count("attn: error: out.npy: ") == 1, done.returncode, done.stderr)
    check_nothing_left()


# Preloaded: what attn allocates for arrays fails from number FAIL_AT on.
FAILING_MEMORY = """
#include <errno.h>
#include <stdlib.h>
static long count;
void* aligned_alloc(size_t alignment, size_t size) {
    const char* rank = getenv("OMPI_COMM_WORLD_RANK");
    const char* failing = getenv("FAIL_RANK");
    void* memory = 0;
    if (rank && (*failing == 'a' || *failing == *rank) && __sync_add_and_fetch(&count, 1) >= atol(getenv("FAIL_AT")))
        return errno = ENOMEM, memory;
    return posix_memalign(&memory, alignment, size) == 0 ? memory : 0;
}
"""


def memory_may_fail():
    compiler = shutil.which("cc")
    check(compiler is not None, "no C compiler")
    subprocess.run([compiler, "-shared", "-fPIC", "-x", "c", "-", "-o", "failing.so"], input=FAILING_MEMORY, text=True,
                   check=True)
    numpy.save("q.npy", numpy.random.default_rng(0).standard_normal((300, 64)))
    words = ["sdpa", "--query", "q.npy", "--key", "q.npy", "--value", "q.npy", "-o", "out.npy"]
    failed = 0
    for rank in ("1", "all"):  # at reading, in the first and the last step of the ring, and at writing
        for number in range(1, 90, 11):
            done = mpirun(3, *words, launcher=("-x", f"LD_PRELOAD={os.getcwd()}/failing.so", "-x", f"FAIL_AT={number}",
                                               "-x", f"FAIL_RANK={rank}"))
            if done.returncode == 0:  # it needed less
                os.unlink("out.npy")
                continue
            check(done.returncode == 3 and done.stderr.count("attn: error: memory: ") == 1, rank, number, done.stderr)
            check_nothing_left()
            failed += 1
    check(failed > 8, "failed only", failed, "times")
    return f"{failed} times"


def ranks_may_be_killed():
    numpy.save("q.npy", numpy.random.default_rng(0).standard_normal((4, 6000, 64)).astype("f4"))
    # After SIGTERM the other ranks have a second to remove the file.
    environment = {name: value for name, value in ENVIRONMENT.items() if "sigkill" not in name}
    for rank in (0, 1):
        for is_writing in (False, True):
            words = ["--query", "q.npy", "--key", "q.npy", "--value", "q.npy", "-o", "out.npy"]
            job = subprocess.Popen(["mpirun", "-n", "2", ATTN, "sdpa", *words], env=environment,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            victim = rank_of(job.pid, rank)
            while victim is None:
                check(job.poll() is None, "a job ended before its rank was seen", rank)
                victim = rank_of(job.pid, rank)
            while is_writing and job.poll() is None and not any(
                    path.stat().st_size > 4096 for path in pathlib.Path().glob(".attn-*")):
                time.sleep(0.0005)
            os.kill(victim, signal.SIGKILL)
            error = job.communicate(timeout=60)[1]
            check(job.returncode != 0, "a killed rank ended a job well", error)
            check_nothing_left()


def rank_of(mpirun, rank):
    """The process of a rank, once it runs the program; or None."""
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            parent = int((path / "stat").read_text().rsplit(")", 1)[1].split()[1])
            if parent == mpirun and f"OMPI_COMM_WORLD_RANK={rank}\0" in (path / "environ").read_text() \
                    and (path / "comm").read_text() == pathlib.Path(ATTN).name + "\n":
                return int(path.name)
        except (OSError, ValueError):
            continue
    return None


def batches_have_shards():
    lines = [{"id": i, "mode": "causal", "d_out": 2, "inputs": [[i, 1], [2, 3]]} for i in range(7)]
    lines[4].pop("mode")
    pathlib.Path("r.ndjson").write_text("".join(json.dumps(line) + "\n" for line in lines))
    for ranks in (1, 3):
        for folder in ("many", "apart"):
            shutil.rmtree(folder, ignore_errors=True)
        launched = mpirun(ranks, "batch", "r.ndjson", "--out-dir", "many")
        check(launched.returncode == 1, launched.stderr)
        for rank in range(ranks):
            alone("batch", "r.ndjson", "--out-dir", "apart", *(["--shard", f"{rank + 1}/{ranks}"] if ranks > 1 else []),
                  code=(0, 1))
        files = {folder: {path.name: path.read_bytes() for path in pathlib.Path(folder).iterdir()}
                 for folder in ("many", "apart")}
        check(files["many"] == files["apart"], sorted(files["many"]), sorted(files["apart"]))


if shutil.which("mpirun") is None:
    print("skipped: no mpirun")
    sys.exit(77)
run_all(answers_are_those_of_one_process)
if COUNT <= 100:
    run_all(notes_are_shown_once, what_is_refused, disks_may_be_full, memory_may_fail, ranks_may_be_killed,
            batches_have_shards)
