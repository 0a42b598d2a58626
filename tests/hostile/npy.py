"""Malformed and odd .npy files."""
import struct

from hostile.folder import NUMBERS


def header(descr="'<f4'", order="False", shape="(2, 3)"):
    return f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}"


def npy(text=None, data=NUMBERS, version=1, length=None, align=64, magic=b"\x93NUMPY", end=b"\n"):
    text = header() if text is None else text
    text = text if isinstance(text, bytes) else text.encode("latin1")
    size = struct.Struct("<H" if version < 2 else "<I")
    text += b" " * (-(8 + size.size + len(text) + len(end)) % align) + end
    return (magic + bytes([version, 0]) + size.pack(len(text) if length is None else length) + text
            + data)


def make_npy(folder):
    whole = npy()
    for size, what in ((0, "nothing"), (3, "half a magic"), (6, "the magic alone"),
                       (7, "half a version"), (8, "no header length"), (9, "half a header length"),
                       (10, "no header"), (40, "half a header"), (128, "no numbers"),
                       (129, "a quarter of a number"), (len(whole) - 1, "all but the last byte")):
        folder.refused(f"cut_{size}", whole[:size], f"cut off: {what}")

    def shape(name, text, why):
        folder.refused(f"shape_{name}", npy(header(shape=text)), why)

    shape("10_18", "(1000000000000000000,)", "10^18 elements in 24 bytes")
    shape("negative", "(-2, -3)", "negative sizes, whose product fits")
    shape("wraps_to_0", "(4294967296, 4294967296)", "the product is 2^64, 0 in 64 bits")
    shape("wraps_to_6", "(6, 9223372036854775809, 2)", "the product is 12 modulo 2^64")
    shape("bytes_wrap", "(4611686018427387910,)", "times 4 bytes it is 24 modulo 2^64")
    shape("2_64", "(18446744073709551618, 3)", "2^64 + 2: more than 64 bits")
    shape("1000_digits", f"(2, {'9' * 1000})", "a number of 1000 digits")
    shape("rank_10000", "(" + "1, " * 10000 + "6)", "10001 axes")
    shape("rank_15000", "(" + "0," * 15000 + ")", "15000 axes of nothing")
    shape("float", "(2.0, 3)", "a size with a point")
    shape("text", "('2', 3)", "a size in quotes")
    shape("bare", "6", "a number where a tuple is expected")
    shape("none", "None", "no shape")
    shape("true", "(True, 6)", "a boolean as a size")
    shape("nested", "((2, 3),)", "a tuple in the tuple")
    shape("expression", "(1+1, 3)", "an expression")
    shape("hexadecimal_junk", "(0x, 3)", "half a hexadecimal number")
    folder.either("shape_list", npy(header(shape="[2, 3]")), "a list instead of a tuple")
    folder.either("shape_0_huge", npy(header(shape="(0, 4611686018427387904)"), b""),
                  "no elements, beside a size of 2^62")
    folder.either("shape_python2", npy(header(shape="(2L, 3L)")), "NumPy on Python 2 wrote sizes so")

    for name, descr, why in (
            ("unknown", "'<q9'", "no such type"), ("f3", "'<f3'", "floats of 3 bytes"),
            ("f16", "'<f16'", "long double"), ("void", "'|V4'", "raw bytes"),
            ("object", "'|O'", "pickled objects"), ("empty", "''", "an empty type"),
            ("longer", "'<f4junk'", "more text after the type"), ("number", "4", "not a text"),
            ("none", "None", "no type"), ("huge", "'<f" + "4" * 5000 + "'", "5000 digits of size"),
            ("f0", "'<f0'", "floats of 0 bytes"), ("order", "'#f4'", "an unknown byte order"),
            ("fields", "[('a', '<f4'), ('b', '<f4')]", "a record of fields"),
            ("deep_list", "[" * 9000 + "]" * 9000, "9000 lists inside each other")):
        folder.refused(f"descr_{name}", npy(header(descr)), f"dtype: {why}")
    for name, order in (("word", "'maybe'"), ("quoted", "'True'"), ("two", "2"), ("none", "None"),
                        ("lower_case", "false")):
        folder.refused(f"order_{name}", npy(header(order=order)), "fortran_order is neither True nor False")
    folder.either("order_zero", npy(header(order="0")), "fortran_order 0 for False")

    for name, text, why in (
            ("code", "__import__('os').system('touch pwned')", "Python code instead of a dict"),
            ("code_in_dict", header(shape="(__import__('os').getpid(), 3)"), "Python code as a size"),
            ("list", "['<f4', False, (2, 3)]", "a list instead of a dict"), ("empty", "", "nothing but spaces"),
            ("no_shape", "{'descr': '<f4', 'fortran_order': False}", "a key is missing"),
            ("no_descr", "{'fortran_order': False, 'shape': (2, 3)}", "a key is missing"),
            ("extra_key", header()[:-1] + "'more': 1}", "a fourth key"),
            ("open_dict", header()[:-1], "the dict is not closed"),
            ("open_string", "{'descr': '<f4", "a string is not closed"),
            ("open_tuple", "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3", "not closed"),
            ("two_dicts", header() + " " + header(), "more text after the dict"),
            ("deep_tuple", header(shape="(" * 20000 + "2" + ",)" * 20000), "20000 tuples inside each other"),
            ("zero_bytes", header().replace(" ", "\0"), "zero bytes between the words"),
            ("latin1", header("'\xff\xfe'"), "bytes beyond ASCII in the type"),
            ("no_colon", header().replace(":", "="), "= instead of :")):
        folder.refused(f"header_{name}", npy(text), why)
    folder.either("header_double_key", npy(header()[:-1] + "'shape': (2, 3)}"), "a key twice")
    folder.either("header_no_newline", npy(end=b""), "the header does not end in a newline")
    folder.either("header_2_mb", npy(header() + " " * 2_000_000, version=2),
                  "2 MB of spaces; NumPy stops at 10000 characters")
    folder.refused("header_length_0", npy(length=0), "header length 0")
    folder.refused("header_length_65535", npy(length=65535), "header longer than the file")
    folder.refused("header_length_4_gib", npy(version=2, length=2**32 - 1), "header of 4 GiB in a file of 152 bytes")
    folder.refused("magic", npy(magic=b"\x93NUMPX"), "wrong magic")
    folder.refused("version_0", npy(version=0), "format version 0.0")
    folder.refused("version_4", npy(version=4), "format version 4.0")
    folder.refused("is_text", "1,2,3\n4,5,6\n", "CSV under the name of an array")
    folder.either("longer", npy() + b"more", "bytes after the numbers; NumPy ignores them")

    folder.valid("valid_unaligned", npy(align=1), "a header without padding")
    folder.valid("valid_align_16", npy(align=16), "padded to 16 as before NumPy 1.14")
    folder.valid("valid_other_order", npy("{'shape': (2, 3), 'fortran_order': False, 'descr': '<f4'}"),
                 "keys in another order, no last comma")
    folder.valid("valid_dense", npy("{'descr':'<f4','fortran_order':False,'shape':(2,3)}"), "no spaces")
    folder.valid("valid_double_quotes",
                 npy('{"descr": "<f4", "fortran_order": False, "shape": (2, 3)}'), "double quotes")
    folder.valid("valid_version_2", npy(version=2), "format version 2.0")
