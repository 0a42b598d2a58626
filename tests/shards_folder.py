"""Requests for attn batch --out-dir, and its folders read by NumPy and by their specification: what
shards_test.py is made of."""

import json
import pathlib
import sys

sys.dont_write_bytecode = True
from support.array_files import read_safetensors  # noqa: E402
from support.asked import check, rng  # noqa: E402

try:
    import numpy
except ImportError:
    print("shards: skipped: needs NumPy (Debian: python3-numpy)")
    sys.exit(77)

SUFFIX = {"npz": ".npz", "safetensors": ".safetensors"}
SAFETENSORS_DTYPES = {"F32": "<f4", "F64": "<f8", "I64": "<i8", "F16": "<f2", "BF16": "<u2"}


def read_part(path):
    """All arrays of a file by their names."""
    if path.suffix == ".npz":
        with numpy.load(path, allow_pickle=False) as file:
            return dict(file)
    arrays, size = {}, 0
    tensors, _, head = read_safetensors(path)
    for name, (dtype, shape, content) in tensors.items():
        dtype = numpy.dtype(SAFETENSORS_DTYPES[dtype])
        check((len(head) + size) % dtype.itemsize == 0, path, name, "is not aligned")
        size += len(content)
        arrays[name] = numpy.frombuffer(content, dtype).reshape(shape)
    check(len(head) + size == path.stat().st_size, path, "has gaps between arrays")
    return arrays


def read_folder(folder, index="index.ndjson", has_extra=False):
    """[(line, {name: array} or None)] of a folder, each array read in both ways, by name and by offset. `has_extra`: a
    part may have arrays whose lines were cut off."""
    folder, parts, found = pathlib.Path(folder), {}, []
    for text in (folder / index).read_text().splitlines():
        line = json.loads(text)
        if "error" in line:
            found.append((line, None))
            continue
        part = parts.get(line["file"])
        if part is None:
            part = parts[line["file"]] = (read_part(folder / line["file"]), (folder / line["file"]).read_bytes())
        arrays = {}
        for row in line["arrays"]:
            array = part[0][row["entry"]]
            check(row["entry"] == f"r{line['record']}.{row['name']}", row)
            dtype = numpy.dtype("uint16" if row["dtype"] == "bfloat16" else row["dtype"])
            check(array.dtype == dtype and list(array.shape) == row["shape"], row, array.dtype, array.shape)
            there = part[1][row["offset"]:row["offset"] + row["bytes"]]
            check(there == array.tobytes(), row, "has other bytes at its offset")
            arrays[row["name"]] = array
        found.append((line, arrays))
    of_index = {entry["entry"] for line, _ in found for entry in line.get("arrays", [])}
    check(has_extra or of_index == {name for part in parts.values() for name in part[0]}, folder, "arrays without a line")
    return found


def files_of(folder):
    return {path.name: path.read_bytes() for path in pathlib.Path(folder).iterdir()}


def numbers(value, dtype):
    """Nested lists of an answer, whose infinities are strings, in its type."""
    def whole(item):
        return [whole(x) for x in item] if isinstance(item, list) else float(item) if dtype != "int64" else item
    return numpy.array(whole(value), dtype=dtype)


def as_stored(array, dtype):
    if dtype == "float16":
        with numpy.errstate(over="ignore"):
            return array.astype(numpy.float16)
    if dtype == "bfloat16":  # to nearest, ties to even
        bits = array.astype(numpy.float32).view(numpy.uint32).astype(numpy.uint64)
        return ((bits + 0x7fff + ((bits >> 16) & 1)) >> 16).astype(numpy.uint16)
    return array


def check_equal_text(folder, text, store=None, index="index.ndjson", has_extra=False):
    """The folder holds the answers that the lines of text hold."""
    lines, found = text.splitlines(), read_folder(folder, index, has_extra)
    check(len(lines) == len(found), folder, "lines", len(lines), len(found))
    for line, (indexed, arrays) in zip(lines, found):
        answer = json.loads(line)
        if "error" in answer:
            check(answer == indexed, answer, indexed)
            continue
        head = {key: value for key, value in indexed.items() if key not in ("schema", "record", "file", "arrays")}
        layers = answer.get("layer_numbers")
        of_text = {}
        for key, value in answer.items():
            if key in head or key == "schema":
                continue
            if layers is not None and isinstance(value, list) and f"{key}.{layers[0]}" in arrays:
                of_text.update({f"{key}.{layer}": one for layer, one in zip([*layers, layers[-1] + 1], value)})
            else:
                of_text[key] = value
        for key in head:
            wanted, got = answer[key], head[key]
            if key == "config":
                wanted, got = ({k: v for k, v in x.items() if k not in ("format", "store")} for x in (wanted, got))
            check(wanted == got, key, wanted, got)
        check(set(of_text) == set(arrays), line[:200], sorted(of_text), sorted(arrays))
        for name, value in of_text.items():
            array = arrays[name]
            # A bare answer does not say its type.
            dtype = answer["config"]["dtype"] if "config" in answer else array.dtype
            wanted = numbers(value, "int64" if array.dtype == numpy.int64 else dtype)
            if array.dtype != numpy.int64:
                wanted = as_stored(wanted, store)
            check(wanted.tobytes() == array.tobytes(), indexed["id"], name, wanted, array)


def matrix(rows, columns):
    return [[round(rng.uniform(-2, 2), 3) for _ in range(columns)] for _ in range(rows)]


def requests(count, dtypes=("float32", "float64"), emits=(None, "all", ["context_vectors", "top_keys"])):
    """Good and failing records: several modes, sizes and types, ids of every kind, and none."""
    lines = []
    for i in range(count):
        kind = 7 if i == count // 2 else rng.randrange(10)  # at least one fails
        mode = rng.choice(("self", "causal", "multihead", "linear"))
        record = {"mode": mode, "inputs": matrix(rng.randrange(1, 6), 4), "dtype": rng.choice(dtypes), "seed": i}
        if mode == "multihead":
            record |= {"d_out": 4, "heads": 2}
        emit = rng.choice(emits)
        if emit == ["context_vectors", "top_keys"]:
            record |= {} if mode == "linear" else {"emit": emit, "top": 2}
        elif emit is not None:
            record["emit"] = emit
        if kind < 6:
            record["id"] = rng.choice((i, f"{i}/\u00e9 \"x\".npy", f"../{i}", " " * i))
        elif kind == 6:
            record["meta"] = {"record": 1, "file": "part-00000.npz", "arrays": [i]}
        elif kind == 7:
            record = rng.choice(({"id": f"bad{i}", "mode": mode, "inputs": "missing.csv"},
                                 {"mode": "self", "inputs": [[1, 2], [3]]}, {"id": f"none{i}"}))
        lines.append("no JSON" if kind == 8 and rng.random() < 0.3 else json.dumps(record))
    return "\n".join(lines) + "\n"


def unique_requests(count):
    """As --resume needs them: every default id is some line's own number or there is none like it."""
    lines = []
    for i, text in enumerate(requests(count).splitlines()):
        try:
            record = json.loads(text)
        except ValueError:
            record = {"mode": "self", "inputs": [[1], [2, 3]]}
        if rng.random() < 0.8:
            record["id"] = f"id {i}"
        else:
            record.pop("id", None)
        lines.append(json.dumps(record))
    return "\n".join(lines) + "\n"
