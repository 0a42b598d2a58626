"""The lines that same_bytes.py runs, made from the old program's own --help, from the project's data and
README, and at random from a fixed seed. Every line is for a shell in a folder where `data` is the
project's and `made` holds what `make_files` wrote.
"""
import itertools
import json
import os
import random
import re
import shlex
import subprocess
import sys
from collections import namedtuple

Case = namedtuple("Case", "group line stdin")
Option = namedtuple("Option", "name letter argument")

MODES = ("self", "causal", "multihead", "cross", "sdpa")
ARRAYS = ("token_ids inputs normed_inputs W_query W_key W_value W_out b_query b_key b_value b_out queries keys "
          "values scores scaled_scores capped_scores mask biased_scores masked_scores masked_weights "
          "weights_before_dropout dropout_mask attention_weights logsumexp present_key present_value "
          "head_outputs context_vectors").split()
FORMATS = "json ndjson csv tsv npy npz safetensors torch table none".split()
SUFFIXES = ("json ndjson jsonl csv tsv npy npz safetensors JSON Csv csv.1 txt svg png html md v2 2024-05-31 "
            "parquet pt").split()
KERNELS = "auto reference generic avx2 avx512 neon".split()
SDPA = "--query made/q.json --key made/k.json --value made/v.json"

# What each mode computes unless a case says otherwise.
ASKED = {"self": "data/journey.csv", "causal": "data/journey.csv", "multihead": "made/tokens.csv --heads 2",
         "cross": "data/journey.csv --context made/context.csv", "sdpa": SDPA}

# Options that are refused without another.
COMPANY = {"rope-base": "--rope half", "rope-dims": "--rope half", "rope-scaling": "--rope interleaved",
           "dropout-seed": "--dropout 0.5", "dropout-skip": "--dropout 0.5 --dropout-seed 3",
           "dropout-stream": "--dropout 0.5 --dropout-seed 3", "mask-true": "--mask made/mask_bool.json",
           "past-key": "--past-value made/past.json", "past-value": "--past-key made/past.json",
           "vocab-size": "--text 'a b a'", "embed-dim": "--text 'a b a'", "embed-seed": "--text 'a b a'",
           "family": "--weights data/models/gpt2", "layer": "--weights data/models/gpt2",
           "model-config": "--weights data/models/gpt2", "pre-norm": "--weights data/models/gpt2 --layer 0",
           "norm-eps": "--weights data/models/gpt2 --pre-norm", "token-ids": "--weights data/models/gpt2",
           "weights-layout": "--weights data/models/notebook/selfattention_v1.npz",
           "save-family": "--save-weights w.npz", "plot-array": "--heatmap", "color-scale": "--heatmap",
           "causal-align": "--window 1", "average-heads": "--emit attention_weights",
           "retry-failed": "--resume made/answers_torn.ndjson", "nonfinite": "--emit masked_scores"}

NUMBERS = ("0 1 2 3 4 7 50 -1 -0 +1 01 1.5 1e1 0x1 1_0 x nan 2147483648 9223372036854775808 "
           "18446744073709551615 18446744073709551616 -9223372036854775809").split() + ["", " 1", "1 "]
REALS = ("0 -0 1 0.5 0.25 1e-5 8 100 -1 -0.5 1.0000001 1e-320 1e308 1e400 3.4e38 3.5e38 .5 5. 1e inf nan "
         "infinity x 0,5 1e-45").split() + [""]
LISTS = ("0 1 2 6 1,2 2,1 6,6 1,2,3 1,2,3,4 -1 -1,-1 2,0 0,0 -1,2 -2 1, ,1 , 1,,2 x 1,x 0.5 8 8,1,4,8192 "
         "8,4,1,8192 1e400 nan inf 99999999999999999999 1,2,3,1,2,3,1,2").split() + [""]
TEXTS = ["Life is short, eat dessert first", "a", "", " ", "a a a", "naïve 日本 e\u0301", "a, b; c--d?!"]
FILES = ("made/mask_bool.json made/mask_add.csv made/mask_0_1.json made/mask_head.npy made/mask_row.json "
         "made/padding.json made/past.json made/past_2.json made/q.json made/k.json made/q_3.json made/nan.json "
         "made/context.csv made/result.json made/result.npz made/result.npz:scores made/result.npz:score "
         "made/all.safetensors:mask data/models/gpt2 data/models/notebook/selfattention_v1.npz data "
         "data/arrays/matrix_f4.npy data/arrays/objects.npy nowhere.csv none -").split() + [""]
WRITTEN = ("out.npz out.json out.csv out.svg out.png out.html out.safetensors out.ndjson out.npy out.tsv out.md "
           "out.txt out.v2 out nowhere/out.json data none -").split() + [""]
WRITING = ("output", "plot", "save-weights", "resume")
LINE_ARRAYS = ARRAYS + ["all", "score", "context_vectors,scores", "scores,scores", "all,scores", "x", "",
                        "scores,", "Scores", "attention_weight", "W_query,b_query,queries"]

q = shlex.quote


def spread(seed, *lists):
    """All combinations, in an order of their own."""
    found = list(itertools.product(*lists))
    random.Random(seed).shuffle(found)
    return found


# ---- files -----------------------------------------------------------------------------------

def numbers(draw, *shape):
    if len(shape) > 1:
        return [numbers(draw, *shape[1:]) for _ in range(shape[0])]
    return [round(draw.gauss(0, 1), 4) for _ in range(shape[0])]


def make_files(folder, tests):
    """folder/made: inputs as text, and what the old program makes of them."""
    made = os.path.join(folder, "made")
    os.mkdir(made)
    draw = random.Random(20)

    def put(name, content):
        with open(os.path.join(made, name), "w", encoding="utf-8") as file:
            file.write(content if isinstance(content, str) else json.dumps(content))

    def table(rows):
        return "".join(",".join(map(str, row)) + "\n" for row in rows)

    put("tokens.csv", table(numbers(draw, 6, 8)))
    put("context.csv", table(numbers(draw, 5, 3)))
    put("context_8.csv", table(numbers(draw, 9, 8)))
    put("many.csv", table(numbers(draw, 70, 16)))
    put("batch.json", numbers(draw, 3, 5, 8))
    for name, shape in {"q": (5, 4), "k": (7, 4), "v": (7, 3), "q_3": (4, 5, 8), "k_3": (2, 7, 8), "v_3": (2, 7, 6),
                        "q_4": (2, 4, 5, 4), "k_4": (2, 2, 7, 4), "v_4": (2, 2, 7, 4), "past": (3, 4),
                        "past_2": (1, 2, 3, 4), "mask_add": (6, 6), "mask_5_7": (5, 7)}.items():
        put(name + ".json", numbers(draw, *shape))
    put("mask_bool.json", [[(i * j) % 3 != 1 for j in range(6)] for i in range(6)])
    put("mask_0_1.json", [[(i + j) % 2 for j in range(6)] for i in range(6)])
    put("mask_row.json", [True, True, False, True, True, False])
    put("mask_add.csv", table([[0, "-inf"][i < j] if j else 0.5 for j in range(6)] for i in range(6)))
    put("padding.json", [[True, True, True, True, True, False]])
    put("nan.json", "[[1, 2, 3], [4, NaN, 6]]")
    put("huge.json", [[1e30, -1e30, 3e38], [1e-40, 1e38, 0]])
    records = [{"id": f"r{n}", "mode": MODES[n % 3], "inputs": numbers(draw, 2 + n % 5, 4), "seed": n,
                "d_out": 4, **({"heads": 2} if n % 3 == 2 else {})} for n in range(24)]
    records[5]["d_out"], records[11]["heads"], records[13]["inputs"] = 0, 3, "nowhere.csv"
    records[17] = {"id": 17, "mode": "sdpa", "query": [[1, 0]], "key": [[1, 2], [0, 1]], "value": [[1], [2]]}
    records[19]["inputs"], records[20]["sead"] = "../data/journey.csv", 3
    lines = [json.dumps(record) for record in records]
    put("good.ndjson", "".join(line + "\n" for n, line in enumerate(lines) if n not in (5, 11, 13, 20)))
    put("requests.ndjson", "\n".join(lines[:8] + ["", "{", "[1", "7", '"data/journey.csv"', "null"] + lines[8:]))
    put("matrices.ndjson", "".join(json.dumps(numbers(draw, 3, 3)) + "\n" for _ in range(5)))

    def attn(line):
        subprocess.run(["sh", "-c", line], cwd=folder, check=False, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, env={"PATH": f"{folder}/old:/usr/bin:/bin", "LC_ALL": "C"})

    for name in ("json", "ndjson", "npz", "safetensors"):
        attn(f"attn causal data/journey.csv --d-out 2 --seed 5 -o made/result.{name}")
        attn(f"attn multihead made/batch.json --heads 4 --seed 6 --emit all -o made/all.{name}")
        attn(f"attn causal data/journey.csv --d-out 2 --seed 6 --dtype float64 -o made/double.{name}")
    for name in ("csv", "tsv", "npy"):
        attn(f"attn causal data/journey.csv --d-out 2 --seed 5 -o made/result.{name}")
        attn(f"attn causal data/journey.csv --seed 5 --emit attention_weights -o made/weights.{name}")
    attn("attn causal made/many.csv --seed 5 --emit all -o made/many.npz")
    attn("attn multihead made/tokens.csv --heads 2 --emit all --nonfinite literal --pretty -o made/pretty.json")
    attn("attn batch made/requests.ndjson -j 1 -o made/answers.ndjson")
    attn("head -n 6 made/answers.ndjson >made/answers_part.ndjson")
    attn("head -c 3000 made/answers.ndjson >made/answers_torn.ndjson")
    attn("attn self --init none --emit inputs -o made/mask_head.npy data/journey.csv")
    for family in ("gpt2", "llama", "bert", "neox", "mha", "notebook"):
        for name in ("safetensors", "npz", "json"):
            attn(f"attn multihead made/tokens.csv --heads 2 --seed 9 --save-family {family} "
                 f"--format none --save-weights made/{family}.{name}")
    os.mkdir(os.path.join(made, "configs"))
    with open(os.path.join(folder, "data", "models", "config_cases.json"), encoding="utf-8") as file:
        changed = json.load(file)["cases"]
    for number, case in enumerate(changed):
        with open(os.path.join(folder, "data", "models", case["model"], "config.json"), encoding="utf-8") as file:
            config = {key: value for key, value in json.load(file).items() if key not in case.get("without", [])}
        put(f"configs/{number}.{case['model']}.json", {**config, **case.get("changes", {})})
    subprocess.run([sys.executable, os.path.join(tests, "make_hostile.py"), os.path.join(made, "hostile"), "--small"],
                   check=True, stdout=subprocess.DEVNULL)


# ---- groups of lines: each yields Case without its group, as line or (line, stdin) -------------

def options_of(help_text):
    found = re.findall(r"^  (?:(-\w),)?--([a-z][a-z-]*)(?: ([^ ].*?))?(?:  .*)?$", help_text, re.MULTILINE)
    return [Option(name, letter, argument) for letter, name, argument in found]


class Lines:
    def __init__(self, folder, root):
        self.folder, self.root = folder, root
        program = os.path.join(folder, "old", "attn")

        def options(*words):
            text = subprocess.run([program, *words, "--help"], capture_output=True, text=True, check=True).stdout
            return [option for option in options_of(text) if option.name != "help"]

        self.options = {mode: options(mode) for mode in MODES}
        self.others = {command: options(command) for command in ("batch", "explain", "compare", "plot")}

    def help(self):
        commands = [*MODES, "batch", "explain", "compare", "plot"]
        yield from ("attn", "attn --help", "attn -h", "attn --version", "attn help", "attn -x", "attn --verison",
                    "attn explain", "attn explain batch", "attn compare a", "attn ''", "attn --help self")
        for command in [*commands, *(f"explain {mode}" for mode in MODES)]:
            yield from (f"attn {command}", f"attn {command} --help", f"attn {command} -h", f"attn {command} --version",
                        f"attn {command} a b c", f"attn {command} --help --bad", f"attn {command} nowhere.json")
        for command in commands:
            yield from (f"attn {command[1:]}", f"attn {command}s", f"attn {command.upper()}", f"attn {command} ''")

    def unknown(self):
        every = sorted({option.name for options in [*self.options.values(), *self.others.values()]
                        for option in options})
        for command, name in spread(1, [*MODES, *self.others], every):
            asked = ASKED.get(command, {"explain": "self data/journey.csv", "batch": "data/requests.ndjson -j 1",
                                        "plot": "made/result.json"}.get(command, "made/result.json made/result.npz"))
            near = name[:3] + name[4:]
            yield from (f"attn {command} {asked} --{near} 1", f"attn {command} {asked} --{name} 1",
                        f"attn {command} {asked} --no-{name}", f"attn {command} {asked} --{name.replace('-', '_')}=1")
            if command in MODES:
                yield f"attn {command}", json.dumps({"inputs": [[1, 2]], near.replace("-", "_"): 1})
                yield f"attn {command}", json.dumps({"inputs": [[1, 2]], name.replace("-", "_"): None})

    def formats(self):
        for mode, form, dtype, kernel in spread(2, MODES, FORMATS, ("float32", "float64"), KERNELS):
            asked = f"attn {mode} {ASKED[mode]} --format {form} --dtype {dtype} --kernel {kernel}"
            yield f"{asked} --emit all"
            yield f"{asked} --dropout 0.3 --seed 4 --causal --causal-align bottom-right"
            yield f"{asked.replace('made/tokens.csv', 'made/batch.json')} --emit all --token 1 -o out.{form}"
        for mode, form, name in spread(3, MODES, FORMATS, LINE_ARRAYS):
            yield f"attn {mode} {ASKED[mode]} --format {form} --emit {q(name)}"
        for mode, suffix, form in spread(4, MODES, SUFFIXES, ["", *FORMATS]):
            yield f"attn {mode} {ASKED[mode]} -o out.{suffix}" + (f" --format {form}" if form else "")
        for mode, form, way, digits in spread(5, MODES, FORMATS, ("string", "null", "literal"), ("", 0, 1, 8, 17, 40)):
            yield (f"attn {mode} {ASKED[mode]} --format {form} --nonfinite {way} --emit masked_scores "
                   f"--causal-align top-left --causal --pretty" + (f" --precision {digits}" if digits != "" else ""))

    def values(self, option):
        argument = option.argument
        if not argument:
            return [None]
        if argument.startswith("FILE"):
            return WRITTEN if option.name in WRITING else FILES
        if "|" in argument:
            choices = argument.split("|")
            return [*choices, *(choice[:-1] for choice in choices), choices[0].upper(), "nonsense", "", ",".join(choices)]
        if argument == "LIST":
            return LINE_ARRAYS
        if argument == "TEXT":
            return TEXTS
        if argument == "I/N":
            return ["1/1", "1/2", "2/2", "3/2", "0/2", "1/0", "x", "1", "1/", "", "-1/2"]
        if "," in argument:
            return LISTS
        return NUMBERS if argument == "N" else REALS

    def asked(self, mode, name):
        asked = ASKED[mode]
        company = COMPANY.get(name, "")
        if name == "example" or name == "text" or "--text" in company or name == "token-ids":
            asked = asked.replace("data/journey.csv", "").replace("made/tokens.csv", "")
        if "models/gpt2" in company:
            asked = "data/models/hidden.csv --context data/models/hidden.csv" if mode == "cross" else \
                "" if name == "token-ids" else "data/models/hidden.csv"
        return f"{mode} {asked} {company}"

    def flags(self):
        for mode in MODES:
            for option in self.options[mode]:
                asked = self.asked(mode, option.name)
                rich = "" if option.name in ("emit", "format") else "--emit all"
                for value in self.values(option):
                    if value is None:
                        opposite = option.name[3:] if option.name.startswith("no-") else "no-" + option.name
                        yield from (f"attn {asked} --{option.name} {rich}", f"attn {asked} --{option.name}=1",
                                    f"attn {asked} --{opposite} {rich}", f"attn {asked} --{option.name} --{option.name}")
                        continue
                    yield f"attn {asked} --{option.name} {q(value)} {rich}"
                    yield f"attn {asked} --{option.name}={q(value)} --kernel generic"
                    yield f"attn {mode} {ASKED[mode]} --{option.name} {q(value)} --causal"
                yield from (f"attn {asked} --{option.name}", f"attn {asked} --{option.name} 1 --{option.name} 2")
                if option.letter:
                    yield from (f"attn {asked} {option.letter} out.csv", f"attn {asked} {option.letter}out.npy")

    def keys(self):
        """The same as keys of a request: as text, number, list, true, null and object."""
        document = {"self": {"inputs": [[1, 2, 3], [0.5, 1, -1]]}, "causal": {"inputs": "data/journey.csv"},
                    "multihead": {"inputs": [[1, 2, 3, 4]] * 6, "heads": 2},
                    "cross": {"inputs": [[1, 2, 3]], "context": [[0, 1, 2], [3, 4, 5]]},
                    "sdpa": {"query": [[1, 0]], "key": [[1, 2], [0, 1]], "value": [[1], [2]]}}
        for mode in MODES:
            for option in self.options[mode]:
                key = option.name.removeprefix("no-").replace("-", "_")
                company = {}
                for name, value in re.findall(r"--([\w-]+) ?([^- ]\S*)?", COMPANY.get(option.name, "")):
                    if name not in ("heatmap", "text"):
                        company[name.replace("-", "_")] = True if not value else \
                            float(value) if re.fullmatch(r"[0-9.]+", value) else value
                given = []
                for value in self.values(option):
                    given.append(value)
                    try:
                        given.append(json.loads(f"[{value}]" if "," in str(value) else str(value)))
                    except ValueError:
                        pass
                    if isinstance(value, str) and "," in value:
                        given.append(value.split(","))
                given += [True, False, None, [], {}, [[1]], [True], "1", -1, 1.0, 2.5, [1, 2]]
                for value in given:
                    request = {**document[mode], **company, key: value}
                    if key in ("text", "example", "token_ids"):
                        request.pop("inputs", None)
                    yield f"attn {mode}", json.dumps(request)
        for text in ("", "{", "[]", "[[]]", "[[1],[1,2]]", "{}", "null", "7", "[1]", "[[1,2],[3,4]] x", '{"inputs": [[1]], "inputs": 2}',
                     '{"mode": "causal", "inputs": [[1, 2]]}', '{"inputs": [[1, 2], [3, 1e99]]}', "[[1, 2],\n [3, nan]]", "\ufeff[[1]]",
                     '{"inputs": [[1]],\n "seed": 1.5}', "1,2\n3,4\n", "a,b\n1,2\n3\n", "x 1 2\ny 3 4\n", '{"schema": "attn.result/1"}',
                     '{"inputs": {"a": 1}}', '{"inputs": [["1"]]}', "[[" * 600, '{"id": 3, "inputs": [[1]]}', "# c\n1;2\n", "\x00", "\udcff"):
            for mode in MODES:
                yield f"attn {mode}", text
                yield f"attn {mode} - --emit all --format table", text

    def explain(self):
        for mode, form, dtype in spread(6, MODES, ("text", "markdown"), ("float32", "float64")):
            for extra in ("", "--token 0", "--token 3", "--causal --causal-align bottom-right", "--softcap 2 --alibi --causal-align top-left",
                          "--rope half --window 2,1 --causal-align top-left", "--sink 0.5 --dropout 0.4 --dropout-seed 1", "--init rand --seed 3",
                          "--mask-method renormalize", "--mask made/mask_bool.json --mask-true keep", "--mask made/mask_add.csv",
                          "--init none", "--qkv-bias --heads 4", "--precision 9", "--head 1", "--batch 1", "-o walk.md", "-o walk.txt",
                          "--heads 2 --kv-heads 1", "--kv-lengths 4", "--d-out 30", "--scale 0.7"):
                yield f"attn explain {mode} {ASKED[mode]} --format {form} --dtype {dtype} {extra}"
                yield (f"attn explain {mode} {ASKED[mode]} {extra} --dropout 0.2".replace("made/tokens.csv", "made/batch.json")
                       .replace("data/journey.csv", "data/journey_twice.json"))
        yield from (f"attn explain multihead data/models/hidden.csv --weights data/models/{model} --pre-norm"
                    for model in ("gpt2", "llama", "bert", "neox", "mistral", "qwen2"))
        yield from (f"attn explain multihead --weights data/models/{model} --token-ids 1,2,3 --format markdown"
                    for model in ("gpt2", "llama", "bert", "neox", "mistral", "qwen2"))
        yield from (f"attn explain {mode} made/many.csv --token {token}" for mode in ("self", "causal") for token in (0, 40, 69, 70))
        for mode in MODES:
            for option in [*self.options[mode], *self.others["explain"]]:
                for value in self.values(option):
                    line = f"attn explain {self.asked(mode, option.name)} --{option.name}"
                    yield line if value is None else f"{line} {q(value)}"

    def pictures(self):
        scales = ("fixed", "row", "log", "global")
        terminals = ("", "TERM=xterm COLORTERM=truecolor CLICOLOR_FORCE=1", "TERM=xterm-256color CLICOLOR_FORCE=1", "TERM=dumb CLICOLOR_FORCE=1",
                     "TERM=linux CLICOLOR_FORCE=1", "NO_COLOR=1 CLICOLOR_FORCE=1", "COLUMNS=20", "COLUMNS=200 CLICOLOR_FORCE=1",
                     "COLUMNS=x", "COLUMNS=0", "CLICOLOR_FORCE=0 COLORTERM=24bit", "TERM= CLICOLOR_FORCE=1 COLORTERM=truecolor")
        results = ("result.json", "result.ndjson", "result.npz", "result.safetensors", "result.csv", "result.npy", "weights.csv", "weights.tsv",
                   "all.json", "all.npz", "all.safetensors", "all.npz:scores", "all.npz:inputs", "double.npz", "many.npz", "pretty.json",
                   "nan.json", "huge.json", "batch.json", "q_4.json", "answers.ndjson", "nowhere", "gpt2.safetensors")
        for name, scale, terminal in spread(7, results, scales, terminals):
            yield f"{terminal} attn plot made/{name} --color-scale {scale}".strip()
        for name, scale, suffix in spread(8, results, scales, ("svg", "png", "html", "SVG", "txt", "csv")):
            yield f"attn plot made/{name} --color-scale {scale} -o out.{suffix}"
        for name, array, suffix in spread(9, ("all.json", "all.npz", "many.npz", "pretty.json", "result.json"), LINE_ARRAYS, ("svg", "png", "html", "")):
            yield f"attn plot made/{name} --array {q(array)}" + (f" -o out.{suffix}" if suffix else "")
        for mode, suffix, scale, array in spread(10, MODES, ("svg", "png", "html", "jpg"), scales,
                                                 ("all", "scores", "attention_weights", "mask,scores", "masked_scores", "x")):
            yield f"attn {mode} {ASKED[mode]} --plot out.{suffix} --plot-array {array} --emit all --color-scale {scale} --format none"
        for mode, terminal, scale, output in spread(11, MODES, terminals, scales, ("--format none", "-o out.json", "", "--format table --emit all")):
            yield f"{terminal} attn {mode} {ASKED[mode]} --heatmap --color-scale {scale} {output}".strip()

    def compare(self):
        results = ("result.json", "result.ndjson", "result.npz", "result.safetensors", "result.csv", "result.tsv", "result.npy", "double.json",
                   "double.npz", "all.json", "all.npz", "all.safetensors:scores", "nan.json", "huge.json", "q.json", "answers.ndjson", "nowhere")
        for one, other, extra in spread(12, results, results, ("", "--format json", "--atol 1 --rtol 0.1", "--ulp 5 --equal-nan", "--dtype float64",
                                                               "--dtype float32 --format json --atol 1e9")):
            yield f"attn compare made/{one} made/{other} {extra}".strip()
        for option in self.others["compare"]:
            for value in self.values(option):
                given = f"--{option.name}" if value is None else f"--{option.name} {q(value)}"
                yield f"attn compare made/result.json made/double.npz {given}"
                yield f"attn compare made/nan.json made/nan.json {given}"

    def batch(self):
        files = ("made/requests.ndjson", "made/good.ndjson", "data/requests.ndjson", "made/matrices.ndjson --mode self", "made/answers.ndjson --mode causal",
                 "made/good.ndjson made/requests.ndjson", "--mode self data/journey.csv made/tokens.csv made/batch.json", "nowhere.ndjson",
                 "--each --mode causal data/journey.csv made/matrices.ndjson", "data/golden/torch.json", "--mode multihead data/arrays/several_stored.npz:inputs")
        ways = ("", "--dry-run", "--fail-fast", "--max-failures 2", "--shard 2/3", "--dtype float64", "--emit all", "--format csv", "--kernel generic",
                "-o out.ndjson", "-o out.json", "-o out.csv", "--resume out.ndjson", "--heads 2", "--precision 3", "--nonfinite null", "--pretty",
                "--seed 4 --dropout 0.5", "--heatmap", "--plot out.svg", "--save-weights w.npz", "--d-out 8 --init rand", "--resume out.ndjson --dry-run",
                "--weights data/models/gpt2", "--token 1", "--mode cross", "--threads 2", "--emit all --average-heads --dry-run")
        for jobs, name, way in spread(13, (1, 2), files, ways):
            yield f"attn batch {name} --jobs {jobs} {way}".strip()
            if " " not in name:
                yield f"attn batch --jobs {jobs} {way} <{name}"
        for jobs, part, retry, name in spread(14, (1, 2), ("answers_part", "answers_torn", "answers", "good", "result"), ("", "--retry-failed", "--retry-failed --fail-fast"),
                                              ("requests", "good")):
            yield f"cp made/{part}.ndjson out.ndjson && attn batch made/{name}.ndjson --jobs {jobs} --resume out.ndjson {retry}"
        for option in self.others["batch"]:
            for value in self.values(option):
                yield "attn batch made/good.ndjson " + (f"--{option.name}" if value is None else f"--{option.name} {q(value)}")
        for mode in MODES:
            for option in self.options[mode]:
                for value in self.values(option)[:4]:
                    yield "attn batch made/good.ndjson -j 1 " + (f"--{option.name}" if value is None else f"--{option.name} {q(value)}")

    def models(self):
        folders = sorted(name for name in os.listdir(f"{self.folder}/data/models") if os.path.isdir(f"{self.folder}/data/models/{name}"))
        paths = [f"data/models/{name}" for name in folders]
        paths += [f"data/models/{name}/{file}" for name in ("mha", "notebook") for file in sorted(os.listdir(f"{self.folder}/data/models/{name}"))]
        made = [f"made/{family}.{suffix}" for family in ("gpt2", "llama", "bert", "neox", "mha", "notebook") for suffix in ("safetensors", "npz", "json")]
        inputs = ("data/models/hidden.csv", "--token-ids 3,1,4", "made/tokens.csv", "data/journey.csv", "--text 'a b'", "made/many.csv")
        ways = ("", "--pre-norm", "--layer 1", "--layer 9", "--heads 3", "--heads 2 --no-causal", "--model-config none", "--qkv-bias", "--seed 1",
                "--rope half --rope-base 100", "--weights-layout out-in", "--kv-heads 1", "--d-out 4", "--norm-eps 0.1 --pre-norm", "--alibi",
                "--save-weights w.safetensors", "--dtype float64", "--format table", "--kernel generic --threads 2")
        families = ("gpt2", "llama", "bert", "neox", "mha", "notebook")
        for mode, path, words in spread(15, ("self", "causal", "multihead"), paths + made, inputs):
            yield f"attn {mode} {words} --weights {path} --emit all"
        for path, words, way in spread(16, paths + made, inputs[:4], ways):
            yield f"attn multihead {words} --weights {path} {way}".strip()
        for path, family, suffix in spread(17, paths + made, families, ("safetensors", "npz", "json")):
            words = inputs[0] if "models" in path else inputs[2]
            yield f"attn multihead {words} --weights {path} --save-weights w.{suffix} --save-family {family} --format none"
            yield f"attn multihead {words} --weights {path} --family {family} --heads 2"
        for mode, family, style, suffix in spread(18, MODES, families, ("", "--style wrapper --d-out 2", "--qkv-bias", "--init mha", "--init rand", "--no-out-proj"),
                                                  ("safetensors", "npz", "json", "txt")):
            yield f"attn {mode} {ASKED[mode]} {style} --save-weights w.{suffix} --save-family {family} --format none"
        for name in sorted(os.listdir(f"{self.folder}/made/configs")):
            yield (f"attn multihead --weights data/models/{name.split('.')[1]} --model-config made/configs/{name} "
                   "--token-ids 1,8,3,3,6,2 --emit all")
        with open(f"{self.folder}/data/models/config_keys.json", encoding="utf-8") as file:
            for model, versions in json.load(file).items():
                for keys in versions.values():
                    for key, value in keys.items():
                        for text in (value, "x", 3, True):
                            config = json.dumps({key: text, "model_type": model})
                            yield f"cat >c.json; attn multihead --weights data/models/{model} --model-config c.json --token-ids 1,2 --heads 2", config

    def files(self):
        arrays = sorted(os.listdir(f"{self.folder}/data/arrays"))
        for name, suffix in spread(19, arrays, ("json", "csv", "tsv", "npy", "npz", "safetensors", "ndjson")):
            for dtype in ("float32", "float64"):
                yield f"attn self data/arrays/{name} --init none --emit inputs --dtype {dtype} -o out.{suffix}"
        for name in ("several_stored.npz", "several_deflated.npz", "names.safetensors", "types.safetensors"):
            for member in ("inputs", "query", "x", "a", "", "f4", "F16", "BF16", "I64", "inputs.npy", "__metadata__"):
                yield f"attn self data/arrays/{name}:{member} --init none"
        for name, form in spread(20, ("data/journey.csv", "made/result.npz", "data/arrays/matrix_f4.npy", "made/matrices.ndjson", "data/journey_twice.json"),
                                 ("auto", "json", "ndjson", "csv", "npy", "npz", "safetensors")):
            yield from (f"attn self {name} --input-format {form}", f"attn self --input-format {form} <{name}", f"cat {name} | attn self - --input-format {form}")
            yield f"cp {name} plain && attn self plain --input-format {form}"
            yield f"attn self -:inputs --input-format {form} <{name}"
        with open(f"{self.folder}/made/hostile/manifest.json", encoding="utf-8") as file:
            for entry in json.load(file)["files"]:
                path = q("made/hostile/" + entry["file"])
                yield f"attn self {path} --init none --emit inputs"
                yield f"attn self {path}:x --init none --emit inputs"
                yield f"attn self --init none --emit inputs <{path}"
                yield f"attn multihead data/journey.csv --weights {path}"
                yield f"attn batch -j 1 --mode self {path}"

    def golden(self):
        for name in ("torch", "seeds", "onnx_attention"):
            with open(f"{self.folder}/data/golden/{name}.json", encoding="utf-8") as file:
                for case in json.load(file)["cases"]:
                    request = dict(case.get("request") or case["config"])
                    request.pop("id", None)
                    mode = request.pop("mode")
                    if isinstance(request.get("input"), str):
                        request["example"] = request.pop("input")
                    for key, value in request.items():
                        if name == "onnx_attention" and isinstance(value, str) and "." in value:
                            request[key] = f"data/golden/onnx_attention.npz:{value}"
                    for extra in ("", "--emit all", "--kernel generic --dtype float64", "--format torch"):
                        yield f"attn {mode} - {extra}".strip(), json.dumps(request)
                    yield f"attn explain {mode} -", json.dumps(request)

    def readme(self):
        """Every command of the README, of tables and of blocks."""
        with open(os.path.join(self.root, "README.md"), encoding="utf-8") as file:
            text = file.read()
        lines = re.findall(r"`(attn [^`\n]*)`", text)
        for block in re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
            lines += [line for line in block.split("\n") if "attn" in line and "build/" not in line]
        lines += [line[2:] for line in text.split("\n") if line.startswith("$ attn")]
        yield from (line.replace("\\|", "|") for line in lines if not re.search(r"\b[A-Z]{4,}\b|FILE|requests.ndjson$|\|\|", line) or "data/" in line)

    def ends(self):
        """Where output cannot go, or is there already; pipes; standard streams that are closed."""
        for mode in MODES:
            asked = f"attn {mode} {ASKED[mode]}"
            yield from (f"{asked} >/dev/full", f"{asked} >&-", f"{asked} <&-", f"{asked} 2>&-", f"{asked} -o nowhere/out.json", f"{asked} -o .",
                        f"echo old >out.json; chmod 400 out.json; {asked} -o out.json", f"echo old >out.csv; {asked} -o out.csv --emit all",
                        f"ln -s target.json out.json; {asked} -o out.json", f">empty.tmp; {asked} -o empty.tmp", f"echo x >full.tmp; {asked} -o full.tmp",
                        f"mkdir d; {asked} -o d", f"{asked} -o /dev/stdout", f"mkfifo p; cat p >got & {asked} -o p; wait", f"{asked} -o -",
                        f"{asked} --plot out.svg --save-weights w.npz -o out.npz", f"{asked} --plot out.svg -o out.svg", f"{asked} -o out.json --save-weights out.json",
                        f"{asked} | attn self --format table", f"{asked} --format npz | attn causal - --emit all", f"{asked} --format ndjson | attn batch --mode self",
                        f"{asked} --emit all | attn plot", f"{asked} --format csv | attn self", f"{asked} --format npy | attn self --init none",
                        f"{asked} | attn compare - made/result.json", f"ATTN_KERNEL=generic {asked}", f"ATTN_KERNEL=x {asked}", f"ATTN_KERNEL= {asked}",
                        f"ATTN_KERNEL=reference {asked} --kernel avx2 --threads 3", f"{asked} --emit all -o a.npz && {asked} --weights a.npz")

    def random(self):
        draw = random.Random(21)
        good = {"N": ["1", "2", "3", "4", "8"], "P": ["0.1", "0.5"], "S": ["0.5", "2"], "C": ["3", "30"], "E": ["1e-5"], "B": ["100", "10000"]}
        inputs = ("data/journey.csv", "made/tokens.csv", "made/batch.json", "made/many.csv", "data/journey_twice.json", "made/result.npz", "made/all.json")
        sdpa = (SDPA, "--query made/q_3.json --key made/k_3.json --value made/v_3.json", "--query made/q_4.json --key made/k_4.json --value made/v_4.json",
                "--query made/tokens.csv --key made/context_8.csv --value made/context_8.csv --heads 2")

        def value(option):
            if draw.random() < 0.04:
                return draw.choice(self.values(option))
            if option.argument.startswith("FILE"):
                return draw.choice(WRITTEN[:9] if option.name in WRITING else FILES[:9])
            if "|" in option.argument:
                return draw.choice(option.argument.split("|"))
            return draw.choice(good.get(option.argument) or self.values(option)[:8])

        def line():
            mode = draw.choice(MODES)
            options = [option for option in self.options[mode] if option.name not in ("context", "query", "key", "value", "text", "example", "token-ids", "weights")
                       or draw.random() < 0.1]
            words = [draw.choice(sdpa) if mode == "sdpa" else draw.choice(inputs)]
            if mode == "cross":
                words.append(draw.choice(("--context made/context.csv", "--context made/context_8.csv", "--context data/journey.csv")))
            for option in draw.sample(options, draw.choice((1, 2, 2, 3, 3, 4, 6))):
                words.append(COMPANY.get(option.name, "") if draw.random() < 0.9 else "")
                words.append(f"--{option.name}" if not option.argument else f"--{option.name} {q(value(option))}")
            words.append(draw.choice(("", "", "--emit all", "--kernel reference", "--kernel generic", "--causal-align top-left", "--heads 2")))
            start = draw.choice(("attn ",) * 6 + ("attn explain ", "attn batch --mode "))
            return " ".join((start + " ".join([mode, *words])).split(" ")).rstrip()

        for _ in range(6000):
            yield line()

    def kernels(self):
        """Work that is large enough for tiles, threads and streams; lines are slower."""
        inputs = ("attn self --text '" + " ".join(f"w{n % 97}" for n in range(300)) + "' --embed-dim 40",
                  "attn multihead --text '" + " ".join(f"w{n % 89}" for n in range(257)) + "' --embed-dim 64 --heads 4 --d-out 64")
        ways = ("", "--window 20,3", "--alibi", "--softcap 4", "--sink 0.5", "--dropout 0.2 --seed 4", "--rope half", "--mask-method renormalize --causal",
                "--kv-lengths 200", "--causal", "--no-causal", "--token 130", "--average-heads", "--emit logsumexp,attention_weights")
        for asked, kernel, dtype, way, threads in spread(22, inputs, KERNELS, ("float32", "float64"), ways, (1, 2)):
            yield f"{asked} --kernel {kernel} --dtype {dtype} {way} --threads {threads} --format npz".replace("  ", " ")

    def large(self):
        """Weights above 64 MiB, which are written while they are computed."""
        asked = "--text \"$(seq -s ' ' 4200)\" --embed-dim 8 --vocab-size 5000"
        for form in ("npy", "npz", "safetensors", "json", "csv"):
            yield f"attn causal {asked} --emit attention_weights -o out.{form}"
        yield f"attn multihead {asked} --heads 2 --emit attention_weights,context_vectors --format npz"
        yield f"attn self {asked} --plot out.png --format none"
        yield f"attn self {asked} --dtype float64 --dropout 0.1 --emit attention_weights --format npy --kernel generic"
        yield f"attn self {asked} --emit all --format none --save-weights w.npz"
        yield f"attn self {asked} --emit scores --format npy >m.npy && attn self m.npy --init none --d-out 2 --token 3 --format csv"


# Cases of each group in a quick run, for half a minute of processor time; at most FULL otherwise.
QUICK = {"help": 50, "unknown": 40, "formats": 150, "flags": 260, "keys": 180, "explain": 100, "pictures": 100,
         "compare": 40, "batch": 90, "models": 130, "files": 100, "golden": 40, "readme": 69, "ends": 60,
         "random": 220, "kernels": 12, "large": 0}
FULL = 6000


def cases(folder, root, quick):
    lines, found = Lines(folder, root), []
    for group, most in QUICK.items():
        made = [Case(group, *((line, "") if isinstance(line, str) else line)) for line in getattr(lines, group)()]
        made = list(dict.fromkeys(made))
        most = most if quick else FULL
        if len(made) > most:
            made = [made[at] for at in sorted(random.Random(group).sample(range(len(made)), most))]
        found += made
    return found
