"""data/arrays: small arrays in every type, order and format, and files that are refused."""
import numpy as np

from data_files.tensors import ARRAYS, NUMPY_TYPES, Tensor, nested, safetensors_bytes, write, write_json


class ArrayFiles:
    def __init__(self):
        self.readable, self.refused = [], []

    def expect(self, file, array, name=None, dtype=None):
        array = np.asarray(array)
        record = {"file": file}
        if name is not None:
            record["array"] = name
        self.readable.append(record | {
            "dtype": dtype or array.dtype.str, "shape": list(array.shape),
            "values": nested(array.astype(np.float64))})

    def npy(self, file, array, version=None):
        with open(ARRAYS / file, "wb") as out:
            np.lib.format.write_array(out, np.asanyarray(array), version=version)
        self.expect(file, array)

    def npz(self, file, arrays, save=np.savez):
        save(ARRAYS / file, **arrays)
        for name, array in arrays.items():
            self.expect(file, array, name)

    def safetensors(self, file, tensors, metadata=None):
        write(ARRAYS / file, safetensors_bytes(tensors, metadata))
        for name, tensor in tensors.items():
            self.expect(file, tensor.values, name, tensor.dtype)

    def refuse(self, file, reason, name=None):
        record = {"file": file}
        if name is not None:
            record["array"] = name
        self.refused.append(record | {"reason": reason})


def sample(dtype, count):
    """Numbers that the type, and float32, hold exactly."""
    dtype, k = np.dtype(dtype), np.arange(count)
    if dtype.kind == "f":
        values = k / 4 - 2
    elif dtype.kind == "b":
        values = k % 3 == 1
    elif dtype == np.dtype("i1"):
        values = k * 3 - 50
    elif dtype == np.dtype("u1"):
        values = k * 7
    elif dtype.kind == "u":
        values = k * 1871
    else:
        values = (k - 9) * 40001
    return values.astype(dtype)


def float32_bits(random):
    """128 finite float32: bit patterns at random after those that a reader may get wrong."""
    edges = [0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007FFFFF, 0x807FFFFF, 0x00800000,
             0x00800001, 0x7F7FFFFF, 0xFF7FFFFF, 0x3F800000, 0x3F7FFFFF, 0x3F800001, 0x3DCCCCCD,
             0x4B7FFFFF, 0x4B800000, 0x5F000000, 0x60AD78EC, 0x15AE43FD, 0x0DA24260]
    bits = random.integers(0, 2**32, 1000, dtype=np.uint64).astype("<u4")
    bits = bits[(bits & 0x7F800000) != 0x7F800000]
    return np.concatenate([np.array(edges, "<u4"), bits])[:128].view("<f4").reshape(16, 8)


def make_arrays():
    ARRAYS.mkdir(parents=True, exist_ok=True)
    files = ArrayFiles()
    random = np.random.default_rng(20240601)

    types = {"f4": "<f4", "f8": "<f8", "f4_big": ">f4", "f8_big": ">f8", "f2": "<f2",
             "f2_big": ">f2", "i4": "<i4", "i8_big": ">i8", "i8": "<i8", "i1": "|i1", "u1": "|u1",
             "u2": "<u2", "b1": "|b1"}
    for name, dtype in types.items():
        files.npy(f"matrix_{name}.npy", sample(dtype, 18).reshape(6, 3))
        files.npy(f"batch_{name}.npy", sample(dtype, 36).reshape(2, 6, 3))
    matrix, batch = sample("<f4", 18).reshape(6, 3), sample("<f4", 36).reshape(2, 6, 3)
    files.npy("matrix_f4_fortran.npy", np.asfortranarray(matrix))
    files.npy("matrix_f4_big_fortran.npy", np.asfortranarray(matrix.astype(">f4")))
    files.npy("batch_f4_fortran.npy", np.asfortranarray(batch))
    files.npy("matrix_f4_version_2.npy", matrix, version=(2, 0))
    files.npy("matrix_f4_version_3.npy", matrix, version=(3, 0))
    files.npy("scalar_f8.npy", np.array(2.75))
    files.npy("vector_f4.npy", sample("<f4", 5))
    files.npy("empty_f4.npy", np.zeros((0, 3), "<f4"))
    files.npy("rank_4_f4.npy", sample("<f4", 24).reshape(2, 2, 3, 2))
    files.npy("bits_f4.npy", float32_bits(random))
    # subnormals, the largest, both zeros, and two numbers that float32 has and float16 rounds
    halves = [0x0000, 0x8000, 0x0001, 0x8001, 0x03FF, 0x0400, 0x7BFF, 0xFBFF, 0x3555, 0x2E66]
    files.npy("bits_f2.npy", np.array(halves, "<u2").view("<f2").reshape(2, 5))
    files.npy("nonfinite_f4.npy", np.array([[1, np.nan, 2], [np.inf, 3, -np.inf]], "<f4"))
    files.npy("beyond_f4_i8.npy", np.array([[2**24 + 1, -2**24 - 1, 2**53]], "<i8"))
    files.npy("beyond_f4_f8.npy", np.array([[0.1, 1e39, 1e-46]], "<f8"))

    np.save(ARRAYS / "objects.npy", np.array([[1, "a"], [None, 2.5]], object), allow_pickle=True)
    files.refuse("objects.npy", "dtype object: pickled Python objects")
    np.save(ARRAYS / "structured.npy", np.array([(1, 2.5), (3, 4.5)], [("a", "<i4"), ("b", "<f4")]))
    files.refuse("structured.npy", "structured dtype: a record of fields")
    np.save(ARRAYS / "text.npy", np.array([["ab", "c"], ["", "d\u00e9"]], "<U2"))
    files.refuse("text.npy", "dtype text")
    np.save(ARRAYS / "complex.npy", matrix.astype("<c8"))
    files.refuse("complex.npy", "dtype complex")
    np.save(ARRAYS / "dates.npy", np.array([["2024-01-01", "2024-01-02"]], "<M8[D]"))
    files.refuse("dates.npy", "dtype date")

    several = {"inputs": matrix, "batch": batch.astype("<f8"), "mask": np.tri(3, dtype=bool),
               "ids": sample("<i8", 4), "fortran": np.asfortranarray(matrix)}
    files.npz("several_stored.npz", several)
    files.npz("several_deflated.npz", several, np.savez_compressed)
    files.npz("single.npz", {"arr_0": matrix})
    large = ((np.arange(131 * 130) % 61) / 8 - 3).astype("<f4").reshape(131, 130)
    np.savez_compressed(ARRAYS / "large_deflated.npz", x=large)
    files.readable.append({"file": "large_deflated.npz", "array": "x", "dtype": "<f4",
                           "shape": [131, 130],
                           "rule": "element i in C order is (i mod 61) / 8 - 3"})
    np.savez(ARRAYS / "objects_beside.npz", x=matrix, names=np.array(["a", None], object))
    files.expect("objects_beside.npz", matrix, "x")
    files.refuse("objects_beside.npz", "dtype object: pickled Python objects", "names")

    tensors = {}
    for dtype, plain in NUMPY_TYPES.items():
        values = sample("<f4" if dtype == "BF16" else plain, 6).reshape(2, 3)
        tensors[f"matrix_{dtype.lower()}"] = Tensor(values, dtype)
    tensors["batch"] = Tensor(batch)
    tensors["scalar"] = Tensor(np.array(2.75))
    tensors["empty"] = Tensor(np.zeros((0, 3)))
    # bfloat16: subnormals, the largest, both zeros, a third
    brains = [0x0000, 0x8000, 0x0001, 0x8001, 0x007F, 0x0080, 0x7F7F, 0xFF7F, 0x3EAB, 0x3DCD]
    tensors["bits_bf16"] = Tensor(brains, "BF16", bits=True)
    files.safetensors("types.safetensors", tensors,
                      {"format": "np", "note": "quote \" backslash \\ \u00e9 \u4e2d"})
    files.safetensors("single.safetensors", {"inputs": Tensor(matrix)})
    files.safetensors("names.safetensors", {
        "a b": Tensor([[1, 2]]), "caf\u00e9": Tensor([[3, 4]]), "quote\"": Tensor([[5, 6]]),
        "tab\t": Tensor([[7, 8]]), "": Tensor([[9, 10]]), "\U0001f600": Tensor([[11, 12]])})

    write_json(ARRAYS / "expected.json", {
        "about": "What the files of this folder hold: values in C order as float64, or why a file "
                 "(or one array of it) is refused. Booleans are 0 and 1.",
        "readable": files.readable, "refused": files.refused})
