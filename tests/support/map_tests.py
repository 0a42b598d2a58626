"""Tests of the maps of a page: cells, colours, heads, lines, bars, several arrays."""

from support.browser_page import SCRIPT, PageTest


class MapTests(PageTest):
    def loads(self):
        self.finds("title", "document.title", "What each word attends to: multihead, 3 heads")
        self.check("heading", self.text("title"), "What each word attends to: multihead, 3 heads")
        self.check("settings", self.text("settings"), "multihead attention_weights (3, 6, 6)")
        self.finds("every element with a name for those who do not see",
                   "[...document.querySelectorAll('select, button, #view, #bar-list')].filter((e) =>"
                   " !(e.ariaLabel || e.labels?.length || e.textContent.trim()"
                   " || e.hasAttribute('aria-labelledby'))).map((e) => e.id)", [])

    def hovers(self):
        self.point_at(3, 1)
        self.check_says("cell (3, 1) of head 0", "query 3 “(empty)”, key 1 “journey”: 0.131")
        self.point_at(1, 4)
        self.check_says("a masked cell", "query 1 “journey”, key 4 “</script><!-- &”: masked")
        self.point_at(5, 2)
        self.check_says("a token that looks like a script",
                        f"query 5 “step”, key 2 “{SCRIPT}”: 0.152")
        self.finds("it is text", "document.querySelectorAll('main script').length", 0)

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
        self.finds("the chosen picture is marked", "thumbnailsIn('strip').map((e) => e.ariaPressed)",
                   ["false", "false", "true", "false"])
        self.point_at(5, 0)
        self.check_says("no number", "query 5 “step”, key 0 “Your”: no number")
        self.check("its colour", self.color_at(5, 0), [255, 0, 255, 255])
        self.click_on("element('previous')")
        self.click_on("element('previous')")
        self.finds("back at head 0", "chosen.panel", 0)

    def mean_of_heads(self):
        self.click_on("thumbnailsIn('strip')[3]")
        self.point_at(3, 1)
        self.check_says("the mean", "query 3 “(empty)”, key 1 “journey”: 0.231, mean of 3 heads")
        self.finds("in the list", "element('axis-0').value", "mean")
        self.click_on("element('strip').querySelectorAll('input')[1]")
        self.check_says("of two", "query 3 “(empty)”, key 1 “journey”: 0.231, mean of 2 heads")
        self.click_on("element('strip').querySelectorAll('input')[2]")
        self.check_says("of one", "query 3 “(empty)”, key 1 “journey”: 0.131, mean of 1 head")
        self.click_on("element('strip').querySelectorAll('input')[3]")
        self.finds("all again", "chosen.without.size", 0)
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
        self.finds("what it does not see",
                   "[2, 3, 4, 5].every((i) => buttonOf('column', i).classList.contains('dim'))", True)
        self.browser.point(5, 5)
        self.check("and back", self.text("lines-say")[:5], "Most:")
        self.click_on("buttonOf('column', 5)")
        self.check("who attends", self.text("lines-title"), "Who attends to “step”, head 0")
        self.check("only itself", self.text("lines-say"), "No weights.")
        self.click_on("element('swap')")
        self.check("swapped", self.text("lines-title"), "What “step” attends to, head 0")
        self.browser.press("Tab", 9)
        self.browser.press("Tab", 9)
        self.finds("Tab reaches the tokens", "document.activeElement === buttonOf('row', 5)", True)
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
        self.finds("numbers of the bars",
                   "[...document.querySelectorAll('#bar-list .number')].map((e) => e.textContent)",
                   ["0.12", "0.121", "0.122"])
        self.check("what they mean", self.text("bars-note"), "A full bar is 0.12, the largest here. 3 masked.")
        self.finds("the longest fills its track", "document.querySelectorAll('#bar-list .bar')[2].style.width",
                   "100%")
        self.browser.click(*self.place_of(4, 0))
        self.click_on("element('largest-first')")
        self.finds("largest first", "document.querySelector('#bar-list .number').textContent", "0.144")
        self.click_on("element('largest-first')")
        x, y = self.place_of(0, 4)
        self.browser.click(x, y - 20)
        self.check("by the label of a column", self.text("bars-title"), "key 4 “</script><!-- &”")
        self.finds("its numbers", "[...document.querySelectorAll('#bar-list .number')].map((e) => e.textContent)",
                   ["0.144", "0.154"])
        self.browser.click(*self.place_of(4, 0))

    def arrays(self):
        self.choose_with_keys("array", "ArrowDown")
        self.check("the row stays", self.text("bars-title"), "query 4 “</script><!-- &”")
        self.finds("no lines of scores", "element('lines').hidden", True)
        self.point_at(3, 3)
        self.check_says("another array", "query 3 “(empty)”, key 3 “(empty)”: -1.5")
        self.check("its title", self.text("settings"), "multihead scores (2, 3, 6, 6)")
        self.finds("its ends of the scale", "[...element('ticks').children].map((e) => e.textContent)",
                   ["-10", "-5", "0", "5", "10"])
        self.choose_with_keys("axis-0", "ArrowDown")
        self.check_says("another batch entry", "query 3 “(empty)”, key 3 “(empty)”: 1.5")
        self.choose_with_keys("axis-1", "ArrowDown")
        self.check_says("its second head", "query 3 “(empty)”, key 3 “(empty)”: 2.5")
        self.finds("its name", "view.ariaLabel", "scores batch 1, head 1")
        self.choose_with_keys("axis-0", "ArrowUp")
        self.check_says("the same head before", "query 3 “(empty)”, key 3 “(empty)”: -0.5")
        self.choose_with_keys("axis-1", "ArrowUp")
        self.choose_with_keys("array", "ArrowUp")

    def arrays_while_thumbnails_are_drawn(self):
        self.browser.evaluate("for (let i = 0; i < 40; ++i) choose({array: i % 2, view: i % 3 ? 'grid' : 'map',"
                              " scale: contents.scales[i % contents.scales.length]})")
        self.browser.evaluate("(async () => { for (let i = 0; i < 20; ++i) { choose({array: i % 2, view: 'grid'});"
                              " await new Promise((go) => setTimeout(go, i)); } })()")
        self.browser.evaluate("choose({array: 0, panel: 0, view: 'map', scale: 'fixed'})")
        self.browser.settle()
        self.check("back", self.text("settings"), "multihead attention_weights (3, 6, 6)")

    def grid(self):
        self.browser.evaluate("choose({array: 1, panel: 4, view: 'map'}); view.focus()")
        self.browser.press("Escape", 27)
        self.finds("Escape shows all matrices", "[element('overview').hidden, element('columns').hidden]",
                   [False, True])
        self.finds("with names", "[...element('grid').querySelectorAll('span')].map((e) => e.textContent)",
                   ["", "head 0", "head 1", "head 2", "batch 0", "batch 1"])
        focused = "thumbnailsIn('grid').indexOf(document.activeElement)"
        self.finds("the focus is on the one that was shown", focused, 4)
        for key, code, there in (("ArrowUp", 38, 1), ("ArrowRight", 39, 2), ("PageDown", 34, 3),
                                 ("ArrowLeft", 37, 2), ("ArrowUp", 38, 2), ("Home", 36, 0),
                                 ("ArrowDown", 40, 3), ("End", 35, 5)):
            self.browser.press(key, code)
            self.finds(f"{key} in the grid", focused, there)
        self.check("they are drawn", self.comes(
            "thumbnailsIn('grid').every(({firstChild: {width, height}, firstChild}) =>"
            " firstChild.getContext('2d').getImageData(0, 0, width, height).data.some((b) => b))"), True)
        self.browser.press("Enter", 13, "\r")
        self.finds("Enter opens it", "view.ariaLabel", "scores batch 1, head 2")
        self.finds("there is a map again", "element('columns').hidden", False)
        self.browser.evaluate("choose({array: 0, panel: 0})")

    def means(self):
        self.browser.evaluate("choose({row: 0, column: 0}); view.focus()")
        self.browser.press("ArrowDown", 40)
        self.check_says("a cell of many elements", "query 2, key 0: largest 1.5")
        self.browser.press("ArrowRight", 39)
        self.check_says("only half of it is masked", "query 2, key 2: largest 1.5")
        self.browser.press("End", 35)
        self.check_says("all of it is masked", "query 2, key 1028: masked")
        self.check("the note", self.text("note"), "each cell is the largest of 2 x 2 elements")
        self.finds("the end of the scale", "element('ticks').lastChild.textContent", "1 and more")
        before = self.browser.evaluate("layout.cellWidth")
        for _ in range(3):
            self.browser.press("+")
        self.check("larger cells", self.browser.evaluate("layout.cellWidth") > 5 * before, True)
        x, y = self.place_of(1, 514)
        self.browser.point(x - 3, y - 3)
        self.check_says("the pointer, where the map is scrolled", "query 2, key 1028: masked")

    def windows(self):
        """Of lists too long for the lines: what is near, and what is heaviest."""
        self.browser.evaluate("choose({row: 300})")
        self.browser.settle()
        self.finds("tokens about the chosen one", "[placeIn.row.size, placeIn.row.has(290), placeIn.row.has(319)]",
                   [40, True, True])
        self.finds("and before them", "element('queries').firstChild.textContent", "↑ 280 more")
        self.finds("the rest", "element('key-tokens').lastChild.textContent", "475 others, 300 at most")
        self.finds("bars of the largest", "[element('bar-list').children.length, element('bars-note').textContent]",
                   [100, "A full bar is 300, the largest here. The 100 largest of 301. 214 masked."])
        self.browser.evaluate("buttonOf('row', 300).focus()")
        for _ in range(3):
            self.browser.press("ArrowDown", 40)
        self.finds("arrows go on", "[chosen.row, document.activeElement.dataset.index]", [303, "303"])

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
        self.finds("all were shown", "maps.length", 16)
        self.finds("layers by their labels",
                   "(choose({array: 0, view: 'grid'}), [...element('grid').querySelectorAll('.before')]"
                   ".map((e) => e.textContent))", ["early", "<b>late"])
        self.browser.evaluate("choose({view: 'map'})")

    def packed(self):
        """As make_page.cpp made them, of both types."""
        self.finds("the first map is decoded before the rest of the page comes", "atEnd", 1)
        self.finds("numbers that are not as they were", """(async () => {
            const edges = [0x80000000, 1, 0x7fffff, 0x800000, 0x7f7fffff, 0xff7fffff, 0x7ff00000, 0xfff80000];
            const wrong = [], word = new DataView(new ArrayBuffer(8));
            for (const array of [0, 1]) {
                const of = mapAt(array), {numbers, flags} = await numbersOf(of, 0);
                for (let i = 0; i < 330 * 330; ++i) {
                    const row = Math.floor(i / 330), column = i % 330;
                    word.setUint32(0, edges[column] ?? Math.imul(i, 2654435761));
                    word.setUint32(4, Math.imul(i, 2246822519));
                    const isMasked = array === 0 && column > row;
                    let value = array === 0 ? word.getFloat32(0) : word.getFloat64(0);
                    if (!Number.isFinite(value)) value = NaN;
                    if (isMasked ? !flags[i] : flags[i] || !Object.is(numbers[i], value)) wrong.push([array, i]);
                }
                if (numbers.length !== 330 * 330) wrong.push(numbers.length);
            }
            return wrong.slice(0, 5); })()""", [])
        self.finds("rounded numbers say so",
                   "[shortest(0.0123456, {digits: 3, float32: true}), shortest(0, {digits: 3, float32: true})]",
                   ["≈ 0.0123", "0"])

    def cut_off(self):
        """A file that ends in the text of its second array, or before it."""
        self.check("it says so", "cut off" in self.text("note"), True)
        self.finds("what is there is shown", "[chosen.row !== null, shown.numbers[331] !== 0]", [True, True])
        self.browser.evaluate("choose({array: 1, row: 0, column: 0}); isPointing = true")
        self.check("what is not is no number", self.comes("(say(), element('value').textContent.endsWith('no number'))"),
                   True)

    def legend_of_grid(self):
        self.browser.evaluate("choose({view: 'grid'})")
        self.browser.settle()
        self.finds("the grid has a legend",
                   "element('overview').contains(element('legend')) && element('legend').clientHeight > 20"
                   " && element('ticks').children.length > 1 && !element('masked-key').hidden", True)
        self.finds("its ends are those of the map, also with more cells than pixels",
                   "(element('pooled').hidden = false, showLegend(), element('ticks').textContent"
                   " === map.scales[chosen.scale].ticks.map(([, text]) => text).join(''))", True)
        self.check("and says what to do", "Click one" in self.text("overview"), True)
        self.browser.evaluate("choose({view: 'map'})")
        self.browser.settle()
        self.finds("the map has it back", "element('chart').contains(element('legend'))", True)
