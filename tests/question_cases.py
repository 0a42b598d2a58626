"""Compares attn's float64 results with those of tests/wrong, over generated questions.

    python3 tests/question_cases.py ATTN [--count 2000] [--seed 1]
"""

import json
import pathlib
import random
import subprocess
import sys
import tempfile

import wrong  # exit code 77 without NumPy
import numpy as np

from wrong.program import Program, run, shaped
from wrong.programs import words_of
from wrong.question import random_question

ARRAYS = ("queries", "keys", "values", "scores", "scaled_scores", "capped_scores", "biased_scores",
          "weights_before_dropout", "attention_weights", "logsumexp", "context_vectors", "head_outputs",
          "present_key", "present_value")


def numbers(listed):
    return np.array(listed, dtype=object).astype(np.float64)


def record(q, folder, index):
    """A record of attn batch."""
    (folder / str(index)).mkdir()
    q.write(folder / str(index))
    request = json.loads((folder / str(index) / "request.json").read_text())
    return {**request, "id": index, "mode": q.mode, **q.settings(f"{index}/weights.npz")}


def difference(q, answer):
    """What differs from NumPy, or nothing."""
    if q.dropout:
        mask = numbers(answer["dropout_mask"])
        q.dropout_mask = mask.reshape(q.entries, q.heads, q.queries, q.keys)
    arrays = run(q, Program.of(q))
    for name in ARRAYS:
        if name not in answer:
            continue
        theirs, ours = numbers(answer[name]), shaped(q, name, arrays[name])
        if theirs.shape != ours.shape:
            return f"{name}: shapes {theirs.shape} and {ours.shape}"
        if (np.isfinite(theirs) != np.isfinite(ours)).any():
            return f"{name}: one is infinite"
        finite = np.isfinite(ours)
        if not np.allclose(theirs[finite], ours[finite], rtol=1e-12, atol=1e-12):
            return f"{name}: largest difference {np.abs(theirs[finite] - ours[finite]).max()}"
    return ""


def main():
    options = words_of(2000).parse_args()

    wrong, refused = [], {}
    questions = [random_question(random.Random(f"{options.seed}/{i}")) for i in range(options.count)]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        records = [record(q, folder, i) for i, q in enumerate(questions)]
        (folder / "records.ndjson").write_text("".join(json.dumps(r) + "\n" for r in records))
        ran = subprocess.run([options.attn, "batch", "records.ndjson", "--dtype", "float64", "--emit",
                              "all", "--bare", "-j", "2"], capture_output=True, text=True, cwd=folder)
    answers = [json.loads(line) for line in ran.stdout.splitlines()]
    assert len(answers) == options.count, ran.stderr
    for q, given, answer in zip(questions, records, answers):
        if "error" in answer:
            refused.setdefault(str(answer["error"])[:100], []).append(given["id"])
            continue
        said = difference(q, answer)
        if said:
            wrong.append((given, said))
    for given, said in wrong[:10]:
        print(given["id"], q.mode, said)
    for error, ids in refused.items():
        print(f"refused {len(ids)}, such as {ids[0]}: {error}")
    print(f"{options.count} questions, {len(wrong)} differ, {sum(map(len, refused.values()))} refused")
    sys.exit(1 if wrong or refused else 0)


if __name__ == "__main__":
    main()
