#!/usr/bin/env python3
"""Writes malformed and merely unusual input files to a folder, and a manifest.json with them.

    python3 tests/make_hostile.py FOLDER [--small]

Needs nothing but Python 3.9. The whole set takes about 500 MB; with --small, what is large to be
slow or to fill memory is a hundredth of that size (but a zip bomb stays one of 100 MB).

manifest.json: {"matrix": [[1, 2, 3], [4, 5, 6]], "files": [{"file", "expect", "why"}, ...]}, where
expect is one of
    refused  an error in one line, soon, and in little memory
    valid    holds the matrix above; in .npz and .safetensors (and by an index) under the name x
    either   implementations differ: reading it or refusing it will do, failing otherwise will not
Nothing may be written outside the answer, run, or read from another folder: the file `outside.txt`
and the tensor file `outside.safetensors` in FOLDER are there to be pointed at.
"""
import argparse
import bz2
import json
import lzma
import pathlib
import struct
import zlib

MATRIX = [[1, 2, 3], [4, 5, 6]]
NUMBERS = struct.pack("<6f", 1, 2, 3, 4, 5, 6)
GIB = 2**30


class Folder:
    def __init__(self, path, small):
        self.path, self.records = path, []
        self.shrink = 100 if small else 1

    def put(self, file, content, expect, why):
        """content: bytes, text, or a function that is given the open file."""
        path = self.path / file
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "wb") as out:
            if callable(content):
                content(out)
            else:
                out.write(content.encode() if isinstance(content, str) else content)
        self.records.append({"file": file, "expect": expect, "why": why})

    def refused(self, file, content, why):
        self.put(file, content, "refused", why)

    def valid(self, file, content, why):
        self.put(file, content, "valid", why)

    def either(self, file, content, why):
        self.put(file, content, "either", why)


def repeat(piece, size):
    """A writer of `size` bytes of a repeated piece, in blocks."""
    block = piece * (2**20 // len(piece))

    def write(out):
        for _ in range(size // len(block)):
            out.write(block)
        out.write(block[: size % len(block)])
    return write


def joined(*parts):
    def write(out):
        for part in parts:
            part(out) if callable(part) else out.write(part)
    return write


# ---- .npy ------------------------------------------------------------------------------------

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
        folder.refused(f"npy/cut_{size}.npy", whole[:size], f"cut off: {what}")

    def shape(name, text, why, descr="'<f4'"):
        folder.refused(f"npy/shape_{name}.npy", npy(header(descr, shape=text)), why)

    shape("10_18", "(1000000000000000000,)", "10^18 elements in 24 bytes")
    shape("10_9_f8", "(1000, 1000000)", "8 GB announced, 24 bytes there", "'<f8'")
    shape("negative", "(-2, -3)", "negative sizes, whose product fits")
    shape("minus_one", "(-1, 3)", "a negative size")
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
    folder.either("npy/shape_list.npy", npy(header(shape="[2, 3]")), "a list instead of a tuple")
    folder.either("npy/shape_0_huge.npy", npy(header(shape="(0, 4611686018427387904)"), b""),
                  "no elements, beside a size of 2^62")
    folder.either("npy/shape_python2.npy", npy(header(shape="(2L, 3L)")),
                  "NumPy on Python 2 wrote sizes so")

    for name, descr, why in (
            ("unknown", "'<q9'", "no such type"), ("f3", "'<f3'", "floats of 3 bytes"),
            ("f16", "'<f16'", "long double"), ("void", "'|V4'", "raw bytes"),
            ("object", "'|O'", "pickled objects"), ("empty", "''", "an empty type"),
            ("longer", "'<f4junk'", "more text after the type"), ("number", "4", "not a text"),
            ("none", "None", "no type"), ("huge", "'<f" + "4" * 5000 + "'", "5000 digits of size"),
            ("f0", "'<f0'", "floats of 0 bytes"), ("order", "'#f4'", "an unknown byte order"),
            ("fields", "[('a', '<f4'), ('b', '<f4')]", "a record of fields"),
            ("deep_list", "[" * 9000 + "]" * 9000, "9000 lists inside each other")):
        folder.refused(f"npy/descr_{name}.npy", npy(header(descr)), f"dtype: {why}")
    for name, order in (("word", "'maybe'"), ("quoted", "'True'"), ("two", "2"), ("none", "None"),
                        ("lower_case", "false")):
        folder.refused(f"npy/order_{name}.npy", npy(header(order=order)),
                       "fortran_order is neither True nor False")
    folder.either("npy/order_zero.npy", npy(header(order="0")), "fortran_order 0 for False")

    for name, text, why in (
            ("code", "__import__('os').system('touch pwned')", "Python code instead of a dict"),
            ("code_in_dict", header(shape="(__import__('os').getpid(), 3)"),
             "Python code as a size"),
            ("lambda", "(lambda: {'descr': '<f4'})()", "Python code instead of a dict"),
            ("list", "['<f4', False, (2, 3)]", "a list instead of a dict"),
            ("empty", "", "nothing but spaces"),
            ("no_shape", "{'descr': '<f4', 'fortran_order': False}", "a key is missing"),
            ("no_descr", "{'fortran_order': False, 'shape': (2, 3)}", "a key is missing"),
            ("extra_key", header()[:-1] + "'more': 1}", "a fourth key"),
            ("open_dict", header()[:-1], "the dict is not closed"),
            ("open_string", "{'descr': '<f4", "a string is not closed"),
            ("open_tuple", "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3", "not closed"),
            ("two_dicts", header() + " " + header(), "more text after the dict"),
            ("deep_tuple", header(shape="(" * 20000 + "2" + ",)" * 20000),
             "20000 tuples inside each other"),
            ("zero_bytes", header().replace(" ", "\0"), "zero bytes between the words"),
            ("latin1", header("'\xff\xfe'"), "bytes beyond ASCII in the type"),
            ("no_colon", header().replace(":", "="), "= instead of :")):
        folder.refused(f"npy/header_{name}.npy", npy(text), why)
    folder.either("npy/header_double_key.npy", npy(header()[:-1] + "'shape': (2, 3)}"),
                  "a key twice")
    folder.either("npy/header_no_newline.npy", npy(end=b""), "the header does not end in a newline")
    folder.either("npy/header_2_mb.npy", npy(header() + " " * 2_000_000, version=2),
                  "2 MB of spaces; NumPy stops at 10000 characters")
    folder.refused("npy/header_length_0.npy", npy(length=0), "header length 0")
    folder.refused("npy/header_length_65535.npy", npy(length=65535), "header longer than the file")
    folder.refused("npy/header_length_4_gib.npy", npy(version=2, length=2**32 - 1),
                   "header of 4 GiB in a file of 152 bytes")
    folder.refused("npy/magic.npy", npy(magic=b"\x93NUMPX"), "wrong magic")
    folder.refused("npy/version_0.npy", npy(version=0), "format version 0.0")
    folder.refused("npy/version_4.npy", npy(version=4), "format version 4.0")
    folder.refused("npy/is_text.npy", "1,2,3\n4,5,6\n", "CSV under the name of an array")
    folder.either("npy/longer.npy", npy() + b"more", "bytes after the numbers; NumPy ignores them")

    folder.valid("npy/valid_unaligned.npy", npy(align=1), "a header without padding")
    folder.valid("npy/valid_align_16.npy", npy(align=16), "padded to 16 as before NumPy 1.14")
    folder.valid("npy/valid_other_order.npy",
                 npy("{'shape': (2, 3), 'fortran_order': False, 'descr': '<f4'}"),
                 "keys in another order, no last comma")
    folder.valid("npy/valid_dense.npy", npy("{'descr':'<f4','fortran_order':False,'shape':(2,3)}"),
                 "no spaces")
    folder.valid("npy/valid_double_quotes.npy",
                 npy('{"descr": "<f4", "fortran_order": False, "shape": (2, 3)}'), "double quotes")
    folder.valid("npy/valid_version_2.npy", npy(version=2), "format version 2.0")


# ---- .npz ------------------------------------------------------------------------------------

def deflate(data, level=9, strategy=zlib.Z_DEFAULT_STRATEGY):
    packer = zlib.compressobj(level, zlib.DEFLATED, -15, 9, strategy)
    return packer.compress(data) + packer.flush()


class Entry:
    """A member of a zip file; its local header and directory entry can be set separately."""

    def __init__(self, name="x.npy", data=None, method=0, stored=None, **fields):
        data = npy() if data is None else data
        self.name = name if isinstance(name, bytes) else name.encode()
        self.packed = stored if stored is not None else deflate(data) if method == 8 else data
        self.said = {"version": 20, "flags": 0, "method": method, "date": 0x21,
                     "crc": zlib.crc32(data), "packed": len(self.packed),
                     "size": len(data), "disk": 0, "extra": b"", "offset": None,
                     "descriptor": b"", "name": self.name} | fields

    def value(self, key, side):
        return self.said.get(f"{side}_{key}", self.said[key])

    def fields(self, side):
        get = lambda key: self.value(key, side)
        return struct.pack("<HHHHHIIIHH", get("version"), get("flags"), get("method"), 0,
                           get("date"), get("crc"), get("packed"), get("size"), len(get("name")),
                           len(get("extra")))

    def local(self):
        return (b"PK\3\4" + self.fields("local") + self.value("name", "local")
                + self.value("extra", "local") + self.packed + self.said["descriptor"])

    def central(self, offset):
        if self.said["offset"] is not None:
            offset = self.said["offset"]
        return (b"PK\1\2" + struct.pack("<H", 20) + self.fields("central")
                + struct.pack("<HHHII", 0, self.said["disk"], 0, 0, offset)
                + self.value("name", "central") + self.value("extra", "central"))


def end_record(count, size, offset, comment=b"", disk=0, total=None, comment_length=None):
    return b"PK\5\6" + struct.pack(
        "<HHHHIIH", disk, disk, count, count if total is None else total, size, offset,
        len(comment) if comment_length is None else comment_length) + comment


def zip64_records(count, size, offset, record_offset):
    return (b"PK\6\6" + struct.pack("<QHHIIQQQQ", 44, 45, 45, 0, 0, count, count, size, offset)
            + b"PK\6\7" + struct.pack("<IQI", 0, record_offset, 1))


def zipped(*entries, prefix=b"", before_end=b"", end=None, **fields):
    """A zip file; `end` replaces its last record, `fields` change that record."""
    body, central = prefix, b""
    for entry in entries:
        central += entry.central(len(body) - len(prefix))
        body += entry.local()
    said = {"count": len(entries), "size": len(central), "offset": len(body) - len(prefix)} | fields
    return body + central + before_end + (end_record(**said) if end is None else end)


def zip64_zipped(entry, **fields):
    """Count, size and offset are only in zip64 records; `fields` change these records."""
    local, central = entry.local(), entry.central(0)
    said = {"count": 1, "size": len(central), "offset": len(local),
            "record_offset": len(local) + len(central)} | fields
    return local + central + zip64_records(**said) + end_record(0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF)


def crc_of_zeros(crc, count):
    """The CRC-32 of what had `crc`, with `count` zero bytes after it: zlib's crc32_combine."""
    def times(matrix, vector):
        result = 0
        for column in matrix:
            if vector & 1:
                result ^= column
            vector >>= 1
        return result
    one = [0xEDB88320] + [1 << n for n in range(31)]  # one zero bit
    for _ in range(3):
        one = [times(one, column) for column in one]  # one zero byte
    crc ^= 0xFFFFFFFF
    while count:
        if count & 1:
            crc = times(one, crc)
        one, count = [times(one, column) for column in one], count >> 1
    return crc ^ 0xFFFFFFFF


def bomb(head, zeros, said_size=None):
    """`head` and then zeros, deflated about 1000 to 1: one block, packed once and repeated."""
    block = min(zeros, 2**24)
    packer = zlib.compressobj(9, zlib.DEFLATED, -15, 9)
    start = packer.compress(head) + packer.flush(zlib.Z_FULL_FLUSH)
    repeated = packer.compress(bytes(block)) + packer.flush(zlib.Z_FULL_FLUSH)
    packed = start + repeated * (zeros // block) + packer.flush(zlib.Z_FINISH)
    total = len(head) + zeros // block * block
    fields = {"crc": crc_of_zeros(zlib.crc32(head), total - len(head)),
              "size": total if said_size is None else said_size}
    if fields["size"] >= 2**32:
        fields |= {"extra": struct.pack("<HHQQ", 1, 16, total, len(packed)), "version": 45,
                   "size": 0xFFFFFFFF, "packed": 0xFFFFFFFF}
    return zipped(Entry(method=8, stored=packed, **fields))


def make_npz(folder):
    array, plain = npy(), zipped(Entry())
    directory = len(Entry().local())
    for size, what in ((0, "nothing"), (4, "the signature alone"), (100, "half a member"),
                       (directory, "no directory"), (directory + 20, "half a directory"),
                       (len(plain) - 22, "no end record"), (len(plain) - 1, "all but a byte")):
        folder.refused(f"npz/cut_{size}.npz", plain[:size], f"cut off: {what}")
    folder.refused("npz/no_members.npz", zipped(), "no arrays")
    folder.refused("npz/member_cut.npz", zipped(Entry(data=array[:-5])),
                   "the array in it is cut off")
    folder.refused("npz/member_empty.npz", zipped(Entry(data=b"")), "the array in it is 0 bytes")
    folder.refused("npz/member_text.npz", zipped(Entry(data=b"1,2,3\n")), "the member is text")

    for name, fields, why in (
            ("size_larger", {"size": 4000}, "a stored member announces more than it has"),
            ("size_smaller", {"size": 100}, "a stored member announces less than it has"),
            ("packed_larger", {"packed": 100000}, "a member longer than the file"),
            ("packed_4_gib", {"packed": 0xFFFFFFFF}, "4 GiB, without the zip64 field it needs"),
            ("size_4_gib", {"size": 0xFFFFFFFF}, "4 GiB, without the zip64 field it needs"),
            ("offset_beyond", {"offset": 0x7FFFFFFF}, "the member begins beyond the file"),
            ("offset_wrong", {"offset": 7}, "there is no member where the directory says"),
            ("offset_4_gib", {"offset": 0xFFFFFFFF}, "an offset without its zip64 field"),
            ("encrypted", {"flags": 1}, "encrypted"),
            ("strongly_encrypted", {"flags": 0x41}, "encrypted"),
            ("crc", {"crc": 0x12345678}, "wrong CRC"),
            ("method_97", {"method": 97}, "unknown compression"),
            ("local_name", {"local_name": b"y.npy"}, "local header and directory differ"),
            ("zip64_offset", {"offset": 0xFFFFFFFF,
                              "central_extra": struct.pack("<HHQ", 1, 8, 2**63 + 5)},
             "a zip64 offset of 2^63"),
            ("zip64_size", {"size": 0xFFFFFFFF, "packed": 0xFFFFFFFF,
                            "extra": struct.pack("<HHQQ", 1, 16, 2**64 - 1, 2**64 - 1)},
             "zip64 sizes of 2^64 - 1"),
            ("zip64_wraps", {"packed": 0xFFFFFFFF, "size": 0xFFFFFFFF, "extra": struct.pack(
                "<HHQQ", 1, 16, len(array), 2**64 - 40)}, "offset and size wrap round"),
            ("zip64_short", {"size": 0xFFFFFFFF, "extra": struct.pack("<HHI", 1, 4, 5)},
             "a zip64 field of 4 bytes")):
        folder.refused(f"npz/{name}.npz", zipped(Entry(**fields)), why)
    folder.either("npz/disk.npz", zipped(Entry(disk=3)), "the member is on another disk")
    folder.either("npz/name_zero_byte.npz", zipped(Entry(b"x\0.npy")), "a zero byte in the name")
    folder.either("npz/extra_beyond.npz",
                  zipped(Entry(extra=struct.pack("<HH", 0x7075, 60000))),
                  "an extra field that ends beyond the extra fields")

    for method, name, packed in ((12, "bzip2", bz2.compress(array)),
                                 (14, "lzma", b"\x09\x04\x05\x00" + lzma.compress(
                                     array, lzma.FORMAT_RAW, filters=[{"id": lzma.FILTER_LZMA1}]))):
        folder.refused(f"npz/method_{name}.npz", zipped(Entry(method=method, stored=packed)),
                       f"compressed with {name}, which NumPy does not write")
    packed = deflate(array)
    folder.refused("npz/deflate_junk.npz", zipped(Entry(method=8, stored=b"\xff" * 50)),
                   "no deflate stream")
    folder.refused("npz/deflate_cut.npz", zipped(Entry(method=8, stored=packed[:-9])),
                   "the deflate stream is cut off")
    folder.refused("npz/deflate_distance.npz",
                   zipped(Entry(method=8, stored=bytes([0x4B, 0x04, 0x43, 0x00]))),
                   "the deflate stream points before its start or ends early")
    folder.refused("npz/deflate_size_smaller.npz", zipped(Entry(method=8, size=100)),
                   "inflates to more than it announces")
    folder.refused("npz/deflate_size_larger.npz", zipped(Entry(method=8, size=10**9)),
                   "inflates to less than it announces")
    folder.refused("npz/deflate_zlib_wrapped.npz",
                   zipped(Entry(method=8, stored=zlib.compress(array))),
                   "a zlib stream where a bare deflate stream is expected")
    folder.either("npz/deflate_more.npz", zipped(Entry(method=8, stored=packed + b"more")),
                  "bytes after the end of the deflate stream")

    first = Entry("a.npy", data=array + Entry("x.npy").local())
    folder.refused("npz/overlap.npz", zipped(first, Entry(offset=len(first.local()) - len(
        Entry().local()))), "a member inside another's bytes")
    kernel = Entry("x.npy", npy(header(shape="(262144,)"), bytes(2**20)), method=8)
    local, count = kernel.local(), 20000
    central = b"".join(
        Entry(f"{n:05}.npy", b"", method=8, crc=kernel.said["crc"], stored=kernel.packed,
              central_size=kernel.said["size"]).central(0) for n in range(count))
    folder.refused("npz/overlap_bomb.npz",
                   local + central + end_record(count, len(central), len(local)),
                   "20000 members that share 1 KB, 20 GB inflated")
    zeros = 10 * GIB // folder.shrink // 2**24 * 2**24
    folder.refused("npz/bomb_lying.npz", bomb(npy(), zeros, len(npy())),
                   "announces 152 bytes, inflates to 10 GiB")
    folder.either("npz/bomb_trailing.npz", bomb(npy(), zeros),
                  "10 GiB of zeros after a small array")
    honest = npy(header(shape=f"({zeros // 4},)"), b"")
    folder.either("npz/bomb_honest.npz", bomb(honest, zeros),
                  "an array of 10 GiB, zeros, in 10 MB: refused where memory does not allow it")

    folder.refused("npz/twice.npz", zipped(Entry(), Entry(data=npy(data=bytes(24)))),
                   "two members of one name")
    folder.refused("npz/count_larger.npz", zipped(Entry(), count=2),
                   "one member less than announced")
    folder.refused("npz/count_65534.npz", zipped(Entry(), count=65534), "65534 members announced")
    folder.refused("npz/count_smaller.npz", zipped(Entry(), Entry("y.npy"), count=1),
                   "one member more than announced")
    folder.refused("npz/directory_beyond.npz", zipped(Entry(), offset=10**6),
                   "the directory is beyond the file")
    folder.refused("npz/directory_size.npz", zipped(Entry(), size=10**6),
                   "the directory is larger than the file")
    folder.refused("npz/directory_in_member.npz", zipped(Entry(), offset=30),
                   "there is no directory where the end record says")
    folder.either("npz/end_disk.npz", zipped(Entry(), disk=1), "one of several disks")
    folder.either("npz/comment_length.npz", zipped(Entry(), comment_length=500),
                  "a comment that ends beyond the file")
    folder.either("npz/comment_end_record.npz", zipped(Entry(), comment=b"PK\5\6" + bytes(30)),
                  "a comment that looks like an end record of nothing")
    for name, fields, why in (
            ("record", {"record_offset": 2**64 - 8}, "the zip64 record is at 2^64 - 8"),
            ("offset", {"offset": 2**63}, "zip64: the directory is at 2^63"),
            ("offset_wraps", {"offset": 2**64 - 10, "size": 200}, "zip64: offset and size wrap"),
            ("size", {"size": 2**60}, "zip64: a directory of 2^60 bytes"),
            ("count", {"count": 2**60}, "zip64: 2^60 members")):
        folder.refused(f"npz/zip64_end_{name}.npz", zip64_zipped(Entry(), **fields), why)
    folder.refused("npz/zip64_end_missing.npz",
                   zipped(Entry(), end=end_record(0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF)),
                   "the end record points at zip64 records that are not there")
    for name, member in (("up", "../outside.npy"), ("absolute", "/tmp/outside.npy"),
                         ("backslash", "..\\outside.npy"), ("empty", ""), ("suffix", ".npy")):
        folder.either(f"npz/name_{name}.npz", zipped(Entry(member)),
                      f"a member called {member!r}: a name and never a path")
    folder.either("npz/name_64_kb.npz", zipped(Entry("x" * 65000 + ".npy")),
                  "a name of 65004 bytes")
    folder.either("npz/prefix.npz", zipped(Entry(), prefix=b"#!/bin/sh\nexit\n"),
                  "text before the first member, as in self-extracting files")

    def described(signature, wide, method=8):
        entry = Entry(method=method)
        numbers = struct.pack("<IQQ" if wide else "<III", entry.said["crc"], len(entry.packed),
                              entry.said["size"])
        extra = struct.pack("<HHQQ", 1, 16, 0, 0) if wide else b""
        size = 0xFFFFFFFF if wide else 0
        return zipped(Entry(method=method, flags=8, local_crc=0, local_packed=size, local_size=size,
                            local_extra=extra, version=45 if wide else 20,
                            descriptor=(b"PK\7\10" if signature else b"") + numbers))

    folder.valid("npz/valid_descriptor.npz", described(True, False), "sizes after the member")
    folder.valid("npz/valid_descriptor_bare.npz", described(False, False),
                 "sizes after the member, without a signature")
    folder.valid("npz/valid_descriptor_zip64.npz", described(True, True),
                 "sizes of 64 bits after the member")
    folder.valid("npz/valid_descriptor_stored.npz", described(True, False, 0),
                 "sizes after the member, which is not compressed")
    folder.valid("npz/valid_stored_blocks.npz", zipped(Entry(method=8, stored=deflate(array, 0))),
                 "deflate: stored blocks")
    folder.valid("npz/valid_fixed_codes.npz",
                 zipped(Entry(method=8, stored=deflate(array, 9, zlib.Z_FIXED))),
                 "deflate: fixed codes")
    folder.valid("npz/valid_huffman_only.npz",
                 zipped(Entry(method=8, stored=deflate(array, 9, zlib.Z_HUFFMAN_ONLY))),
                 "deflate: no matches")
    blocks = [array[n:n + 50] for n in range(0, len(array), 50)]
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = b"".join(packer.compress(block) + packer.flush(zlib.Z_SYNC_FLUSH) for block in blocks)
    folder.valid("npz/valid_many_blocks.npz",
                 zipped(Entry(method=8, stored=packed + packer.flush())),
                 "deflate: several blocks, empty ones among them")
    folder.valid("npz/valid_zip64_member.npz", zipped(Entry(
        version=45, local_size=0xFFFFFFFF, local_packed=0xFFFFFFFF,
        local_extra=struct.pack("<HHQQ", 1, 16, len(array), len(array)))),
        "sizes in a zip64 field of the local header, as NumPy writes")
    folder.valid("npz/valid_zip64_central.npz", zipped(Entry(
        version=45, size=0xFFFFFFFF, packed=0xFFFFFFFF, offset=0xFFFFFFFF,
        local_extra=struct.pack("<HHQQ", 1, 16, len(array), len(array)),
        central_extra=struct.pack("<HHQQQ", 1, 24, len(array), len(array), 0))),
        "sizes and offset in a zip64 field of the directory")
    folder.valid("npz/valid_zip64_end.npz", zip64_zipped(Entry(version=45)),
                 "zip64 end records though nothing is large")
    folder.valid("npz/valid_comment.npz", zipped(Entry(), comment=b"a comment " * 5000),
                 "a comment of 50 KB at the end")
    folder.valid("npz/valid_extra.npz", zipped(Entry(
        local_extra=struct.pack("<HHBI", 0x5455, 5, 1, 0) + struct.pack("<HH", 0xCAFE, 0),
        central_extra=struct.pack("<HHBI", 0x5455, 5, 1, 0))),
        "other extra fields, of different lengths in local header and directory")
    folder.valid("npz/valid_beside.npz", zipped(
        Entry("folder/", b""), Entry("readme.txt", b"text"), Entry("\u00fc.npy", flags=0x800),
        Entry()),
        "a folder, a text and a name in UTF-8 beside x")
    folder.valid("npz/valid_date.npz", zipped(Entry(date=0)), "month 0, day 0")


# ---- .safetensors ----------------------------------------------------------------------------

def info(dtype='"F32"', shape="[2,3]", offsets="[0,24]", more=""):
    return f'{{"dtype":{dtype},"shape":{shape},"data_offsets":{offsets}{more}}}'


def tensors(text=None, data=NUMBERS, length=None, pad=True):
    text = '{"x":' + info() + "}" if text is None else text
    text = text if isinstance(text, bytes) else text.encode()
    text += b" " * (-len(text) % 8) if pad else b""
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def make_safetensors(folder):
    whole = tensors()
    for size, what in ((0, "nothing"), (5, "half a header length"), (8, "no header"),
                       (30, "half a header"), (len(whole) - 24, "no numbers"),
                       (len(whole) - 1, "all but a byte")):
        folder.refused(f"safetensors/cut_{size}.safetensors", whole[:size], f"cut off: {what}")
    for name, length, why in (
            ("0", 0, "header length 0"), ("1", 1, "header length 1"),
            ("file", len(whole), "the header is longer than the file"),
            ("2_32", 2**32, "a header of 4 GiB"), ("2_63", 2**63, "a header of 2^63 bytes"),
            ("2_64", 2**64 - 1, "a header of 2^64 - 1 bytes"), ("wraps", 2**64 - 8, "8 + it is 0")):
        folder.refused(f"safetensors/length_{name}.safetensors", tensors(length=length), why)
    large = 100_000_001 // folder.shrink
    folder.refused("safetensors/length_100_mb.safetensors", joined(
        struct.pack("<Q", large), b'{"x":' + info().encode() + b"}",
        repeat(b" ", large - len('{"x":' + info() + "}")), NUMBERS) if folder.shrink == 1 else
        struct.pack("<Q", 100_000_001) + b"{}", "a header of more than 100 MB")

    for name, text, why in (
            ("text", "hello, world", "no JSON"), ("array", "[" + info() + "]", "not an object"),
            ("number", "12345678", "not an object"), ("null", "null", "not an object"),
            ("open", '{"x":' + info(), "the object is not closed"),
            ("more", '{"x":' + info() + "} {}", "more after the object"),
            ("spaces_before", '   {"x":' + info() + "}", "the format begins with {"),
            ("zeros_after", ('{"x":' + info() + "}").encode() + bytes(10),
             "padded with zero bytes"),
            ("byte_order_mark", b"\xef\xbb\xbf" + ('{"x":' + info() + "}").encode(),
             "a byte-order mark"),
            ("not_utf8", b'{"\xff\xfe":' + info().encode() + b"}", "not UTF-8"),
            ("lone_surrogate", '{"\\ud800":' + info() + "}", "half a surrogate pair"),
            ("deep_arrays", "[" * 100000, "100000 arrays inside each other"),
            ("deep_objects", '{"a":' * 100000, "100000 objects inside each other"),
            ("deep_metadata", '{"x":' + info() + ',"__metadata__":' + "[" * 100000 + "]" * 100000
             + "}", "100000 arrays inside each other"),
            ("deep_shape", '{"x":' + info(shape="[" * 50000 + "]" * 50000) + "}",
             "50000 arrays as a shape"),
            ("same_name", '{"x":' + info() + ',"x":' + info(offsets="[24,48]") + "}",
             "a name twice"),
            ("same_name_escaped", '{"x":' + info() + ',"\\u0078":' + info(offsets="[24,48]") + "}",
             "a name twice, once escaped"),
            ("same_key", '{"x":' + info(more=',"shape":[3,2]') + "}", "a key twice"),
            ("metadata_numbers", '{"__metadata__":{"a":1},"x":' + info() + "}",
             "metadata that are no text"),
            ("metadata_array", '{"__metadata__":["a"],"x":' + info() + "}", "metadata as an array"),
            ("tensor_text", '{"x":"F32"}', "a text in place of a tensor"),
            ("no_dtype", '{"x":{"shape":[2,3],"data_offsets":[0,24]}}', "a key is missing"),
            ("no_shape", '{"x":{"dtype":"F32","data_offsets":[0,24]}}', "a key is missing"),
            ("no_offsets", '{"x":{"dtype":"F32","shape":[2,3]}}', "a key is missing"),
            ("comment", '{/* */"x":' + info() + "}", "a comment"),
            ("single_quotes", ('{"x":' + info() + "}").replace('"', "'"), "single quotes"),
            ("nan", '{"x":' + info(shape="[NaN,3]") + "}", "not a number")):
        data = NUMBERS * 2 if name.startswith("same_name") else NUMBERS
        folder.refused(f"safetensors/header_{name}.safetensors", tensors(text, data), why)
    folder.refused("safetensors/header_empty.safetensors", tensors("{}", b""), "no tensors")

    for name, fields, why in (
            ("dtype_unknown", {"dtype": '"F99"'}, "no such dtype"),
            ("dtype_number", {"dtype": "32"}, "a number as dtype"),
            ("dtype_lower_case", {"dtype": '"f32"'}, "dtypes are upper case"),
            ("dtype_1_mb", {"dtype": '"' + "F" * 10**6 + '"'}, "a dtype of 1 MB"),
            ("shape_negative", {"shape": "[-2,-3]"}, "negative sizes, whose product fits"),
            ("shape_float", {"shape": "[2.0,3]"}, "a size with a point"),
            ("shape_exponent", {"shape": "[6e0]"}, "a size with an exponent"),
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
            ("offsets_three", {"offsets": "[0,24,24]"}, "three offsets"),
            ("offsets_text", {"offsets": '"0,24"'}, "offsets as a text")):
        folder.refused(f"safetensors/{name}.safetensors", tensors('{"x":' + info(**fields) + "}"),
                       why)

    def pair(first, second):
        return '{"x":' + info(offsets=first) + ',"y":' + info(offsets=second) + "}"

    folder.refused("safetensors/offsets_overlap.safetensors",
                   tensors(pair("[0,24]", "[16,40]"), NUMBERS + NUMBERS[8:]), "two tensors overlap")
    folder.refused("safetensors/offsets_same.safetensors", tensors(pair("[0,24]", "[0,24]")),
                   "two tensors of the same bytes")
    folder.refused("safetensors/offsets_hole.safetensors",
                   tensors(pair("[0,24]", "[32,56]"), NUMBERS + bytes(8) + NUMBERS), "a hole")
    folder.refused("safetensors/offsets_hole_before.safetensors",
                   tensors('{"x":' + info(offsets="[8,32]") + "}", bytes(8) + NUMBERS),
                   "a hole before the first tensor")
    folder.refused("safetensors/longer.safetensors", tensors() + b"more", "bytes after the tensors")
    folder.refused("safetensors/is_pickle.safetensors",
                   b"\x80\x02}q\x00(X\x01\x00\x00\x00xq\x01K\x01u.",
                   "a pickle under another name")
    folder.either("safetensors/dtype_f8.safetensors",
                  tensors('{"x":' + info('"F8_E4M3"', offsets="[0,6]") + "}", bytes(6)), "float8")
    folder.either("safetensors/key_more.safetensors",
                  tensors('{"x":' + info(more=',"note":"more"') + "}"), "a fourth key")
    folder.either("safetensors/shape_0_huge.safetensors", tensors(
        '{"x":' + info(shape="[0,4611686018427387904,8]", offsets="[0,0]") + "}", b""),
        "no elements, beside sizes whose product wraps round")

    folder.valid("safetensors/valid_unpadded.safetensors", tensors(pad=False), "no padding")
    folder.valid("safetensors/valid_spread.safetensors", tensors(
        '{\n "x" : { "shape" : [ 2 , 3 ],\t"data_offsets" : [ 0 , 24 ],'
        ' "dtype" : "F32" }\r\n}\n\t '),
        "white space, keys in another order")
    folder.valid("safetensors/valid_escapes.safetensors", tensors(
        '{"\\u0078":' + info() + ',"\\ud83d\\ude00 \\"\\\\\\/":'
        + info(shape="[0]", offsets="[24,24]") + "}"), "escaped names, a surrogate pair")
    folder.valid("safetensors/valid_reversed.safetensors", tensors(
        '{"y":' + info(offsets="[24,48]") + ',"x":' + info() + "}", NUMBERS * 2),
        "the header's order is not that of the bytes")
    folder.valid("safetensors/valid_odd_offset.safetensors", tensors(
        '{"b":' + info('"U8"', "[3]", "[0,3]") + ',"x":' + info(offsets="[3,27]") + "}",
        b"abc" + NUMBERS), "floats at an odd offset")
    many = ",".join(f'"t{n}":' + info(shape="[0]", offsets="[24,24]") for n in range(20000))
    folder.valid("safetensors/valid_20000_tensors.safetensors",
                 tensors('{"x":' + info() + "," + many + "}"), "20000 empty tensors beside x")
    heads = ",".join(f'"heads.{n}.W_{part}.weight":' + info(shape="[0]", offsets="[24,24]")
                     for n in range(20000) for part in ("query", "key", "value"))
    folder.refused("safetensors/many_heads.safetensors",
                   tensors('{"x":' + info() + "," + heads + "}"), "20000 heads without a number")

    def sparse(out):
        text = ('{"zeros":' + info('"U8"', f"[{4 * GIB}]", f"[0,{4 * GIB}]") + ',"x":'
                + info(offsets=f"[{4 * GIB},{4 * GIB + 24}]") + "}")
        out.write(tensors(text, b""))
        out.seek(4 * GIB, 1)
        out.write(NUMBERS)
    folder.valid("safetensors/valid_4_gib.safetensors", sparse,
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
    index("deep", '{"weight_map":' + '{"a":' * 100000, "refused",
          "100000 objects inside each other")
    index("twice", '{"weight_map":{"x":"a.safetensors","x":"b.safetensors"}}', "refused",
          "a name twice", shard | {"b.safetensors": tensors(data=bytes(24))})
    index("many", {f"t{n}": f"{n}.safetensors" for n in range(50000)}, "refused",
          "50000 files that are not there")
    index("valid", {"x": "a.safetensors", "y": "b.safetensors"}, "valid", "two files",
          shard | {"b.safetensors": tensors('{"y":' + info() + "}")})


# ---- JSON and CSV ----------------------------------------------------------------------------

def make_json(folder):
    million, shrink = 10**6, folder.shrink
    for name, content, why in (
            ("deep_arrays", "[" * million, "10^6 arrays inside each other"),
            ("deep_arrays_closed", "[" * million + "1" + "]" * million, "10^6 axes"),
            ("deep_objects", '{"a":' * million, "10^6 objects inside each other"),
            ("deep_inputs", '{"inputs":' + "[" * million + "]" * million + "}", "10^6 axes, empty"),
            ("number_100_mb", joined(b"[[", repeat(b"7", 100 * million // shrink), b"]]"),
             "one number of 100 MB, beyond every float"),
            ("open_string", '{"inputs', "a string is not closed"),
            ("open_string_50_mb", joined(b'["', repeat(b"a", 50 * million // shrink)),
             "a string of 50 MB is not closed"),
            ("open_escape", '["\\', "an escape is not finished"),
            ("open_unicode", '["\\u12', "an escape is not finished"),
            ("escapes_10_mb",
             joined(b'["', repeat(b"\\u0000", 12 * million // shrink // 6 * 6), b'"]'),
             "a string of zero bytes in place of numbers"),
            ("lone_surrogate", '{"\\ud800": [[1,2,3]]}', "half a surrogate pair as a key"),
            ("zero_byte", b"[[1,2,3],\0[4,5,6]]", "a zero byte"),
            ("control_character", b'{"inputs\x01": [[1]]}', "a control character in a string"),
            ("not_utf8", b'{"\xff": [[1]]}', "not UTF-8"),
            ("utf16", '[[1,2,3],[4,5,6]]'.encode("utf-16"), "UTF-16"),
            ("exponent", "[[1e999999999, 2, 3]]", "an exponent beyond every float"),
            ("exponent_digits", "[[1e" + "9" * 100000 + "]]", "an exponent of 100000 digits"),
            ("minus", "[[-, 1]]", "a sign without digits"), ("plus", "[[+1, 1]]", "a plus sign"),
            ("leading_zero", "[[01, 1]]", "a zero before a number"),
            ("point", "[[1., .5]]", "a point without digits"),
            ("hexadecimal", "[[0x10, 1]]", "a hexadecimal number"),
            ("ragged", "[[1,2,3],[4,5]]", "rows of different lengths"),
            ("ragged_depth", "[[1,2,3],[4,5,[6]]]", "numbers at different depths"),
            ("empty_rows", "[[],[]]", "no columns"), ("empty", "[]", "no rows"),
            ("text", '[["1","2"],["3","4"]]', "numbers in quotes"),
            ("null", "[[1,null],[2,3]]", "null in place of a number"),
            ("two", "[[1,2]] [[3,4]]", "two texts"), ("comma", "[[1,2],[3,4],]", "a last comma"),
            ("comment", "[[1,2], // comment\n[3,4]]", "a comment"),
            ("open", "[[1,2,3],[4,5,6]", "an array is not closed"),
            ("closed_twice", "[[1,2,3],[4,5,6]]]", "closed once too often"),
            ("same_key", '{"inputs": [[1,2]], "inputs": [[3,4]]}', "a key twice")):
        folder.refused(f"json/{name}.json", content, why)
    folder.refused("json/escaped_twice.json", '{"inputs": [[1,2]], "\\u0069nputs": [[3,4]]}',
                   "a key twice, once escaped")
    folder.either("json/point_1_mb.json", "[[1." + "0" * million + ", 2, 3], [4, 5, 6]]",
                  "a number of 10^6 digits, 1")
    folder.either("json/small_exponent.json", "[[1e-999999999, 2, 3], [4, 5, 6]]", "nearly 0")
    folder.either("json/keys_100000.json", "{" + ",".join(
        f'"k{n}":{n}' for n in range(100000)) + ',"inputs":[[1,2,3],[4,5,6]]}',
                  "100000 unknown keys")
    folder.valid("json/valid.json", "\ufeff [[1, 2.0, 3e0],\r\n\t[40E-1, 5, 6.000]] \n",
                 "a byte-order mark, white space, every way to write a number")


def make_csv(folder):
    million, shrink = 10**6, folder.shrink
    for name, content, why in (
            ("number_50_mb", repeat(b"7", 50 * million // shrink), "one number of 50 MB"),
            ("open_quote_50_mb", joined(b'1,"', repeat(b"2,", 50 * million // shrink)),
             "a quote of 50 MB is not closed"),
            ("open_quote", '1,2,3\n4,"5,6\n', "a quote is not closed"),
            ("after_quote", '1,2,3\n4,"5"5,6\n', "text after a closing quote"),
            ("ragged", "1,2,3\n4,5\n", "rows of different lengths"),
            ("longer", "1,2,3\n4,5,6,7\n", "rows of different lengths"),
            ("empty_field", "1,2,3\n4,,6\n", "a number is missing"),
            ("word", "1,2,3\n4,five,6\n", "a word in place of a number"),
            ("formula", "1,2,3\n4,=1+4,6\n", "a formula in place of a number"),
            ("date", "1,2,3\n4,2024-05-06,6\n", "a date in place of a number"),
            ("overflow", "1,2,3\n4,1e999,6\n", "a number beyond every float"),
            ("zero_byte", b"1,2,3\n4,5\0,6\n", "a zero byte"),
            ("not_utf8", b"1,2,3\n4,\xff,6\n", "not UTF-8"),
            ("utf16", "1,2,3\n4,5,6\n".encode("utf-16"), "UTF-16"),
            ("png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01", "a picture"),
            ("pickle", b"\x80\x04\x95\x05\x00\x00\x00\x00\x00\x00\x00K\x01.", "a pickle"),
            ("header_alone", "a,b,c\n", "no rows"), ("comments_alone", "# a\n# b\n", "no rows"),
            ("newlines", "\n" * million, "nothing but a million line ends"),
            ("commas", ",,,\n,,,\n", "nothing but commas"),
            ("spaces_10_mb", repeat(b" ", 10 * million // shrink), "nothing but spaces"),
            ("labels_alone", "a\nb\nc\n", "labels without numbers"),
            ("thousands_header", "1 000,2 000,3 000\n4,5,6\n", "a first row of damaged numbers"),
            ("missing_header", "NA,NA,NA\n4,5,6\n", "a first row of missing values"),
            ("missing_label", "NA,2,3\n4,5,6\n", "a missing value in the first column"),
            ("word_label", "the,2,3\n4,5,6\n", "a word above numbers in the first column"),
            ("hash_row", "##ing,2,3\nthe,5,6\n", "a row that could be a comment"),
            ("hash_later", "1,2,3\n#4,5,6\n", "a comment that could be a row"),
            ("counting", "0,1,2\n3,4,5\n", "a first row that could be a header"),
            ("empty_row", "1,2,3\n,,\n4,5,6\n", "a row of missing values between others")):
        folder.refused(f"csv/{name}.csv", content, why)
    folder.either("csv/line_50_mb.csv", repeat(b"1,", 50 * million // shrink - 1),
                  "one row of 25 million numbers: no room for its weights")
    folder.either("csv/comment_50_mb.csv",
                  joined(b"#", repeat(b"a", 50 * million // shrink), b"\n1,2,3\n4,5,6\n"),
                  "a comment of 50 MB before the numbers")
    folder.either("csv/carriage_returns.csv", "1,2,3\r4,5,6\r", "line ends of old Macs")
    folder.either("csv/quoted_newline.csv", '"to\nken",1,2,3\nb,4,5,6\n',
                  "a line end inside a label")
    folder.valid("csv/valid.csv", '\ufeff# comment\r\n"a","b",c\r\n1,"2",3e0\r\n\r\n4.,5,+6',
                 "a byte-order mark, quotes, Windows line ends, an empty line, no last line end")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--small", action="store_true", help="large files at a hundredth")
    options = parser.parse_args()
    folder = Folder(options.folder, options.small)
    folder.path.mkdir(parents=True, exist_ok=True)
    for make in (make_npy, make_npz, make_safetensors, make_indexes, make_json, make_csv):
        make(folder)
    (folder.path / "manifest.json").write_text(json.dumps(
        {"matrix": MATRIX, "files": folder.records}, indent=1) + "\n")
    counts = {kind: sum(record["expect"] == kind for record in folder.records)
              for kind in ("refused", "valid", "either")}
    print(f"{len(folder.records)} files in {options.folder}: "
          + ", ".join(f"{count} {kind}" for kind, count in counts.items()))


if __name__ == "__main__":
    main()
