"""Malformed and odd .safetensors files, and indexes of several."""
import json
import struct

from hostile.folder import GIB, NUMBERS


def info(dtype='"F32"', shape="[2,3]", offsets="[0,24]", more=""):
    return f'{{"dtype":{dtype},"shape":{shape},"data_offsets":{offsets}{more}}}'


def tensors(text=None, data=NUMBERS, length=None, pad=True):
    text = '{"x":' + info() + "}" if text is None else text
    text = text if isinstance(text, bytes) else text.encode()
    text += b" " * (-len(text) % 8) if pad else b""
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def make_safetensors(folder):
    whole = tensors()
    for size, what in ((0, "nothing"), (5, "half a header length"), (8, "no header"), (30, "half a header"),
                       (len(whole) - 24, "no numbers"), (len(whole) - 1, "all but a byte")):
        folder.refused(f"cut_{size}", whole[:size], f"cut off: {what}")
    for name, length, why in (
            ("0", 0, "header length 0"), ("1", 1, "header length 1"),
            ("file", len(whole), "the header is longer than the file"),
            ("2_32", 2**32, "a header of 4 GiB"), ("2_63", 2**63, "a header of 2^63 bytes"),
            ("2_64", 2**64 - 1, "a header of 2^64 - 1 bytes"), ("wraps", 2**64 - 8, "8 + it is 0")):
        folder.refused(f"length_{name}", tensors(length=length), why)
    for name, text, why in (
            ("text", "hello, world", "no JSON"),
            ("array", "[" + info() + "]", "not an object"),
            ("open", '{"x":' + info(), "the object is not closed"),
            ("more", '{"x":' + info() + "} {}", "more after the object"),
            ("spaces_before", '   {"x":' + info() + "}", "the format begins with {"),
            ("zeros_after", ('{"x":' + info() + "}").encode() + bytes(10), "padded with zero bytes"),
            ("byte_order_mark", b"\xef\xbb\xbf" + ('{"x":' + info() + "}").encode(), "a byte-order mark"),
            ("not_utf8", b'{"\xff\xfe":' + info().encode() + b"}", "not UTF-8"),
            ("lone_surrogate", '{"\\ud800":' + info() + "}", "half a surrogate pair"),
            ("deep_objects", '{"a":' * 100000, "100000 objects inside each other"),
            ("deep_shape", '{"x":' + info(shape="[" * 50000 + "]" * 50000) + "}", "50000 arrays as a shape"),
            ("same_name", '{"x":' + info() + ',"x":' + info(offsets="[24,48]") + "}", "a name twice"),
            ("same_name_escaped", '{"x":' + info() + ',"\\u0078":' + info(offsets="[24,48]") + "}",
             "a name twice, once escaped"),
            ("same_key", '{"x":' + info(more=',"shape":[3,2]') + "}", "a key twice"),
            ("metadata_numbers", '{"__metadata__":{"a":1},"x":' + info() + "}", "metadata that is not text"),
            ("metadata_array", '{"__metadata__":["a"],"x":' + info() + "}", "metadata as an array"),
            ("tensor_text", '{"x":"F32"}', "a text in place of a tensor"),
            ("no_dtype", '{"x":{"shape":[2,3],"data_offsets":[0,24]}}', "a key is missing"),
            ("no_shape", '{"x":{"dtype":"F32","data_offsets":[0,24]}}', "a key is missing"),
            ("no_offsets", '{"x":{"dtype":"F32","shape":[2,3]}}', "a key is missing"),
            ("comment", '{/* */"x":' + info() + "}", "a comment"),
            ("single_quotes", ('{"x":' + info() + "}").replace('"', "'"), "single quotes"),
            ("nan", '{"x":' + info(shape="[NaN,3]") + "}", "not a number")):
        data = NUMBERS * 2 if name.startswith("same_name") else NUMBERS
        folder.refused(f"header_{name}", tensors(text, data), why)
    folder.refused("header_empty", tensors("{}", b""), "no tensors")

    for name, fields, why in (
            ("dtype_unknown", {"dtype": '"F99"'}, "no such dtype"),
            ("dtype_lower_case", {"dtype": '"f32"'}, "dtypes are upper case"),
            ("dtype_1_mb", {"dtype": '"' + "F" * 10**6 + '"'}, "a dtype of 1 MB"),
            ("shape_negative", {"shape": "[-2,-3]"}, "negative sizes, whose product fits"),
            ("shape_float", {"shape": "[2.0,3]"}, "a size with a point"),
            ("shape_text", {"shape": '["2",3]'}, "a size in quotes"),
            ("shape_true", {"shape": "[true,6]"}, "a boolean as a size"),
            ("shape_number", {"shape": "6"}, "a number in place of an array"),
            ("shape_wraps", {"shape": "[6,9223372036854775809,2]"}, "the product wraps round"),
            ("shape_bytes_wrap", {"shape": "[4611686018427387910]"}, "times 4 bytes it is 24"),
            ("shape_2_64", {"shape": "[18446744073709551618,3]"}, "more than 64 bits"),
            ("shape_10_18", {"shape": "[1000000000,1000000000]"}, "10^18 elements in 24 bytes"),
            ("shape_rank", {"shape": "[" + "1," * 10**5 + "6]"}, "100001 axes"),
            ("shape_larger", {"shape": "[2,4]"}, "the offsets leave 24 bytes for 32"),
            ("shape_smaller", {"shape": "[2,2]"}, "the offsets give 24 bytes for 16"),
            ("offsets_beyond", {"offsets": "[0,48]", "shape": "[2,6]"}, "beyond the file"),
            ("offsets_far", {"offsets": "[1000000000000,1000000000024]"}, "far beyond the file"),
            ("offsets_reversed", {"offsets": "[24,0]"}, "the end is before the beginning"),
            ("offsets_negative", {"offsets": "[-24,0]"}, "a negative offset"),
            ("offsets_wrap", {"offsets": "[18446744073709551608,16]"}, "end less begin is 24"),
            ("offsets_2_64", {"offsets": "[0,18446744073709551640]"}, "24 modulo 2^64"),
            ("offsets_float", {"offsets": "[0.0,24.0]"}, "offsets with a point"),
            ("offsets_one", {"offsets": "[24]"}, "one offset"),
            ("offsets_text", {"offsets": '"0,24"'}, "offsets as a text")):
        folder.refused(name, tensors('{"x":' + info(**fields) + "}"), why)

    def pair(first, second):
        return '{"x":' + info(offsets=first) + ',"y":' + info(offsets=second) + "}"

    folder.refused("offsets_overlap",
                   tensors(pair("[0,24]", "[16,40]"), NUMBERS + NUMBERS[8:]), "two tensors overlap")
    folder.refused("offsets_same", tensors(pair("[0,24]", "[0,24]")), "two tensors of the same bytes")
    folder.refused("offsets_hole", tensors(pair("[0,24]", "[32,56]"), NUMBERS + bytes(8) + NUMBERS), "a hole")
    folder.refused("offsets_hole_before", tensors('{"x":' + info(offsets="[8,32]") + "}", bytes(8) + NUMBERS),
                   "a hole before the first tensor")
    folder.refused("longer", tensors() + b"more", "bytes after the tensors")
    folder.refused("is_pickle", b"\x80\x02}q\x00(X\x01\x00\x00\x00xq\x01K\x01u.", "a pickle under another name")
    folder.either("dtype_f8", tensors('{"x":' + info('"F8_E4M3"', offsets="[0,6]") + "}", bytes(6)), "float8")
    folder.either("key_more", tensors('{"x":' + info(more=',"note":"more"') + "}"), "a fourth key")
    folder.either("shape_0_huge", tensors(
        '{"x":' + info(shape="[0,4611686018427387904,8]", offsets="[0,0]") + "}", b""),
        "no elements, beside sizes whose product wraps round")

    folder.valid("valid_unpadded", tensors(pad=False), "no padding")
    folder.valid("valid_spread", tensors(
        '{\n "x" : { "shape" : [ 2 , 3 ],\t"data_offsets" : [ 0 , 24 ],'
        ' "dtype" : "F32" }\r\n}\n\t '),
        "white space, keys in another order")
    folder.valid("valid_escapes", tensors(
        '{"\\u0078":' + info() + ',"\\ud83d\\ude00 \\"\\\\\\/":'
        + info(shape="[0]", offsets="[24,24]") + "}"), "escaped names, a surrogate pair")
    folder.valid("valid_reversed", tensors('{"y":' + info(offsets="[24,48]") + ',"x":' + info() + "}", NUMBERS * 2),
                 "the header's order is not that of the bytes")
    folder.valid("valid_odd_offset", tensors(
        '{"b":' + info('"U8"', "[3]", "[0,3]") + ',"x":' + info(offsets="[3,27]") + "}",
        b"abc" + NUMBERS), "floats at an odd offset")
    many = ",".join(f'"t{n}":' + info(shape="[0]", offsets="[24,24]") for n in range(20000))
    folder.valid("valid_20000_tensors", tensors('{"x":' + info() + "," + many + "}"), "20000 empty tensors besides x")
    heads = ",".join(f'"heads.{n}.W_{part}.weight":' + info(shape="[0]", offsets="[24,24]")
                     for n in range(20000) for part in ("query", "key", "value"))
    folder.refused("many_heads", tensors('{"x":' + info() + "," + heads + "}"), "20000 heads without a number")

    def sparse(out):
        text = ('{"zeros":' + info('"U8"', f"[{4 * GIB}]", f"[0,{4 * GIB}]") + ',"x":'
                + info(offsets=f"[{4 * GIB},{4 * GIB + 24}]") + "}")
        out.write(tensors(text, b""))
        out.seek(4 * GIB, 1)
        out.write(NUMBERS)
    folder.valid("valid_4_gib", sparse,
                 "x is after 4 GiB of zeros (the file is sparse): to be read without reading those")


def make_indexes(folder):
    (folder.path / "outside.safetensors").write_bytes(tensors())
    (folder.path / "outside.txt").write_text("not to be read or changed\n")

    def index(name, weight_map, expect, why, files=None):
        for file, content in (files or {}).items():
            path = folder.path / "index" / name / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        text = weight_map if isinstance(weight_map, str) else json.dumps(
            {"metadata": {"total_size": 24}, "weight_map": weight_map})
        folder.put(f"index/{name}/model.safetensors.index.json", text, expect, why)

    shard = {"a.safetensors": tensors()}
    index("missing_shard", {"x": "a.safetensors"}, "refused", "there is no such file")
    index("one_missing_shard", {"x": "a.safetensors", "y": "b.safetensors"}, "either",
          "x is there, the file of y is not", shard)
    index("up", {"x": "../../outside.safetensors"}, "refused", "a path out of the folder")
    index("up_and_back", {"x": "../up_and_back/a.safetensors"}, "refused",
          "a path out of the folder and back", shard)
    index("absolute", {"x": str((folder.path / "outside.safetensors").resolve())}, "refused",
          "an absolute path")
    index("backslash", {"x": "..\\..\\outside.safetensors"}, "refused", "a path out of the folder")
    index("zero_byte", {"x": "a.safetensors\0.txt"}, "refused", "a zero byte in a name", shard)
    index("empty_name", {"x": ""}, "refused", "an empty name")
    index("folder", {"x": "."}, "refused", "a folder in place of a file")
    index("itself", {"x": "model.safetensors.index.json"}, "refused", "the index names itself")
    index("cycle", {"x": "b.safetensors.index.json"}, "refused", "two indexes name each other", {
        "b.safetensors.index.json": json.dumps(
            {"weight_map": {"x": "model.safetensors.index.json"}}).encode()})
    index("other_shard", {"y": "a.safetensors"}, "refused", "the file does not hold y", shard)
    index("number", {"x": 5}, "refused", "a number in place of a name")
    index("array", '{"weight_map":["a.safetensors"]}', "refused", "an array, not names",
          shard)
    index("no_map", '{"metadata":{}}', "refused", "no weight_map", shard)
    index("empty_map", {}, "refused", "no tensors", shard)
    index("twice", '{"weight_map":{"x":"a.safetensors","x":"b.safetensors"}}', "refused",
          "a name twice", shard | {"b.safetensors": tensors(data=bytes(24))})
    index("many", {f"t{n}": f"{n}.safetensors" for n in range(50000)}, "refused",
          "50000 files that are not there")
    index("valid", {"x": "a.safetensors", "y": "b.safetensors"}, "valid", "two files",
          shard | {"b.safetensors": tensors('{"y":' + info() + "}")})
