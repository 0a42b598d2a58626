"""Malformed and odd .gguf files."""
import struct

from hostile.folder import NUMBERS, repeat

UINT32, STRING, ARRAY = 4, 8, 9


def text(value):
    value = value if isinstance(value, bytes) else value.encode()
    return struct.pack("<Q", len(value)) + value


def key(name, kind, value):
    return text(name) + struct.pack("<I", kind) + value


def uint32(name, value):
    return key(name, UINT32, struct.pack("<I", value))


def tensor(name="x", dims=(3, 2), kind=0, offset=0):
    return (text(name) + struct.pack("<I", len(dims)) + struct.pack(f"<{len(dims)}Q", *dims)
            + struct.pack("<IQ", kind, offset))


def gguf(keys=(), tensors=(tensor(),), data=NUMBERS, version=3, counts=None, alignment=32):
    tensor_count, key_count = counts or (len(tensors), len(keys))
    header = b"GGUF" + struct.pack("<IQQ", version, tensor_count, key_count) + b"".join(keys) + b"".join(tensors)
    return header + bytes(-len(header) % alignment) + data


def make_gguf(folder):
    name = key("general.architecture", STRING, text("none"))
    whole = gguf([name])
    folder.valid("plain", whole, "a matrix and a key")
    folder.valid("version_2", gguf(version=2), "version 2")
    folder.valid("aligned", gguf([uint32("general.alignment", 64)], alignment=64), "another alignment")
    folder.valid("padded", whole + bytes(20), "zeros after the data")
    for size in (0, 3, 4, 8, 23, 30, len(whole) - 24, len(whole) - 1):
        folder.refused(f"cut_{size}", whole[:size], f"cut off after {size} bytes")
    for version in (0, 1, 4, 2**32 - 1, 0x02000000, 0x03000000):
        folder.refused(f"version_{version}", gguf(version=version), "an unknown version")
    for number in (2**31, 2**32, 2**60, 2**64 - 1):
        folder.refused(f"tensors_{number}", gguf(counts=(number, 0)), "more tensors than bytes")
        folder.refused(f"keys_{number}", gguf([name], counts=(1, number)), "more keys than bytes")
        folder.refused(f"name_{number}", gguf([struct.pack("<Q", number) + b"name"]), "a name of that length")
        folder.refused(f"list_{number}",
                       gguf([key("a", ARRAY, struct.pack("<IQ", 0, number))]), "a list of that length")
        folder.refused(f"words_{number}",
                       gguf([key("a", ARRAY, struct.pack("<IQ", STRING, number))]), "words of that number")
        folder.refused(f"dims_{number}", gguf(tensors=[tensor(dims=(number, 2))]), "a tensor of that size")
        folder.refused(f"square_{number}", gguf(tensors=[tensor(dims=(number, number))]), "the same twice")
        folder.refused(f"offset_{number}", gguf(tensors=[tensor(offset=number)]), "an offset beyond the data")
    folder.refused("rank_5", gguf(tensors=[tensor(dims=(1,) * 5)]), "five dimensions")
    folder.refused("rank_huge", gguf(tensors=[text("x") + struct.pack("<I", 2**32 - 1)]), "2^32 - 1 dimensions")
    folder.refused("same_tensor", gguf(tensors=[tensor(), tensor(offset=32)], data=NUMBERS * 3), "a name twice")
    folder.refused("same_key", gguf([name, name]), "a key twice")
    folder.refused("overlap", gguf(tensors=[tensor(), tensor("y")]), "two tensors at one place")
    folder.refused("unaligned", gguf(tensors=[tensor(offset=8)], data=NUMBERS * 2), "an offset of 8")
    for alignment in (0, 3, 24, 2**32 - 1):
        folder.refused(f"alignment_{alignment}", gguf([uint32("general.alignment", alignment)]),
                       "an alignment that is not a power of two")
    folder.refused("alignment_large", gguf([uint32("general.alignment", 2**31)]), "data beyond the end")
    folder.refused("alignment_text", gguf([key("general.alignment", STRING, text("32"))]), "a word")
    folder.refused("type_13", gguf([key("a", 13, b"")]), "an unknown type of value")
    folder.refused("bool_2", gguf([key("a", 7, b"\2")]), "a boolean of 2")
    folder.refused("not_utf8", gguf([uint32(b"\xff\xfe", 1)]), "a key that is not UTF-8")
    deep = struct.pack("<IQ", ARRAY, 1) * 100000
    folder.refused("deep", gguf([key("a", ARRAY, deep)]), "100000 lists inside each other")
    for kind, why in ((16, "IQ2_XXS"), (4, "a type that was removed"), (99, "an unknown type")):
        folder.refused(f"kind_{kind}", gguf(tensors=[tensor(dims=(256, 1), kind=kind)], data=bytes(66)), why)
    folder.refused("half_block", gguf(tensors=[tensor(dims=(48, 1), kind=8)], data=bytes(99)), "one and a half blocks")
    folder.refused("part", gguf([key("split.count", 2, struct.pack("<H", 3))]), "a part without its others")
    count = 20_000_000 // folder.shrink
    folder.refused("many_values", lambda out: (
        out.write(b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + text("a") + struct.pack("<IIQ", ARRAY, 0, count)),
        repeat(b"\1", count)(out)), "a list of many bytes")
    many = 3_000_000 // folder.shrink
    folder.either("many_words", lambda out: (
        out.write(b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + text("a") + struct.pack("<IIQ", ARRAY, STRING, many)),
        repeat(bytes(8), 8 * many)(out)), "a list of many empty words, and no tensor")
