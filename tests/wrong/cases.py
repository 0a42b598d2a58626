"""Wrong results of questions, each with its causes."""

import dataclasses
import random
import subprocess

import numpy as np

from .departures import ALTERNATIVES, NEEDS
from .files import read_npz, write_arrays
from .program import Program, run, shaped
from .question import random_question

ARRAYS = ("queries", "keys", "values", "scores", "scaled_scores", "capped_scores", "biased_scores",
          "weights_before_dropout", "attention_weights", "logsumexp", "head_outputs", "context_vectors")
MASKED_LATER = ("biased_scores", "weights_before_dropout", "logsumexp")
UNWANTED = {"masked_value": ("renormalize", "kv_lengths"), "softmax_axis": ("sink", "renormalize", "window", "kv_lengths", "boolean_mask", "additive_mask", "padding"),
            "softcap_order": ("renormalize",), "precision": ("empty_rows",),
            # Which cached keys such programs take is not clear, nor what a softmax over no number is.
            "exchanged": ("cache",)}
SWITCHES = {"causal", "dropout", "rope_pairs", "sink", "softcap"}  # that a wrong program may have on as well
KINDS = ("float16", "float32", "float64")


@dataclasses.dataclass
class Case:
    question: object
    causes: list  # of Departures; empty: none that a search knows
    arrays: dict  # of the wrong program, by name
    kind: str  # the type of the arrays
    note: str = ""

    def command(self, attn, folder, file_kind):
        """Writes the files, and returns attn's command."""
        self.question.write(folder)
        theirs = write_arrays(folder, file_kind, {n: a.astype(self.kind) for n, a in self.arrays.items()})
        return [attn, "check", self.question.mode, "request.json", *self.question.flags(), "--against", theirs]


def tolerance(kind, causes=()):
    """Relative to the largest number of an array: a difference that no rounding in the type makes."""
    if kind == "float16": return 0.05
    return 5e-5 if any(c.convention == "precision" for c in causes) else 1e-3


def error_of(array, other):
    """The largest error relative to the largest number; infinite where other numbers are finite."""
    other = np.asarray(other, np.float64)
    if array.shape != other.shape or not np.array_equal(np.isfinite(array), np.isfinite(other)):
        return np.inf
    array, other = array[np.isfinite(array)], other[np.isfinite(other)]
    return np.abs(array - other).max() / max(np.abs(other).max(), 1e-30) if array.size else 0.0


def departs(arrays, others, limit):
    """Names of the arrays that differ by more than the limit."""
    return [name for name, array in arrays.items() if error_of(array, others[name]) > limit]


def known_arrays(q, causes):
    """Those whose meaning the causes leave alone."""
    changed = {field for cause in causes for field in cause.changes}
    rounded = {what for cause in causes for what in cause.changes.get("rounded", {})}
    names = [n for n in ARRAYS if n not in MASKED_LATER or not (q.renormalize or "blocking" in changed)]
    if "order" in changed:
        names = [n for n in names if n not in ("scaled_scores", "capped_scores", "biased_scores", "logsumexp")]
    if "axis" in changed:
        names = [n for n in names if n != "logsumexp"]
    if "weights" in rounded:
        names = [n for n in names if n != "weights_before_dropout"]
    return names


def arrays_of(q, program, dtype, names):
    made = run(q, program, dtype)
    return {name: np.array(shaped(q, name, made[name]), np.float64) for name in names}


def with_causes(program, causes):
    for cause in causes:
        program = cause.apply(program)
    return program


def chosen_names(rng, known):
    def some(names):
        return [n for n in known if n in names]

    kind = rng.random()
    if kind < 0.35: return ["context_vectors"]
    if kind < 0.6: return some(["attention_weights", "context_vectors"])
    if kind < 0.7: return ["attention_weights"]
    if kind < 0.85: return some(["context_vectors", rng.choice(known)])
    return some(rng.sample(known, min(len(known), rng.randint(2, 4))))


def draw_causes(rng, q, conventions):
    causes = []
    for convention in conventions:
        alternatives = ALTERNATIVES[convention](q)
        if not alternatives:
            return None
        causes.append(rng.choice(alternatives))
    fields = [f for c in causes for f, value in c.changes.items() if not isinstance(value, (dict, frozenset))]
    return causes if len(fields) == len(set(fields)) else None


def fill_dropout_mask(q, attn, folder):
    """The mask that the question draws, with its factor in float64."""
    q.write(folder)
    subprocess.run([attn, q.mode, "request.json", *q.flags(), "--emit", "dropout_mask", "-o", "mask.npz"],
                   check=True, cwd=folder, capture_output=True)
    is_kept = read_npz(folder / "mask.npz")["dropout_mask"] > 0
    q.dropout_mask = is_kept.reshape(q.entries, q.heads, q.queries, q.keys) / (1 - q.dropout)


def wrong_case(rng, conventions, attn, folder):
    """A case with one departure of each convention, each of which changes the result by itself.

    None where no such question is found, which happens only to pairs.
    """
    for _ in range(300 if len(conventions) == 1 else 40):
        wanted = {part for c in conventions for part in NEEDS.get(c, ())}
        unwanted = {part for c in conventions for part in UNWANTED.get(c, ())}
        for convention in sorted(SWITCHES & set(conventions)):
            if rng.random() < 0.25:
                wanted -= set(NEEDS[convention])
                unwanted |= set(NEEDS[convention])
        q = random_question(rng, wanted, unwanted - wanted)
        if q.dropout:
            fill_dropout_mask(q, attn, folder)
        causes = draw_causes(rng, q, conventions)
        if causes is None:
            continue
        has_precision = any(c.convention == "precision" for c in causes)
        kind = "float32" if has_precision else rng.choices(KINDS, [0.1, 0.8, 0.1])[0]
        dtype = np.float64 if kind == "float64" or kind == "float32" and rng.random() < 0.3 else np.float32
        limit = tolerance(kind, causes)
        known = known_arrays(q, causes)
        right = Program.of(q)
        wrong = arrays_of(q, with_causes(right, causes), dtype, known)
        without = [arrays_of(q, with_causes(right, causes[:i] + causes[i + 1:]), dtype, known)
                   for i in range(len(causes))]
        names = set(chosen_names(rng, known)) | {n for c in causes for n in c.arrays}
        shown = True
        for arrays in without + [arrays_of(q, right, dtype, known)]:
            visible = departs(wrong, arrays, limit)
            if visible and not names & set(visible):
                names.add(rng.choice(visible))
            shown = shown and bool(visible)
        if shown and all(np.abs(wrong[n][np.isfinite(wrong[n])]).max(initial=0) < 6e4 or kind != "float16" for n in names):
            return Case(q, causes, {n: wrong[n] for n in known if n in names}, kind)
    if len(conventions) == 1:
        raise RuntimeError(f"no question shows a departure of {conventions[0]}")
    return None


def damaged_case(rng, attn, folder):
    """A result that no convention explains."""
    while True:
        q = random_question(rng)
        if q.dropout:
            fill_dropout_mask(q, attn, folder)
        names = chosen_names(rng, known_arrays(q, []))
        arrays = arrays_of(q, Program.of(q), np.float32, names)
        right = {name: array.copy() for name, array in arrays.items()}
        draws = np.random.RandomState(rng.randrange(2**32))
        name = rng.choice(names)
        array = arrays[name]
        damage = rng.choice(["one number", "noise", "cubed", "squared", "columns rolled", "other numbers"])
        finite = np.isfinite(array)
        size = np.abs(array[finite]).max(initial=0)
        if damage == "one number":
            at = tuple(draws.randint(n) for n in array.shape)
            array[at] += 0.1 * size
        elif damage == "noise":
            array += 0.02 * size * draws.standard_normal(array.shape)
        elif damage == "cubed":
            arrays[name] = array**3 / size**2
        elif damage == "squared":
            arrays[name] = array * np.abs(array) / size
        elif damage == "columns rolled":
            arrays[name] = np.roll(array, 1, -1)
        else:
            arrays[name] = size * draws.standard_normal(array.shape)
        if np.isfinite(arrays[name]).all() and departs(arrays, right, 5e-3):
            return Case(q, [], arrays, "float32", damage)


def make_case(seed, index, attn, folder):
    """A case, and the format of its file. Deterministic in all arguments."""
    rng = random.Random(f"{seed}/{index}")
    if index % 20 == 19:
        return damaged_case(rng, attn, folder), "npz"
    first = list(ALTERNATIVES)[index % len(ALTERNATIVES)]
    case, changes = None, rng.randint(1, 2)
    while case is None:
        others = rng.sample([c for c in ALTERNATIVES if c != first], changes - 1)
        case = wrong_case(rng, [first, *others], attn, folder)
    kinds = ["npz"] * 6 + ["safetensors"] * 2
    if case.kind != "float16":
        kinds += ["json"] * 2
    if list(case.arrays) == ["context_vectors"]:
        kinds += ["npy"] * 3
    return case, rng.choice(kinds)
