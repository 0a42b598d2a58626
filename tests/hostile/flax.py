"""Malformed and odd files of Flax: dictionaries and arrays in msgpack, value by value."""
import struct

from hostile.folder import NUMBERS


def sized(first, size):
    return bytes([first]) + struct.pack(">I", size)


def text(word):
    return sized(0xdb, len(word)) + word


def dictionary(*pairs):
    return sized(0xdf, len(pairs)) + b"".join(text(key) + value for key, value in pairs)


def integers(numbers):
    return sized(0xdd, len(numbers)) + b"".join(b"\xcf" + struct.pack(">Q", n) for n in numbers)


def array(shape=(2, 3), kind=b"float32", data=NUMBERS, parts=3, extension=1, sizes=None, more=b""):
    inner = sized(0xdd, parts) + (sizes or integers(shape)) + text(kind) + sized(0xc6, len(data)) + data + more
    return sized(0xc9, len(inner)) + bytes([extension]) + inner


def chunked(shape, *chunks):
    return dictionary((b"__msgpack_chunked_array__", b"\xc3"),
                      (b"shape", dictionary(*((b"%d" % i, bytes([n])) for i, n in enumerate(shape)))),
                      (b"chunks", dictionary(*((b"%d" % i, chunk) for i, chunk in enumerate(chunks)))))


def make_flax(folder):
    whole = dictionary((b"x", array()))
    halves = array((4,), data=NUMBERS[:16]), array((2,), data=NUMBERS[16:])
    folder.valid("valid", whole, "an array")
    folder.valid("short", b"\x81\xa1x\xc7\x26\1\x93\x92\2\3\xa7float32\xc4\x18" + NUMBERS, "the shortest forms")
    folder.valid("doubles", dictionary((b"x", array(kind=b"float64", data=struct.pack("<6d", *range(1, 7))))), "float64")
    folder.valid("chunks", dictionary((b"x", chunked((2, 3), *halves))), "an array in two chunks")
    folder.valid("others", dictionary((b"a", b"\xcb" + bytes(8)), (b"b", b"\xd4\2\0"), (b"x", array()), (b"c", b"\xc0")), "numbers too")
    for size in (*range(1, 60, 6), len(whole) - 24, len(whole) - 1):
        folder.refused(f"cut_{size}", whole[:size], f"cut off after {size} bytes")
    for name, value, why in (
            ("shape_larger", array((2, 4)), "more numbers than bytes"), ("shape_2_63", array((2**62, 2)), "2^63 elements"),
            ("shape_wraps", array((2**33, 2**33)), "2^66 elements"), ("axes_33", array((1,) * 33), "33 axes"),
            ("shape_negative", array(sizes=b"\x92\xfe\xfd"), "negative sizes"), ("shape_text", array(sizes=text(b"2")), "a shape in quotes"),
            ("shape_2_32", array(sizes=sized(0xdd, 2**32 - 1)), "2^32 - 1 axes"), ("parts_2", array(parts=2), "two parts"),
            ("more", array(more=b"\0"), "a byte after an array"), ("bytes_2_32", b"\xc9\xff\xff\xff\xff\1", "an array of 2^32 bytes"),
            ("text_2_32", sized(0xdb, 2**32 - 1), "a text of 2^32 bytes"), ("list_2_32", sized(0xdd, 2**32 - 1), "a list of 2^32 values"),
            ("unused", b"\xc1", "no value"), ("extension_9", array(extension=9), "another extension"),
            ("deep", b"\x91" * 10**6 + b"\xc0", "a million lists inside each other"),
            ("deep_keys", b"\x81\xa1a" * 10**6 + b"\xc0", "a million dictionaries inside each other"),
            ("deep_shape", array(sizes=b"\x91" * 10**6), "a million lists as a shape"),
            ("values", sized(0xdd, 3 << 20) + b"\xc0" * (3 << 20), "three million values"),
            ("long_names", dictionary((b"a" * 10**6, sized(0xdd, 1000) + array() * 1000)), "names of a gigabyte"),
            ("long_names_of_values", dictionary((b"a" * 10**6, sized(0xdd, 2 * 10**6) + b"\xc0" * 2 * 10**6)), "names of two terabytes"),
            ("key_list", b"\x81\x90" + array(), "a list as a key"), ("not_utf8", dictionary((b"\xff", array())), "a name that is not UTF-8"),
            ("twice", dictionary((b"y", array()), (b"y", array())), "a name twice"),
            ("chunks_none", chunked((2, 3)), "no chunks"), ("chunks_few", chunked((2, 3), halves[0]), "too few chunks"),
            ("chunks_types", chunked((2, 3), array((4,), b"float16", NUMBERS[:8]), halves[1]), "chunks of two types"),
            ("chunks_list", chunked((2, 3), b"\x90"), "a list as a chunk")):
        folder.refused(name, dictionary((b"x", value)), why)
    folder.refused("after", whole + b"\0", "a byte after the end")
    folder.refused("no_array", dictionary((b"x", b"\1")), "no array")
    folder.refused("array_alone", array((2, 4)), "no dictionary, and an array that is cut off")
