"""Malformed and odd files of torch.save: their pickles, opcode by opcode, in zip files and in the older form."""
import struct

from hostile.folder import NUMBERS
from hostile.npz import Entry, zipped

MAGIC, VERSION = b"\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.", b"M\xe9\x03."


def text(word):
    return b"X" + struct.pack("<I", len(word)) + word.encode()


def number(value):
    return b"\x8a\x09" + value.to_bytes(9, "little", signed=True) if abs(value) >= 2**63 else (
        b"\x8a\x08" + value.to_bytes(8, "little", signed=True))


def numbers(values):
    return b"(" + b"".join(map(number, values)) + b"t"


def name(module, word):
    return b"c" + module.encode() + b"\n" + word.encode() + b"\n"


def tensor(shape=(2, 3), strides=(3, 1), first=0, count=6, key="0", kind="FloatStorage", rebuild="_rebuild_tensor_v2"):
    storage = b"(" + text("storage") + name("torch", kind) + text(key) + text("cpu") + number(count) + b"tQ"
    return (name("torch._utils", rebuild) + b"(" + storage + number(first) + numbers(shape) + numbers(strides)
            + b"\x89}tR")


def of_x(value):
    return b"\x80\x02}" + text("x") + value + b"s."


def zip_form(pickle, data=NUMBERS, **fields):
    return zipped(Entry("a/data.pkl", pickle, **fields), Entry("a/data/0", data))


def old_form(pickle, keys=("0",), count=6, data=NUMBERS):
    head = b"".join(b"\x80\x02" + part for part in (MAGIC, VERSION, b"}."))
    return (head + pickle + b"\x80\x02(" + b"".join(map(text, keys)) + b"l."
            + b"".join(struct.pack("<q", count) + data for _ in keys))


def make_torch(folder):
    plain = of_x(tensor())
    folder.valid("zip", zip_form(plain), "a zip file")
    folder.valid("old", old_form(plain), "the form before zip files")
    folder.valid("transposed", zip_form(of_x(tensor(strides=(1, 2))), struct.pack("<6f", 1, 4, 2, 5, 3, 6)), "strides")
    folder.valid("parameter", zip_form(of_x(name("torch._utils", "_rebuild_parameter") + b"(" + tensor() + b"\x88}tR")),
                 "a parameter")
    for form, whole in (("zip", zip_form(plain)), ("old", old_form(plain))):
        for size in (*range(1, 80, 7), len(whole) - 25, len(whole) - 24, len(whole) - 1):
            folder.refused(f"{form}_cut_{size}", whole[:size], f"cut off after {size} bytes")
    command = text("touch run") + b"\x85R"
    for word in ("os.system", "posix.system", "builtins.eval", "torch.load", "argparse.Namespace", "."):
        folder.refused(f"runs_{word}", zip_form(of_x(name(*word.split(".")) + command)), "a command")
    folder.refused("runs_stack_global", zip_form(of_x(text("os") + text("system") + b"\x93" + command)),
                   "a command by STACK_GLOBAL")
    folder.refused("runs_inst", zip_form(b"(" + text("touch run") + b"ios\nsystem\n."), "a command by INST")
    for word, value, why in (
            ("shape_larger", tensor((2, 4), (4, 1)), "beyond the storage"),
            ("shape_2_63", tensor((2**62, 2), (2, 1)), "2^63 elements"),
            ("shape_wraps", tensor((2**33, 2**33), (0, 0)), "2^66 elements of one"),
            ("shape_negative", tensor((-2, -3)), "negative sizes"),
            ("shape_text", tensor().replace(numbers((2, 3)), b"(" + text("2") + number(3) + b"t"), "a size in quotes"),
            ("shape_65_bits", tensor((2**64, 3)), "a size of 65 bits"),
            ("axes_33", tensor((1,) * 33, (1,) * 33), "33 axes"),
            ("strides_wrap", tensor((2, 3), (2**63 - 1, 1)), "an offset beyond 64 bits"),
            ("strides_far", tensor((2, 3), (4, 1)), "the last element is beyond the storage"),
            ("strides_negative", tensor((2, 3), (-3, 1)), "a negative stride"),
            ("strides_one", tensor((2, 3), (1,)), "one stride for two axes"),
            ("offset_1", tensor(first=1), "the last element is beyond the storage"),
            ("offset_negative", tensor(first=-1), "before the storage"),
            ("offset_2_63", tensor(first=2**63 - 1), "far beyond the storage"),
            ("count_5", tensor(count=5), "a storage of five elements"),
            ("count_2_62", tensor(count=2**62), "a storage of 2^64 bytes, which is 0"),
            ("key_other", tensor(key="1"), "a storage that is not there"),
            ("key_path", tensor(key="../../outside.safetensors"), "a path as a key"),
            ("class_other", tensor(kind="NoStorage"), "no class of storages"),
            ("no_arguments", name("torch._utils", "_rebuild_tensor_v2") + b")R", "a tensor of nothing"),
            ("id_number", name("torch._utils", "_rebuild_tensor_v2") + b"(" + number(1) + b"QtR",
             "a number as an id"),
            ("twice", tensor() + b"s" + text("x") + tensor(), "a name twice"),
            ("cycle", b"]q\0h\0a", "a list in itself"),
            ("cycle_parameter", name("torch._utils", "_rebuild_parameter") + b"(]q\0h\0atR", "a list as a tensor"),
            ("deep", b"]" * 10**6 + b"a" * (10**6 - 1), "a million lists inside each other"),
            ("doubled", b"]q\0" + b"".join(b"](h%ch%ceq%c" % (i, i, i + 1) for i in range(60)) + b"0" * 60 + b"h\x3c",
             "2^60 lists"),
            ("memo_far", number(1) + b"r\xff\xff\xff\xff", "entry 2^32 - 1 of the memo"),
            ("memo_missing", b"h\7", "an entry of the memo that is not there"),
            ("values", b"N" * (3 << 20), "three million values"),
            ("copies", b"N" + b"2" * (20 << 20), "twenty million copies of a value"),
            ("memo_copies", b"N" + b"\x94" * (20 << 20), "twenty million entries of the memo"),
            ("text_2_64", b"\x8d" + b"\xff" * 8, "a text of 2^64 bytes"),
            ("number_2_31", b"\x8b\0\0\0\x80", "a number of 2^31 bytes"),
            ("no_mark", b"t", "a tuple without a mark"), ("no_value", b"0" * 9, "an empty stack"),
            ("odd", b"(Nd", "a key without a value"), ("opcode", b"\xff", "no opcode"),
            ("key_tuple", b"}(N\x85" + tensor() + b"u", "a tuple as a key")):
        folder.refused(word, zip_form(of_x(value)), why)
    folder.refused("pickle_nothing", zip_form(b""), "an empty pickle")
    folder.refused("pickle_33_mb", zip_form(b"\x80\x02" + b"\x95" + bytes(8) + bytes(33 << 20)), "a pickle of 33 MiB")
    folder.refused("pickle_compressed", zip_form(plain, method=8), "a compressed pickle")
    folder.refused("no_tensor", zip_form(b"\x80\x02}."), "a dictionary of nothing")
    folder.refused("no_storage", zipped(Entry("a/data.pkl", plain)), "the storage is missing")
    for word, data in (("short", NUMBERS[:-1]), ("long", NUMBERS + bytes(4))):
        folder.refused(f"storage_{word}", zip_form(plain, data), "a storage of another size")
    for word, fields, why in (
            ("keys_none", {"keys": ()}, "no storage"), ("keys_twice", {"keys": ("0", "0")}, "one twice"),
            ("keys_other", {"keys": ("1",)}, "a storage that no tensor has"),
            ("count_negative", {"count": -1}, "a negative count"), ("count_5", {"count": 5}, "a smaller count"),
            ("count_2_62", {"count": 2**62}, "a count beyond the file"),
            ("more", {"data": NUMBERS + b"1"}, "a byte after the end")):
        folder.refused(f"old_{word}", old_form(plain, **fields), why)
    folder.refused("not_torch", b"\x80\x02" + plain, "a pickle of another program")
    folder.refused("zeros", bytes(4096), "no file of torch.save")
    folder.either("expanded", zip_form(of_x(tensor((10**12,), (0,)))), "one number 10^12 times: no memory for it")
