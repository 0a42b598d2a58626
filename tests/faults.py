#!/usr/bin/env python3
"""A fault at every system call or allocation: python3 tests/faults.py PROGRAM [--quick] [--memory LIBRARY] [--only NAME]

Each scenario is run once as it is, and then once for every system call that it makes and every way in
which that call may fail, or a signal may come there. strace puts the fault in. What must hold:
exit code 0 (or the scenario's own) with exactly the bytes of the undisturbed run; or one line of
error with exit code 3 or 4, or the end by that signal. Then each file is as it was before, or
whole where the command writes several; standard output is empty, but for what was written there when
the fault came; lines of a batch are a beginning of the whole. No other file is left (after SIGKILL
one hidden file may be, and the next run must do as if it were not there). Nothing hangs.

With --memory, LIBRARY is support/failing_memory.cpp, preloaded: one allocation fails, two in a row, or all from one on.
An answer is right as a whole, or one line that says what is lacking, and nothing is left; in a batch one record says so
and the others are answered.

--quick takes a part, another for each seed (ATTN_TEST_SEED, default 1). Exit code 77: no strace here.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile

DATA = pathlib.Path(__file__).resolve().parent.parent / "data"
QUICK = 700
SECONDS = 30

# In which ways a call may fail, "+": from then on every time. Not touched: what cannot fail, ends the program, or is
# not the program's own.
ERRORS = collections.defaultdict(lambda: ["EIO", "ENOMEM"], {
    "openat": ["EIO", "EACCES", "ENOSPC", "EMFILE", "EINTR", "EEXIST", "EEXIST+", "EMFILE+"],
    "read": ["EIO", "EINTR"], "pread64": ["EIO", "EINTR", "EIO+"],
    "write": ["EIO", "ENOSPC", "EDQUOT", "EINTR", "EAGAIN", "EFBIG", "ENOSPC+"],
    "close": ["EIO", "ENOSPC", "EDQUOT", "EINTR", "EIO+"],
    "fsync": ["EIO", "ENOSPC", "EDQUOT", "EINTR", "EINVAL", "EIO+"],
    "rename": ["EIO", "ENOSPC", "EBUSY", "EACCES", "EXDEV", "EIO+"], "ftruncate": ["EIO", "EINTR", "EPERM"],
    "lseek": ["EIO", "ESPIPE"], "flock": ["ENOLCK", "EAGAIN", "EINTR"], "poll": ["EINTR", "ENOMEM"],
    "newfstatat": ["EIO", "ENOMEM", "EIO+"], "fstat": ["EIO", "ENOMEM"], "stat": ["EIO"],
    "lstat": ["EIO"], "access": ["EACCES", "EROFS", "EIO"], "readlink": ["EIO", "ENOMEM"],
    "dup": ["EMFILE", "EINTR", "EMFILE+"],
    "fchmod": ["EPERM", "EIO"], "fchown": ["EPERM", "EIO"], "getxattr": ["ERANGE", "EOPNOTSUPP", "EIO"],
    "fsetxattr": ["ENOSPC"], "fremovexattr": ["EIO"], "mmap": ["ENOMEM"], "mprotect": ["ENOMEM"],
    "clone3": ["EAGAIN"], "clone": ["EAGAIN"], "pipe": ["EMFILE"], "pipe2": ["EMFILE"], "ioctl": ["EIO", "EINTR"],
    "unlink": ["EIO", "EACCES"], "fcntl": ["EIO"], "getcwd": ["ENOENT"]})
UNTOUCHED = {"exit_group", "futex", "munmap", "rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "sched_getaffinity",
             "getpid", "gettid", "tgkill", "madvise", "execve", "restart_syscall", "getuid", "prlimit64", "sched_yield",
             "brk"}  # whose failure strace cannot show as the system does
SIGNALS = ["SIGTERM", "SIGINT", "SIGKILL"]
FAILING = {"1": 1, "2": 2, "all": 1 << 40}  # allocations in a row
LACKING = ("memory", "Cannot allocate memory")

Scenario = collections.namedtuple("Scenario", "name words lines")  # lines: files and streams that grow line by line
MATRIX = "1,2\n3,4\n5,7\n"
REQUESTS = "".join('{"id":%d,"mode":"self","inputs":[[1,%d],[3,4]]}\n' % (i, i) for i in range(4)) + "[]\n"

SCENARIOS = (
    ("json to a file", "self m.csv -o old.json", ""),
    ("csv to standard output", "self m.csv --format csv", ""),
    ("npz to a new file", "causal m.csv --emit all -o new.npz", ""),
    ("safetensors", "multihead m.csv --heads 1 --emit all -o old.safetensors", ""),
    ("by a link", "self m.csv -o link.json", ""),
    ("in place", "self m.csv -o /proc/self/fd/1", ""),
    ("three files", "self m.csv -o old.json --save-weights old.npz --plot new.svg", ""),
    ("two files and standard output", "self m.csv --save-weights old.npz --plot new.png", ""),
    ("a picture on the terminal", "self m.csv --heatmap --emit all", ""),
    ("plot", "plot result.json -o old.svg", ""),
    ("explain", "explain self m.csv -o old.txt", ""),
    ("a part", "partial causal m.csv --kv-range 0:2 -o new.npz", ""),
    ("compare", "compare result.json other.json", ""),
    ("check", "check self m.csv --against other.json -o old.txt", ""),
    ("inspect", "inspect result.json", ""),
    ("a model", f"multihead --weights {DATA}/models/gpt2 --token-ids 1,2 -o new.json", ""),
    ("batch to a file", "batch q.ndjson --jobs 1 -o old.ndjson", "old.ndjson"),
    ("batch to standard output", "batch q.ndjson --jobs 1", "<stdout>"),
    ("batch from standard input", "batch --jobs 1 -o new.ndjson", "new.ndjson"),
    ("batch --resume", "batch q.ndjson --jobs 1 --resume part.ndjson", "part.ndjson"),
    ("batch --retry-failed", "batch q.ndjson --jobs 1 --retry-failed --resume part.ndjson", ""),
    ("batch to a folder", "batch q.ndjson --jobs 1 --records-per-file 2 --out-dir new --resume", "new/index.ndjson"),
    ("batch to a folder with answers", "batch q.ndjson --jobs 1 --records-per-file 2 --out-dir half --resume",
     "half/index.ndjson"),
    ("batch --retry-failed in a folder",
     "batch q.ndjson --jobs 1 --records-per-file 2 --out-dir half --resume --retry-failed", ""))
OF_MEMORY = (
    ("help", "help formats", ""),
    ("parameters", "multihead m.csv --heads 2 --d-out 4 --emit all -o new.npz --save-weights new.safetensors", ""),
    ("threads", "sdpa long.json --kernel generic --threads 3 -o new.npy", ""),
    ("operands", "cross m.csv --context m.csv --mask mask.json --mask-true keep -o new.json", ""),
    ("deflated", f"self {DATA}/arrays/large_deflated.npz --init none -o new.npz", ""),
    ("text", "multihead --text the,cat,sat --heads 3 --d-out 6 --rope half --dropout 0.5 --format table", ""),
    ("a layer in words", f"explain multihead --weights {DATA}/models/llama --layer 0 --token-ids 1,2,3", ""),
    ("a model's files", f"inspect {DATA}/models/gpt2 --format json", ""),
    ("a page", "causal m.csv --plot new.html --format none", ""))

Outcome = collections.namedtuple("Outcome", "code out err files")


def read_files(folder):
    """A link counts as its target's name, so that its replacement by a file is noticed."""
    return {str(p.relative_to(folder)): os.readlink(p).encode() if p.is_symlink() else p.read_bytes()
            for p in folder.rglob("*") if p.is_symlink() or p.is_file()}


def write_inputs(program, folder):
    (folder / "m.csv").write_text(MATRIX)
    (folder / "q.ndjson").write_text(REQUESTS)
    rows = [[(7 * i + 3 * j) % 5 / 4 - 0.5 for j in range(8)] for i in range(600)]
    (folder / "long.json").write_text(json.dumps({"query": rows, "key": rows, "value": rows}))
    (folder / "mask.json").write_text("[[true,true,false],[true,true,true],[false,true,true]]")
    for name in ("old.json", "old.safetensors", "old.npz", "old.svg", "old.txt", "old.ndjson"):
        (folder / name).write_text("old\n")
    (folder / "link.json").symlink_to("old.json")
    for name, words in (("result.json", ["--emit", "all"]), ("other.json", ["--emit", "all", "--seed", "3"])):
        (folder / name).write_bytes(subprocess.run([program, "self", "m.csv", *words], cwd=folder, check=True,
                                                   stdout=subprocess.PIPE).stdout)
    answers = subprocess.run([program, "batch", "q.ndjson"], cwd=folder, stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, check=False).stdout
    second = answers.index(b"\n", answers.index(b"\n") + 1) + 1
    (folder / "part.ndjson").write_bytes(answers[:second + 20])
    subprocess.run([program, "batch", "q.ndjson", "--out-dir", "half", "--records-per-file", "2"], cwd=folder,
                   stderr=subprocess.DEVNULL, check=False)
    lines = (folder / "half" / "index.ndjson").read_bytes().splitlines(keepends=True)
    (folder / "half" / "index.ndjson").write_bytes(b"".join(lines[:3]) + lines[3][:20])


def run(scenario, folder, before, tracer=(), **environment):
    """In a folder that holds what was there before; None where it hangs."""
    command = [*tracer, program, *scenario.words]
    # A file, not a pipe: an inherited file is one more thing that must not be replaced.
    with open(folder / "q.ndjson", "rb") as requests, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        try:
            code = subprocess.run(command, cwd=folder, stdin=requests, stdout=out, stderr=err, check=False,
                                  env=os.environ | environment, timeout=SECONDS).returncode
        except subprocess.TimeoutExpired:
            return None
        out.seek(0), err.seek(0)
        files = {n: b for n, b in read_files(folder).items() if before.get(n) != b}
        return Outcome(code, out.read(), err.read().decode(errors="replace"), files)


def fresh(template):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="faults-"))
    shutil.copytree(template, folder, symlinks=True, dirs_exist_ok=True)
    return folder


def calls_of(scenario, template, before):
    """(name, number) of every call that is the program's own and not its loader's."""
    folder = fresh(template)
    log = folder.with_suffix(".log")
    run(scenario, folder, before, ("strace", "-qq", "-o", str(log)))
    seen, calls, own = collections.Counter(), [], False
    for line in log.read_text(errors="replace").splitlines():
        found = re.match(r"(\w+)\(", line)
        if not found:
            continue
        own = own or line.startswith("fcntl(0, F_GETFD)")
        seen[found[1]] += 1
        if own and found[1] not in UNTOUCHED:
            calls.append((found[1], seen[found[1]]))
    log.unlink()
    shutil.rmtree(folder)
    return calls


def is_beginning(part, whole):
    return whole.startswith(part) and (not part or part.endswith(b"\n"))


def is_error(scenario, text):
    """Whether it is one line, below the picture that was asked for."""
    about = "(?s:.*)" if "--heatmap" in scenario.words else ""
    return re.fullmatch(about + r"attn: error: [^\n]*\n", text)


def problem_without_memory(scenario, got, whole, before):
    """The same where memory failed."""
    if got is None:
        return "hangs"
    if (got.code, got.out, got.files) == (whole.code, whole.out, whole.files):
        return ""
    about = f"exit code {got.code}, {len(got.out)} bytes of output, files {sorted(got.files)}: {got.err.strip()[:300]}"
    if [n for n in got.files if pathlib.PurePath(n).name.startswith(".attn-")]:
        return about
    if scenario.words[0] != "batch":
        # If memory fails after the last byte, while everything is freed, both exist.
        is_whole = (got.out, got.files) == (whole.out, whole.files)
        is_lacking = is_error(scenario, got.err) and any(word in got.err for word in LACKING)
        return "" if got.code in (3, 4) and is_lacking and (is_whole or not got.out and not got.files) else about
    if got.code not in (0, 1, 3, 4):
        return about
    there = {**before, **got.files}
    for name, right in {**whole.files, "<stdout>": whole.out}.items():
        if not name.endswith((".ndjson", "<stdout>")) or name not in got.files and got.code > 1:
            continue
        found, right = (got.out if name == "<stdout>" else there.get(name, b"")).splitlines(), right.splitlines()
        if len(found) > len(right) or got.code <= 1 and len(found) != len(right):
            return f"{name}: {len(found)} answers of {len(right)}: {about}"
        for line, expected in zip(found, right):
            arrays = json.loads(line).get("arrays")  # which an index places
            is_placed = arrays and all(array["offset"] + array["bytes"] <= len(there[str(pathlib.PurePath(name).with_name(
                json.loads(line)["file"]))]) for array in arrays)
            if line != expected and not is_placed and not any(word.encode() in line for word in LACKING):
                return f"{name}: answer {line.decode(errors='replace')[:200]}"
    return ""


def problem_of(scenario, fault, call, got, whole, before):
    """What is wrong with an outcome; "" where nothing is."""
    if got is None:
        return "hangs"
    name = call[0]
    extra = [n for n in got.files if n not in whole.files and n not in before]
    may_stay = len(whole.files) if fault == "SIGKILL" else name in ("unlink", "unlinkat")
    if [n for n in extra if not pathlib.PurePath(n).name.startswith(".attn-")] or len(extra) > may_stay:
        return f"leaves {extra}"
    files = {n: b for n, b in got.files.items() if n not in extra}
    if got.code == whole.code and got.out == whole.out and files == whole.files:
        return ""
    if got.code == whole.code and fault not in SIGNALS:
        return f"exit code {got.code}, but other output: {sorted(files)} and {len(got.out)} bytes"
    if fault in SIGNALS:
        if got.code != -getattr(signal, fault):
            return f"exit code {got.code} by {fault}"
    elif got.code not in (3, 4):
        return f"exit code {got.code}: {got.err.strip()}"
    elif (fault, name) != ("ENOSPC+", "write") and not is_error(scenario, got.err):
        return f"error is not one line: {got.err!r}"
    # A stopped batch ends its part early. Where a folder cannot be listed, the parts of an unfinished repair stay until
    # the next run.
    is_part = {n: "--out-dir" in scenario.words and "/part-" in n for n in files}
    files = {n: b for n, b in files.items()
             if not (is_part[n] and (fault in SIGNALS or (name, fault) == ("newfstatat", "EIO+")))}
    several = len(whole.files) > 1 or (whole.files and whole.out)
    for n, b in files.items():
        if n in scenario.lines:
            if not is_beginning(b, whole.files[n]) and not (fault == "SIGKILL" and whole.files[n].startswith(b)):
                return f"{n} holds other lines"
        elif b != whole.files.get(n):
            return f"{n} is torn"
        elif not several and fault not in SIGNALS:
            return f"{n} was replaced, though exit code {got.code}"
    if got.out and not whole.out.startswith(got.out):
        return "other standard output"
    if got.out and not files and len(whole.files) > 0:
        return "standard output is there, its files are not"
    if got.out and name not in ("write", "close", "dup", "poll") and fault not in SIGNALS and not scenario.lines:
        return f"standard output has {len(got.out)} bytes, though exit code {got.code}"
    return ""


def try_fault(job):
    scenario, template, before, whole, call, fault = job
    folder = fresh(template)
    if call[0] == "allocation":
        got = run(scenario, folder, before, LD_PRELOAD=library, FAIL_AT=str(call[1]), FAIL_COUNT=str(FAILING[fault]))
        shutil.rmtree(folder)
        problem = problem_without_memory(scenario, got, whole, before)
        return problem and f"{scenario.name}: {fault} from allocation {call[1]} on: {problem}"
    what = f"signal={fault}" if fault in SIGNALS else f"error={fault.rstrip('+')}"
    when = f"when={call[1]}" + ("+" if fault.endswith("+") else "")
    log = folder.with_suffix(".log")
    tracer = ("strace", "-qq", "-o", str(log), "-e", f"trace={call[0]}", "-e", f"inject={call[0]}:{what}:{when}")
    got = run(scenario, folder, before, tracer)
    problem = problem_of(scenario, fault, call, got, whole, before)
    if not problem and fault == "SIGKILL":
        again = run(scenario, folder, before)
        left = {n: b for n, b in again.files.items() if not pathlib.PurePath(n).name.startswith(".attn-")}
        words = {"--out-dir", "--retry-failed"} & {*scenario.words}
        is_alike = "--resume" not in scenario.words or words == {"--out-dir"}
        if is_alike and left != whole.files:
            problem = f"the next run differs: {again.code} {again.err}"
    shutil.rmtree(folder)
    log.unlink(missing_ok=True)
    return problem and f"{scenario.name}: {call[0]} {call[1]}, {fault}: {problem}"


def allocations_of(scenario, template, before, is_quick):
    """((name, number), fault) of every allocation that fails; of a quick run 24."""
    folder = fresh(template)
    seen = folder.with_suffix(".log")
    run(scenario, folder, before, LD_PRELOAD=library, FAIL_SEEN=str(seen))
    count = int(seen.read_text())
    seen.unlink()
    shutil.rmtree(folder)
    for at in range(1, count + 1, -(-count // 24) if is_quick else 1):
        yield from ((("allocation", at), fault) for fault in ([random.choice([*FAILING])] if is_quick else FAILING))


def main():
    global program, library
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--memory", metavar="LIBRARY")
    parser.add_argument("--only", default="")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    args = parser.parse_args()
    program, library = (str(pathlib.Path(path or "").resolve()) for path in (args.program, args.memory))
    can_trace = shutil.which("strace") and subprocess.run(["strace", "-qq", "-o", os.devnull, program, "--version"],
                                                          stdout=subprocess.DEVNULL, check=False).returncode == 0
    if not args.memory and not can_trace:
        print("skipped: no strace, or it may not trace here")
        sys.exit(77)
    template = pathlib.Path(tempfile.mkdtemp(prefix="faults-"))
    write_inputs(program, template)
    before = read_files(template)
    jobs, seed = [], int(os.environ.get("ATTN_TEST_SEED", "1"))
    random.seed(seed)
    for name, words, lines in SCENARIOS + (OF_MEMORY if args.memory else ()):
        if args.only not in name:
            continue
        scenario = Scenario(name, words.replace("--jobs 1", "--jobs 3" if args.memory else "--jobs 1").split(),
                            set(lines.split()))
        folder = fresh(template)
        whole = run(scenario, folder, before)
        shutil.rmtree(folder)
        faults = allocations_of(scenario, template, before, args.quick) if args.memory else [
            (call, fault) for call in calls_of(scenario, template, before) for fault in ERRORS[call[0]] + SIGNALS]
        jobs += [(scenario, template, before, whole, *fault) for fault in faults]
    if args.quick and not args.memory and len(jobs) > QUICK:
        jobs = random.sample(jobs, QUICK)
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        problems = [p for p in pool.map(try_fault, jobs) if p]
    shutil.rmtree(template)
    print(*problems, sep="\n")
    kinds = collections.Counter(job[4][0] for job in jobs)
    print(", ".join(f"{name} {count}" for name, count in kinds.most_common()))
    print(f"{len(jobs)} faults, {len(problems)} problems; seed {seed}")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
