"""One page in a browser: what its tests ask and press."""

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

    def finds(self, what, expression, expected):
        self.check(what, self.browser.evaluate(expression), expected)

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

    def is_quiet(self):
        loud = ("Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled",
                "Page.javascriptDialogOpening")
        events = self.browser.events
        self.check("no errors", [event["method"] + str(event["params"])[:500]
                                 for event in events if event["method"] in loud][:1], [])
        requests = [event["params"]["request"]["url"] for event in events
                    if event["method"] == "Network.requestWillBeSent"]
        self.check("no request but for the page", len(requests), 1)
