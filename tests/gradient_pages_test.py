"""Gradients in pages and files: `attn explain --backward` against the gradients of the same question, and results with a
loss read from every format.

    python3 tests/gradient_pages_test.py ATTN
"""

import json
import pathlib
import re
import tempfile

from support.asked import check, rng, run
from wrong.question import random_question  # exit code 77 without NumPy

import numpy as np


def numbers(text):
    return np.array([float(x) for x in text.split(",")])


def check_page(page, result, q, batch, head, token, has_formula, words):
    def gradient(name):
        x = np.array(result[name], dtype=float)
        x = x[batch] if q.batch else x
        return x[head * len(x) // q.heads] if q.has_heads_axis else x

    def near(a, b):
        check(np.allclose(a, b, atol=2e-9), words, a, b)

    check("nan" not in page.split("Check:")[0], words, page)
    flat = re.sub(r"\s+", " ", page)
    near(numbers(re.search(r"grad_head_outputs\S*(?: \d+\]\S*)* = \[([^]]*)\]", flat)[1]), gradient("grad_head_outputs")[token])
    near(numbers(re.search(r"grad_queries[^=]*\[%d\] = \[([^]]*)\]" % token, flat)[1]), gradient("grad_queries")[token])
    for name, found in zip(("grad_keys", "grad_values"), re.findall(r"all queries = \[([^]]*)\]", flat)):
        key = int(re.search(r"To the gradient of key (\d+)", flat)[1]) - q.past
        near(numbers(found), gradient(name)[key])
    key, by_score = re.search(r"key (\d+): \S+\*\(\S+ - \S+\) = (\S+)", flat).groups()
    if not has_formula: near(float(by_score), gradient("grad_capped_scores")[token][int(key)])


def check_pages(folder, count=60):
    pages = 0
    while pages < count:
        q = random_question(rng, longest=8)
        q.write(folder)
        flags = q.flags("weights.npz") + ["--dtype", "float64", "--backward"]
        formula = rng.choice([[], [], ["--score-mod", "tanh(score) + 0.1 * k"], ["--prob-mod", "sqrt(p)"]])
        flags += formula + rng.choice([[], ["--qk-norm"]]) + rng.choice([[], ["--loss", "mean"]])
        ran = run(q.mode, "request.json", *flags, "--emit", "all", code=None, cwd=folder)
        if ran.returncode: continue
        result = json.loads(ran.stdout)
        (folder / "r.json").write_text(ran.stdout)
        at = [rng.randrange(n) for n in (q.entries, q.heads, q.queries)]
        chosen = ["--precision", 9, "--full"]
        for flag, index in zip(("--batch", "--head", "--token"), at): chosen += [flag, index]
        for words in ([q.mode, "request.json", *flags], ["r.json"]):
            page = run("explain", *words, *chosen, cwd=folder).stdout
            check_page(page, result, q, *at, "--score-mod" in formula, words + chosen)
            pages += 1
    return pages


def check_formats(folder):
    (folder / "i.json").write_text("[[1, 2], [3, 4], [5, 6]]")
    for loss in ([], ["--loss", "mean", "--dtype", "float64"]):
        asked = ["self", "i.json", "--d-out", 2, "--seed", 1, "--backward", *loss, "--emit", "all"]
        run(*asked, "-o", "r.json", cwd=folder)
        for name in ("r.npz", "r.safetensors", "r/"):
            run(*asked, "-o", name, *(["--format", "folder"] if name == "r/" else []), cwd=folder)
            said = run("compare", "r.json", name, cwd=folder).stdout
            check(re.search(r"loss .* equal", said) and "differs" not in said, name, said)
        for words in (["plot", "r.json", "--array", "grad_scores"], ["inspect", "r.json"], ["explain", "r.json"],
                      ["plot", "r.json", "-o", "p.html"], [*asked, "--plot", "p.svg", "--plot-array", "all"]):
            run(*words, cwd=folder)
        for name in ("csv", "tsv", "table", "npy", "torch", "c", "memh"): run(*asked[:-2], "--format", name, "-o", "o." + name, cwd=folder)
        again = run("self", "--config", "r.json", cwd=folder, stdin=open(folder / "i.json")).stdout
        check(json.loads(again)["loss"] == json.loads((folder / "r.json").read_text())["loss"], again)
    check("one axis" in run("plot", "r.json", "--array", "loss", code=2, cwd=folder).stderr, "loss")


def check_drawn(folder):
    """Pages of inputs that are drawn after planning."""
    for source in (["--rand", "3,2"], ["--randn", "2,3,2"], ["--text", "a b c", "--embed-dim", 2]):
        asked = ["self", *source, "--d-out", 2, "--backward"]
        result = json.loads(run(*asked, "--emit", "all", "-o", "-", cwd=folder).stdout)
        (folder / "r.json").write_text(json.dumps(result))
        row = "grad_W_query[0] = [" + ", ".join("%.4f" % x for x in result["grad_W_query"][0]) + "]"
        for words in (asked, ["r.json"]):
            check(row in run("explain", *words, cwd=folder).stdout, words, row)


with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    print(check_pages(folder), "pages")
    check_formats(folder)
    check_drawn(folder)
