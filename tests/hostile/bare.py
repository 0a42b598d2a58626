"""Malformed and odd numbers without a header, words of hexadecimal digits, arrays in C, TensorProto, printed arrays."""
import struct

from hostile.folder import MATRIX, NUMBERS, joined, repeat

WORDS = "0001\n0002\n0003\n0004\n0005\n0006\n"


def make_raw(folder):
    """Read as float32:2x3."""
    for size in (1, 4, 23, 25, 28):
        folder.refused(f"size_{size}", (NUMBERS + NUMBERS)[:size], "not the 24 bytes of the shape")
    folder.refused("nothing", b"", "no bytes")
    folder.refused("text", "1,2,3\n4,5,6\n", "CSV of half as many bytes")
    folder.refused("npy", b"\x93NUMPY\x01\x00" + NUMBERS, "another format")
    folder.refused("huge", repeat(b"\0", 200 * 10**6 // folder.shrink), "far too many bytes")
    folder.valid("valid", NUMBERS, "the numbers and nothing else")


def make_hex(folder):
    """Read as int16:2x3."""
    for name, content, why in (
            ("few", WORDS[:-5], "a word is missing"), ("many", WORDS + "7\n", "a word too many"),
            ("gap", WORDS[:10] + "@8\n" + WORDS[10:], "an address leaves a gap"),
            ("again", "@5\n" + WORDS[:10] + "@5\n" + WORDS[10:], "an address is repeated"),
            ("no_address", "@\n" + WORDS, "no digits of an address"),
            ("big_address", "@11112222333344445\n" + WORDS, "an address of 68 bits"),
            ("wide", WORDS.replace("0006", "10006"), "a word of 17 bits"),
            ("x", WORDS.replace("0003", "0x03x"), "an undefined digit"), ("z", WORDS.replace("0003", "zzzz"), "undefined"),
            ("sign", WORDS.replace("0003", "-3"), "a sign"), ("empty_word", WORDS.replace("0003", "0x"), "no digits"),
            ("comment", WORDS + "/* open", "a comment without an end"), ("slash", WORDS + "/", "half a comment"),
            ("intel", ":06000000000100020003C4\n:00000001FF\n", "Intel's format"), ("nothing", "// no words\n", "no words"),
            ("zero_byte", WORDS + "\0", "a zero byte"), ("digits_2_mb", joined(repeat(b"0", 2 * 10**6)), "a long word")):
        folder.refused(name, content, why)
    folder.either("comments_20_mb", joined(repeat(b"// a\n", 20 * 10**6 // folder.shrink), WORDS.encode()), "comments")
    folder.valid("valid", "// words\n@10 /* two */ 0x1 00_02\n@12\n0003 0004 // two\n5\n\n@0015 0006", "every form of a word")


def make_h(folder):
    whole = "const float x[2][3] = {{1, 2, 3}, {4, 5, 6}};\n"
    for size in range(20, len(whole) - 2, 3):
        folder.refused(f"cut_{size}", whole[:size], "cut off")
    for name, content, why in (
            ("few", "float x[2][3] = {1, 2, 3, 4, 5};", "C sets the last number to 0"),
            ("ragged", "float x[2][3] = {{1, 2, 3}, {4, 5}};", "C sets the last number to 0"),
            ("mixed", "float x[2][3] = {{1, 2, 3}, 4, 5, 6};", "a list among numbers"),
            ("designated", "float x[2][3] = {[1] = {4, 5, 6}};", "a designated initialiser"),
            ("size_2_64", "float x[4294967296][4294967296] = {1};", "the product is 2^64"),
            ("size_unknown", "float x[N][3] = {{1, 2, 3}};", "a size without a value"),
            ("twice", whole + whole, "one name twice"), ("overflow", "float x[1] = {1e39};", "beyond float32"),
            ("integer_2_63", "long x[1] = {9223372036854775808};", "beyond 63 bits"),
            ("deep", "float x[] = " + "{" * 10000 + "1" + "}" * 10000 + ";", "10000 braces in each other"),
            ("octal", "int x[1] = {010};", "an octal number"), ("axes", "float x" + "[1]" * 10000 + " = {1};", "10000 sizes"), ("comment", "/* " + whole, "an open comment"),
            ("string", 'char x[] = "' + "a" * 1000, "an open string"), ("program", "int main(void) { return x[0]; }", "no array"),
            ("expression", "float x[2] = {1 + 1, sin(2)};", "expressions")):
        folder.refused(name, content, why)
    folder.valid("valid", "#define N 2\n/* a[1] = { */ static const double x[N][3] = {{1.f, 0x1p1, 3}, {+4e0, 5L, .6E1,},};",
                 "every form of a number")


def field(number, content):
    data = content if isinstance(content, bytes) else b""
    return bytes([number << 3 | 2, len(data)]) + data if data else bytes([number << 3, content])


def make_pb(folder):
    head, raw = field(1, 2) + field(1, 3) + field(2, 1), field(9, NUMBERS)
    whole = head + field(8, b"x") + raw
    for size in range(1, len(whole)):
        folder.refused(f"cut_{size}", whole[:size], "cut off")
    huge = b"\xff" * 9 + b"\x01"
    for name, content, why in (
            ("no_data", head, "no elements"), ("twice", head + raw + field(4, NUMBERS), "elements in two fields"),
            ("other_field", head + field(7, b"\1\2\3\4\5\6"), "elements of int64 in place of float32"),
            ("type_0", whole.replace(b"\x10\x01", b"\x10\x00"), "no type"), ("type_8", whole.replace(b"\x10\x01", b"\x10\x08"), "text"),
            ("type_99", whole.replace(b"\x10\x01", b"\x10\x63"), "an unknown type"), ("external", whole + field(14, 1), "in another file"),
            ("size_2_64", b"\x08" + huge + whole, "a size of 2^64 - 1"), ("length_2_64", head + b"\x4a" + huge + NUMBERS, "a length of 2^64 - 1"),
            ("varint_11", b"\x08" + b"\xff" * 10 + b"\x01" + whole, "a number of 77 bits"), ("axes", field(1, 1) * 1000 + whole, "1000 sizes"),
            ("field_0", b"\x00\x01" + whole, "field 0"), ("field_99", whole + b"\x98\x06\x01", "field 99"),
            ("group", whole + b"\x0b", "a group"), ("name", head + field(8, b"\xff") + raw, "a name that is not UTF-8"),
            ("range", field(1, 1) + field(1, 1) + field(2, 3) + field(5, b"\xac\x02"), "300 as int8"),
            ("packed", head + field(4, NUMBERS[:-1]), "a list of 23 bytes")):
        folder.refused(name, content, why)
    folder.valid("valid", field(1, b"\2\3") + field(2, 1) + field(4, NUMBERS[:8]) + field(8, b"x") + b"".join(
        b"\x25" + struct.pack("<f", n) for row in MATRIX for n in row)[10:], "a list of elements, and elements one by one")


def make_txt(folder):
    """Printed arrays."""
    rust, lines = "[[1, 2, 3],\n [4, 5, 6]]", " 1  2  3\n 4  5  6\n"
    for name, content, why in (
            ("tf_shape", f"tf.Tensor({rust}, shape=(3, 2), dtype=float32)", "another shape"),
            ("tf_open", f"<tf.Tensor: shape=(2, 3), numpy=array({rust}", "no end"), ("tf_no_lists", "<tf.Tensor: shape=(), numpy=1>", "no axes"),
            ("candle", rust + "\nTensor[[2, 4], f32]", "another shape"), ("mxnet", rust + "\n<NDArray 9x9 @cpu(0)>", "another shape"),
            ("paddle", "Tensor(shape=[2, 3], stop_gradient=True,", "no lists"), ("burn", "Tensor {\n data:\n" + rust, "no end"),
            ("libtorch_rows", lines + " 7  8  9\n[ CPUFloatType{2,3} ]", "a row too many"), ("libtorch_few", lines + "[ CPUFloatType{3,3} ]", "a row too few"),
            ("libtorch_2_64", lines + "[ CPUFloatType{4294967296,4294967296} ]", "a product of 2^64"),
            ("libtorch_columns", "Columns 1 to 9" + lines + "[ CPUFloatType{2,3} ]", "more columns than there are"),
            ("libtorch_scale", "0 *\n" + lines + "[ CPUFloatType{2,3} ]", "a scale of 0"), ("libtorch_none", "[ CPUFloatType{} ]", "no axes"),
            ("julia_dots", "2\u00d73 Matrix{Int64}:\n 1 \u2026 3\n 4 \u2026 6\n", "dots"), ("julia_0", "0\u00d73 Matrix{Int64}:\n", "no rows"),
            ("julia_index", "2\u00d73\u00d71 Array{Int64, 3}:\n[:, :, 0] =\n" + lines, "an index of 0"),
            ("ggml_dots", "ggml_debug: x = (f32) = {3, 2, 1, 1}\n[[[1, ..., 3],\n ..., \n],\n]\n sum = 1\n", "dots")):
        folder.refused(name, content, why)
    for name, content in (("libtorch", lines + "[ CPUFloatType{2,3} ]\n"), ("libtorch_blocks", "Columns 1 to 21e-01 *\n 10 20\n 40  50\n\nColumns 3 to 310 *\n 0.3\n 0.6\n[ CPUFloatType{2,3} ]\n"),
                          ("julia", "2\u00d73 Matrix{Int64}:\n" + lines), ("ndarray", rust + ", shape=[2, 3], strides=[3, 1], layout=Cc (0x5), const ndim=2"),
                          ("ggml", "ggml_debug: x = (f32) = {3, 2, 1, 1}\n[\n[\n[1.0, 2, 3],\n[4, 5, 6],\n],\n]\n sum = 21.0\n"),
                          ("parameter", f"Parameter containing:\ntensor({rust}, requires_grad=True)")):
        folder.valid(f"valid_{name}", content, "as it is printed")
