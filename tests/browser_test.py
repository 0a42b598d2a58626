"""The page of heat maps in a real browser: browser_test.py BROWSER PAGE LARGE-PAGE

What the pages hold is told by tests/support/make_page.cpp.
"""

import re
import sys

sys.dont_write_bytecode = True
from support.browser import Browser  # noqa: E402

SCRIPT = "<script>alert(1)</script>"


class PageTest:
    def __init__(self, browser, path):
        self.browser = browser
        self.failures = 0
        browser.events.clear()
        browser.resize(1280, 900)
        browser.prefer("light")
        browser.load(path)

    def check(self, what, found, expected):
        if found != expected:
            self.failures += 1
            print(f"FAILED: {what}\n  expected {expected!r}\n  found    {found!r}")

    def text(self, identifier):
        return self.browser.evaluate(f"element('{identifier}').innerText")

    def check_says(self, what, expected):
        self.check(what, self.text("value"), expected)

    def place_of(self, row, column):
        """Near the upper left corner of a cell, where no number is drawn."""
        return self.browser.evaluate(
            "(() => { const box = canvas.getBoundingClientRect();"
            f" return [box.left + leftOf({column}) + 6, box.top + topOf({row}) + 6]; }})()")

    def middle_of(self, expression):
        self.browser.evaluate(f"{expression}.scrollIntoView({{block: 'nearest'}})")
        return self.browser.evaluate(
            f"(() => {{ const box = {expression}.getBoundingClientRect();"
            " return [box.left + box.width / 2, box.top + box.height / 2]; })()")

    def point_at(self, row, column):
        self.browser.evaluate("scrollTo(0, 0)")
        self.browser.point(*self.place_of(row, column))

    def click_on(self, expression):
        self.browser.click(*self.middle_of(expression))

    def choose_with_keys(self, identifier, key):
        self.browser.evaluate(f"element('{identifier}').focus()")
        self.browser.press(key, {"ArrowUp": 38, "ArrowDown": 40}[key])

    def color_at(self, row, column):
        x, y = self.place_of(row, column)
        return self.browser.evaluate(
            "(() => { const box = canvas.getBoundingClientRect(), copy ="
            " document.createElement('canvas').getContext('2d', {willReadFrequently: true});"
            f" copy.drawImage(canvas, box.left - {x}, box.top - {y}, box.width, box.height);"
            " return Array.from(copy.getImageData(0, 0, 1, 1).data); })()")

    # ---- The tests

    def loads(self):
        self.check("title", self.browser.evaluate("document.title"),
                   "multihead attention_weights (3, 6, 6)")
        self.check("heading", self.text("title"), "multihead  attention_weights (3, 6, 6)")
        self.check("every element with a name for those who do not see", self.browser.evaluate(
            "[...document.querySelectorAll('select, button, #view, #bar-list')].filter((e) =>"
            " !(e.ariaLabel || e.labels?.length || e.textContent.trim()"
            " || e.hasAttribute('aria-labelledby'))).map((e) => e.id)"), [])

    def hovers(self):
        self.point_at(3, 1)
        self.check_says("cell (3, 1) of head 0", "query 3 “(empty)”, key 1 “journey”: 0.131")
        self.point_at(1, 4)
        self.check_says("a blocked cell", "query 1 “journey”, key 4 “</script><!-- &”: blocked")
        self.point_at(5, 2)
        self.check_says("a token that looks like a script",
                        f"query 5 “step”, key 2 “{SCRIPT}”: 0.152")
        self.check("it is text", self.browser.evaluate(
            "document.querySelectorAll('main script').length"), 0)

    def colors(self):
        self.check("1 is the end of viridis", self.color_at(0, 0), [0xfd, 0xe7, 0x25, 255])
        self.check("0 is its beginning", self.color_at(5, 5), [0x44, 0x01, 0x54, 255])
        # Of 239 steps 0.131 and 0.141 are 31.3 and 33.7.
        self.check("the nearest colour is below", self.color_at(3, 1), [0x47, 0x2e, 0x7c, 255])
        self.check("the nearest colour is above", self.color_at(4, 1), [0x46, 0x32, 0x7e, 255])
        self.browser.evaluate("element('scale').value = 'row';"
                              " element('scale').dispatchEvent(new Event('change'))")
        self.browser.settle()
        self.check("the largest of a row", self.color_at(3, 3), [0xfd, 0xe7, 0x25, 255])
        self.browser.evaluate("element('scale').value = 'fixed';"
                              " element('scale').dispatchEvent(new Event('change'))")
        self.browser.settle()

    def heads(self):
        self.point_at(4, 2)
        self.choose_with_keys("head", "ArrowDown")
        self.check_says("head 1 by the list", f"query 4 “</script><!-- &”, key 2 “{SCRIPT}”: 0.242")
        self.click_on("element('thumbnails').children[2]")
        self.check_says("head 2 by its picture",
                        f"query 4 “</script><!-- &”, key 2 “{SCRIPT}”: 0.342")
        self.check("the chosen picture is marked", self.browser.evaluate(
            "[...element('thumbnails').children].map((e) => e.ariaPressed)"),
            ["false", "false", "true"])
        self.point_at(5, 0)
        self.check_says("no number", "query 5 “step”, key 0 “Your”: no number")
        self.check("its colour", self.color_at(5, 0), [255, 0, 255, 255])
        self.click_on("element('previous')")
        self.click_on("element('previous')")
        self.check("back at head 0", self.browser.evaluate("panel"), 0)

    def bars(self):
        self.browser.click(*self.place_of(2, 1))
        self.check("title of the bars", self.text("bars-title"), f"query 2 “{SCRIPT}”")
        self.check("numbers of the bars", self.browser.evaluate(
            "[...document.querySelectorAll('#bar-list .number')].map((e) => e.textContent)"),
            ["0.12", "0.121", "0.122", "blocked", "blocked", "blocked"])
        self.check("the longest fills its track", self.browser.evaluate(
            "document.querySelectorAll('#bar-list .bar')[2].style.width"), "100%")
        x, y = self.place_of(4, 0)
        self.browser.click(x - 20, y)
        self.check("by the label of a row", self.text("bars-title"), "query 4 “</script><!-- &”")
        self.click_on("element('largest-first')")
        self.check("largest first", self.browser.evaluate(
            "document.querySelector('#bar-list .number').textContent"), "0.144")

    def arrays(self):
        self.check("one batch entry is no choice", self.browser.evaluate(
            "element('batch').parentElement.hidden"), True)
        self.choose_with_keys("array", "ArrowDown")
        self.point_at(3, 3)
        self.check_says("another array", "query 3 “(empty)”, key 3 “(empty)”: -1.5")
        self.check("its title", self.text("title"), "multihead  scores (2, 3, 6, 6)")
        self.check("its end of the scale", self.text("high"), "10")
        self.choose_with_keys("batch", "ArrowDown")
        self.check_says("another batch entry", "query 3 “(empty)”, key 3 “(empty)”: 1.5")
        self.choose_with_keys("head", "ArrowDown")
        self.check_says("its second head", "query 3 “(empty)”, key 3 “(empty)”: 2.5")
        self.check("its name", self.browser.evaluate("view.ariaLabel"), "scores batch 1, head 1")
        self.choose_with_keys("batch", "ArrowUp")
        self.check_says("the same head before", "query 3 “(empty)”, key 3 “(empty)”: -0.5")
        self.choose_with_keys("head", "ArrowUp")
        self.choose_with_keys("array", "ArrowUp")

    def keyboard(self):
        self.browser.evaluate("document.activeElement.blur()")
        for _ in range(20):
            self.browser.press("Tab", 9)
            if self.browser.evaluate("document.activeElement.id") == "view":
                break
        self.check("Tab reaches the map",
                   self.browser.evaluate("document.activeElement.id"), "view")
        self.check("its focus is seen", self.browser.evaluate(
            "getComputedStyle(view).outlineStyle"), "solid")
        for _ in range(6):
            self.browser.press("ArrowUp", 38)
            self.browser.press("ArrowLeft", 37)
        self.check_says("the arrows end at the first cell", "query 0 “Your”, key 0 “Your”: 1")
        self.browser.press("ArrowDown", 40)
        self.browser.press("ArrowRight", 39)
        self.check_says("down and right", "query 1 “journey”, key 1 “journey”: 0.111")
        self.browser.press("PageDown", 34)
        self.check_says("the next head", "query 1 “journey”, key 1 “journey”: 0.211")
        self.browser.press("Enter", 13, "\r")
        self.check("Enter shows the row", self.text("bars-title"), "query 1 “journey”")
        self.browser.press("End", 35)
        self.check_says("the end of the row", "query 1 “journey”, key 5 “step”: blocked")

    def dark(self):
        def light_of():
            color = self.browser.evaluate("getComputedStyle(document.body).backgroundColor")
            return sum(int(part) for part in re.findall(r"\d+", color)[:3])

        light = light_of()
        self.browser.prefer("dark")
        self.check("dark is dark", (light > 700, light_of() < 150), (True, True))
        self.browser.prefer("light")

    def narrow(self):
        for width in (320, 390, 768):
            self.browser.resize(width, 800)
            self.check(f"nothing beside a window of {width} pixels", self.browser.evaluate(
                "document.documentElement.scrollWidth"), width)
        self.browser.resize(1280, 900)

    def means(self):
        self.browser.evaluate("view.focus()")
        self.browser.press("ArrowDown", 40)
        self.check_says("a cell of many elements", "query 2, key 0: mean 1.25")
        self.browser.press("ArrowRight", 39)
        self.check_says("only half of it is blocked", "query 2, key 2: mean 1.3333334")
        self.browser.press("End", 35)
        self.check_says("all of it is blocked", "query 2, key 1028: blocked")
        self.check("the note", self.text("note"), "each cell is the mean of 2 x 2 elements")
        self.check("the end of the scale", self.text("high"), "1 and more")
        before = self.browser.evaluate("layout.cellWidth")
        for _ in range(3):
            self.browser.press("+")
        self.check("larger cells", self.browser.evaluate("layout.cellWidth") > 5 * before, True)
        x, y = self.place_of(1, 514)
        self.browser.point(x - 3, y - 3)
        self.check_says("the pointer, where the map is scrolled", "query 2, key 1028: blocked")

    def is_quiet(self):
        loud = ("Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled",
                "Page.javascriptDialogOpening")
        events = self.browser.events
        self.check("no errors", [event["method"] + str(event["params"])[:500]
                                 for event in events if event["method"] in loud][:1], [])
        requests = [event["params"]["request"]["url"] for event in events
                    if event["method"] == "Network.requestWillBeSent"]
        self.check("no request but for the page", len(requests), 1)


def main():
    browser = Browser(sys.argv[1])
    try:
        small = PageTest(browser, sys.argv[2])
        for step in (small.loads, small.hovers, small.colors, small.heads, small.bars,
                     small.arrays, small.keyboard, small.dark, small.narrow, small.is_quiet):
            step()
        large = PageTest(browser, sys.argv[3])
        for step in (large.means, large.dark, large.narrow, large.is_quiet):
            step()
    finally:
        browser.close()
    failures = small.failures + large.failures
    print("browser test:", "ok" if failures == 0 else f"{failures} failures")
    return min(failures, 1)


sys.exit(main())
