"""Tests of the walk of one query on a page."""
from support.browser_page import PageTest


class WalkTests(PageTest):
    def walks(self):
        self.browser.evaluate("choose({row: 20})")
        self.browser.evaluate("showWalk()")
        self.finds("weights open the page", "map.array", "attention_weights")
        self.check("its title", self.text("walk-title"), "Walk: query 20, head 0")
        self.finds("steps that changed nothing are left out",
                   "[...element('walk-head').children].map((e) => e.firstChild.textContent)",
                   ["key", "keys", "products", "scores", "scaled scores", "attention weights", "values"])
        keys = "[...element('walk-keys').children].map((e) => Number(e.dataset.column))"
        self.finds("largest weights first", keys + ".map((key) => (800 + key) % 7)", [6, 6, 6, 5, 5, 5, 4, 4])
        self.check("what is not shown", self.text("walk-rest").split(" of the weight. ")[1],
                   "19 masked keys: weight 0.")
        self.click_on("element('walk-more')")
        self.finds("all on request", keys + ".length", 21)
        for bad in ("row=99", "%00", "array=__proto__", "column=999999999"):
            self.browser.evaluate(f"location.hash = {bad!r}")
            self.check(f"a row after #{bad}", self.comes("chosen.row !== null"), True)
        self.browser.evaluate("choose({row: 20, by: 'row', column: 0})")
        self.browser.settle()
        self.click_on("element('walk-keys').children[2].querySelector('button')")
        key = self.browser.evaluate(keys + "[2]")
        self.finds("a key marks its cell and its word", "[cursor.row, cursor.column, chosen.row, chosen.column,"
                   " document.querySelector('.of-walk').dataset.index]", [20, key, 20, key, str(key)])
        said = self.text("walk-sum")
        self.check("its score is a sum", (said.startswith(f"scores[20][{key}] = "), said.count("·")), (True, 8))
        self.check("which ends in the program's number", said.split(" ≈ ")[1].split(". Its")[0],
                   self.browser.evaluate(f"shortest(walk.steps[0].array.row(20)[{key}], mapAt(3))"))
        self.point_at(20, 4)
        self.finds("a cell marks its key", "document.querySelector('#walk-keys .marked').dataset.column", "4")
        self.browser.click(*self.place_of(30, 2))
        self.check("another row", self.text("walk-title"), "Walk: query 30, head 0")
        self.browser.evaluate("choose({panel: 1})")
        self.browser.evaluate("showWalk()")
        self.finds("the head's own queries, the shared keys", "[walk.queries.row(30)[0], walk.keys.row(1)[0]]",
                   [1 + 560 % 7 / 8, -2 + 8 % 7 / 8])
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
            self.finds(f"choice {i} of {by} {index}", "[chosen.by, chosen[chosen.by], pointed]", [by, index, None])
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

    def walks_masked(self):
        self.browser.evaluate("choose({row: 4, by: 'row', panel: 0})")
        self.browser.settle()
        for column in (5, 20, 39):
            self.point_at(4, column)
            said = self.text("walk-sum")
            score = self.browser.evaluate(
                f"walk.queries.row(4).reduce((sum, x, i) => sum + x * walk.keys.row({column})[i], 0)")
            number = said.split(" ≈ ")[1].split(". Masked")[0].replace("−", "-")
            self.check(f"the score of masked key {column}", abs(float(number) - score) <= 0.005 * abs(score), True)
            self.check("and its weight", said.endswith(". Masked: weight 0"), True)
        self.check("which scale", self.browser.evaluate(
            "[...element('walk-head').querySelectorAll('small')].map((e) => e.textContent)[1]").split(" ")[0], "times")
        self.finds("of the root of d_k", """(() => {
            const kept = walk, row = chosen.row, said = [];
            for (const [width, scale] of [[8, 8 ** -0.5], [2, 2 ** -0.5], [64, 0.125], [8, 0.5], [1, 1], [4, -3]]) {
                const step = (name, by) => ({name, array: {of: {}, row: () => [0, 1, -7].map((x) => by * x)}});
                walk = {keys: {width}, steps: [step('scores', 1), step('scaled_scores', scale)]};
                said.push(scaleText([0, 1, 2]));
            }
            walk = kept;
            return said; })()""",
            ["times 1/√8 ≈ 0.354", "times 1/√2 ≈ 0.707", "times 1/√64 ≈ 0.125", "times ≈ 0.5", "times ≈ 1",
             "times ≈ −3"])
        self.browser.evaluate("element('view').dispatchEvent(new PointerEvent('pointerleave'));"
                              " isPointing = false; choose({row: 20})")
        self.browser.settle()
        self.finds("the second key is the example",
                   "[...element('walk-keys').children].findIndex((line) => line.classList.contains('marked'))", 1)

    def sizes(self):
        """At every width nothing is cut, and bars use the available width."""
        for width, bar in ((390, 60), (800, 100), (1024, 120), (1440, 120), (1920, 200)):
            self.browser.resize(width, 900)
            self.finds(f"no heading is cut at {width}",
                       "[...document.querySelectorAll('h1, h2, #walk-sum')].filter((e) => e.scrollWidth > e.clientWidth"
                       " || e.scrollHeight > e.clientHeight + 3).map((e) => e.id)", [])
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

    def of_others(self):
        """For results of other programs, the page does not mention flags."""
        self.finds("a walk that could be", "element('walk').hidden", False)
        self.browser.evaluate("map.title = `${map.array} (3, 6, 6)`; showWalk()")
        self.finds("none", "element('walk').hidden", True)
        self.browser.evaluate("map.title = `multihead  ${map.array} (3, 6, 6)`; showWalk()")

    def lacks_arrays(self):
        self.check("how to have a walk", self.text("walk-hint"),
                   "This page does not hold queries, keys, values: --emit all --plot-array all puts them into a page.")
