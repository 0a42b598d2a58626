"""The page of heat maps in a real browser: browser_test.py BROWSER PAGE LARGE-PAGE ODD-PAGE PACKED-PAGE WALK-PAGE

What the pages hold is told by tests/support/make_page.cpp.
"""

import os
import re
import sys
import time
from xml.etree import ElementTree

sys.dont_write_bytecode = True
from support.browser import Browser  # noqa: E402

SCRIPT = "<script>alert(1)</script>"
# How many matrices are decoded, or being so, when the last byte has been read.
WATCH = "addEventListener('DOMContentLoaded', () => { window.atEnd = decoded.size; })"


class PageTest:
    def __init__(self, browser, path):
        self.browser = browser
        self.failures = 0
        if not hasattr(browser, "watched"):
            browser.watched = browser.call("Page.addScriptToEvaluateOnNewDocument", source=WATCH)
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

    def comes(self, expression):
        """Whether it is true within ten seconds: what is drawn in pauses takes a while."""
        return self.browser.evaluate(
            "(async () => { for (let i = 0; i < 500; ++i) {"
            f" if ({expression}) return true; await new Promise((go) => setTimeout(go, 20)); }}"
            " return false; })()")

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
                   "What each word attends to: multihead, 3 heads")
        self.check("heading", self.text("title"), "What each word attends to: multihead, 3 heads")
        self.check("settings", self.text("settings"), "multihead attention_weights (3, 6, 6)")
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
        self.choose_with_keys("axis-0", "ArrowDown")
        self.check_says("head 1 by the list", f"query 4 “</script><!-- &”, key 2 “{SCRIPT}”: 0.242")
        self.click_on("thumbnailsIn('strip')[2]")
        self.check_says("head 2 by its picture",
                        f"query 4 “</script><!-- &”, key 2 “{SCRIPT}”: 0.342")
        self.check("the chosen picture is marked", self.browser.evaluate(
            "thumbnailsIn('strip').map((e) => e.ariaPressed)"), ["false", "false", "true", "false"])
        self.point_at(5, 0)
        self.check_says("no number", "query 5 “step”, key 0 “Your”: no number")
        self.check("its colour", self.color_at(5, 0), [255, 0, 255, 255])
        self.click_on("element('previous')")
        self.click_on("element('previous')")
        self.check("back at head 0", self.browser.evaluate("chosen.panel"), 0)

    def mean_of_heads(self):
        self.click_on("thumbnailsIn('strip')[3]")
        self.point_at(3, 1)
        self.check_says("the mean", "query 3 “(empty)”, key 1 “journey”: 0.231, mean of 3 heads")
        self.check("in the list", self.browser.evaluate("element('axis-0').value"), "mean")
        self.click_on("element('strip').querySelectorAll('input')[1]")
        self.check_says("of two", "query 3 “(empty)”, key 1 “journey”: 0.231, mean of 2 heads")
        self.click_on("element('strip').querySelectorAll('input')[2]")
        self.check_says("of one", "query 3 “(empty)”, key 1 “journey”: 0.131, mean of 1 head")
        self.click_on("element('strip').querySelectorAll('input')[3]")
        self.check("all again", self.browser.evaluate("chosen.without.size"), 0)
        self.point_at(5, 0)
        self.check_says("a number that is none stays one",
                        "query 5 “step”, key 0 “Your”: no number, mean of 3 heads")
        self.click_on("thumbnailsIn('strip')[0]")

    def lines(self):
        self.browser.click(*self.place_of(4, 1))
        self.check("title of the lines", self.text("lines-title"), "What “</script><!-- &” attends to, head 0")
        self.check("in words", self.text("lines-say"),
                   f"Most: “</script><!-- &” 0.14, “(empty)” 0.14, “{SCRIPT}” 0.14")
        self.check("they are drawn", self.comes(
            "linesCanvas.getContext('2d').getImageData(0, 0, linesCanvas.width, linesCanvas.height)"
            ".data.some((byte) => byte)"), True)
        self.browser.point(*self.middle_of("buttonOf('row', 1)"))
        self.check("below the pointer", self.text("lines-say"),
                   "Pointed at: query 1 “journey”. Most: “journey” 0.11, “Your” 0.11")
        self.check("the title is of what is chosen", self.text("lines-title"),
                   "What “</script><!-- &” attends to, head 0")
        self.check("what it does not see", self.browser.evaluate(
            "[2, 3, 4, 5].every((i) => buttonOf('column', i).classList.contains('dim'))"), True)
        self.browser.point(5, 5)
        self.check("and back", self.text("lines-say")[:5], "Most:")
        self.click_on("buttonOf('column', 5)")
        self.check("who attends", self.text("lines-title"), "Who attends to “step”, head 0")
        self.check("only itself", self.text("lines-say"), "No weights.")
        self.click_on("element('swap')")
        self.check("swapped", self.text("lines-title"), "What “step” attends to, head 0")
        self.browser.press("Tab", 9)
        self.browser.press("Tab", 9)
        self.check("Tab reaches the tokens", self.browser.evaluate(
            "document.activeElement === buttonOf('row', 5)"), True)
        self.browser.press("ArrowUp", 38)
        self.check("an arrow shows the one above", self.text("lines-say").split(".")[0],
                   "Pointed at: query 4 “</script><!-- &”")
        self.browser.press("ArrowRight", 39)
        self.browser.press("Enter", 13, "\r")
        self.check("Enter chooses", self.text("lines-title"), "Who attends to “</script><!-- &”, head 0")
        self.click_on("element('this-head')")
        self.check("of one head", self.text("lines-say"), "Most: “step” 0.15, “</script><!-- &” 0.14")
        self.click_on("element('this-head')")

    def bars(self):
        self.browser.click(*self.place_of(2, 1))
        self.check("title of the bars", self.text("bars-title"), f"query 2 “{SCRIPT}”")
        self.check("numbers of the bars", self.browser.evaluate(
            "[...document.querySelectorAll('#bar-list .number')].map((e) => e.textContent)"),
            ["0.12", "0.121", "0.122"])
        self.check("what they mean", self.text("bars-note"),
                   "A full bar is 0.12, the largest here. 3 blocked.")
        self.check("the longest fills its track", self.browser.evaluate(
            "document.querySelectorAll('#bar-list .bar')[2].style.width"), "100%")
        x, y = self.place_of(4, 0)
        self.browser.click(x - 20, y)
        self.check("by the label of a row", self.text("bars-title"), "query 4 “</script><!-- &”")
        self.click_on("element('largest-first')")
        self.check("largest first", self.browser.evaluate(
            "document.querySelector('#bar-list .number').textContent"), "0.144")
        self.click_on("element('largest-first')")
        x, y = self.place_of(0, 4)
        self.browser.click(x, y - 20)
        self.check("by the label of a column", self.text("bars-title"), "key 4 “</script><!-- &”")
        self.check("its numbers", self.browser.evaluate(
            "[...document.querySelectorAll('#bar-list .number')].map((e) => e.textContent)"),
            ["0.144", "0.154"])
        self.browser.click(*self.place_of(4, 0))

    def arrays(self):
        self.choose_with_keys("array", "ArrowDown")
        self.check("the row stays", self.text("bars-title"), "query 4 “</script><!-- &”")
        self.check("no lines of scores", self.browser.evaluate("element('lines').hidden"), True)
        self.point_at(3, 3)
        self.check_says("another array", "query 3 “(empty)”, key 3 “(empty)”: -1.5")
        self.check("its title", self.text("settings"), "multihead scores (2, 3, 6, 6)")
        self.check("its ends of the scale", self.browser.evaluate(
            "[...element('ticks').children].map((e) => e.textContent)"), ["-10", "-5", "0", "5", "10"])
        self.choose_with_keys("axis-0", "ArrowDown")
        self.check_says("another batch entry", "query 3 “(empty)”, key 3 “(empty)”: 1.5")
        self.choose_with_keys("axis-1", "ArrowDown")
        self.check_says("its second head", "query 3 “(empty)”, key 3 “(empty)”: 2.5")
        self.check("its name", self.browser.evaluate("view.ariaLabel"), "scores batch 1, head 1")
        self.choose_with_keys("axis-0", "ArrowUp")
        self.check_says("the same head before", "query 3 “(empty)”, key 3 “(empty)”: -0.5")
        self.choose_with_keys("axis-1", "ArrowUp")
        self.choose_with_keys("array", "ArrowUp")

    def arrays_while_thumbnails_are_drawn(self):
        self.browser.evaluate(
            "for (let i = 0; i < 40; ++i) choose({array: i % 2, view: i % 3 ? 'grid' : 'map',"
            " scale: contents.scales[i % contents.scales.length]})")
        self.browser.evaluate(
            "(async () => { for (let i = 0; i < 20; ++i) { choose({array: i % 2, view: 'grid'});"
            " await new Promise((go) => setTimeout(go, i)); } })()")
        self.browser.evaluate("choose({array: 0, panel: 0, view: 'map', scale: 'fixed'})")
        self.browser.settle()
        self.check("back", self.text("settings"), "multihead attention_weights (3, 6, 6)")

    def grid(self):
        self.browser.evaluate("choose({array: 1, panel: 4, view: 'map'}); view.focus()")
        self.browser.press("Escape", 27)
        self.check("Escape shows all matrices", self.browser.evaluate(
            "[element('overview').hidden, element('columns').hidden]"), [False, True])
        self.check("with names", self.browser.evaluate(
            "[...element('grid').querySelectorAll('span')].map((e) => e.textContent)"),
            ["", "head 0", "head 1", "head 2", "batch 0", "batch 1"])
        focused = "thumbnailsIn('grid').indexOf(document.activeElement)"
        self.check("the focus is on the one that was shown", self.browser.evaluate(focused), 4)
        for key, code, there in (("ArrowUp", 38, 1), ("ArrowRight", 39, 2), ("PageDown", 34, 3),
                                 ("ArrowLeft", 37, 2), ("ArrowUp", 38, 2), ("Home", 36, 0),
                                 ("ArrowDown", 40, 3), ("End", 35, 5)):
            self.browser.press(key, code)
            self.check(f"{key} in the grid", self.browser.evaluate(focused), there)
        self.check("they are drawn", self.comes(
            "thumbnailsIn('grid').every(({firstChild: {width, height}, firstChild}) =>"
            " firstChild.getContext('2d').getImageData(0, 0, width, height).data.some((b) => b))"), True)
        self.browser.press("Enter", 13, "\r")
        self.check("Enter opens it", self.browser.evaluate("view.ariaLabel"), "scores batch 1, head 2")
        self.check("there is a map again", self.browser.evaluate("element('columns').hidden"), False)
        self.browser.evaluate("choose({array: 0, panel: 0})")

    def follow(self, address):
        self.browser.evaluate(f"location.hash = {address!r}")
        self.browser.settle()
        return self.browser.evaluate(
            "[map.array, nameOfShown(), element('bars-title').textContent, chosen.scale, chosen.view]")

    def addresses(self):
        weights, scores = "attention_weights", "scores"
        opening = [weights, "head 0", "query 5 “step”", "fixed", "map"]
        self.check("an address", self.follow("array=scores&batch=1&head=2&row=3&scale=row"),
                   [scores, "batch 1, head 2", "query 3 “(empty)”", "row", "map"])
        self.check("another", self.follow("head=mean&column=1&scale=log"),
                   [weights, "mean of 3 heads", "key 1 “journey”", "log", "map"])
        self.browser.evaluate("history.back()")
        self.browser.settle()
        self.check("back", self.browser.evaluate("[map.array, nameOfShown(), chosen.row]"),
                   [scores, "batch 1, head 2", 3])
        self.follow("column=1")
        self.check("a key, and a query to walk through", self.browser.evaluate("[chosen.by, chosen.column, chosen.row]"),
                   ["column", 1, 5])
        self.follow("array=scores&batch=1&head=2&row=3&scale=row")
        for bad in ("", "x", "array=none&head=99&row=-1&scale=loud&view=3", "head=1e1&row=%ff%", "&&==&",
                    "row=99999999999999999999", "head=%3Cscript%3E&column=x", "head", "__proto__=1&constructor=2"):
            self.check(f"nothing that there is: {bad}", self.follow(bad), opening)
        self.click_on("thumbnailsIn('strip')[1]")
        self.browser.click(*self.place_of(2, 1))
        address = "#array=attention_weights&head=1&row=2&scale=fixed&view=map"
        self.check("what is chosen is in the address", self.comes(f"location.hash === '{address}'"), True)
        self.browser.evaluate("choose({panel: 0})")

    def saves(self):
        self.browser.evaluate(
            "saved = []; savedNames = []; URL.createObjectURL = (blob) => (saved.push(blob), 'blob:none');"
            " HTMLAnchorElement.prototype.click = function () { savedNames.push(this.download); }")
        self.browser.evaluate("choose({panel: 1})")
        self.click_on("element('save-svg')")
        self.click_on("element('save-png')")
        self.check("both are there", self.comes("savedNames.length === 2"), True)
        self.check("names of the files", self.browser.evaluate("savedNames"),
                   ["attention_weights-head-1.svg", "attention_weights-head-1.png"])
        text = self.browser.evaluate("saved[0].text()")
        tree = ElementTree.fromstring(text)
        words = [e.text for e in tree.iter("{http://www.w3.org/2000/svg}text")]
        self.check("labels, numbers, blocked", all(
            word in words for word in ("journey", SCRIPT, "</script><!-- &", "(empty)", "0.23", "blocked")), True)
        self.check("title and settings", [word for word in words if "multihead" in word],
                   ["What each word attends to: multihead, head 1", "head 1 · multihead  attention_weights (3, 6, 6)"])
        self.check("a PNG as large", self.browser.evaluate(
            "createImageBitmap(saved[1]).then(({width, height}) => [width, height])"),
            [2 * int(tree.get("width")), 2 * int(tree.get("height"))])
        self.browser.evaluate("choose({panel: 0})")

    def keyboard(self):
        self.browser.evaluate("document.activeElement.blur()")
        for _ in range(30):
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
        self.check("the lines follow", self.text("lines-say").split(".")[0],
                   "Pointed at: query 1 “journey”")
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
        for width in (20, 60, 61, 68, 76, 100, 200, 320, 390, 400, 768, 1000):
            self.browser.resize(width, 800)
            self.check(f"{width} pixels are laid out at once", self.browser.evaluate(
                "[1, 2, 3].some(() => { const begin = performance.now(); layOut(); drawMap();"
                " return performance.now() - begin < 1000; })"), True)
            if width >= 320:
                self.check(f"nothing beside a window of {width} pixels", self.browser.evaluate(
                    "document.documentElement.scrollWidth"), width)
            self.check(f"cells of a window of {width} pixels", self.browser.evaluate(
                "layout.cellWidth > 0 && layout.cellHeight > 0"), True)
        self.browser.resize(1280, 900)

    def hidden_frame(self, path):
        """In a frame that is not shown, then is."""
        self.browser.evaluate(
            "new Promise((done) => { const frame = document.createElement('iframe');"
            f" frame.id = 'frame'; frame.style.display = 'none'; frame.src = 'file://{path}';"
            " frame.onload = () => done(); document.body.append(frame); setTimeout(done, 3000); })")
        begin = time.monotonic()
        self.browser.evaluate("element('frame').style.display = 'block'; element('frame').style.width = '0'")
        self.browser.settle()
        self.browser.evaluate("element('frame').style.width = '600px'")
        self.browser.settle()
        self.check("a hidden frame is shown at once", time.monotonic() - begin < 10, True)
        self.browser.evaluate("element('frame').remove()")

    def touches(self):
        """The first tap hits what is below it, though a text above changes."""
        self.browser.resize(390, 800)
        self.browser.evaluate("isPointing = false; say(); scrollTo(0, 0);"
                              " view.scrollIntoView({block: 'center'})")
        for row, column in ((3, 2), (0, 0), (5, 5), (2, 0)):
            self.browser.tap(*self.place_of(row, column))
            self.check(f"a tap on row {row}", self.browser.evaluate(
                "[chosen.row, cursor.row, cursor.column]"), [row, row, column])
        self.browser.resize(1280, 900)

    def means(self):
        self.browser.evaluate("choose({row: 0, column: 0}); view.focus()")
        self.browser.press("ArrowDown", 40)
        self.check_says("a cell of many elements", "query 2, key 0: largest 1.5")
        self.browser.press("ArrowRight", 39)
        self.check_says("only half of it is blocked", "query 2, key 2: largest 1.5")
        self.browser.press("End", 35)
        self.check_says("all of it is blocked", "query 2, key 1028: blocked")
        self.check("the note", self.text("note"), "each cell is the largest of 2 x 2 elements")
        self.check("the end of the scale", self.browser.evaluate(
            "element('ticks').lastChild.textContent"), "1")
        before = self.browser.evaluate("layout.cellWidth")
        for _ in range(3):
            self.browser.press("+")
        self.check("larger cells", self.browser.evaluate("layout.cellWidth") > 5 * before, True)
        x, y = self.place_of(1, 514)
        self.browser.point(x - 3, y - 3)
        self.check_says("the pointer, where the map is scrolled", "query 2, key 1028: blocked")

    def windows(self):
        """Of lists too long for the lines: what is near, and what is heaviest."""
        self.browser.evaluate("choose({row: 300})")
        self.browser.settle()
        self.check("tokens about the chosen one", self.browser.evaluate(
            "[placeIn.row.size, placeIn.row.has(290), placeIn.row.has(319)]"), [40, True, True])
        self.check("and before them", self.browser.evaluate(
            "element('queries').firstChild.textContent"), "↑ 280 more")
        self.check("the rest", self.browser.evaluate(
            "element('key-tokens').lastChild.textContent"), "475 others, 300 at most")
        self.check("bars of the largest", self.browser.evaluate(
            "[element('bar-list').children.length, element('bars-note').textContent]"),
            [100, "A full bar is 300, the largest here. The 100 largest of 301. 214 blocked."])
        self.browser.evaluate("buttonOf('row', 300).focus()")
        for _ in range(3):
            self.browser.press("ArrowDown", 40)
        self.check("arrows go on", self.browser.evaluate(
            "[chosen.row, document.activeElement.dataset.index]"), [303, "303"])

    def odd(self):
        """Every shape and kind of number, with every view, scale, direction and tool."""
        for array in range(self.browser.evaluate("contents.arrays.length")):
            self.browser.evaluate("""(async (array) => {
                URL.createObjectURL = () => 'blob:none';
                HTMLAnchorElement.prototype.click = () => {};
                const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));
                choose({array, panel: 4, view: 'grid'});
                await frame();
                for (let i = 0; i < 3; ++i) {
                    const scale = contents.scales[(array + i) % contents.scales.length];
                    choose({view: 'map', scale, isMean: i === 1, by: i === 2 ? 'column' : 'row',
                            without: new Set([0, 1, 2].slice((array + i) % 4))});
                    await frame();
                    for (const far of [0, 1e6]) {
                        choose({row: far, column: far});
                        moveTo(far, far);
                        pointFromMap();
                        element('swap').click();
                    }
                    stepPanel(i - 1);
                    await frame();
                }
                await savePicture(array % 2 ? 'svg' : 'png'); })(ARRAY)""".replace("ARRAY", str(array)))
        self.check("all were shown", self.browser.evaluate("maps.length"), 16)
        self.check("layers by their labels", self.browser.evaluate(
            "(choose({array: 0, view: 'grid'}), [...element('grid').querySelectorAll('.before')]"
            ".map((e) => e.textContent))"), ["early", "<b>late"])
        self.browser.evaluate("choose({view: 'map'})")

    def packed(self):
        """As make_page.cpp made them, of both types."""
        self.check("the first map is decoded before the rest of the page comes", self.browser.evaluate("atEnd"), 1)
        self.check("numbers that are not as they were", self.browser.evaluate("""(async () => {
            const edges = [0x80000000, 1, 0x7fffff, 0x800000, 0x7f7fffff, 0xff7fffff, 0x7ff00000, 0xfff80000];
            const wrong = [], word = new DataView(new ArrayBuffer(8));
            for (const array of [0, 1]) {
                const of = mapAt(array), {numbers, flags} = await numbersOf(of, 0);
                for (let i = 0; i < 330 * 330; ++i) {
                    const row = Math.floor(i / 330), column = i % 330;
                    word.setUint32(0, edges[column] ?? Math.imul(i, 2654435761));
                    word.setUint32(4, Math.imul(i, 2246822519));
                    const isBlocked = array === 0 && column > row;
                    let value = array === 0 ? word.getFloat32(0) : word.getFloat64(0);
                    if (!Number.isFinite(value)) value = NaN;
                    if (isBlocked ? !flags[i] : flags[i] || !Object.is(numbers[i], value)) wrong.push([array, i]);
                }
                if (numbers.length !== 330 * 330) wrong.push(numbers.length);
            }
            return wrong.slice(0, 5); })()"""), [])
        self.check("rounded numbers say so", self.browser.evaluate(
            "[shortest(0.0123456, {digits: 3, float32: true}), shortest(0, {digits: 3, float32: true})]"),
            ["≈ 0.0123", "0"])

    def cut_off(self):
        """A file that ends in the text of its second array, or before it."""
        self.check("it says so", "cut off" in self.text("note"), True)
        self.check("what is there is shown", self.browser.evaluate("[chosen.row !== null, shown.numbers[331] !== 0]"),
                   [True, True])
        self.browser.evaluate("choose({array: 1, row: 0, column: 0}); isPointing = true")
        self.check("what is not is no number", self.comes("(say(), element('value').textContent.endsWith('no number'))"),
                   True)

    def walks(self):
        self.browser.evaluate("choose({row: 20})")
        self.browser.evaluate("showWalk()")
        self.check("weights open the page", self.browser.evaluate("map.array"), "attention_weights")
        self.check("its title", self.text("walk-title"), "Walk: query 20, head 0")
        self.check("steps that changed nothing are left out", self.browser.evaluate(
            "[...element('walk-head').children].map((e) => e.firstChild.textContent)"),
            ["key", "keys", "products", "scores", "scaled scores", "attention weights", "values"])
        keys = "[...element('walk-keys').children].map((e) => Number(e.dataset.column))"
        self.check("largest weights first", self.browser.evaluate(
            keys + ".map((key) => (800 + key) % 7)"), [6, 6, 6, 5, 5, 5, 4, 4])
        self.check("what is not shown", self.text("walk-rest").split(" of the weight. ")[1],
                   "19 blocked keys: weight 0.")
        self.click_on("element('walk-more')")
        self.check("all on request", self.browser.evaluate(keys + ".length"), 21)
        for bad in ("row=99", "%00", "array=__proto__", "column=999999999"):
            self.browser.evaluate(f"location.hash = {bad!r}")
            self.check(f"a row after #{bad}", self.comes("chosen.row !== null"), True)
        self.browser.evaluate("choose({row: 20, by: 'row', column: 0})")
        self.browser.settle()
        self.click_on("element('walk-keys').children[2].querySelector('button')")
        key = self.browser.evaluate(keys + "[2]")
        self.check("a key marks its cell and its word", self.browser.evaluate(
            "[cursor.row, cursor.column, chosen.row, chosen.column,"
            " document.querySelector('.of-walk').dataset.index]"), [20, key, 20, key, str(key)])
        said = self.text("walk-sum")
        self.check("its score is a sum", (said.startswith(f"scores[20][{key}] = "), said.count("·")), (True, 8))
        self.check("which ends in the program's number", said.split(" ≈ ")[1].split(". Its")[0],
                   self.browser.evaluate(f"shortest(walk.steps[0].array.row(20)[{key}], mapAt(3))"))
        self.point_at(20, 4)
        self.check("a cell marks its key", self.browser.evaluate(
            "document.querySelector('#walk-keys .marked').dataset.column"), "4")
        self.browser.click(*self.place_of(30, 2))
        self.check("another row", self.text("walk-title"), "Walk: query 30, head 0")
        self.browser.evaluate("choose({panel: 1})")
        self.browser.evaluate("showWalk()")
        self.check("the head's own queries, the shared keys", self.browser.evaluate(
            "[walk.queries.row(30)[0], walk.keys.row(1)[0]]"), [1 + 560 % 7 / 8, -2 + 8 % 7 / 8])
        self.browser.evaluate("choose({isMean: true})")
        self.check("a mean has none", self.text("walk-hint"), "A walk is of one head: choose one.")
        self.browser.evaluate("choose({isMean: false})")

    def one_question(self):
        """Each way to select, after each way to point: every part shows the selection."""
        self.browser.evaluate("choose({panel: 0, row: 20, column: 3, by: 'row'})")
        label = {"row": lambda row: (self.place_of(row, 0)[0] - 25, self.place_of(row, 0)[1]),
                 "column": lambda column: (self.place_of(0, column)[0], self.place_of(0, column)[1] - 20)}
        token = "buttonOf('{}', {})"
        points = [lambda: self.point_at(7, 3), lambda: self.browser.point(*self.middle_of(token.format("column", 9))),
                  lambda: self.browser.point(*self.middle_of(token.format("row", 12))), self.arrow]
        chooses = [
            (("row", 31), lambda: self.browser.click(*self.place_of(31, 2))),
            (("column", 5), lambda: self.browser.click(*label["column"](5))),
            (("row", 8), lambda: self.browser.click(*self.place_of(8, 4))),
            (("row", 6), lambda: self.browser.click(*label["row"](6))),
            (("column", 6), lambda: self.click_on("element('swap')")),
            (("column", 11), lambda: self.click_on(token.format("column", 11))),
            (("row", 15), lambda: self.click_on(token.format("row", 15))),
            (("row", 22), lambda: self.browser.evaluate("location.hash = 'row=22'")),
            (("column", 2), lambda: self.browser.evaluate("location.hash = 'column=2'")),
            (("row", 3), lambda: self.press_in_map(3, 1, 0)), (("column", 1), lambda: self.press_in_map(3, 1, 8)),
        ]
        for i, ((by, index), choose) in enumerate(2 * chooses):
            points[i % len(points)]()
            self.browser.evaluate("scrollTo(0, 0)")
            choose()
            self.browser.settle()
            self.check(f"choice {i} of {by} {index}", self.browser.evaluate("[chosen.by, chosen[chosen.by], pointed]"),
                       [by, index, None])
            self.tells_of_chosen(f"choice {i}")
            self.check(f"its lines {i}", [self.text("lines-say")[:5], self.browser.evaluate(
                "[...document.querySelectorAll('.tokens .source')].map((e) => Number(e.dataset.index))")],
                ["Most:" if self.browser.evaluate("fanOf(current()).full") else "No we", [index]])
            for j, point in enumerate(points):
                if (i + j) % 3:
                    continue
                point()
                self.tells_of_chosen(f"pointing {j} after choice {i}")
                self.check(f"pointing {j} says so after choice {i}", self.text("lines-say").startswith("Pointed at: "),
                           self.browser.evaluate("isElsewhere()"))

    def arrow(self):
        self.browser.evaluate("view.focus()")
        self.browser.press("ArrowDown", 40)

    def press_in_map(self, row, column, modifiers):
        self.browser.evaluate(f"view.focus(); moveTo({row}, {column})")
        for kind in ("keyDown", "keyUp"):
            self.browser.call("Input.dispatchKeyEvent", type=kind, key="Enter", windowsVirtualKeyCode=13,
                              modifiers=modifiers)

    def tells_of_chosen(self, what):
        by, row, column = self.browser.evaluate("[chosen.by, chosen.row, chosen.column]")
        self.check(f"{what}: titles", [self.text(name) for name in ("lines-title", "bars-title", "walk-title")],
                   [f"What query {row} attends to, head 0" if by == "row" else f"Who attends to key {column}, head 0",
                    f"query {row}" if by == "row" else f"key {column}", f"Walk: query {row}, head 0"])
        self.check(f"{what}: the walk's query", self.text("walk-hint").startswith("A walk is of one query"),
                   by == "column")

    def walks_blocked(self):
        self.browser.evaluate("choose({row: 4, by: 'row', panel: 0})")
        self.browser.settle()
        for column in (5, 20, 39):
            self.point_at(4, column)
            said = self.text("walk-sum")
            score = self.browser.evaluate(
                f"walk.queries.row(4).reduce((sum, x, i) => sum + x * walk.keys.row({column})[i], 0)")
            number = said.split(" ≈ ")[1].split(". B")[0].replace("−", "-")
            self.check(f"the score of blocked key {column}", abs(float(number) - score) <= 0.005 * abs(score), True)
            self.check("and what becomes of it", said[-19:], ". Blocked: weight 0")
        self.check("which scale", self.browser.evaluate(
            "[...element('walk-head').querySelectorAll('small')].map((e) => e.textContent)[1]").split(" ")[0], "times")
        self.check("of the root of d_k", self.browser.evaluate("""(() => {
            const kept = walk, row = chosen.row, said = [];
            for (const [width, scale] of [[8, 8 ** -0.5], [2, 2 ** -0.5], [64, 0.125], [8, 0.5], [1, 1], [4, -3]]) {
                const step = (name, by) => ({name, array: {of: {}, row: () => [0, 1, -7].map((x) => by * x)}});
                walk = {keys: {width}, steps: [step('scores', 1), step('scaled_scores', scale)]};
                said.push(scaleText([0, 1, 2]));
            }
            walk = kept;
            return said; })()"""),
            ["times 1/√8 ≈ 0.354", "times 1/√2 ≈ 0.707", "times 1/√64 ≈ 0.125", "times ≈ 0.5", "times ≈ 1",
             "times ≈ −3"])
        self.browser.evaluate("element('view').dispatchEvent(new PointerEvent('pointerleave'));"
                              " isPointing = false; choose({row: 20})")
        self.browser.settle()
        self.check("the second key is the example", self.browser.evaluate(
            "[...element('walk-keys').children].findIndex((line) => line.classList.contains('marked'))"), 1)

    def sizes(self):
        """At every width nothing is cut, and bars use the available width."""
        for width, bar in ((390, 60), (800, 100), (1024, 120), (1440, 120), (1920, 200)):
            self.browser.resize(width, 900)
            self.check(f"no heading is cut at {width}", self.browser.evaluate(
                "[...document.querySelectorAll('h1, h2, #walk-sum')].filter((e) => e.scrollWidth > e.clientWidth"
                " || e.scrollHeight > e.clientHeight + 3).map((e) => e.id)"), [])
            self.check(f"bars at {width}", self.browser.evaluate(
                "document.querySelector('#bar-list .track').clientWidth") >= bar, True)
        self.browser.resize(1280, 900)

    def hints(self):
        """Words about queries and keys are only below arrays of them."""
        for array in range(self.browser.evaluate("contents.arrays.length")):
            self.browser.evaluate(f"choose({{array: {array}, view: 'map'}})")
            axes = self.browser.evaluate("[map.rows.axis, map.columns.axis]")
            said = self.text("hint") + self.text("keys")
            self.check(f"hints below {axes}", ["attend" in said, all(axis in said for axis in axes)],
                       [axes == ["query", "key"], True])
        self.browser.evaluate("choose({array: contents.first})")

    def legend_of_grid(self):
        self.browser.evaluate("choose({view: 'grid'})")
        self.browser.settle()
        self.check("the grid has a legend", self.browser.evaluate(
            "element('overview').contains(element('legend')) && element('legend').clientHeight > 20"
            " && element('ticks').children.length > 1 && !element('blocked-key').hidden"), True)
        self.check("its ends, where each picture has its own", self.browser.evaluate(
            "(element('pooled').hidden = false, [ticksOf(), showLegend(), element('ticks').textContent][2])"),
            "0strongest")
        self.check("and says what to do", "Click one" in self.text("overview"), True)
        self.browser.evaluate("choose({view: 'map'})")
        self.browser.settle()
        self.check("the map has it back", self.browser.evaluate("element('chart').contains(element('legend'))"), True)

    def of_others(self):
        """For results of other programs, the page does not mention flags."""
        self.check("a walk that could be", self.browser.evaluate("element('walk').hidden"), False)
        self.browser.evaluate("map.title = `${map.array} (3, 6, 6)`; showWalk()")
        self.check("none", self.browser.evaluate("element('walk').hidden"), True)
        self.browser.evaluate("map.title = `multihead  ${map.array} (3, 6, 6)`; showWalk()")

    def lacks_arrays(self):
        self.check("how to have a walk", self.text("walk-hint"),
                   "This page does not hold queries, keys, values: --emit all --plot-array all puts them into a page.")

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
        for step in (small.loads, small.hovers, small.colors, small.heads, small.mean_of_heads,
                     small.lines, small.bars, small.arrays, small.arrays_while_thumbnails_are_drawn,
                     small.grid, small.legend_of_grid, small.addresses, small.lacks_arrays, small.of_others, small.keyboard, small.dark, small.narrow,
                     small.touches, small.saves, small.is_quiet):
            step()
        large = PageTest(browser, sys.argv[3])
        for step in (large.means, large.windows, large.dark, large.narrow, large.is_quiet):
            step()
        odd = PageTest(browser, sys.argv[4])
        for step in (odd.odd, odd.narrow, odd.is_quiet):
            step()
        packed = PageTest(browser, sys.argv[5])
        for step in (packed.packed, packed.is_quiet):
            step()
        parts = []
        with open(sys.argv[5], "rb") as file:
            page = file.read()
        second = page.rindex(b"<script", 0, page.index(b'id="map-1-0"'))
        for end in (second, second + 1000, len(page) - 200):
            with open(sys.argv[5] + ".cut.html", "wb") as file:
                file.write(page[:end])
            parts.append(PageTest(browser, sys.argv[5] + ".cut.html"))
            for step in (parts[-1].cut_off, parts[-1].is_quiet):
                step()
        walk = PageTest(browser, sys.argv[6])
        for step in (walk.walks, walk.one_question, walk.walks_blocked, walk.hints, walk.sizes, walk.dark, walk.narrow, walk.is_quiet):
            step()
        framed = PageTest(browser, sys.argv[2])
        framed.hidden_frame(os.path.abspath(sys.argv[3]))
    finally:
        browser.close()
    failures = small.failures + large.failures + odd.failures + packed.failures
    failures += walk.failures + framed.failures + sum(part.failures for part in parts)
    print("browser test:", "ok" if failures == 0 else f"{failures} failures")
    return min(failures, 1)


sys.exit(main())
