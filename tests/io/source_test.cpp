// Texts from outside: places, UTF-8, byte-order marks.
#include "io/file/source.hpp"

#include <doctest/doctest.h>

#include "tests/support/support.hpp"

namespace source_test {

using namespace attn;
using namespace attn::io;
using attn::io::Source;
using attn::test::error_of;

TEST_CASE("place: line and column from 1, columns in characters") {
    const Source source{"f", "ab\n\xc3\xa9x\n"};
    CHECK(source.place(0) == "f:1:1");
    CHECK(source.place(1) == "f:1:2");
    CHECK(source.place(3) == "f:2:1");
    CHECK(source.place(5) == "f:2:2");
    CHECK(source.place(999) == "f:3:1");
}

TEST_CASE("a byte-order mark is dropped; emptiness and broken UTF-8 are refused") {
    CHECK(test::make_source("f", "\xef\xbb\xbf[1]").text == "[1]");
    CHECK(error_of([] { test::make_source("f", " \n\t"); }) == "f: is empty; expected a matrix");
    CHECK(error_of([] { test::make_source("f", "ab\n\xff"); }) ==
          "f:2:1: not UTF-8; expected UTF-8 text");
}

TEST_CASE("UTF-8: overlong forms, surrogates, cut sequences and code points past the end") {
    for (const char* bad :
         {"\xc0\x80", "\xc1\xbf", "\xe0\x80\x80", "\xed\xa0\x80", "\xf0\x80\x80\x80",
          "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xe2\x82", "\x80"})
        CHECK(find_invalid_utf8(bad) == 0);
    for (const char* good : {"", "a", "\u00e9", "\u20ac", "\U0001f600", "\U0010ffff"})
        CHECK(find_invalid_utf8(good) == std::string::npos);
    CHECK(find_invalid_utf8("ok\xff") == 2);
}

TEST_CASE("reading: a zero byte is refused") {
    test::scratch_folder();
    test::write_text("zero.csv", std::string("1,2\0", 4));
    CHECK(error_of([] { read_source("zero.csv"); }) ==
          "zero.csv: holds a zero byte; expected text (json, ndjson or csv)");
}

}  // namespace source_test
