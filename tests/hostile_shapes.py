#!/usr/bin/env python3
"""Depth, growth and size of every input, and characters that are not shown, held against limits.

    python3 tests/hostile_shapes.py ATTN DATA [depth] [growth] [size] [archives] [characters]

depth: brackets 132,000 deep, wherever a document may stand: one line of error.
growth: shapes of every format; four times the size takes at most 10 times the processor's time.
size: what is refused takes at most a second and 100 MB.
archives: npz of any number of entries, sizes and lies, under any limit, to every command that reads one.
characters: every code point that is not seen, as a label and a name, on every way out.
Needs the standard library only.
"""
import io
import json
import os
import re
import resource
import struct
import sys
import tempfile
import unicodedata
import zipfile
import zlib

ERRORS = (2, 3, 4)
WHOLE = "ATTN_TEST_WHOLE" in os.environ  # all archives, not a few
MB = 1 << 20


class Run:
    """One command; its exit code, processor time, memory and output."""

    def __init__(self, arguments, stdin=os.devnull, addresses=None):
        sys.stdout.flush()
        pid = os.fork()
        if pid == 0:
            resource.setrlimit(resource.RLIMIT_CPU, (30, 30))
            if addresses is not None:
                resource.setrlimit(resource.RLIMIT_AS, (addresses, addresses))
            os.dup2(os.open(stdin, os.O_RDONLY), 0)
            for file, name in ((1, "out"), (2, "err")):
                os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), file)
            os.environ["COLUMNS"] = "200"
            os.execv(ATTN, [ATTN] + arguments)
        _, status, used = os.wait4(pid, 0)
        self.code = os.waitstatus_to_exitcode(status)
        self.seconds = used.ru_utime + used.ru_stime
        self.mb = used.ru_maxrss / (MB if sys.platform == "darwin" else 1024)
        self.shown = " ".join(arguments) + ("" if stdin == os.devnull else " < " + stdin)

    @property
    def out(self):
        return open("out", "rb").read()

    @property
    def err(self):
        return open("err", "rb").read()


def put(name, data):
    with open(name, "wb") as file:
        for piece in [data] if isinstance(data, (bytes, str)) else data:
            file.write(piece.encode() if isinstance(piece, str) else piece)
    return name


def npy(shape, descr="<f4", data=None):
    size = 4
    for length in shape:
        size *= length
    lengths = "".join("%d," % length for length in shape)
    head = "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }" % (descr, lengths)
    head += " " * (63 - (10 + len(head)) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + (bytes(size) if data is None else data)


def npz(entries, method=zipfile.ZIP_DEFLATED):
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", method) as file:
        for name, data in entries:
            file.writestr(name, data)
    return archive.getvalue()


def npz_with(metadata):
    return npz([("context_vectors.npy", npy([2, 2])), ("__metadata__.npy", npy([len(metadata)], "|u1", metadata))])


def tensors(shapes, metadata=None):
    header, end = {} if metadata is None else {"__metadata__": metadata}, 0
    for name, shape in shapes:
        begin = end
        end += 4 * (shape[0] * shape[1] if len(shape) == 2 else shape[0])
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + bytes(end)


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
    """What takes less than `long_enough` at the largest size is linear enough for anybody. Linear work whose
    memory outgrows the caches on the way takes up to 8 times as long, quadratic work 16 times."""
    long_enough, largest, most = 0.05, 1 << 17, 10
    all_shapes = shapes(gpt2)
    for name, arguments in all_shapes.items():
        size = 1 << 11
        least = lambda n, times: min(Run(arguments(n)).seconds for _ in range(times))
        while (seconds := least(size, 1)) < long_enough and size < largest:
            size *= 2
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
    bomb = lambda text: npz([("a.npy", npy([1])), ("__metadata__.npy", npy([len(text)], "|u1", text))])
    files = [
        put("header.npy", [b"\x93NUMPY\x02\x00" + struct.pack("<I", 100 * MB) + b"{'descr': "] + blanks),
        put("header.safetensors", [struct.pack("<Q", 99 * MB) + b'{"a":'] + blanks),
        put("brackets.safetensors", [struct.pack("<Q", 10 * MB), b'{"__metadata__":{"attn":"{', b"[" * (10 * MB - 26)]),
        put("number.json", [b"[[1"] + digits + [b"]]"]), put("number.csv", [b"1"] + digits + [b",2\n"]),
        put("number.ndjson", [b"[1"] + digits + [b"]\n[1]\n"]),
        put("setting.json", [b'{"mode":"self","inputs":[[1,2]],"heads":1'] + digits + [b"}"]),
        put("word.csv", letters), put("word.json", [b'{"text":"'] + letters),
        put("deep.npz", bomb(b'{"a":' + b"[" * 60000000)), put("wide.npz", bomb(b'{"a":' + b"[]," * 10000000)),
        put("zeros.npz", npz([("a.npy", npy([60000000, 1, 1, 1, 1, 1]))])),
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


def unseen():
    codes = {code for part in IGNORABLE.split() for ends in [part.split("-")]
             for code in range(int(ends[0], 16), int(ends[-1], 16) + 1)}
    for code in range(0x110000):
        if unicodedata.category(chr(code)) in ("Cc", "Zl", "Zp") or code & 0xfffe == 0xfffe or 0xfdd0 <= code <= 0xfdef:
            codes.add(code)
    return sorted(codes)


def number_of(code):
    return "\\x%02x" % code if code < 0x80 else "\\u%04x" % code if code < 0x10000 else "\\U%08x" % code


class Archive:
    """An npz written by hand: `entries` float32 arrays of `floats` zeros each, with false sizes."""

    def __init__(self, name, entries, floats, method, metadata=None, lie=None):
        self.name, self.method, self.lie = name, method, lie
        self.entries, self.floats, self.metadata = entries, floats, metadata
        pid = os.fork()  # child processes inherit this process's peak of memory
        if pid == 0:
            self.write()
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
        with open(name + ".sizes") as file:
            self.sizes = json.load(file)  # declared, and packed
        os.remove(name + ".sizes")

    def write(self):
        self.sizes, directory = [], []
        head = npy([self.floats], data=b"")
        size = len(head) + 4 * self.floats
        with open(self.name, "wb") as file:
            whole = head + bytes(4 * self.floats) if self.method == 8 or self.floats < MB else None
            packed = None if whole is None else self.packed(whole)
            crc = self.crc_of_zeros(head, 4 * self.floats) if whole is None else zlib.crc32(whole)
            for i in range(self.entries):
                self.put(file, directory, "a%d.npy" % i, packed, crc, size, head)
            if self.metadata is not None:
                data = npy([len(self.metadata)], "|u1", self.metadata)
                self.put(file, directory, "__metadata__.npy", self.packed(data), zlib.crc32(data), len(data), b"")
            start = file.tell()
            file.write(b"".join(directory))
            count = len(directory)
            file.write(struct.pack("<IHHHHIIH", 0x06054b50, 0, 0, count, count, file.tell() - start, start, 0))
        with open(self.name + ".sizes", "w") as file:
            json.dump(self.sizes, file)

    @staticmethod
    def crc_of_zeros(head, zeros):
        crc, block = zlib.crc32(head), bytes(MB)
        for left in range(zeros, 0, -MB):
            crc = zlib.crc32(block[:left], crc)
        return crc

    def packed(self, data):
        if self.method == 0:
            return data
        packer = zlib.compressobj(9, zlib.DEFLATED, -15)
        return packer.compress(data) + packer.flush()

    def put(self, file, directory, name, packed, crc, size, head):
        length = size if packed is None else len(packed)
        self.sizes.append((size, length))
        said = {"larger": size + 4096, "smaller": size - 4}.get(self.lie, size)
        offset, flags = file.tell(), 8 if self.lie == "descriptor" else 0
        if self.lie == "shared" and directory:
            offset, name = 0, "a0.npy"  # the first entry's
        else:
            behind = (0, 0, 0) if flags else (crc, length, said)
            file.write(struct.pack("<IHHHHHIIIHH", 0x04034b50, 20, flags, self.method, 0, 33, *behind, len(name), 0))
            file.write(name.encode())
            if packed is None:  # zeros that take no space on the disk
                file.write(head)
                file.seek(size - len(head) - 1, 1)
                file.write(b"\0")
            else:
                file.write(packed)
            if flags:
                file.write(struct.pack("<IIII", 0x08074b50, crc, length, said))
        directory.append(struct.pack("<IHHHHHHIIIHHHHHII", 0x02014b50, 20, 20, flags, self.method, 0, 33, crc, length,
                                     said, len(name), 0, 0, 0, 0, 0, offset) + name.encode())

    def is_bomb(self):
        """As a whole; one entry that is a bomb is found by the same rule."""
        of = lambda size, packed: size > 256 * MB and size // 200 > packed
        return of(*map(sum, zip(*self.sizes))) or any(of(*sizes) for sizes in self.sizes)

    def is_damaged(self):
        return self.lie in ("larger", "smaller") or (self.lie == "shared" and len(self.sizes) > 1)

    def doubles(self):
        """Bytes that its arrays take once they are read."""
        return 8 * self.floats * self.entries


def commands_of(archive):
    """Arguments of everything that reads an npz, and the bytes that the arrays take that it must read: none where it
    looks at one array, or at none."""
    file, all_of_it = archive.name, archive.doubles()
    yield ["inspect", file], 0
    yield ["inspect", "--format", "json", file], 0
    yield ["compare", file, file], 2 * all_of_it
    yield ["compare", file, "small.npz"], all_of_it
    yield ["compare", "small.npz", file], all_of_it
    yield ["compare", file + ":a0", file + ":a0"], 16 * archive.floats
    yield ["plot", file], 0
    yield ["plot", file, "small.npz"], 0
    yield ["explain", file], 0
    yield ["self", file], 0
    yield ["self", file + ":a0"], 0
    yield ["explain", "self", file], 0
    yield ["self", "two.csv", "--mask", file + ":a0"], 0
    yield ["self", "two.csv", "--weights", file], 0
    yield ["sdpa", file], 0
    yield ["batch", put("named.ndjson", json.dumps({"mode": "self", "inputs": file}) + "\n")], 0
    yield ["batch", "--mode", "self", "--each", file], 0


def check_archives(gpt2, faults):
    Archive("small.npz", 1, 4, 8)
    result = json.dumps({"schema": "attn.result/1", "mode": "self", "config": {"mode": "self"}}).encode()
    other = b'{"schema":"another"}'
    lies = (None, "larger", "smaller", "shared", "descriptor")
    plans = [(entries, floats, 8, metadata, lie) for entries in (1, 3, 130, 3000) for floats in (6, 250000, 16 * MB)
             for metadata in (None, result, other) for lie in lies if entries * floats <= 130 * 16 * MB]
    plans += [(entries, floats, 0, metadata, lie) for entries, floats in ((1, 6), (40, 60000), (1, 50 * MB), (3, 40 * MB))
              for metadata in (None, result, other) for lie in (None, "descriptor")]
    plans = plans if WHOLE else [plan for i, plan in enumerate(plans) if i % 7 == 1 or plan[1] == 50 * MB]
    runs = 0
    for number, (entries, floats, method, metadata, lie) in enumerate(plans):
        archive = Archive("archive.npz", entries, floats, method, metadata, lie)
        bad = archive.is_bomb() or archive.is_damaged()
        for addresses in (None, 600 * MB) if WHOLE or number % 2 == 0 else (600 * MB,):
            for arguments, needed in commands_of(archive):
                limit = float("inf") if addresses is None else addresses
                over = needed + 16 * MB > limit
                if not bad and not over and (needed > 300 * MB or archive.doubles() > 300 * MB and arguments[0] == "plot"):
                    continue  # legitimate work, and slow
                run = Run(arguments, addresses=addresses)
                runs += 1
                shown = "%s of %d x %d, method %d, %s, addresses %s: code %d, %.2f s, %.0f MB: %s" % (
                    run.shown, entries, floats, method, lie, addresses, run.code, run.seconds, run.mb, run.err[:160])
                is_batch = arguments[0] == "batch"
                codes = (0, 1, *ERRORS)
                if run.code not in codes or run.code in ERRORS and run.err.count(b"\n") != 1:
                    faults.append("no exit in order: " + shown)
                elif (archive.is_bomb() or lie == "shared" and archive.is_damaged()) and run.code not in ((1,) if is_batch else (3,)):
                    faults.append("taken: " + shown)
                elif over and run.code != 3:
                    faults.append("taken beyond the limit: " + shown)
                elif (archive.is_bomb() or over) and (run.seconds > 1 or run.mb > 100):
                    faults.append("refused late: " + shown)
                elif addresses is None and not bad and run.code != 0 and (
                        arguments[0] == "inspect" or arguments[0] == "compare" and arguments[1] == arguments[2]):
                    faults.append("refused for nothing: " + shown)
                elif run.code in ERRORS and run.out:
                    faults.append("an error with output: " + shown)
    os.remove("archive.npz")
    return runs


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
    global ATTN
    ATTN, data = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    checks = {"depth": check_depth, "growth": check_growth, "size": check_size,
              "archives": check_archives, "characters": check_characters}
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
