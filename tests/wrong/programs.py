"""What the programs that judge generated cases share: their words, attn's answers, and the cases that are kept."""

import argparse
import json
import multiprocessing
import pathlib
import shlex
import shutil
import subprocess


def words_of(count):
    """A parser of ATTN [--count N] [--seed 1]."""
    parser = argparse.ArgumentParser()
    parser.add_argument("attn", type=lambda path: str(pathlib.Path(path).resolve()))
    parser.add_argument("--count", type=int, default=count)
    parser.add_argument("--seed", type=int, default=1)
    return parser


def words_of_cases(count):
    """Also of what `answers_of_cases` and `keep` take."""
    parser = words_of(count)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--case", type=int, help="this case alone")
    parser.add_argument("--dump", help="a folder for the files of the cases that are not as they should be")
    return parser


def answers_of_cases(options, run_case):
    """What `run_case((options, index))` returns, case by case."""
    indices = range(options.count) if options.case is None else [options.case]
    with multiprocessing.Pool(options.jobs) as pool:
        yield from pool.imap(run_case, [(options, i) for i in indices])


def judged(command, folder, timeout=None):
    """The answer of an `attn check` as JSON, empty where it has none; and its error."""
    ran = subprocess.run([*command, "--format", "json"], capture_output=True, text=True, cwd=folder, timeout=timeout)
    return json.loads(ran.stdout) if ran.returncode in (0, 1) else {}, ran.stderr.strip()


def keep(options, index, folder, command, about, answer):
    """The files of a case, what it is, and the answer."""
    kept = pathlib.Path(options.dump) / f"case-{index}"
    shutil.rmtree(kept, ignore_errors=True)
    shutil.copytree(folder, kept)
    (kept / "about.txt").write_text(f"{shlex.join(map(str, command))}\n{about}\n")
    (kept / "answer.json").write_text(json.dumps(answer, indent=1))
