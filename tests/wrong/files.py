"""Files of arrays, as other programs write them."""

import json

import numpy as np

from support.array_files import safetensors


def listed(array):
    """With the shortest decimals that read back as the same numbers."""
    if array.ndim:
        return [listed(part) for part in array]
    return float(str(array)) if np.isfinite(array) else {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(array)]


def write_safetensors(path, arrays):
    """An array of uint16 holds the words of bfloat16."""
    names = {"float16": "F16", "float32": "F32", "float64": "F64", "uint16": "BF16"}
    path.write_bytes(safetensors({name: (names[str(a.dtype)], a.shape, a.tobytes()) for name, a in arrays.items()}))


def write_arrays(folder, kind, arrays):
    """Writes theirs.KIND, and returns its name."""
    path = folder / f"theirs.{kind}"
    if kind == "npz":
        np.savez(path, **arrays)
    elif kind == "npy":
        np.save(path, *arrays.values())
    elif kind == "safetensors":
        write_safetensors(path, {name: np.ascontiguousarray(array) for name, array in arrays.items()})
    else:
        path.write_text(json.dumps({name: listed(array) for name, array in arrays.items()}))
    return path.name


def read_npz(path):
    with np.load(path) as file:
        return {name: file[name] for name in file.files if name != "__metadata__"}
