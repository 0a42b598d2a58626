"""Pictures of `attn plot` against their own legends: what the colour bar says is what the cells show.

    python3 tests/legend_test.py ATTN

Kinds of arrays (weights, scores, counts, masks, equal numbers, zeros, NaN and infinities, tiny and huge numbers, dropped
weights) x sizes x scales of colours x SVG, HTML and the terminal (the pixels of PNG: io/plot_files_test.cpp). From the SVG alone: each cell has the colour of the bar
at the place of its number, colours follow the numbers, and a number beyond an end of the bar is there only if that end says
"and more" or "and less". The other formats have the same ticks, words and colours. One question in three, or all with
ATTN_TEST_WHOLE. Exit code 77: no NumPy.
"""
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

try:
    import numpy as np
except ImportError:
    sys.exit(77)

ATTN = os.path.abspath(sys.argv[1])
FLAGS = {"auto": [], **{name: ["--color-scale", name]
                        for name in ("robust", "row", "fixed", "global", "log", "0.3", "2.5", "1e-3", "7e8")}}
MASKED, DROPPED, NO_NUMBER = "#f0f0f0", "#a0a0a0", "#ff00ff"
failures = []


def check(is_right, *what):
    if not is_right:
        failures.append(" ".join(map(str, what)))


def attn(*words, **environment):
    done = subprocess.run([ATTN, *words], capture_output=True, env={"PATH": os.environ["PATH"], **environment}, check=False)
    if done.returncode != 0:
        sys.exit(f"attn {' '.join(words)}: {done.stderr.decode()}")
    return done.stdout.decode()


def softmax(scores):
    scores = np.exp(scores - scores.max(-1, keepdims=True))
    return scores / scores.sum(-1, keepdims=True)


def kinds(rows, columns):
    """Arrays by name and kind; `mask` is 0 where nothing is drawn."""
    rng = np.random.default_rng(rows * 100 + columns)
    normal = rng.standard_normal((rows, columns))
    causal = np.tril(np.ones((rows, columns)), max(columns - rows, 0))
    seen = np.where(causal, normal, -np.inf)
    sparse = normal.copy()
    sparse.flat[::3] = [math.nan, math.inf, -math.inf] * sparse.size if sparse.size > 8 else math.nan
    for sharpness in (0.1, 1, 8):
        yield f"weights {sharpness}", {"attention_weights": softmax(sharpness * normal)}
        yield f"causal {sharpness}", {"attention_weights": softmax(sharpness * seen), "mask": causal}
    yield "scores", {"scores": 3 * normal}
    yield "one outlier", {"scores": np.where(np.arange(columns) == columns - 1, -1000, normal)}
    yield "negative", {"scores": -np.abs(normal) - 1}
    yield "counts", {"array": np.floor(50 * np.abs(normal))}
    yield "a mask", {"array": causal}
    yield "equal", {"array": np.full((rows, columns), 0.25)}
    yield "zeros", {"array": np.zeros((rows, columns))}
    yield "no numbers", {"scores": sparse}
    yield "tiny", {"scores": normal * 1e-300}
    yield "huge", {"scores": normal * 1e307}


def number_of(text):
    return float(re.sub(r" and (more|less)$", "", text).removesuffix(" %"))


class Svg:
    """The cells, colour bar and words of a picture, by their places."""
    def __init__(self, text):
        root = ElementTree.fromstring(text)
        name = "{http://www.w3.org/2000/svg}"
        self.texts = ["".join(node.itertext()) for node in root.iter(name + "text")]
        self.cells = []
        for node in root.iter(name + "path"):
            title = node.find(name + "title")
            if title is not None:
                count = node.get("d").count("M")
                self.cells += [(re.match(r"query (\d+)|row (\d+)", title.text).group(), node.get("fill"),
                                title.text.rsplit(": ", 1)[1])] * count
        boxes = [(node.get("fill"), *map(int, re.match(r"M(\d+) (\d+)h(\d+)v(\d+)", node.get("d")).groups()))
                 for node in root.iter(name + "path") if node.get("fill") and node.find(name + "title") is None]
        # The bar is the longest run of boxes below each other; its ticks are lines right of it, each with a text.
        runs, run = [], []
        for box in boxes:
            if run and not (box[1] == run[-1][1] and box[3] == run[-1][3] and box[2] == run[-1][2] + run[-1][4]):
                runs.append(run)
                run = []
            run.append(box)
        bar = max(runs + [run], key=len)
        left, top, bottom = bar[0][1] + bar[0][3], bar[0][2], bar[-1][2] + bar[-1][4] - 1
        self.colors = [box[0] for box in bar][::-1]
        marks = [box for box in boxes if box[1] == left + 1 and box[4] == 1 and top <= box[2] <= bottom]
        nodes = [node for node in root.iter(name + "text") if node.get("x") and int(node.get("x")) > left
                 and node.get("text-anchor") is None]
        self.ticks = [(1 - (mark[2] - top) / (bottom - top),
                       min(nodes, key=lambda n: abs(float(n.get("y")) - mark[2] - 4)).text) for mark in marks]
        self.words = next(text for text in self.texts if re.match("full colour|logarithmic", text))


def place_of(color, colors):
    """The part of the bar that has nearly this colour."""
    parts = [[int(c[i:i + 2], 16) for i in (1, 3, 5)] for c in [color, *colors]]
    apart = [sum(abs(a - b) for a, b in zip(parts[0], other)) for other in parts[1:]]
    return (min(range(len(apart)), key=apart.__getitem__) + 0.5) / len(apart)


def check_svg(svg, scale, what):
    ticks = sorted(svg.ticks)
    low, top = ticks[0][1], ticks[-1][1]
    # The ends of a logarithmic scale need not be ticks.
    full, is_both = number_of(svg.words.split()[-1] if scale == "log" else top), number_of(low) < 0
    numbers = [(row, color, float(text)) for row, color, text in svg.cells if color not in (MASKED, DROPPED, NO_NUMBER)]
    for row, color, text in svg.cells:
        check((color == MASKED) == (text == "masked") and (color == DROPPED) == (text == "0 after dropout")
              and (color == NO_NUMBER) == (text == "no number"), what, "marks", color, text)
    near = 1 + 0.006  # three digits
    if scale != "row":
        above = any(number > full * near for *_, number in numbers)
        below = any(number < -full * near for *_, number in numbers) and is_both
        check(above <= top.endswith(" and more") and below <= low.endswith(" and less"), what, "beyond", low, top)
        most = max((number for *_, number in numbers), default=0)
        check(not top.endswith("more") or most > full / near, what, "nothing is more than", top)
    for place, text in ticks:
        if scale != "log" and full < math.inf and full > 1e-290:
            share = number_of(text) / full
            check(abs(place - ((share + 1) / 2 if is_both else share)) < 0.02, what, "tick", text, place)
    places = []
    for row, color, number in numbers:
        own = max((abs(n) for r, _, n in numbers if r == row), default=0) if scale == "row" else full
        share = max(-1.0, min(1.0, number / own)) if own else 0
        if scale == "log" and share:
            share = math.copysign(max(1 + math.log(abs(share)) / math.log(1e4), 0), share)
        place = place_of(color, svg.colors)
        expected = (share + 1) / 2 if is_both else share
        if full > 1e-290 or scale == "row":
            check(abs(place - expected) < 0.025, what, "number", number, "at", place, "expected", expected)
        places.append((number / own if scale == "row" and own else number, place))
    places.sort()
    check(all(a[1] <= b[1] for a, b in zip(places, places[1:])), what, "colours do not rise with numbers")


def check_others(svg, folder, words, what):
    with open(f"{folder}/x.html", encoding="utf-8") as file:
        page = file.read()
    contents = json.loads(re.search(r'id="contents">(.*?)</script>', page, re.S).group(1))
    drawn = json.loads(re.search(r'id="map-0">(.*?)</script>', page, re.S).group(1))["scales"][contents["scale"]]
    said = [text for _, text in sorted(svg.ticks)]
    check([text for _, text in drawn["ticks"]] == said and drawn["words"] == svg.words, what, "page", drawn, said)
    text = attn(*words, COLUMNS="200", CLICOLOR_FORCE="1", COLORTERM="truecolor", TERM="xterm")
    check(said[0] in text and said[-1] in text and svg.words in text, what, "terminal lacks", said, svg.words)
    grounds = {"#%02x%02x%02x" % tuple(map(int, color.split(";"))) for color in re.findall(r"[34]8;2;(\d+;\d+;\d+)", text)}
    lacking = {color for _, color, _ in svg.cells} - {MASKED} - grounds
    check(not lacking, what, "terminal lacks colours", lacking)
    plain = attn(*words, COLUMNS="200", NO_COLOR="1")
    check("\033" not in plain and svg.words in plain, what, "without colours")
    for mark, color, name in (("x", DROPPED, "0 after dropout"), ("?", NO_NUMBER, "no number")):
        check((f"{mark}: {name}" in plain) == any(color == c for _, c, _ in svg.cells), what, "mark", mark)


def main():
    count = 0
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for rows, columns in ((1, 1), (1, 9), (6, 6), (30, 40)):
            for kind, arrays in kinds(rows, columns):
                path = f"{folder}/{len(files)}.npz"
                np.savez(path, **arrays)
                axes = [] if "mask" not in arrays and "scores" in arrays else ["--axes", "query,key"]
                files.append((f"{kind} {rows}x{columns}", ["plot", f"{path}:{next(iter(arrays))}", *axes]))
        for tokens, seed in ((3, 1), (12, 2)):
            for drop in ("0.3", "0.9"):
                path = f"{folder}/{len(files)}.npz"
                attn("causal", "--randn", f"{tokens},4", "--dropout", drop, "--seed", str(seed), "-o", path)
                files.append((f"dropout {drop} of {tokens}", ["plot", path]))
        for i, (kind, words) in enumerate(files):
            for j, (scale, flags) in enumerate(FLAGS.items()):
                if (i + j) % 3 != 0 and not os.environ.get("ATTN_TEST_WHOLE"):
                    continue
                what = f"{kind}, --color-scale {scale}:"
                attn(*words, *flags, "-o", f"{folder}/x.svg")
                with open(f"{folder}/x.svg", encoding="utf-8") as file:
                    svg = Svg(file.read())
                check_svg(svg, scale, what)
                count += 1
                if (i + j) % 6 == 0:
                    attn(*words, *flags, "-o", f"{folder}/x.html")
                    check_others(svg, folder, [*words, *flags], what)
                    count += 3
    for failure in failures[:20]:
        print(failure)
    print(f"{count} pictures, {len(failures)} failures")
    return 1 if failures else 0


sys.exit(main())
