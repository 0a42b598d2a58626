"""The page of heat maps in a real browser: browser_test.py PROGRAM-THAT-WRITES-THE-PAGE

tests/support/make_page.cpp makes the pages. Exit code 77: no browser; Debian has chromium.
"""

import os
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
from support.browser import Browser  # noqa: E402
from support.control_tests import ControlTests  # noqa: E402
from support.map_tests import MapTests  # noqa: E402
from support.walk_tests import WalkTests  # noqa: E402


class Page(MapTests, ControlTests, WalkTests):
    """Every test; TESTS says on which pages each runs."""


# Of each page, by its name.
TESTS = {
    "page": """loads hovers colors heads mean_of_heads lines bars arrays arrays_while_thumbnails_are_drawn grid
        legend_of_grid addresses lacks_arrays of_others keyboard dark narrow touches saves is_quiet""",
    "large": "means windows dark narrow is_quiet", "odd": "odd narrow is_quiet", "packed": "packed is_quiet",
    "walk": "walks one_question walks_masked hints sizes dark narrow is_quiet"}


def main():
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        print("browser test: skipped: needs chromium")
        return 77
    browser, pages = Browser(found), []

    def check(path, tests):
        pages.append(Page(browser, path))
        for test in tests.split():
            getattr(pages[-1], test)()

    with tempfile.TemporaryDirectory() as folder:
        path = {name: os.path.join(folder, name + ".html") for name in TESTS}
        try:
            for name, tests in TESTS.items():
                subprocess.run([sys.argv[1], path[name], *[name] * (name != "page")], check=True)
                check(path[name], tests)
            with open(path["packed"], "rb") as file:
                page = file.read()
            second = page.rindex(b"<script", 0, page.index(b'id="map-1-0"'))
            for end in (second, second + 1000, len(page) - 200):
                with open(path["packed"] + ".cut.html", "wb") as file:
                    file.write(page[:end])
                check(path["packed"] + ".cut.html", "cut_off is_quiet")
            check(path["page"], "")
            pages[-1].hidden_frame(path["large"])
        finally:
            browser.close()
    failures = sum(page.failures for page in pages)
    print("browser test:", "ok" if failures == 0 else f"{failures} failures")
    return min(failures, 1)


sys.exit(main())
