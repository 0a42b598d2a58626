#!/usr/bin/env python3
"""Depth, growth and size of every input, and characters that are not shown, held against limits.

    python3 tests/hostile_shapes.py ATTN DATA [depth] [growth] [size] [characters]

depth: brackets 132,000 deep, wherever a document is accepted: one line of error.
growth: shapes of every format, and every reader; four times the size takes at most 6 times the processor's time.
size: what is refused takes at most a second and 100 MB.
characters: every code point that is not seen, as a label and a name, on every way out.
Needs the standard library only.
"""
import json
import os
import re
import struct
import sys
import tempfile
import unicodedata
import xml.etree.ElementTree

sys.dont_write_bytecode = True
from hostile import run  # noqa: E402
from hostile.npz import bomb  # noqa: E402
from hostile.readers import readers  # noqa: E402
from hostile.run import ERRORS, MB, Run, npy, npz, npz_with, put, tensors  # noqa: E402


def ways(file, gpt2):
    """Every way in which a file may be named."""
    model = ["multihead", "--weights", gpt2, "--token-ids", "1,2"]
    return [["self", file], ["inspect", file], ["plot", file], ["compare", file, file], ["explain", "self", file],
            ["batch", "--mode", "self", file], ["self", "two.csv", "--weights", file],
            ["self", "two.csv", "--mask", file], ["self", "two.csv", "--config", file],
            ["cross", "two.csv", "--context", file], ["sdpa", "--query", file, "--key", file, "--value", file],
            model + ["--model-config", file]]


def check_refused(run, faults, seconds=1.0, mb=100):
    is_batch = run.shown.startswith("batch")
    lines = run.err.count(b"\n")
    if run.code not in (ERRORS + ((1,) if is_batch else ())) or lines != 1 or run.seconds > seconds or run.mb > mb:
        faults.append("%s: code %d, %d lines, %.2f s, %.0f MB: %s" % (
            run.shown, run.code, lines, run.seconds, run.mb, run.err[:200]))


def check_depth(gpt2, faults):
    deepest = 132000
    runs = 0
    for kind, deep in (("lists", "[" * deepest + "]" * deepest), ("objects", '{"a":' * deepest + "1" + "}" * deepest)):
        result = '{"schema":"attn.result/1","mode":"self","config":%s,"context_vectors":[[1,2]]}' % deep
        files = {
            "metadata.npz": npz_with(result.encode()),
            "metadata.safetensors": tensors([("context_vectors", [2, 2])], {"attn": result}),
            "result.json": result, "bare.json": deep, "lines.ndjson": deep + "\n" + deep + "\n",
            "index.safetensors.index.json": '{"weight_map":{"a":%s}}' % deep}
        for key in ("inputs", "tokens", "window", "emit", "text", "id", "weights", "weights_shapes", "unknown"):
            files[key + ".json"] = '{"mode":"self","inputs":[[1,2]],"%s":%s}' % (key, deep)
        files["inputs.json"] = '{"mode":"self","inputs":%s}' % deep
        for name, text in files.items():
            for way in ways(put(kind + "_" + name, text), gpt2):
                check_refused(Run(way), faults)
                runs += 1
        os.environ["ATTN_CONFIG"] = kind + "_emit.json"
        check_refused(Run(["self", "two.csv"]), faults)
        del os.environ["ATTN_CONFIG"]
    return runs


def heads(count):
    return [("heads.%d.W_%s.weight" % (i, part), [1, 2]) for i in range(count) for part in ("query", "key", "value")]


def request(**members):
    return put("in.json", json.dumps({"inputs": [[1, 2]], **members}))


def batch(**members):
    return ["batch", "--dry-run", put("in.ndjson", json.dumps({"mode": "self", **members}) + "\n")]


def shapes(gpt2):
    """Name: arguments of a command whose input has this size."""
    text = lambda name, data: lambda n: ["inspect", put(name, data(n))]
    csv = lambda data: text("in.csv", data)
    matrix = lambda data: text("in.json", data)
    lines = lambda data: text("in.ndjson", data)
    key = lambda **of: lambda n: ["self", request(**{name: make(n) for name, make in of.items()})]
    many = lambda n: [("t%d" % i, [1]) for i in range(n)]
    explained = {"keys": lambda n: "1.5,2\n2.5,1\n" * (n // 2), "width": lambda n: "1.5,2," * (n // 2) + "1\n2,3," +
                 "4.5,2," * (n // 2 - 1) + "1\n", "labels": lambda n: "".join("w%d,1,2\n" % i for i in range(n))}
    return {
        "ndjson: empty lines": lambda n: ["self", put("in.ndjson", "[1,2]\n" + "\n" * n + "[3,4]\n")],
        "ndjson: blank lines before a fault": lines(lambda n: "[1,2]\n" + " \n" * n + "[3,x]\n"),
        "ndjson: every other line empty": lines(lambda n: "[1,2]\n\n" * n),
        "ndjson: requests": lines(lambda n: '{"id":"a","mode":"self","inputs":[[1,2]]}\n' * n),
        "json: rows": matrix(lambda n: "[" + "[1,2]," * n + "[1,2]]"),
        "json: irregular rows": matrix(lambda n: "[" + '[1,"NaN"],' * n + "[1,x]]"),
        "json: ragged": matrix(lambda n: "[" + "[1,2]," * n + "[1]]"),
        "json: a long row": matrix(lambda n: "[[" + "1," * n + "1]]"),
        "json: blanks": matrix(lambda n: "[[" + " " * n + "1,2]]" + "\n" * n),
        "json: digits": matrix(lambda n: "[[1." + "1" * min(n, 900000) + ",2]]"),
        "json: arrays": matrix(lambda n: json.dumps({"t%d" % i: [1] for i in range(n)})),
        "json: nulls": matrix(lambda n: json.dumps({"t%d" % i: None for i in range(n)})),
        "json: one key many times": matrix(lambda n: "{" + '"a":1,' * n + '"a":1}'),
        "json: a long key of escapes": matrix(lambda n: '{"' + "\\u00e9 " * n + '":1}'),
        "json: keys": lambda n: ["self", request(**{"t%d" % i: 1 for i in range(n)})],
        "json: inline tensors": key(weights=lambda n: dict(many(n))),
        "json: inline heads": key(weights=lambda n: {name: [[1, 2]] for name, _ in heads(n // 3)}),
        "json: shapes of weights": key(weights_shapes=lambda n: dict(many(n))),
        "json: commas for emit": key(emit=lambda n: "," * n), "json: names for emit": key(emit=lambda n: ["scores"] * n),
        "json: commas for window": key(window=lambda n: "1," * n),
        "json: numbers for kv_lengths": key(kv_lengths=lambda n: [1] * n),
        "json: labels": key(tokens=lambda n: ["\u00e9\u009b"] * n), "json: lists": key(window=lambda n: [[]] * n),
        "json: a long id": key(id=lambda n: "\u00e9 " * n),
        "path: colons": lambda n: ["self", put("in.json", json.dumps({"inputs": "a:" * n}))],
        "path: suffixes and colons": lambda n: ["self", put("in.json", json.dumps({"inputs": ".json:" * n}))],
        "path: points": lambda n: ["self", put("in.json", json.dumps({"inputs": ".1" * n}))],
        "path: slashes": lambda n: ["self", put("in.json", json.dumps({"inputs": "a/" * n}))],
        "text: words": lambda n: batch(text=" ".join("w%d" % i for i in range(n))),
        "text: one word": lambda n: batch(text="w " * n), "text: marks": lambda n: batch(text="a,.!" * n),
        "csv: labels": csv(lambda n: "\u00e9w,1,2\n" * n), "csv: quotes": csv(lambda n: '"w ""x""",1,2\n' * n),
        "csv: comments": csv(lambda n: "1,2\n" + "# c\n" * n + "3,4\n"), "csv: comments first": csv(lambda n: "# c\n" * n + "3,4"),
        "csv: empty lines": csv(lambda n: "1,2\n" + "\n" * n + "3,4\n"),
        "csv: empty rows": csv(lambda n: "1,2\n" + ",,\n" * n + "3,4\n"),
        "csv: columns": csv(lambda n: ",".join(["1"] * n)), "csv: blanks": csv(lambda n: "1" + " " * n + ",2\n"),
        "csv: header": csv(lambda n: ",".join("a%d" % i for i in range(n)) + "\n" + ",".join(["1"] * n)),
        "csv: a long quoted field": csv(lambda n: '"' + '"" ' * n + '",2\n3,4'),
        "npz: arrays": text("in.npz", lambda n: npz([(name + ".npy", npy([1])) for name, _ in many(n // 8)], 0)),
        "npz: other files": text("in.npz", lambda n: npz([("a.npy", npy([1]))] + [("%d.txt" % i, "") for i in range(n // 8)], 0)),
        "npz: keys of metadata": text("in.npz", lambda n: npz_with(json.dumps({"a%d" % i: 1 for i in range(n)}).encode())),
        "npz: labels": text("in.npz", lambda n: npz_with(json.dumps({"tokens": ["w"] * n}).encode())),
        "safetensors: tensors": text("in.safetensors", lambda n: tensors(many(n))),
        "safetensors: long names": text("in.safetensors", lambda n: tensors([("n" * n, [1]), ("m" * n, [1])])),
        "safetensors: metadata": text("in.safetensors", lambda n: tensors(many(1), {"a%d" % i: "b" for i in range(n)})),
        "safetensors: labels": text("in.safetensors", lambda n: tensors(many(1), {"attn": json.dumps({"tokens": ["w"] * n})})),
        "safetensors: heads": lambda n: ["multihead", "two.csv", "--weights", put("in.safetensors", tensors(heads(n // 8)))],
        "safetensors: layers": text("in.safetensors", lambda n: tensors(
            [("h.%d.attn.%s" % (i, name), shape) for i in range(n // 16) for name, shape in (
                ("c_attn.weight", [2, 6]), ("c_proj.weight", [2, 2]), ("c_attn.bias", [6]), ("c_proj.bias", [2]))])),
        "safetensors: an index": lambda n: ["inspect", put("in.safetensors.index.json", json.dumps(
            {"weight_map": {name: put("shard.safetensors", tensors(many(n))) if i == 0 else "shard.safetensors"
                            for i, (name, _) in enumerate(many(n))}}))],
        "compare: arrays": lambda n: ["compare", put("a.json", json.dumps(dict(many(n)))),
                                      put("b.json", json.dumps({"u" + name: shape for name, shape in many(n)}))],
        "plot: labels": lambda n: ["plot", put("in.json", json.dumps({"a": [[1]] * n, "tokens": ["x"] * n}))],
        "batch: records": lambda n: ["batch", "--dry-run", put("in.ndjson", '{"mode":"self","inputs":[[1,2]]}\n' * n)],
        "batch: errors": lambda n: ["batch", put("in.ndjson", '{"id":"a","mode":"x"}\n' * n)],
        "batch: empty lines": lambda n: ["batch", put("in.ndjson", "\n" * n + "{}\n")],
        "config: keys": lambda n: ["self", "two.csv", "--config", put("in.json", json.dumps({"t%d" % i: 1 for i in range(n)}))],
        "config: numbers": lambda n: ["self", "two.csv", "--config", put("in.json", json.dumps({"kv_lengths": [1] * n}))],
        "model: keys": lambda n: ["multihead", "--weights", gpt2, "--token-ids", "1", "--model-config", put("in.json", json.dumps(
            {**json.load(open(os.path.join(gpt2, "config.json"))), **{"z%d" % i: 1 for i in range(n)}}))],
        **{"explain --full: %s, %s" % (name, form): lambda n, rows=rows, form=form: [
            "explain", "self", put("in.csv", rows(n)), "--d-out", "2", "--full", "--format", form]
           for name, rows in explained.items() for form in ("text", "markdown", "html")},
        "argv: flags": lambda n: ["self", "two.csv"] + ["--scale", "1"] * min(n, 30000),
        "argv: files": lambda n: ["batch"] + ["x.json"] * min(n, 30000),
    }


def check_growth(gpt2, faults):
    """What takes less than `long_enough` at the largest size is linear enough for anybody. Quadratic work takes 16
    times as long, and linear work whose memory outgrows the caches on the way up to 6 times."""
    long_enough, largest, most = 0.05, 1 << 17, 6
    all_shapes = {**shapes(gpt2), **readers(gpt2)}
    for name, arguments in all_shapes.items():
        size = 1 << 11
        least = lambda n, times: min(Run(arguments(n)).seconds for _ in range(times))
        while (seconds := least(size, 1)) < long_enough and size < largest:
            size *= 4
        larger = Run(arguments(4 * size))
        ratio = larger.seconds / max(seconds, long_enough)
        for _ in range(4):  # a busy machine measures too much, never too little
            if ratio <= most:
                break
            ratio = min(ratio, least(4 * size, 2) / max(seconds, least(size, 2), long_enough))
        if ratio > most or larger.code not in (0, 1) + ERRORS:
            faults.append("%s: size %d took %.3f s, four times as much %.1f times that; code %d" % (
                name, size, seconds, ratio, larger.code))
    return len(all_shapes)


def check_size(gpt2, faults):
    blanks, digits, letters = [b" " * MB] * 100, [b"1" * MB] * 100, [b"x" * MB] * 100
    with_text = lambda text: npz([("a.npy", npy([1])), ("__metadata__.npy", npy([len(text)], "|u1", text))])
    files = [
        put("header.npy", [b"\x93NUMPY\x02\x00" + struct.pack("<I", 100 * MB) + b"{'descr': "] + blanks),
        put("header.safetensors", [struct.pack("<Q", 99 * MB) + b'{"a":'] + blanks),
        put("brackets.safetensors", [struct.pack("<Q", 10 * MB), b'{"__metadata__":{"attn":"{', b"[" * (10 * MB - 26)]),
        put("number.json", [b"[[1"] + digits + [b"]]"]), put("number.csv", [b"1"] + digits + [b",2\n"]),
        put("number.ndjson", [b"[1"] + digits + [b"]\n[1]\n"]),
        put("setting.json", [b'{"mode":"self","inputs":[[1,2]],"heads":1'] + digits + [b"}"]),
        put("word.csv", letters), put("word.json", [b'{"text":"'] + letters),
        put("deep.npz", with_text(b'{"a":' + b"[" * 60000000)), put("wide.npz", with_text(b'{"a":' + b"[]," * 10000000)),
        put("zeros.npz", npz([("a.npy", npy([60000000, 1, 1, 1, 1, 1]))])),
        put("bomb.npz", bomb(npy([128 * MB], data=b""), 512 * MB)),
        "/dev/zero", "/dev/urandom"]
    runs = 0
    for file in files:
        for way in ways(file, gpt2):
            if way[0] == "batch" and (file.startswith("/dev") or file.endswith(".ndjson")):
                continue  # a line of 256 MiB is read; devices are refused by name
            if way[0] == "inspect" and file == "zeros.npz":
                continue  # shows its contents
            check_refused(Run(way), faults)
            runs += 1
        if file.endswith((".json", ".csv")) or file.startswith("/dev"):
            check_refused(Run(["self"], stdin=file), faults)
            check_refused(Run(["inspect"], stdin=file), faults)
            check_refused(Run(["self", "two.csv", "--mask", "-"], stdin=file), faults)
            runs += 3
    return runs


# Unicode 15.1, DerivedCoreProperties.txt, Default_Ignorable_Code_Point.
IGNORABLE = ("AD 34F 61C 115F-1160 17B4-17B5 180B-180F 200B-200F 202A-202E 2060-206F 3164 FE00-FE0F FEFF FFA0 "
             "FFF0-FFF8 1BCA0-1BCA3 1D173-1D17A E0000-E0FFF")


MARKUP = ["<script>alert(1)</script>", "a&b&lt;", "\"'>]]>", "<!-- x", "-->"]


def unseen():
    codes = {code for part in IGNORABLE.split() for ends in [part.split("-")]
             for code in range(int(ends[0], 16), int(ends[-1], 16) + 1)}
    for code in range(0x110000):
        if unicodedata.category(chr(code)) in ("Cc", "Zl", "Zp") or code & 0xfffe == 0xfffe or 0xfdd0 <= code <= 0xfdef:
            codes.add(code)
    return sorted(codes)


def number_of(code):
    return "\\x%02x" % code if code < 0x80 else "\\u%04x" % code if code < 0x10000 else "\\U%08x" % code

def check_characters(gpt2, faults):
    codes = unseen()
    forbidden = set(map(chr, codes)) - {"\n"}
    runs = 0

    def check(arguments, wanted=(), files=(), code=0):
        nonlocal runs
        runs += 1
        run = Run(arguments)
        if run.code != code:
            faults.append("%s: code %d: %s" % (run.shown[:200], run.code, run.err[:200]))
        text = "".join(data.decode() for data in [run.out, run.err] + [open(file, "rb").read() for file in files])
        # Colours are the program's own.
        raw = forbidden.intersection(re.sub("\x1b\\[[0-9;]*m", "", text))
        missing = [hex(code) for code, number in wanted if number not in text]
        if raw or missing:
            faults.append("%s: raw %s, without the number of %s" % (
                run.shown[:200], [hex(ord(c)) for c in sorted(raw)][:5], missing[:5]))

    # All of Unicode, as labels and as names of arrays: nothing unseen comes out of JSON, and all comes back.
    labels = ["a%sb" % chr(code) for code in range(0x110000) if not 0xd800 <= code < 0xe000]
    put("all.json", json.dumps({"mode": "self", "inputs": [[1]], "tokens": labels}))
    check(["inspect", "--format", "json", "all.json"])
    if json.loads(open("out").read())["tokens"] != labels:
        faults.append("inspect --format json: other labels than were put in")
    put("in.json", json.dumps({"inputs": [[1]] * len(MARKUP), "tokens": MARKUP}))
    check(["self", "in.json", "-o", "result.json", "--plot", "map.svg"])
    titles = [element.text for element in xml.etree.ElementTree.parse("map.svg").iter() if element.tag.endswith("title")]
    missing = [label for i, label in enumerate(MARKUP)
               if not any(title.startswith("query %d %s, key " % (i, label)) for title in titles)]
    if missing:
        faults.append("map.svg: no titles with %s" % missing)
    step = 48
    for first in range(0, len(codes), step):
        some = codes[first:first + step]
        wanted = [(code, number_of(code)) for code in some]
        tokens = ["a%sb" % chr(code) for code in some]
        put("in.json", json.dumps({"inputs": [[1]] * len(some), "tokens": tokens, "emit": ["attention_weights"]}))
        check(["self", "in.json", "--format", "table", "--emit", "context_vectors"], wanted)
        check(["self", "in.json", "-o", "result.json", "--plot", "map.svg"], files=["result.json", "map.svg"])
        if first < 96 or first % (16 * step) == 0:
            check(["explain", "self", "in.json"])
            check(["plot", "result.json"])
            check(["plot", "result.json", "-o", "map.html"], files=["map.html"])
            xml.etree.ElementTree.parse("map.svg")  # well-formed
            names = {token: [[1]] for token in tokens}
            check(["compare", put("names.json", json.dumps(names)), "names.json"], wanted)
            check(["compare", "names.json", "names.json", "--format", "json"])
            check(["inspect", "names.json"], wanted)
            check(["inspect", "result.json"])
            check(["self", put("bad.json", json.dumps({"inputs": [[1]], **names}))], code=2)
            lines = ["batch", put("in.ndjson", "".join(
                json.dumps({"id": token, "mode": "self", "inputs": token}) + "\n" for token in tokens))]
            check(lines, code=1)
    return runs


def main():
    run.ATTN, data = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    checks = {"depth": check_depth, "growth": check_growth, "size": check_size, "characters": check_characters}
    faults = []
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        put("two.csv", "1,2\n3,4\n")
        for name in sys.argv[3:] or checks:
            runs = checks[name](os.path.join(data, "models", "gpt2"), faults)
            print("%s: %d checked, %d faults so far" % (name, runs, len(faults)))
        os.chdir("/")
    for fault in faults[:40]:
        print(fault)
    sys.exit(1 if faults else 0)


main()
