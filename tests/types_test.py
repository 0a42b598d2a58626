"""Judges results of smaller types, and float32 results whose products have smaller factors, in their types and without
one.

    python3 tests/types_test.py ATTN

data/check holds results of PyTorch on an H100 with TF32 (`h100`), and of NumPy with factors in TF32 (`tf32`) and in
bfloat16 (`bfloat16`). Without a type each is wrong, and the report names a type in which it is right. It names none for
a wrong float32 result, however little it is off. `h100_half` has results of all of PyTorch's kernels in float16 and
bfloat16, which are right, and wrong where the question has another scale or mask. `h100_gradients` has the gradients of
these kernels in all four types.
"""

import pathlib
import sys
import tempfile

import wrong  # exit code 77 without NumPy
import numpy as np

from wrong.program import round_to
from wrong.programs import judged

DATA = pathlib.Path(__file__).resolve().parent.parent / "data" / "check"
RESULTS = (("h100", "h100_tf32", "tf32"), ("grouped", "tf32", "tf32"), ("grouped", "bfloat16", "bfloat16"))


def check(attn, question, theirs, *flags):
    answer, error = judged([attn, "check", "sdpa", DATA / f"{question}.npz", "--against", theirs, *flags], None)
    assert answer, error
    return answer


def named_type(answer):
    (finding,) = [array["finding"] for array in answer["arrays"] if array["finding"]]
    return finding.split("--type ")[1]


def half_precision(attn, folder):
    """Verdicts on the H100's results in float16 and bfloat16."""
    checked = 0
    arrays = np.load(DATA / "h100_half.npz")
    for kind in ("float16", "bfloat16"):
        for mask in ("full", "causal"):
            stem = f"{kind}.{mask}."
            question, theirs = folder / "half.npz", folder / "theirs.npz"
            np.savez(question, **{n: arrays[stem + n].astype(np.float32) for n in ("query", "key", "value")})
            scale = arrays[stem + "query"].shape[-1] ** -0.5
            for kernel in (n[len(stem):] for n in arrays.files if n.startswith(stem)):
                if kernel in ("query", "key", "value"):
                    continue
                np.savez(theirs, context_vectors=arrays[stem + kernel])
                for flags, verdict in ((("--scale", scale), "right within its type"), (("--scale", 0.8 * scale), "wrong"),
                                       (("--scale", scale, "--window", "2,2"), "wrong")):
                    searches = verdict == "wrong" and kernel == "flash" and len(flags) == 2
                    words = [attn, "check", "sdpa", question, "--causal" if mask == "causal" else "--no-causal",
                             *map(str, flags), "--type", kind, "--against", theirs, *["--search"] * searches]
                    answer, error = judged(words, None)
                    assert answer, error
                    (array,) = answer["arrays"]
                    assert array["verdict"] == verdict, (stem, kernel, flags, array)
                    if searches:
                        assert answer["matches"][0]["changes"][0]["convention"] == "scale", answer
                    if verdict != "wrong":
                        assert array["arithmetic"] in ("rounded once", "rounded at every step"), array
                        assert array["noise"] <= 1, array
                    checked += 1
    return checked


def gradients(attn, folder):
    """Verdicts on the H100's gradients; with another scale they are wrong."""
    checked = 0
    arrays = np.load(DATA / "h100_gradients.npz")

    def numbers(name):  # the words of bfloat16 are integers
        array = arrays[name]
        return (array.view(np.uint16).astype(np.uint32) << 16).view(np.float32) if array.dtype == np.int16 else array

    for kind, mask in sorted({tuple(n.split(".")[:2]) for n in arrays.files}):
        stem = f"{kind}.{mask}."
        question, theirs = folder / "question.npz", folder / "theirs.npz"
        np.savez(question, **{n: numbers(stem + n[0]).astype(np.float32)
                              for n in ("query", "key", "value", "grad_output")})
        for kernel in sorted({n.split(".")[2] for n in arrays.files if n.startswith(stem) and n.count(".") == 3}):
            np.savez(theirs, **{n: numbers(f"{stem}{kernel}.{n}") for n in ("dq", "dk", "dv")
                                if f"{stem}{kernel}.{n}" in arrays})
            words = [attn, "check", "sdpa", question, "--backward", "--against", theirs,
                     "--causal" if mask == "causal" else "--no-causal", "--type", kind]
            for flags, verdict in (((), "right within its type"), (("--scale", "0.1"), "wrong")):
                answer, error = judged([*words, *flags], None)
                assert answer and answer["verdict"] == verdict, (stem, kernel, flags, answer, error)
                checked += 1
            if kind == "tf32":
                answer, error = judged(words[:-2], None)
                assert answer["verdict"] == "wrong" and named_type(answer) == "tf32", (answer, error)
    return checked


def slightly_wrong(attn, folder):
    """float32 results with another scale: no type is named."""
    checked = 0
    for question in ("h100", "grouped"):
        operands = {n: array.astype(np.float64) for n, array in np.load(DATA / f"{question}.npz").items()}
        query, key, value = (operands[n] for n in ("query", "key", "value"))
        key, value = (np.repeat(array, query.shape[1] // key.shape[1], 1) for array in (key, value))
        for factor in (0.5, 0.8, 0.98, 0.998, 0.9995, 0.9998):
            scores = query @ key.swapaxes(-1, -2) * factor / np.sqrt(query.shape[-1])
            weights = np.exp(scores - scores.max(-1, keepdims=True))
            theirs = folder / "theirs.npz"
            np.savez(theirs, context_vectors=(weights / weights.sum(-1, keepdims=True) @ value).astype(np.float32))
            (array,) = check(attn, question, theirs)["arrays"]
            assert array["verdict"] == "wrong" and "--type" not in (array["finding"] or ""), (factor, array)
            assert array["arithmetic"] is None, array
            checked += 1
    return checked


def main():
    attn = sys.argv[1]
    checked = 0
    for question, name, kind in RESULTS:
        theirs = DATA / f"{name}.npz"
        assert check(attn, question, theirs, "--type", kind)["verdict"] == "right within its type", name
        answer = check(attn, question, theirs)
        assert answer["verdict"] == "wrong", name
        named = check(attn, question, theirs, "--type", named_type(answer))
        assert named["verdict"] == "right within its type", name
        # Another scale is in none of the bounds.
        wrong_scale = check(attn, question, theirs, "--scale", "0.3", "--type", kind)
        assert wrong_scale["verdict"] == "wrong", name
        checked += 4
    with tempfile.TemporaryDirectory() as folder:
        checked += sum(f(attn, pathlib.Path(folder)) for f in (half_precision, gradients, slightly_wrong))
        # Numbers of float32 that are stored in float64.
        operands = np.load(DATA / "grouped.npz")
        query, key, value = (operands[n] for n in ("query", "key", "value"))
        key, value = (np.repeat(array, 2, 1) for array in (key, value))
        scores = query @ key.swapaxes(-1, -2) / np.float32(np.sqrt(query.shape[-1]))
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        outputs = (weights.astype(np.float64) / weights.sum(-1, keepdims=True)) @ value.astype(np.float64)
        theirs = pathlib.Path(folder, "theirs.npz")
        np.savez(theirs, context_vectors=outputs)
        answer = check(attn, "grouped", theirs)
        assert answer["verdict"] == "wrong" and named_type(answer) == "float32", answer
        assert check(attn, "grouped", theirs, "--type", "float32")["verdict"] == "right within its type"
        # Results of bfloat16 that are stored as float32, of any magnitude.
        for magnitude in (1, 20, 300, 4000, 50000, 1e6):
            large = pathlib.Path(folder, "large.npz")
            scaled = (value[:, ::2] * magnitude).astype(np.float32)
            np.savez(large, query=query, key=key[:, ::2], value=scaled)
            np.savez(theirs, context_vectors=round_to(outputs * magnitude, "bfloat16", np.float32))
            answer = check(attn, large.with_suffix(""), theirs)
            assert answer["verdict"] == "right within its type", (magnitude, answer)
            assert answer["arrays"][0]["type"] == "bfloat16", (magnitude, answer)
            checked += 1
    print(f"{checked} verdicts")


if __name__ == "__main__":
    main()
