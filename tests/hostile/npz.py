"""Malformed and odd .npz files: entries of a zip file by hand."""
import bz2
import functools
import lzma
import struct
import zlib

from hostile.folder import GIB
from hostile.npy import header, npy


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


@functools.lru_cache(None)
def crc_with_zeros(head, blocks, block):
    crc = zlib.crc32(head)
    for _ in range(blocks):
        crc = zlib.crc32(bytes(block), crc)
    return crc


def bomb(head, zeros, said_size=None):
    """`head` and then zeros, deflated about 1000 to 1: one block, packed once and repeated."""
    block = min(zeros, 2**24)
    packer = zlib.compressobj(9, zlib.DEFLATED, -15, 9)
    start = packer.compress(head) + packer.flush(zlib.Z_FULL_FLUSH)
    repeated = packer.compress(bytes(block)) + packer.flush(zlib.Z_FULL_FLUSH)
    packed = start + repeated * (zeros // block) + packer.flush(zlib.Z_FINISH)
    total = len(head) + zeros // block * block
    fields = {"crc": crc_with_zeros(head, zeros // block, block),
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
        folder.refused(f"cut_{size}", plain[:size], f"cut off: {what}")
    folder.refused("no_members", zipped(), "no arrays")
    folder.refused("member_cut", zipped(Entry(data=array[:-5])), "the array in it is cut off")
    folder.refused("member_empty", zipped(Entry(data=b"")), "the array in it is 0 bytes")
    folder.refused("member_text", zipped(Entry(data=b"1,2,3\n")), "the member is text")

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
            ("zip64_short", {"size": 0xFFFFFFFF, "extra": struct.pack("<HHI", 1, 4, 5)}, "a zip64 field of 4 bytes")):
        folder.refused(name, zipped(Entry(**fields)), why)
    folder.either("disk", zipped(Entry(disk=3)), "the member is on another disk")
    folder.either("name_zero_byte", zipped(Entry(b"x\0.npy")), "a zero byte in the name")
    folder.either("extra_beyond", zipped(Entry(extra=struct.pack("<HH", 0x7075, 60000))),
                  "an extra field that ends beyond the extra fields")

    for method, name, packed in ((12, "bzip2", bz2.compress(array)),
                                 (14, "lzma", b"\x09\x04\x05\x00" + lzma.compress(
                                     array, lzma.FORMAT_RAW, filters=[{"id": lzma.FILTER_LZMA1}]))):
        folder.refused(f"method_{name}", zipped(Entry(method=method, stored=packed)),
                       f"compressed with {name}, which NumPy does not write")
    packed = deflate(array)
    folder.refused("deflate_junk", zipped(Entry(method=8, stored=b"\xff" * 50)), "no deflate stream")
    folder.refused("deflate_cut", zipped(Entry(method=8, stored=packed[:-9])), "the deflate stream is cut off")
    folder.refused("deflate_distance", zipped(Entry(method=8, stored=bytes([0x4B, 0x04, 0x43, 0x00]))),
                   "the deflate stream points before its start or ends early")
    folder.refused("deflate_size_smaller", zipped(Entry(method=8, size=100)), "inflates to more than it announces")
    folder.refused("deflate_size_larger", zipped(Entry(method=8, size=10**9)), "inflates to less than it announces")
    folder.refused("deflate_zlib_wrapped", zipped(Entry(method=8, stored=zlib.compress(array))),
                   "a zlib stream where a bare deflate stream is expected")
    folder.either("deflate_more", zipped(Entry(method=8, stored=packed + b"more")),
                  "bytes after the end of the deflate stream")

    first = Entry("a.npy", data=array + Entry("x.npy").local())
    folder.refused("overlap", zipped(first, Entry(offset=len(first.local()) - len(
        Entry().local()))), "a member inside another's bytes")
    kernel = Entry("x.npy", npy(header(shape="(262144,)"), bytes(2**20)), method=8)
    local, count = kernel.local(), 20000
    central = b"".join(
        Entry(f"{n:05}.npy", b"", method=8, crc=kernel.said["crc"], stored=kernel.packed,
              central_size=kernel.said["size"]).central(0) for n in range(count))
    folder.refused("overlap_bomb", local + central + end_record(count, len(central), len(local)),
                   "20000 members that share 1 KB, 20 GB inflated")
    zeros = 10 * GIB // folder.shrink // 2**24 * 2**24
    folder.refused("bomb_lying", bomb(npy(), zeros, len(npy())), "announces 152 bytes, inflates to 10 GiB")
    folder.either("bomb_trailing", bomb(npy(), zeros), "10 GiB of zeros after a small array")
    honest = npy(header(shape=f"({zeros // 4},)"), b"")
    folder.either("bomb_honest", bomb(honest, zeros),
                  "an array of 10 GiB, zeros, in 10 MB: refused where memory does not allow it")

    folder.refused("twice", zipped(Entry(), Entry(data=npy(data=bytes(24)))), "two members of one name")
    folder.refused("count_larger", zipped(Entry(), count=2), "one member less than announced")
    folder.refused("count_65534", zipped(Entry(), count=65534), "65534 members announced")
    folder.refused("count_smaller", zipped(Entry(), Entry("y.npy"), count=1), "one member more than announced")
    folder.refused("directory_beyond", zipped(Entry(), offset=10**6), "the directory is beyond the file")
    folder.refused("directory_size", zipped(Entry(), size=10**6), "the directory is larger than the file")
    folder.refused("directory_in_member", zipped(Entry(), offset=30),
                   "there is no directory where the end record says")
    folder.either("end_disk", zipped(Entry(), disk=1), "one of several disks")
    folder.either("comment_length", zipped(Entry(), comment_length=500), "a comment that ends beyond the file")
    folder.either("comment_end_record", zipped(Entry(), comment=b"PK\5\6" + bytes(30)),
                  "a comment that looks like an end record of nothing")
    for name, fields, why in (
            ("record", {"record_offset": 2**64 - 8}, "the zip64 record is at 2^64 - 8"),
            ("offset", {"offset": 2**63}, "zip64: the directory is at 2^63"),
            ("offset_wraps", {"offset": 2**64 - 10, "size": 200}, "zip64: offset and size wrap"),
            ("size", {"size": 2**60}, "zip64: a directory of 2^60 bytes"),
            ("count", {"count": 2**60}, "zip64: 2^60 members")):
        folder.refused(f"zip64_end_{name}", zip64_zipped(Entry(), **fields), why)
    folder.refused("zip64_end_missing", zipped(Entry(), end=end_record(0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF)),
                   "the end record points at zip64 records that are not there")
    for name, member in (("up", "../outside.npy"), ("absolute", "/tmp/outside.npy"),
                         ("backslash", "..\\outside.npy"), ("empty", ""), ("suffix", ".npy")):
        folder.either(f"name_{name}", zipped(Entry(member)), f"a member called {member!r}: a name and never a path")
    folder.either("name_64_kb", zipped(Entry("x" * 65000 + ".npy")), "a name of 65004 bytes")
    folder.either("prefix", zipped(Entry(), prefix=b"#!/bin/sh\nexit\n"),
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

    folder.valid("valid_descriptor", described(True, False), "sizes after the member")
    folder.valid("valid_descriptor_bare", described(False, False), "sizes after the member, without a signature")
    folder.valid("valid_descriptor_zip64", described(True, True), "sizes of 64 bits after the member")
    folder.valid("valid_descriptor_stored", described(True, False, 0),
                 "sizes after the member, which is not compressed")
    folder.valid("valid_stored_blocks", zipped(Entry(method=8, stored=deflate(array, 0))), "deflate: stored blocks")
    folder.valid("valid_fixed_codes", zipped(Entry(method=8, stored=deflate(array, 9, zlib.Z_FIXED))),
                 "deflate: fixed codes")
    folder.valid("valid_huffman_only", zipped(Entry(method=8, stored=deflate(array, 9, zlib.Z_HUFFMAN_ONLY))),
                 "deflate: no matches")
    blocks = [array[n:n + 50] for n in range(0, len(array), 50)]
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = b"".join(packer.compress(block) + packer.flush(zlib.Z_SYNC_FLUSH) for block in blocks)
    folder.valid("valid_many_blocks", zipped(Entry(method=8, stored=packed + packer.flush())),
                 "deflate: several blocks, empty ones among them")
    folder.valid("valid_zip64_member", zipped(Entry(
        version=45, local_size=0xFFFFFFFF, local_packed=0xFFFFFFFF,
        local_extra=struct.pack("<HHQQ", 1, 16, len(array), len(array)))),
        "sizes in a zip64 field of the local header, as NumPy writes")
    folder.valid("valid_zip64_central", zipped(Entry(
        version=45, size=0xFFFFFFFF, packed=0xFFFFFFFF, offset=0xFFFFFFFF,
        local_extra=struct.pack("<HHQQ", 1, 16, len(array), len(array)),
        central_extra=struct.pack("<HHQQQ", 1, 24, len(array), len(array), 0))),
        "sizes and offset in a zip64 field of the directory")
    folder.valid("valid_zip64_end", zip64_zipped(Entry(version=45)), "zip64 end records though nothing is large")
    folder.valid("valid_comment", zipped(Entry(), comment=b"a comment " * 5000), "a comment of 50 KB at the end")
    folder.valid("valid_extra", zipped(Entry(
        local_extra=struct.pack("<HHBI", 0x5455, 5, 1, 0) + struct.pack("<HH", 0xCAFE, 0),
        central_extra=struct.pack("<HHBI", 0x5455, 5, 1, 0))),
        "other extra fields, of different lengths in local header and directory")
    folder.valid("valid_beside", zipped(
        Entry("folder/", b""), Entry("readme.txt", b"text"), Entry("\u00fc.npy", flags=0x800),
        Entry()),
        "a folder, a text and a name in UTF-8 beside x")
    folder.valid("valid_date", zipped(Entry(date=0)), "month 0, day 0")
