"""Groups of lines on options: help, hints, formats, each option alone and many at once."""
import json
import random
import re

from lines.values import (ASKED, BAD, CAUSAL, CHANGES_INPUT, COMPANY, DTYPES, FORMATS, KERNELS, MODES, NAMES, READ,
                          SHAPES_ARRAYS, SUFFIXES, WRITES, WRITTEN, asked_with, cut, given, quoted, said_by, said_to,
                          spread)


def helps(program):
    yield from cut("""attn | attn --help | attn -h | attn --version | attn help | attn -x | attn --verison |
        attn explain | attn explain batch | attn compare a | attn '' | attn --help self""")
    for command in [*program.options, *(f"explain {mode}" for mode in MODES)]:
        for words in cut("| --help | -h | --version | a b c | --help --bad | nowhere.json"):
            yield f"attn {command} {words}".strip()
    for command in program.options:
        yield from (f"attn {command[1:]}", f"attn {command}s", f"attn {command.upper()}", f"attn {command} ''")


def formats(program):
    for mode, form, dtype, kernel in spread(2, MODES, FORMATS, DTYPES, KERNELS):
        asked = f"attn {mode} {ASKED[mode]} --format {form} --dtype {dtype} --kernel {kernel}"
        batch = asked.replace("made/tokens.csv", "made/batch.json")
        one = form in ("csv", "tsv", "npy")
        yield f"{asked} --emit {'scores' if one else 'all'}"
        yield f"{asked} --dropout 0.3 --seed 4 {CAUSAL[mode]}"
        yield f"{batch} --token 1 -o out.{form}" + ("" if one or kernel in KERNELS[2:] else " --emit all")
    for mode, form, suffix, name in spread(3, MODES, ["", *FORMATS], SUFFIXES, NAMES):
        yield f"attn {mode} {ASKED[mode]} -o out.{suffix} --emit {quoted(name)}" + (f" --format {form}" if form else "")
    ways = cut("| --nonfinite string | --nonfinite null --pretty | --nonfinite literal")
    digits = cut("| --precision 0 | --precision 1 | --precision 8 | --precision 17 | --precision 40")
    for mode, form, way, precision in spread(5, MODES, FORMATS, ways, digits):
        yield f"attn {mode} {ASKED[mode]} --format {form} --emit masked_scores {CAUSAL[mode]} {way} {precision}"


def flags(program):
    for mode in MODES:
        for option in program.options[mode]:
            asked, flag = f"attn {asked_with(mode, option)}", f"--{option.name}"
            rich = "" if option.name in ("emit", "format") or "--emit" in asked else " --emit all"
            for value in said_by(mode, option):
                yield f"{asked} {given(option, value)}{rich}"
                if value is None:
                    opposite = option.name[3:] if option.name.startswith("no-") else "no-" + option.name
                    yield from (f"{asked} {flag}=1", f"{asked} --{opposite}{rich}", f"{asked} {flag} {flag}")
                elif value not in BAD:
                    yield f"{asked} {flag}={quoted(value)} {CAUSAL[mode] or '--seed 7'}"
                    yield f"{asked} {given(option, value)} --kernel generic"
            yield from (f"{asked} {flag}", f"{asked} {flag} 1 {flag} 2")
            if option.letter:
                yield from (f"{asked} {option.letter} out.csv", f"{asked} {option.letter}out.npy")


DOCUMENTS = {"self": {"inputs": [[1, 2, 3], [0.5, 1, -1]]}, "causal": {"inputs": "data/journey.csv"},
             "multihead": {"inputs": [[1, 2, 3, 4]] * 6, "heads": 2},
             "cross": {"inputs": [[1, 2, 3]], "context": [[0, 1, 2], [3, 4, 5]]},
             "sdpa": {"query": [[1, 0]], "key": [[1, 2], [0, 1]], "value": [[1], [2]]}}
def as_json(value):
    """A text on the command line as what a document may hold instead: numbers, lists."""
    found = [value]
    try:
        found.append(json.loads(f"[{value}]" if "," in str(value) else str(value)))
    except ValueError:
        pass
    return found + ([value.split(",")] if isinstance(value, str) and "," in value else [])


def keys(program):
    """Options as keys of a request."""
    for mode in MODES:
        for option in program.options[mode]:
            key = option.name.removeprefix("no-").replace("-", "_")
            document = dict(DOCUMENTS[mode])
            if not program.has_key(mode, key):
                yield f"attn {mode}", json.dumps({**document, key: "1"})
                continue
            for name, value in re.findall(r"--([\w-]+) ?([^- ]\S*)?", COMPANY.get(option.name, "")):
                if name not in ("heatmap", "text"):
                    document[name.replace("-", "_")] = True if not value else as_json(value)[-1]
            if key in ("text", "example", "token_ids"):
                document.pop("inputs", None)
            told = [form for value in said_by(mode, option) for form in as_json(value)]
            for value in told + [True, False, None, [], {}, [[1]], [True], "1", -1, 1.0, 2.5, [1, 2]]:
                yield f"attn {mode}", json.dumps({**document, key: value})


GOOD = {"N": ["1", "2", "3", "4", "8"], "P": ["0.1", "0.5"], "S": ["0.5", "2"], "C": ["3", "30"], "E": ["1e-5"],
        "B": ["100", "10000"]}
INPUTS = cut("""data/journey.csv | made/tokens.csv | made/batch.json | made/many.csv | data/journey_twice.json |
    made/result.npz | made/all.json""")
SOURCES = {"self": INPUTS, "causal": INPUTS, "multihead": INPUTS,
           "cross": cut("""data/journey.csv --context made/context.csv | made/tokens.csv --context made/context_8.csv |
               data/journey_twice.json --context data/journey_twice.json | made/many.csv --context made/many.csv"""),
           "sdpa": [ASKED["sdpa"], *cut("""--query made/q_3.json --key made/k_3.json --value made/v_3.json |
               --query made/q_4.json --key made/k_4.json --value made/v_4.json |
               --query made/tokens.csv --key made/context_8.csv --value made/context_8.csv --heads 2""")]}


def mixed(program):
    """Several options at once, mostly such as go together."""
    draw = random.Random(21)

    def value(option):
        if not option.argument:
            return ""
        if draw.random() < 0.04:
            return quoted(draw.choice(said_to(option)))
        if option.argument.startswith("FILE"):
            return draw.choice((WRITTEN if option.name in WRITES else READ)[:9])
        if "|" in option.argument:
            return draw.choice(option.argument.split("|"))
        return quoted(draw.choice(GOOD.get(option.argument) or said_to(option)[:8]))

    for _ in range(6000):
        mode = draw.choice(MODES)
        names = {option.name for option in program.options[mode]}
        start = draw.choice(["attn "] * 6 + ["attn explain ", "attn batch -j 1 --mode "])
        apart = CHANGES_INPUT + (SHAPES_ARRAYS if start != "attn " else [])
        words = {}
        for option in draw.sample(program.options[mode], draw.choice((1, 2, 3, 4, 5, 8))):
            if option.name in apart and draw.random() < 0.97:
                continue
            for name, text in re.findall(r"--([\w-]+)((?: [^-\s]\S*)?)", COMPANY.get(option.name, "")):
                if name in names:
                    words.setdefault(name, text.strip())
            words[option.name] = value(option)
        if draw.random() < 0.7 and (mode in ("causal", "multihead") or {"causal", "window", "alibi"} & set(words)):
            words.setdefault("causal-align", draw.choice(("top-left", "bottom-right")))
        if mode == "multihead":
            words.setdefault("heads", draw.choice("1222"))
        yield f"{start}{mode} {draw.choice(SOURCES[mode])} " + " ".join(
            f"--{name} {text}".strip() for name, text in words.items())
