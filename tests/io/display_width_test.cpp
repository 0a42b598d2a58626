// Terminal columns of a text.
#include "io/text/display_width.hpp"

#include <doctest/doctest.h>

namespace display_width_test {

using attn::io::display_width;

TEST_CASE("display width: ASCII, accents, combining marks, wide characters, emoji") {
    CHECK(display_width("") == 0);
    CHECK(display_width("step") == 4);
    CHECK(display_width("\u00e9t\u00e9") == 3);
    CHECK(display_width("e\u0301") == 1);
    CHECK(display_width("\u4e2d\u6587") == 4);
    CHECK(display_width("\ud55c") == 2);
    CHECK(display_width("\U0001f600") == 2);
    CHECK(display_width("\uff21") == 2);
}

}  // namespace display_width_test
