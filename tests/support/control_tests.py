"""Tests of what a reader uses: addresses, keys, fingers, dark and narrow screens, saved pictures."""
import re
import time
from xml.etree import ElementTree

from support.browser_page import SCRIPT, PageTest


class ControlTests(PageTest):
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
        self.finds("back", "[map.array, nameOfShown(), chosen.row]", [scores, "batch 1, head 2", 3])
        self.follow("column=1")
        self.finds("a key, and a query to walk through", "[chosen.by, chosen.column, chosen.row]", ["column", 1, 5])
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
        self.finds("names of the files", "savedNames",
                   ["attention_weights-head-1.svg", "attention_weights-head-1.png"])
        text = self.browser.evaluate("saved[0].text()")
        tree = ElementTree.fromstring(text)
        words = [e.text for e in tree.iter("{http://www.w3.org/2000/svg}text")]
        self.check("labels, numbers, masked", all(
            word in words for word in ("journey", SCRIPT, "</script><!-- &", "(empty)", "0.23", "masked")), True)
        self.check("title and settings", [word for word in words if "multihead" in word],
                   ["What each word attends to: multihead, head 1", "head 1 · multihead  attention_weights (3, 6, 6)"])
        self.finds("a PNG as large", "createImageBitmap(saved[1]).then(({width, height}) => [width, height])",
                   [2 * int(tree.get("width")), 2 * int(tree.get("height"))])
        self.browser.evaluate("choose({panel: 0})")

    def keyboard(self):
        self.browser.evaluate("document.activeElement.blur()")
        for _ in range(30):
            self.browser.press("Tab", 9)
            if self.browser.evaluate("document.activeElement.id") == "view":
                break
        self.finds("Tab reaches the map", "document.activeElement.id", "view")
        self.finds("its focus is seen", "getComputedStyle(view).outlineStyle", "solid")
        for _ in range(6):
            self.browser.press("ArrowUp", 38)
            self.browser.press("ArrowLeft", 37)
        self.check_says("the arrows end at the first cell", "query 0 “Your”, key 0 “Your”: 1")
        self.browser.press("ArrowDown", 40)
        self.browser.press("ArrowRight", 39)
        self.check_says("down and right", "query 1 “journey”, key 1 “journey”: 0.111")
        self.check("the lines follow", self.text("lines-say").split(".")[0], "Pointed at: query 1 “journey”")
        self.browser.press("PageDown", 34)
        self.check_says("the next head", "query 1 “journey”, key 1 “journey”: 0.211")
        self.browser.press("Enter", 13, "\r")
        self.check("Enter shows the row", self.text("bars-title"), "query 1 “journey”")
        self.browser.press("End", 35)
        self.check_says("the end of the row", "query 1 “journey”, key 5 “step”: masked")

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
            self.finds(f"{width} pixels are laid out at once",
                       "[1, 2, 3].some(() => { const begin = performance.now(); layOut(); drawMap();"
                       " return performance.now() - begin < 1000; })", True)
            if width >= 320:
                self.finds(f"nothing overflows a window of {width} pixels", "document.documentElement.scrollWidth",
                           width)
            self.finds(f"cells of a window of {width} pixels", "layout.cellWidth > 0 && layout.cellHeight > 0", True)
        self.browser.resize(1280, 900)

    def hidden_frame(self, path):
        """In a frame that is not shown, then is."""
        self.browser.evaluate("new Promise((done) => { const frame = document.createElement('iframe');"
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
        self.browser.evaluate("isPointing = false; say(); scrollTo(0, 0);" " view.scrollIntoView({block: 'center'})")
        for row, column in ((3, 2), (0, 0), (5, 5), (2, 0)):
            self.browser.tap(*self.place_of(row, column))
            self.finds(f"a tap on row {row}", "[chosen.row, cursor.row, cursor.column]", [row, row, column])
        self.browser.resize(1280, 900)
