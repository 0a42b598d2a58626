#include "cli/page/fill_template.hpp"

#include <doctest/doctest.h>

#include <map>
#include <stdexcept>
#include <string>
#include <utility>

namespace {

using TemplateWords = std::map<std::string, std::string, std::less<>>;

std::string filled(const std::string& text, TemplateWords values) {
    return attn::cli::fill_template(text, {.values = std::move(values)});
}

TEST_CASE("values replace their names, aligned, and lines of empty values are left out") {
    CHECK(filled("a @x@ @y@b@x@\n", {{"x", "1"}, {"y", ""}}) == "a 1 b1\n");
    CHECK(filled("@y@\n\n@y@@y@\nend", {{"y", ""}}) == "end\n");
    CHECK(filled("f(@x@);\n", {{"x", "1,\n2"}}) == "f(1,\n  2);\n");
    CHECK(filled("a @ b @ @x@ @\n@x@ @ c\n", {{"x", "@y@"}}) == "a @ b @ @y@ @\n@y@ @ c\n");
}

TEST_CASE("sections are kept by their conditions") {
    const std::string text =
        "@if a\n"
        "A\n"
        "@if b !c\n"
        "B\n"
        "@else\n"
        "not B\n"
        "@end\n"
        "@else\n"
        "not A @unknown@\n"
        "@end\n"
        "  @if b: b @x@\n"
        "end\n";
    CHECK(filled(text, {{"a", "1"}, {"b", "1"}, {"c", ""}, {"x", "2"}}) == "A\nB\n  b 2\nend\n");
    CHECK(attn::cli::fill_template("@if a: @a@\n@if !b: @b@\n",
                                   {{{"a", true}, {"b", false}}, {{"a", "1"}, {"b", "2"}}}) ==
          "1\n2\n");
    CHECK(filled(text, {{"a", "1"}, {"b", ""}, {"c", ""}}) == "A\nnot B\nend\n");
    CHECK(filled(text, {{"a", ""}, {"b", ""}, {"unknown", "?"}}) == "not A ?\nend\n");
}

TEST_CASE("lines are repeated for words, and named ones are added with words in them") {
    CHECK(filled("@for x in @list@ c\n$x $xy @$x_1@ $\n@end\n",
                 {{"list", "a b"}, {"a_1", "A"}, {"b_1", "B"}, {"c_1", ""}}) ==
          "a $xy A $\nb $xy B $\nc $xy  $\n");
    CHECK(filled("@def pair x y\n"
                 "@for i in 1 2\n"
                 "$x$i = $y;\n"
                 "@end\n"
                 "@if $y: y\n"
                 "@end\n"
                 "  @pair a @name@\n"
                 "@pair b none\n",
                 {{"name", "v"}, {"v", "1"}, {"none", ""}}) ==
          "a1 = v;\na2 = v;\ny\nb1 = none;\nb2 = none;\n");
}

TEST_CASE("templates set values") {
    CHECK(filled("@let sum\n"
                 "@for x in a b\n"
                 "@append sum + $x\n"
                 "@let last $x, then @sum@\n"
                 "  @once first\n"
                 "@end\n"
                 "@let space  x\n"
                 "@# a comment @unknown@\n"
                 "@sum@; @last@;@space@\n",
                 {}) == "  first\na + b; b, then a + b; x\n");
}

TEST_CASE("unknown names are errors where they are kept") {
    for (const char* text : {"@x@\n", "@if x\n@end\n", "@if !x: a\n", "@x a\n"})
        CHECK_THROWS_AS(filled(text, {}), std::logic_error);
    CHECK_THROWS_AS(filled("@def pair x y\n$x $y\n@end\n@pair a\n", {}), std::logic_error);
}

}  // namespace
