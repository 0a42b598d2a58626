"""Searches the causes of generated wrong results with `attn check --search`.

    python3 tests/search_cases.py ATTN [--count 2000] [--seed 1] [--jobs 2] [--case N] [--dump DIR]

The results come from tests/wrong, a program of its own. Of each it is known what is wrong: one
departure from a convention, or two. Each case is one of

    found            a match with these conventions
    another          other matches, each computed again: by attn with their flags, or by tests/wrong
    right            the verdict is right, or right within the type
    missed           no match, or none that is these and that can be computed again
    false            a match that is refuted: computed again, it gives other numbers
    error            attn does not answer

Every twentieth result is damaged in a way that no convention explains: a match is false.
"""

import collections
import dataclasses
import itertools
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import time

import wrong  # exit code 77 without NumPy
import numpy as np

from wrong.cases import arrays_of, error_of, make_case, with_causes
from wrong.departures import ALTERNATIVES
from wrong.files import read_npz
from wrong.program import Program
from wrong.programs import answers_of_cases, judged, keep, words_of_cases

OUTCOMES = ("found", "another", "right", "missed", "false", "error")
MOST_CLAIMS = 6  # that are computed again
SECONDS = 60


def largest_error(arrays, others):
    return max((error_of(array, others[name]) for name, array in arrays.items()), default=0.0)


def limit_of(answer):
    """The error, relative to the largest number, up to which a recomputed array confirms a match."""
    types = {array["type"] for array in answer["arrays"]}
    return 0.1 if "bfloat16" in types else 0.05 if "float16" in types else 2e-4


def confirmed_by_flags(case, folder, options, match, limit):
    """Whether attn with the flags of the match gives the case's arrays."""
    flags = [word for change in match["changes"] for word in shlex.split(change["flag"])]
    asked = case.question.flags()
    dtype = [] if case.question.dropout else ["--dtype", "float64"]  # another type draws another dropout mask
    while True:
        ran = subprocess.run([options.attn, case.question.mode, "request.json", *asked, *dtype, *flags, "--emit",
                              ",".join(case.arrays), "-o", "again.npz"], capture_output=True, text=True, cwd=folder)
        idle = re.match(r"attn: error: (--[a-z-]+)\b.*: requires ", ran.stderr)
        if not idle or idle[1] not in asked:
            break
        at = asked.index(idle[1])  # it had an effect only with what the match changes
        del asked[at : at + 2]
    if ran.returncode:
        return False, ran.stderr.strip()
    error = largest_error(case.arrays, read_npz(folder / "again.npz"))
    return error < limit, f"relative error {error:.1e} with {' '.join(flags)}"


def confirmed_by_departures(case, match, limit):
    """Whether departures of the same conventions give the case's arrays."""
    conventions = [change["convention"] for change in match["changes"]]
    choices = [[d for f in ALTERNATIVES.values() for d in f(case.question) if c == d.convention or c in d.also]
               for c in conventions]
    right, best = Program.of(case.question), np.inf
    if "precision" in conventions: limit = max(limit, 1e-2)
    for causes in itertools.islice(itertools.product(*choices), 4000):
        try:
            arrays = arrays_of(case.question, with_causes(right, causes), np.float64, list(case.arrays))
        except (ValueError, TypeError, IndexError):  # changes that cannot be combined
            continue
        error = largest_error(case.arrays, arrays)
        best = min(best, error)
        if error < limit:
            return True, ""
    return False, f"departures of {', '.join(conventions)} are off by {best:.1e}"


def names_the_causes(match, causes):
    """Whether the conventions of a match are those of the causes."""
    if len(match["changes"]) != len(causes):
        return False
    names = [change["convention"] for change in match["changes"]]
    return any(all(name == cause.convention or name in cause.also for name, cause in zip(names, order))
               for order in itertools.permutations(causes))


def outcome_of(case, answer, folder, options):
    """An outcome, and why."""
    if answer["verdict"] != "wrong":
        right = arrays_of(case.question, Program.of(case.question), np.float64, list(case.arrays))
        off = f"{answer['verdict']}, relative error {largest_error(case.arrays, right):.1e}"
        return "right" if case.causes else "missed", off
    matches = answer["matches"]
    named = [m for m in matches if case.causes and names_the_causes(m, case.causes)]
    others = [m for m in matches if m not in named]
    if not matches:
        return ("missed" if case.causes else "found"), "no match"
    doubtful, limit = [], limit_of(answer)
    # An operand in transposed axes is not wrong.
    permuted = {array["name"] for array in answer["arrays"] if array["axes"] and array["verdict"] != "wrong"}
    case = dataclasses.replace(case, arrays={n: a for n, a in case.arrays.items() if n not in permuted})
    for match in (named + others)[:MOST_CLAIMS]:
        said = " and ".join(f"{c['convention']} {c['found']}" for c in match["changes"])
        if all(change["flag"] for change in match["changes"]):
            is_confirmed, why = confirmed_by_flags(case, folder, options, match, limit)
            if not is_confirmed:
                return "false", f"{said}: {why}"
        elif match in others:
            is_confirmed, why = confirmed_by_departures(case, match, limit)
            if not is_confirmed:
                doubtful.append(f"{said}: {why}")
    if named:
        return "found", ""
    if doubtful and len(doubtful) == len(others[:MOST_CLAIMS]):
        return ("missed" if case.causes else "false"), "; ".join(doubtful)
    return "another", ""


def run_case(task):
    options, index = task
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        case, file_kind = make_case(options.seed, index, options.attn, folder)
        command = case.command(options.attn, folder, file_kind) + ["--search"]
        began, answer, took = time.monotonic(), {}, SECONDS
        try:
            answer, error = judged(command, folder, SECONDS)
            took = time.monotonic() - began
            outcome, why = outcome_of(case, answer, folder, options) if answer else ("error", error)
        except subprocess.TimeoutExpired:
            outcome, why = "error", f"more than {SECONDS} seconds"
        if options.dump and (outcome in ("missed", "false", "error", "right") or options.case is not None):
            about = f"causes: {causes_in_words(case)}\n{outcome}: {why}"
            keep(options, index, folder, command, about, answer)
    conventions = [c.convention for c in case.causes] or ["(damaged)"]
    if took > 10:
        why += f" after {took:.0f} seconds"
    about = f"{index} {case.question.mode} {causes_in_words(case)}; {case.kind} {', '.join(case.arrays)}"
    return conventions, outcome, f"{about}: {outcome}: {why}", took


def causes_in_words(case):
    return " and ".join(f"{c.convention} ({c.label})" for c in case.causes) or f"damaged ({case.note})"


def print_table(counts):
    print(f"{'':16}{'cases':>8}" + "".join(f"{o:>8}" for o in OUTCOMES))
    for row in counts:
        total = sum(counts[row].values())
        print(f"{row:16}{total:8}" + "".join(f"{counts[row][o]:8}" for o in OUTCOMES))


def main():
    options = words_of_cases(2000).parse_args()
    counts = {name: collections.Counter() for name in [*ALTERNATIVES, "(damaged)"]}
    counts |= {f"changes: {n + 1}": collections.Counter() for n in range(2)}
    counts["all"] = collections.Counter()
    times, lines = [], []
    for conventions, outcome, line, took in answers_of_cases(options, run_case):
        times.append(took)
        for name in set(conventions):
            counts[name][outcome] += 1
        if conventions != ["(damaged)"]:
            counts[f"changes: {len(conventions)}"][outcome] += 1
            counts["all"][outcome] += 1
        if outcome not in ("found", "another") or options.case is not None:
            lines.append(line)
    for line in lines:
        print(line)
    print_table({name: count for name, count in counts.items() if count})
    times.sort()
    print(f"seconds: median {times[len(times) // 2]:.2f}, longest {times[-1]:.2f}")
    every, damaged = counts["all"], counts["(damaged)"]
    good = every["found"] + every["another"] + every["right"]
    false = every["false"] + damaged["false"]
    print(f"{good} of {sum(every.values())} found or indistinguishable; {false} false matches of "
          f"{sum(every.values()) + sum(damaged.values())} results; seed {options.seed}")
    sys.exit(1 if false or damaged["missed"] or good < 0.99 * sum(every.values()) or damaged["error"] else 0)


if __name__ == "__main__":
    main()
