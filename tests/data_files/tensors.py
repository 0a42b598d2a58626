"""Tensors, .safetensors and JSON as files of data/."""
import json
import math
import pathlib
import struct

import numpy as np

DATA = pathlib.Path(__file__).resolve().parent.parent.parent / "data"
ARRAYS = DATA / "arrays"
MODELS = DATA / "models"

NUMPY_TYPES = {"BOOL": "|b1", "U8": "|u1", "I8": "|i1", "I16": "<i2", "U16": "<u2", "F16": "<f2",
               "BF16": "<u2", "I32": "<i4", "U32": "<u4", "F32": "<f4", "F64": "<f8", "I64": "<i8",
               "U64": "<u8"}  # in the package's order


def to_bfloat16(values):
    """The upper halves of float32, rounded to nearest, ties to even; finite values only."""
    bits = np.asarray(values, "<f4").view("<u4").astype(np.uint64)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype("<u2")


class Tensor:
    """Numbers as a file has them: `stored` for its bytes, `values` what they mean in float64."""

    def __init__(self, values, dtype="F32", bits=False):
        self.dtype = dtype
        if dtype == "BF16":
            self.stored = np.asarray(values, "<u2") if bits else to_bfloat16(values)
            floats = (self.stored.astype("<u4") << 16).view("<f4")
            self.values = floats.astype(np.float64)
        else:
            self.stored = np.asarray(values).astype(NUMPY_TYPES[dtype])
            self.values = self.stored.astype(np.float64)

    @property
    def shape(self):
        return self.stored.shape


def safetensors_bytes(tensors, metadata=None):
    rank = list(NUMPY_TYPES).index
    names = sorted(tensors, key=lambda name: (-rank(tensors[name].dtype), name))
    header, offset = {}, 0
    if metadata:
        header["__metadata__"] = metadata
    for name in names:
        size = tensors[name].stored.nbytes
        header[name] = {"dtype": tensors[name].dtype, "shape": list(tensors[name].shape),
                        "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + b"".join(
        np.ascontiguousarray(tensors[name].stored).tobytes() for name in names)


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())


def write_json(path, value, indent=None):
    separators = (",", ":") if indent is None else None
    text = json.dumps(value, indent=indent, separators=separators, sort_keys=indent is not None)
    write(path, text + "\n")


def number(value):
    """A float64 as JSON: integers without a point, non-finite numbers as strings."""
    value = float(value)
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 and math.copysign(1, value) < 0:
        return value  # -0.0
    return int(value) if value == int(value) and abs(value) < 2**53 else value


def nested(array):
    array = np.asarray(array)
    return number(array) if array.ndim == 0 else [nested(part) for part in array]
