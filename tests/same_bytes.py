#!/usr/bin/env python3
"""Runs two programs on the same command lines and shows every byte that differs.

    python3 tests/same_bytes.py OLD NEW [--quick] [--only TEXT] [--jobs N]

OLD and NEW are two builds of attn. Each case of lines is one shell line; both programs run
it with the same standard input in the same empty folder, from which `data` leads to the project's
data and `made` to files that OLD made before. Standard output, standard error, exit code and every
file that is left must be the same. Exit code 1 where something differs; the folder is kept then,
so that the lines shown can be pasted. Needs the standard library only.

--quick takes an even sample of each group of cases, for a minute on one core; --only TEXT the cases
whose group or line has TEXT. OLD against OLD must show nothing: no line may depend on the time, on an
address or on which thread is first.
"""
import argparse
import hashlib
import itertools
import multiprocessing
import os
import shlex
import shutil
import signal
import stat
import sys
import tempfile
import time

sys.dont_write_bytecode = True
import lines  # noqa: E402

SECONDS = 300  # for one line, then it is ended and counts as a difference
SHOWN = 30  # differences
MEBIBYTE = 1 << 20


# ---- one line, run once ---------------------------------------------------------------------

def read(path):
    """A file's bytes, or where they are many a few of them and their hash."""
    with open(path, "rb") as file:
        if os.fstat(file.fileno()).st_size <= MEBIBYTE:
            return file.read()
        digest, start = hashlib.blake2b(), file.read(1 << 10)
        digest.update(start)
        while block := file.read(MEBIBYTE):
            digest.update(block)
        return start + b"... blake2b " + digest.hexdigest().encode()


def left_in(folder):
    """What a line left: name to (type and permissions, bytes)."""
    left = {}
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        mode = os.lstat(path).st_mode
        if stat.S_ISLNK(mode):
            if name not in ("data", "made"):
                left[name] = (mode, os.readlink(path).encode())
        elif stat.S_ISDIR(mode):
            left[name] = (mode, b"")
            left.update((f"{name}/{under}", what) for under, what in left_in(path).items())
        else:
            left[name] = (mode, read(path) if stat.S_ISREG(mode) else b"")
    return left


def clear(folder):
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        elif name not in ("data", "made"):
            os.unlink(path)


def outcome(case, side, streams):
    """side: the folder that holds `attn`; runs in the current folder."""
    clear(".")
    stdin, out, err = (os.path.join(streams, name) for name in ("stdin", "stdout", "stderr"))
    with open(stdin, "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(case.stdin)
    write = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    pid = os.posix_spawn(
        "/bin/sh", ["sh", "-c", case.line], {"PATH": f"{side}:/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C"},
        file_actions=[(os.POSIX_SPAWN_OPEN, 0, stdin, os.O_RDONLY, 0),
                      (os.POSIX_SPAWN_OPEN, 1, out, write, 0o600),
                      (os.POSIX_SPAWN_OPEN, 2, err, write, 0o600)], setpgroup=0)
    signal.signal(signal.SIGALRM, lambda *_: os.killpg(pid, signal.SIGKILL))
    signal.alarm(SECONDS)
    _, status = os.waitpid(pid, 0)
    signal.alarm(0)
    found = {"exit code": (0, str(os.waitstatus_to_exitcode(status)).encode()),
             "standard output": (0, read(out)), "standard error": (0, read(err))}
    found.update((f"file {name}", what) for name, what in left_in(".").items())
    return found


# ---- one line, run twice ---------------------------------------------------------------------

def shown(what):
    return "nothing" if what is None else what.decode(errors="backslashreplace")[:160]


def first_difference(name, old, new):
    """One line of text on how two (mode, bytes) differ."""
    if old is None or new is None:
        return f"{name}: only {'the new' if old is None else 'the old'} program leaves it"
    if old[1] == new[1]:
        return f"{name}: permissions {oct(old[0])}, then {oct(new[0])}"
    lines = itertools.zip_longest(old[1].split(b"\n"), new[1].split(b"\n"))
    number, (before, after) = next((n, pair) for n, pair in enumerate(lines, 1) if pair[0] != pair[1])
    if before is not None and after is not None:
        same = len(os.path.commonprefix([before, after]))
        if same > 80:
            before, after = before[same - 40:], after[same - 40:]
    return f"{name}, line {number}\n      old: {shown(before)}\n      new: {shown(after)}"


def set_up(folder):
    """A worker's own folder to run lines in, and another for their streams."""
    number = multiprocessing.current_process()._identity or (0,)
    work, set_up.streams = (os.path.join(folder, f"{name}{number[0]}") for name in ("work", "streams"))
    set_up.folder = folder
    for path in (work, set_up.streams):
        os.makedirs(path, exist_ok=True)
    os.chdir(work)
    for name in ("data", "made"):
        if not os.path.islink(name):
            os.symlink(os.path.join("..", name), name)


def compare(case):
    """Text on how the two programs differ on one case, empty where they do not, and the seconds it took."""
    start = time.monotonic()
    old, new = (outcome(case, os.path.join(set_up.folder, side), set_up.streams) for side in ("old", "new"))
    if old == new:
        return "", time.monotonic() - start
    names = list(old) + [name for name in new if name not in old]
    paste = case.line if not case.stdin else f"printf %s {shlex.quote(case.stdin)} | {case.line}"
    text = [f"  {paste}"] + ["    " + first_difference(name, old.get(name), new.get(name))
                             for name in names if old.get(name) != new.get(name)]
    return "\n".join(text), time.monotonic() - start


def state(folder):
    return {os.path.join(root, name): os.lstat(os.path.join(root, name)).st_mtime_ns
            for root, _, names in os.walk(folder) for name in names}


def run(options):
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    folder = tempfile.mkdtemp(prefix="same_bytes.")
    shutil.copytree(os.path.join(root, "data"), os.path.join(folder, "data"))
    for side, program in (("old", options.old), ("new", options.new)):
        os.mkdir(os.path.join(folder, side))
        os.symlink(os.path.abspath(program), os.path.join(folder, side, "attn"))
    lines.make_files(folder, os.path.dirname(os.path.abspath(__file__)))
    before = state(folder)
    start, done, different = time.monotonic(), 0, 0
    cases = lines.cases(folder, root, options.quick)
    if options.only:
        cases = [case for case in cases if options.only in case.group or options.only in case.line]
    groups = {}
    with multiprocessing.Pool(options.jobs, set_up, [folder]) as pool:
        for case, (text, seconds) in zip(cases, pool.imap(compare, cases, 8)):
            count = groups.setdefault(case.group, [0, 0, 0.0])
            count[0], count[2], done = count[0] + 1, count[2] + seconds, done + 1
            if text:
                count[1], different = count[1] + 1, different + 1
                if different <= SHOWN:
                    print(f"{case.group}:\n{text}", flush=True)
    after = state(folder)
    touched = [path for path, when in before.items() if after.get(path) != when]
    for group, (count, wrong, seconds) in groups.items():
        print(f"{group:10} {count:6} cases, {wrong} differ; {seconds:.1f} s")
    print(f"{done} cases, {different} differ; {time.monotonic() - start:.0f} s")
    if touched:
        print("a program wrote where it may not:", *touched)
    if different == 0 and not touched:
        shutil.rmtree(folder)
        return 0
    print(f"cd {folder}/work1 && PATH=../old:$PATH  # or ../new; then paste a line")
    return 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("old", help="a build of attn from before a change")
    parser.add_argument("new", help="and one from after it")
    parser.add_argument("--quick", action="store_true", help="a sample of the cases, for a minute")
    parser.add_argument("--only", default="", metavar="TEXT", help="cases whose group or line has TEXT")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="lines at the same time (default 1)")
    return run(parser.parse_args())


if __name__ == "__main__":
    sys.exit(main())
