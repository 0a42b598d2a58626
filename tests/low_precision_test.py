"""Layers in bfloat16 and float16: PyTorch's own arrays, and generated questions in every mode.

    python3 tests/low_precision_test.py ATTN [--count N]

data/golden/low_precision.json holds layers of PyTorch's modules: parameters are equal to the bit, and so are 99 % of all
other elements, the rest within its tolerance. Generated questions have random options. `attn check`, which computes in
float64 on its own, finds every result right within its type; a result asked again has the same bytes; its numbers are of
the type in every format; every command answers or refuses by name in one line.
"""

import argparse
import json
import pathlib
import random
import subprocess
import tempfile

import wrong  # exit code 77 without NumPy
import numpy as np

from wrong.program import round_to

DATA = pathlib.Path(__file__).resolve().parent.parent / "data"
TYPES = ("bfloat16", "float16")


def numbers(array, kind):
    """The numbers of the type that decimals mean, in float64."""
    return round_to(np.array(array, dtype=np.float64).astype(np.float32), kind, np.float32).astype(np.float64)


class Attn:
    def __init__(self, program, folder):
        self.program, self.folder = program, folder

    def run(self, *words, text=None):
        return subprocess.run([self.program, *map(str, words)], input=text, capture_output=True, text=True,
                              cwd=self.folder, check=False)


def golden(attn):
    recorded = json.loads((DATA / "golden" / "low_precision.json").read_text())
    lines = "\n".join(json.dumps(case["request"]) for case in recorded["cases"])
    answers = attn.run("batch", "-", text=lines).stdout.splitlines()
    assert len(answers) == len(recorded["cases"])
    equal, total = 0, 0
    for case, answer in zip(recorded["cases"], map(json.loads, answers)):
        kind = case["request"]["dtype"]
        tolerance = recorded["tolerance"][kind]
        for name, array in case["expected"].items():
            expected, found = np.array(array), numbers(answer[name], kind)
            if name[:2] in ("W_", "b_"):
                assert (found == expected).all(), (case["request"]["id"], name)
                continue
            assert np.allclose(found, expected, atol=tolerance["atol"], rtol=tolerance["rtol"]), (answer["id"], name)
            equal += (found == expected).sum()
            total += expected.size
    assert equal >= 0.99 * total, (equal, total)
    return total


def question(rng, draw):
    """A request with random options."""
    mode = rng.choice(("self", "causal", "multihead", "cross", "sdpa", "linear"))
    kind = rng.choice(TYPES)
    tokens, width, lead = rng.randint(1, 9), rng.choice((2, 4, 6)), rng.choice(([], [], [2]))
    magnitude = rng.choice((0.1, 1, 1, 5))

    def array(*shape):
        return (draw.standard_normal(shape) * magnitude).round(3).tolist()

    asked = {"id": "q", "mode": mode, "dtype": kind, "seed": rng.randint(0, 999)}
    softmax, one_input = mode != "linear", mode in ("self", "causal", "multihead")
    if mode == "sdpa":
        heads, keys = rng.choice((1, 2, 4)), rng.randint(1, 9)
        asked |= {"query": array(2, heads, tokens, 4), "key": array(2, rng.choice((1, heads)), keys, 4)}
        asked["value"] = array(2, len(asked["key"][0]), keys, 4)
    else:
        asked |= {"inputs": array(*lead, tokens, width), "d_out": rng.choice((4, 8))}
        if mode == "cross":
            asked["context"] = array(*lead, rng.randint(1, 9), width)
        if mode == "multihead":
            asked["heads"] = rng.choice((1, 2, 4))
            if rng.random() < 0.3:
                asked["style"] = "wrapper"
    for share, key, value, applies in (
        (0.3, "qkv_bias", True, mode != "sdpa"),
        (0.2, "softcap", rng.choice((1.0, 30.0)), softmax),
        (0.2, "alibi", True, one_input),
        (0.2, "window", [rng.randint(0, 3), rng.randint(0, 3)], one_input),
        (0.2, "scale", rng.choice((0.3, 1.0, 0.125)), True),
        (0.15, "mask_method", "renormalize", softmax),
        (0.2, "dropout", rng.choice((0.1, 0.5)), softmax),
        (0.15, "sink", [0.7], softmax),
        (0.2, "rope", rng.choice(("half", "interleaved")), one_input and asked.get("heads", 1) == 1),
        (0.15, "qk_norm", True, True),
        (0.1, "top_k", 2, softmax),
        (0.1, "score_mod", "score * 0.5 + 0.1 * k", softmax),
        (0.1, "init", rng.choice(("rand", "randn", "xavier_normal", "normal,0,0.5", "trunc_normal,0,1")), mode != "sdpa"),
        (0.2, "softmax_dtype", rng.choice(("float32", kind)), softmax),
        (0.2, "accumulate", rng.choice(("float32", kind)), softmax),
        (0.3, "decay", -0.1, not softmax),
        (0.3, "beta", 0.5, not softmax),
    ):
        if applies and rng.random() < share:
            asked[key] = value
    return asked


def answers_or_refuses(ran, words):
    """One line names the flag or the command, and nothing is written; or there is an answer."""
    if ran.returncode == 0:
        return
    lines = ran.stderr.splitlines()
    assert ran.returncode in (2, 3) and len(lines) == 1 and ran.stdout == "", (words, ran)
    assert "dtype" in ran.stderr or "bfloat16" in ran.stderr or "float16" in ran.stderr, (words, ran.stderr)


def generated(attn, count, rng, draw):
    refused = 0
    for _ in range(count):
        asked = question(rng, draw)
        mode, kind = asked["mode"], asked["dtype"]
        (attn.folder / "q.json").write_text(json.dumps(asked))
        for suffix in ("json", "npz", "safetensors"):
            ran = attn.run(mode, "q.json", "--emit", "all", "-o", f"r.{suffix}")
            assert ran.returncode == 0, (asked, ran.stderr)
        text = json.loads((attn.folder / "r.json").read_text())
        stored = np.load(attn.folder / "r.npz")
        names = [name for name in text if name in stored.files]
        assert "context_vectors" in names and text["config"]["dtype"] == kind
        for name in names:
            binary = stored[name]
            if binary.dtype.kind == "V":
                binary = (binary.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
            own = np.array(text[name], dtype=object)
            own = np.where(own == "-Infinity", -np.inf, own).astype(np.float64)
            assert (numbers(own, kind) == binary.astype(np.float64)).all(), (asked, name)
        suffix = rng.choice(("json", "npz", "safetensors"))
        judged = attn.run("check", mode, "q.json", "--against", f"r.{suffix}", "--format", "json")
        assert json.loads(judged.stdout)["verdict"].startswith("right"), (asked, judged.stdout)
        again = attn.run(mode, "--config", f"r.{suffix}", "-o", "again.npz")
        assert again.returncode == 0, (asked, again.stderr)
        same = np.load(attn.folder / "again.npz")
        assert all(same[name].tobytes() == stored[name].tobytes() for name in names), (asked, suffix)
        commands = [("explain", f"r.{suffix}"), ("plot", f"r.{suffix}", "-o", "page.html"),
                    ("compare", "r.json", f"r.{suffix}", "--atol", 0, "--rtol", 0),
                    ("inspect", f"r.{suffix}"), (mode, "q.json", "--format", rng.choice(("csv", "csv-long", "torch", "table", "c", "memh"))),
                    ("partial", mode, "q.json", "--kv-range", "0:1", "-o", "part.npz"),
                    ("repro", mode, "q.json", "--to", rng.choice(("numpy", "torch", "onnx", "c")))]
        for words in commands:
            if mode == "linear" and words[0] == "partial":
                continue
            ran = attn.run(*words)
            if ran.returncode != 0 and words[0] in ("repro", "explain", "plot") and kind not in ran.stderr:
                continue  # refused for another reason than the type
            answers_or_refuses(ran, words)
            refused += ran.returncode != 0
    return refused


def fused(attn):
    """Kernels compute large questions without intermediate arrays."""
    for kind in TYPES:
        for words in (("multihead", "--heads", 4, "--d-out", 64), ("causal", "--d-out", 32, "--window", "9,0"),
                      ("linear", "--d-out", 64, "--decay", -0.1)):
            emit = "context_vectors" if words[0] == "linear" else "context_vectors,logsumexp"
            asked = (*words, "--rand", "400,48", "--seed", 3, "--dtype", kind)
            assert attn.run(*asked, "--emit", emit, "-o", "fused.npz").returncode == 0
            judged = attn.run("check", *asked, "--against", "fused.npz", "--format", "json")
            assert json.loads(judged.stdout)["verdict"] == "right within its type", judged.stdout


def overflows(attn):
    """Infinities of float16 are named once for each array; such inputs are refused."""
    asked = {"query": [[300, 300], [1, 300]], "key": [[300, 300]], "value": [[1, 2]]}
    ran = attn.run("sdpa", "-", "--dtype", "float16", "--emit", "scores,context_vectors", text=json.dumps(asked))
    assert ran.returncode == 0 and ran.stderr.count("scores[0, 0] is beyond the range of float16") == 1, ran.stderr
    assert attn.run("sdpa", "-", "--dtype", "bfloat16", text=json.dumps(asked)).stderr == ""
    for text in ("70000,1\n2,3\n", "[[70000, 1]]"):
        assert "overflows float16" in attn.run("self", "-", "--dtype", "float16", text=text).stderr
        assert attn.run("self", "-", "--dtype", "bfloat16", text=text).returncode == 0


def texts(attn):
    """Numbers that are printed with few digits have the question's type; shortest decimals of float32 are exact."""
    def is_right(asked, text):
        (attn.folder / "t.txt").write_text(text)
        return attn.run("check", *asked, "--against", "t.txt").returncode == 0

    for kind in TYPES:
        asked = ("causal", "--example", "journey", "--d-out", 2, "--dtype", kind)
        for form in (("--format", "torch"), ("--precision", 3, "--bare")):
            assert is_right(asked, attn.run(*asked, *form).stdout), (kind, form)
    wrong_texts = 0
    for seed in range(40):
        asked = ("self", "--rand", "4,5", "--seed", seed)
        wrong_texts += not is_right(asked, attn.run(*asked, "--emit", "W_query,W_key,W_value", "--bare").stdout)
    assert wrong_texts <= 4, wrong_texts  # 8 decimals may be those of numbers that were rounded


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("attn")
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        attn = Attn(str(pathlib.Path(args.attn).resolve()), pathlib.Path(folder))
        compared = golden(attn)
        overflows(attn)
        texts(attn)
        fused(attn)
        refused = generated(attn, args.count, random.Random(args.seed), np.random.default_rng(args.seed))
    print(f"{compared} elements of PyTorch's, {args.count} questions, {refused} commands refused by name")


if __name__ == "__main__":
    main()
