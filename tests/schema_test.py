#!/usr/bin/env python3
"""Every kind of document that attn writes fits its schema in data/schema, and no wrong one does.

    python3 tests/schema_test.py ATTN ATTN_MAKE_SCHEMA

Documents: modes x formats x arrays x ways of showing infinities, batches with good, failing and priced
records, comparisons, checks, inspections, saved weights, and the project's own requests, which attn also has to
accept. Wrong ones: each good document with one place changed. The schema made from tables matches them. Exit code 77:
no python3-jsonschema 4.
"""
import itertools
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import zipfile

sys.dont_write_bytecode = True
from support.array_files import read_safetensors  # noqa: E402
from support.asked import ROOT, run  # noqa: E402

SCHEMAS = ROOT / "data" / "schema"
if subprocess.run(sys.argv[2], capture_output=True, check=True).stdout != (SCHEMAS / "request.json").read_bytes():
    sys.exit("schema: out of date: attn_make_schema >data/schema/request.json")
try:
    from jsonschema import Draft202012Validator
except ImportError:
    print("schema: skipped: needs python3-jsonschema 4")
    sys.exit(77)

JOURNEY = str(ROOT / "data" / "journey.csv")
OPERATOR = {"query": [[[1, 0.5]]], "key": [[[0.25, 1], [0.5, 2]]], "value": [[[1], [2]]]}
MODES = {
    "self": [JOURNEY, "--d-out", "2"],
    "causal": [JOURNEY, "--dropout", "0.5", "--window", "2"],
    "multihead": [JOURNEY, "--heads", "3", "--alibi", "--softcap", "30", "--sink", "0.5"],
    "cross": [JOURNEY, "--context", JOURNEY, "--rope", "half", "--rope-dims", "2"],
    "sdpa": ["operator.json", "--causal", "--causal-align", "top-left"],
    "linear": [JOURNEY, "--heads", "3", "--decay", "-0.1,-0.2,0", "--beta", "0.5"],
}
# Places whose members may have any name, or any value.
OPEN = {("weights", ()), ("inspection", ("members",)), ("inspection", ("lines", "kinds"))}


def bundled():
    """All schemas as definitions of one document, whatever way a validator has to find files."""

    def inside(value, name):
        if isinstance(value, list):
            return [inside(item, name) for item in value]
        if not isinstance(value, dict):
            return value
        copy = {key: inside(item, name) for key, item in value.items() if key != "$schema"}
        if "$ref" in value:
            file, _, pointer = value["$ref"].partition("#")
            copy["$ref"] = f"#/$defs/{file.removesuffix('.json') or name}{pointer}"
        return copy

    return {path.stem: inside(json.loads(path.read_text()), path.stem) for path in SCHEMAS.glob("*.json")}


DEFINITIONS = bundled()


def validator(name):
    Draft202012Validator.check_schema(DEFINITIONS[name])
    return Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": DEFINITIONS})


VALIDATORS = {name: validator(name) for name in sorted(DEFINITIONS)}


def attn(*words):
    return run(*words, code=(0, 1)).stdout


def metadata(path):
    """The JSON metadata of attn."""
    if path.endswith(".npz"):
        with zipfile.ZipFile(path) as file:
            header = file.read("__metadata__.npy")
        return header[10 + struct.unpack("<H", header[8:10])[0]:].decode()
    return read_safetensors(path)[1]["attn"]


def results():
    for at, (mode, words) in enumerate(MODES.items()):
        emits = [[], ["--emit", "all"], ["--emit", "states" if mode == "linear" else "masked_scores"]]
        # Each way of showing infinities with each choice of arrays in two of the six modes.
        for i, nonfinite in enumerate(("string", "null", "literal")):
            asked = [mode, *words, *emits[(at + i) % 3], "--nonfinite", nonfinite]
            yield "result", attn(*asked)
            yield "result", attn(*asked, "--format", "ndjson", "--dtype", "float64", "--precision", "3")
        for more in (["--pretty"], ["--token", "0"], ["--kernel", "generic"], ["--seed", "-9223372036854775808"],
                     ["--threads", "1"]):
            yield "result", attn(mode, *words, *more)
        for more in ([], ["--emit", "all"]):
            yield "bare", attn(mode, *words, *more, "--bare")
        for suffix in ("npz", "safetensors"):
            attn(mode, *words, "-o", "result." + suffix)
            yield "result", metadata("result." + suffix)
            yield "inspection", attn("inspect", "result." + suffix, "--format", "json")
        if mode != "sdpa":
            for suffix in ("json", "npz", "safetensors"):
                attn(mode, *words, "--save-weights", "w." + suffix, "--format", "none")
                yield "weights", pathlib.Path("w.json").read_text() if suffix == "json" else metadata("w." + suffix)
                yield "inspection", attn("inspect", "w." + suffix, "--format", "json")
    yield "result", attn("self", "--text", "a b a", "--emit", "all")
    for model in ("gpt2", "llama", "mistral", "qwen2", "bert", "neox"):
        path = str(ROOT / "data" / "models" / model)
        yield "result", attn("multihead", "--weights", path, "--token-ids", "1,2,3", "--emit", "all")
        yield "inspection", attn("inspect", path, "--format", "json")
        asked = ["model", path, "--token-ids", "1,2,3"]
        for more in ([], ["--layers", "-1", "--emit", "queries,hidden_states", "--head", "0"]):
            yield "result", attn(*asked, *more)
            yield "bare", attn(*asked, *more, "--bare")
            yield "cost", attn(*asked, *more, "--dry-run")
        yield "request", json.dumps(json.loads(attn(*asked, "--position-ids", "0,0,1"))["config"])
        attn(*asked, "-o", "result.npz")
        yield "result", metadata("result.npz")
    yield "result", attn("model", str(ROOT / "data" / "models" / "gpt2"), "--token-ids", "1", "--generate", "2",
                         "--emit", "all")


def records():
    """Requests of a batch; not all of them can be answered."""
    for number, (mode, more) in enumerate(itertools.product(MODES, ({}, {"emit": "all"}, {"heads": 7}, {"sede": 1}))):
        inputs = OPERATOR if mode == "sdpa" else {"inputs": [[1, 2, 3], [4, 5, 6]]}
        context = {"context": [[1, 2, 3]]} if mode == "cross" else {}
        yield {"id": number if number % 2 else f"r{number}", "mode": mode, **inputs, **context, **more}
    model = str(ROOT / "data" / "models" / "llama")
    for more in ({}, {"layers": [0], "head": [1]}, {"hidden_states": [[0.5] * 16]}, {"generate": 2}):
        tokens = {} if "hidden_states" in more else {"token_ids": [1, 2]}
        yield {"mode": "model", "model": model, **tokens, **more}
    yield {"mode": "self"}
    yield {"mode": "self", "inputs": "missing.json"}
    yield {"mode": "self", "inputs": [[1, 2], [3]]}
    yield {"mode": "self", "inputs": [[1]], "d_out": 2 ** 31, "d_k": 2 ** 31}
    yield {"mode": "causal", "inputs": [[1, 2]], "tokens": ["a"]}


def batches():
    lines = "\n".join(json.dumps(record) for record in records()) + "\nno JSON\n[[1, 2]]\n"
    pathlib.Path("requests.ndjson").write_text(lines)
    for more in ([], ["--jobs", "2", "--nonfinite", "null"], ["--bare"], ["--dry-run"]):
        out = attn("batch", "requests.ndjson", *more)
        pathlib.Path("answers.ndjson").write_text(out)
        kinds = set()
        for line in out.splitlines():
            answer = json.loads(line)
            kind = "error" if "error" in answer else answer.get("schema", "attn.bare").split(".")[1].split("/")[0]
            kinds.add(kind)
            yield kind, line
            yield "answer", line
        good = {"--dry-run": "cost", "--bare": "bare"}.get("".join(more), "result")
        assert kinds == {good, "error"}, kinds
        yield "inspection", attn("inspect", "answers.ndjson", "--format", "json")


def indexes():
    for more in ([], ["--bare"], ["--format", "safetensors", "--store", "float16", "--emit", "all"]):
        shutil.rmtree("out", ignore_errors=True)
        attn("batch", "requests.ndjson", "--out-dir", "out", "--shard", "1/2", *more)
        text = pathlib.Path("out/index-1-of-2.ndjson").read_text()
        for line in text.splitlines():
            yield "error" if "error" in json.loads(line) else "index", line
        yield "inspection", attn("inspect", "out/index-1-of-2.ndjson", "--format", "json")


def comparisons():
    attn("causal", JOURNEY, "--emit", "all", "-o", "a.json")
    attn("causal", JOURNEY, "--seed", "1", "--d-out", "2", "--dtype", "float64", "-o", "b.npz")
    pathlib.Path("nan.json").write_text("[[NaN, Infinity], [1, 0]]")
    pathlib.Path("one.json").write_text("[[1, 1], [1, 1]]")
    for a, b in itertools.product(("a.json", "b.npz"), repeat=2):
        yield "comparison", attn("compare", a, b, "--format", "json")
    for a, b in itertools.product(("nan.json", "one.json"), repeat=2):
        yield "comparison", attn("compare", a, b, "--format", "json", "--atol", "0.1", "--equal-nan")


def checks():
    operator = ["sdpa", "operator.json", "--softcap", "3"]
    attn(*operator, "--emit", "all", "-o", "theirs.npz")
    attn(*operator, "--scale", "1", "-o", "wrong.json")
    attn(*operator, "--precision", "4", "-o", "printed.json")
    pathlib.Path("nan.npy.json").write_text("[[NaN]]")
    pathlib.Path("shape.json").write_text("[[1, 2, 3]]")
    asked = ["check", *operator, "--format", "json"]
    for path in ("theirs.npz", "wrong.json", "printed.json", "nan.npy.json", "shape.json"):
        for more in ([], ["--search"], ["--atol", "1"], ["--type", "bfloat16"]):
            yield "check", attn(*asked, "--against", path, *more)
    yield "check", attn(*asked, "--against", "theirs.npz", "--against", "wrong.json", "--search")
    pathlib.Path("asked.ndjson").write_text("".join(
        json.dumps({"id": number, "mode": "self", "inputs": [[1, number]]}) + "\n" for number in (1, 2, 3)))
    pathlib.Path("answered.ndjson").write_text("".join(attn("batch", "asked.ndjson").splitlines(True)[:2]))
    for line in attn("check", "asked.ndjson", "--against", "answered.ndjson").splitlines():
        yield "error" if "error" in json.loads(line) else "check", line


def scans():
    pathlib.Path("texts.ndjson").write_text('{"token_ids":[3,1,4]}\n{"id":"x","token_ids":[1,1]}\n{"token_ids":[999]}\n')
    model = str(ROOT / "data" / "models" / "gpt2")
    for more in ([], ["--stats", "sink,key_mass"], ["--shard", "3/3"], ["--layers", "-1", "--dtype", "float64"]):
        attn("scan", model, "texts.ndjson", *more, "-o", "stats.json")
        yield "stats", pathlib.Path("stats.json").read_text()
        yield "stats", attn("merge", "stats.json")
        yield "inspection", attn("inspect", "stats.json", "--format", "json")


def parts():
    asked = ("multihead", "--example", "journey", "--heads", "3", "--seed", "3")
    for ranges in (("0:6",), ("0:2", "5:6"), ("4:5",)):
        names = [f"part{i}.json" for i in range(len(ranges))]
        for name, keys in zip(names, ranges):
            attn("partial", *asked, "--kv-range", keys, "-o", name)
            yield "part", pathlib.Path(name).read_text()
        yield "result" if ranges == ("0:6",) else "part", attn("merge", *names)


def tokens():
    folder = str(ROOT / "data" / "tokenizers" / "bert-uncased")
    for text in ("", "a b", "h\u00e9 \u4e16 \U0001f642 [SEP]"):
        for more in ([], ["--no-special-tokens"], ["--text-pair", "the"]):
            yield "tokens", attn("tokenize", folder, text, "--format", "json", *more)
    yield "tokens", attn("tokenize", folder, "--decode", "2,35,3", "--format", "ndjson")


def inspections():
    files = [path for folder in ("arrays", "models", "golden") for path in (ROOT / "data" / folder).rglob("*.*")]
    for path in [*files, *(ROOT / "data").glob("*.*")]:
        done = run("inspect", path, "--format", "json", code=None)
        if done.returncode == 0:
            yield "inspection", done.stdout


def requests():
    for record in records():
        if "sede" not in record and not ("heads" in record and record["mode"] in ("self", "causal")):
            yield "request", json.dumps(record)
    yield from (("request", line) for line in (ROOT / "data" / "requests.ndjson").read_text().splitlines())
    for case in json.loads((ROOT / "data" / "golden" / "torch.json").read_text())["cases"]:
        if "request" in case:
            yield "request", json.dumps(case["request"])


def mutated(name, document):
    """(where, document) with one place changed, which no schema may let pass."""

    def changed(path, change):
        copy = json.loads(json.dumps(document))
        place = copy
        for step in path[:-1]:
            place = place[step]
        change(place, path[-1])
        return copy

    def walk(value, path):
        if (name, path) in OPEN:
            return
        if path:
            yield path, changed(path, lambda place, last: place.__setitem__(last, {"?": [{}]}))
        if isinstance(value, dict):
            yield path, changed((*path, "no_such_key"), lambda place, last: place.__setitem__(last, 1))
            for key in value:
                yield from walk(value[key], (*path, key))
        elif isinstance(value, list) and value:
            yield from walk(value[0], (*path, 0))

    def short(value):
        if isinstance(value, list):
            return [short(item) for item in value[:2]]
        return {key: short(item) for key, item in value.items()} if isinstance(value, dict) else value

    document = short(document)  # of a list one place is as good as another
    yield from walk(document, ())
    required = DEFINITIONS[name].get("required", [])
    for key in required:
        yield key, {other: value for other, value in document.items() if other != key}
    if "schema" in document:
        yield "schema", {**document, "schema": "attn.result/2"}


def is_open_key(name, path):
    """Members of weights_shapes are tensors, which have any name."""
    return "weights_shapes" in path or (name == "weights" and path and path[0] not in ("schema", "config"))


def main():
    os.chdir(tempfile.mkdtemp())
    pathlib.Path("operator.json").write_text(json.dumps(OPERATOR))
    count, wrong, bad, seen = {}, 0, [], set()
    makers = (results, batches, indexes, comparisons, checks, scans, parts, inspections, tokens, requests)
    for name, text in itertools.chain.from_iterable(maker() for maker in makers):
        document = json.loads(text)
        count[name] = count.get(name, 0) + 1
        for error in VALIDATORS[name].iter_errors(document):
            bad.append(f"{name}: {error.json_path}: {error.message[:200]}: {text[:200]}")
        # Documents of the same members teach the same.
        form = (name, tuple(sorted(document)), str(document.get("mode")))
        if name == "answer" or form in seen:
            continue
        seen.add(form)
        # Documents of one schema share most places: a third of each, another third of the next.
        for where, mutant in itertools.islice(mutated(name, document), len(seen) % 3, None, 3):
            if isinstance(where, tuple) and is_open_key(name, where):
                continue
            wrong += 1
            if VALIDATORS[name].is_valid(mutant):
                bad.append(f"{name}: a change at {where} is let pass: {text[:200]}")
    for line in bad[:40]:
        print(line)
    missing = set(VALIDATORS) - set(count) - {"array"}
    print(f"{count}, {wrong} wrong ones, {len(bad)} faults; never seen: {sorted(missing)}")
    return 1 if bad or missing else 0


if __name__ == "__main__":
    sys.exit(main())
