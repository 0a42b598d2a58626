"""Malformed and odd JSON and CSV files. Small mistakes in them are in cli/mistakes.tsv."""
from hostile.folder import joined, repeat


def make_json(folder):
    million, shrink = 10**6, folder.shrink
    for name, content, why in (
            ("escapes_10_mb",
             joined(b'["', repeat(b"\\u0000", 12 * million // shrink // 6 * 6), b'"]'),
             "a string of zero bytes in place of numbers"),
            ("lone_surrogate", '{"\\ud800": [[1,2,3]]}', "half a surrogate pair as a key"),
            ("zero_byte", b"[[1,2,3],\0[4,5,6]]", "a zero byte"),
            ("control_character", b'{"inputs\x01": [[1]]}', "a control character in a string"),
            ("not_utf8", b'{"\xff": [[1]]}', "not UTF-8"),
            ("utf16", '[[1,2,3],[4,5,6]]'.encode("utf-16"), "UTF-16"),
            ("exponent", "[[1e999999999, 2, 3]]", "an exponent beyond every float"),
            ("closed_twice", "[[1,2,3],[4,5,6]]]", "closed once too often")):
        folder.refused(name, content, why)
    folder.refused("escaped_twice", '{"inputs": [[1,2]], "\\u0069nputs": [[3,4]]}', "a key twice, once escaped")
    folder.either("point_1_mb", "[[1." + "0" * million + ", 2, 3], [4, 5, 6]]", "a number of 10^6 digits, 1")
    folder.either("small_exponent", "[[1e-999999999, 2, 3], [4, 5, 6]]", "nearly 0")
    folder.either("keys_100000", "{" + ",".join(
        f'"k{n}":{n}' for n in range(100000)) + ',"inputs":[[1,2,3],[4,5,6]]}',
                  "100000 unknown keys")
    folder.valid("valid", "\ufeff [[1, 2.0, 3e0],\r\n\t[40E-1, 5, 6.000]] \n",
                 "a byte-order mark, white space, every way to write a number")


def make_csv(folder):
    million, shrink = 10**6, folder.shrink
    for name, content, why in (
            ("open_quote_50_mb", joined(b'1,"', repeat(b"2,", 50 * million // shrink)),
             "a quote of 50 MB is not closed"),
            ("zero_byte", b"1,2,3\n4,5\0,6\n", "a zero byte"),
            ("not_utf8", b"1,2,3\n4,\xff,6\n", "not UTF-8"),
            ("utf16", "1,2,3\n4,5,6\n".encode("utf-16"), "UTF-16"),
            ("png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01", "a picture"),
            ("pickle", b"\x80\x04\x95\x05\x00\x00\x00\x00\x00\x00\x00K\x01.", "a pickle"),
            ("newlines", "\n" * million, "nothing but a million line ends"),
            ("commas", ",,,\n,,,\n", "nothing but commas"),
            ("spaces_10_mb", repeat(b" ", 10 * million // shrink), "nothing but spaces"),
            ("empty_row", "1,2,3\n,,\n4,5,6\n", "a row of missing values between others")):
        folder.refused(name, content, why)
    folder.either("line_50_mb", repeat(b"1,", 50 * million // shrink - 1),
                  "one row of 25 million numbers: no memory for its weights")
    folder.either("comment_50_mb", joined(b"#", repeat(b"a", 50 * million // shrink), b"\n1,2,3\n4,5,6\n"),
                  "a comment of 50 MB before the numbers")
    folder.either("carriage_returns", "1,2,3\r4,5,6\r", "line ends of old Macs")
    folder.either("quoted_newline", '"to\nken",1,2,3\nb,4,5,6\n', "a line end inside a label")
    folder.valid("valid", '\ufeff# comment\r\n"a","b",c\r\n1,"2",3e0\r\n\r\n4.,5,+6',
                 "a byte-order mark, quotes, Windows line ends, an empty line, no last line end")
