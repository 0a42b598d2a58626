"""The page of heat maps in a real browser: browser_test.py BROWSER PAGE LARGE-PAGE ODD-PAGE PACKED-PAGE WALK-PAGE

What the pages hold is told by tests/support/make_page.cpp.
"""

import os
import sys

sys.dont_write_bytecode = True
from support.browser import Browser  # noqa: E402
from support.control_tests import ControlTests  # noqa: E402
from support.map_tests import MapTests  # noqa: E402
from support.walk_tests import WalkTests  # noqa: E402


class Page(MapTests, ControlTests, WalkTests):
    """Every test; which pages each is of, main tells."""


def main():
    browser = Browser(sys.argv[1])
    try:
        small = Page(browser, sys.argv[2])
        for step in (small.loads, small.hovers, small.colors, small.heads, small.mean_of_heads,
                     small.lines, small.bars, small.arrays, small.arrays_while_thumbnails_are_drawn,
                     small.grid, small.legend_of_grid, small.addresses, small.lacks_arrays, small.of_others, small.keyboard, small.dark, small.narrow,
                     small.touches, small.saves, small.is_quiet):
            step()
        large = Page(browser, sys.argv[3])
        for step in (large.means, large.windows, large.dark, large.narrow, large.is_quiet):
            step()
        odd = Page(browser, sys.argv[4])
        for step in (odd.odd, odd.narrow, odd.is_quiet):
            step()
        packed = Page(browser, sys.argv[5])
        for step in (packed.packed, packed.is_quiet):
            step()
        parts = []
        with open(sys.argv[5], "rb") as file:
            page = file.read()
        second = page.rindex(b"<script", 0, page.index(b'id="map-1-0"'))
        for end in (second, second + 1000, len(page) - 200):
            with open(sys.argv[5] + ".cut.html", "wb") as file:
                file.write(page[:end])
            parts.append(Page(browser, sys.argv[5] + ".cut.html"))
            for step in (parts[-1].cut_off, parts[-1].is_quiet):
                step()
        walk = Page(browser, sys.argv[6])
        for step in (walk.walks, walk.one_question, walk.walks_masked, walk.hints, walk.sizes, walk.dark, walk.narrow, walk.is_quiet):
            step()
        framed = Page(browser, sys.argv[2])
        framed.hidden_frame(os.path.abspath(sys.argv[3]))
    finally:
        browser.close()
    failures = small.failures + large.failures + odd.failures + packed.failures
    failures += walk.failures + framed.failures + sum(part.failures for part in parts)
    print("browser test:", "ok" if failures == 0 else f"{failures} failures")
    return min(failures, 1)


sys.exit(main())
