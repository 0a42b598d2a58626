"""What the groups of lines are made of: modes, options and what may be said to them."""
import itertools
import json
import os
import random
import re
import shlex
import subprocess
from collections import namedtuple

Option = namedtuple("Option", "name letter argument")
quoted = shlex.quote


def cut(text):
    """The alternatives of a text, between its bars; the first may be nothing."""
    return [" ".join(part.split()) for part in text.split("|")]


def spread(seed, *lists):
    """All combinations, in an order of their own."""
    found = list(itertools.product(*lists))
    random.Random(seed).shuffle(found)
    return found


MODES = ("self", "causal", "multihead", "cross", "sdpa")
DTYPES = ("float32", "float64")
FORMATS = "json ndjson csv tsv npy npz safetensors torch table none".split()
SUFFIXES = """json ndjson jsonl csv tsv npy npz safetensors JSON Csv csv.1 txt svg png html md v2 2024-05-31
    parquet pt""".split()
KERNELS = "auto reference generic avx2 avx512 neon".split()
FAMILIES = "gpt2 llama bert neox mha notebook".split()
with open(os.path.join(os.path.dirname(__file__), "../../data/schema/request.json"), encoding="utf-8") as request:
    ARRAYS = json.load(request)["$defs"]["array"]["enum"]

# What each mode computes unless a line says otherwise; how its queries see no later keys.
ASKED = {"self": "data/journey.csv", "causal": "data/journey.csv", "multihead": "made/tokens.csv --heads 2",
         "cross": "data/journey.csv --context made/context.csv",
         "sdpa": "--query made/q.json --key made/k.json --value made/v.json"}
CAUSAL = {"self": "", "causal": "", "multihead": "", "cross": "--causal --causal-align bottom-right",
          "sdpa": "--causal --causal-align bottom-right"}

# Options that are refused without another.
GPT2 = "--weights data/models/gpt2"
COMPANY = {"rope-base": "--rope half", "rope-dims": "--rope half", "rope-scaling": "--rope interleaved",
           "dropout-seed": "--dropout 0.5", "dropout-skip": "--dropout 0.5 --dropout-seed 3",
           "dropout-stream": "--dropout 0.5 --dropout-seed 3", "mask-true": "--mask made/mask_bool.json",
           "past-key": "--past-value made/past.json", "past-value": "--past-key made/past.json",
           "vocab-size": "--text 'a b a'", "embed-dim": "--text 'a b a'", "embed-seed": "--text 'a b a'",
           "family": GPT2, "layer": GPT2, "model-config": GPT2, "pre-norm": f"{GPT2} --layer 0",
           "norm-eps": f"{GPT2} --pre-norm", "token-ids": GPT2,
           "weights-layout": "--weights data/models/notebook/selfattention_v1.npz",
           "save-family": "--save-weights w.npz", "plot-array": "--heatmap", "color-scale": "--heatmap",
           "causal-align": "--window 1", "average-heads": "--emit attention_weights",
           "nonfinite": "--emit masked_scores"}

SHAPES_ARRAYS = """emit format nonfinite pretty average-heads save-weights save-family heatmap plot plot-array
    color-scale""".split()
CHANGES_INPUT = """context query key value text example rand randn token-ids weights family layer model-config
    pre-norm norm-eps weights-layout vocab-size embed-dim embed-seed input-format past-key past-value""".split()
WRITES = ("output", "plot", "save-weights", "resume")

# What is said to an option, by the word for its argument in --help.
COUNTS = """0 1 2 3 4 7 50 -1 -0 +1 01 1.5 1e1 0x1 1_0 x nan 2147483648 9223372036854775808 18446744073709551615
    18446744073709551616 -9223372036854775809""".split() + ["", " 1", "1 "]
REALS = """0 -0 1 0.5 0.25 1e-5 8 100 -1 -0.5 1.0000001 1e-320 1e308 1e400 3.4e38 3.5e38 .5 5. 1e inf nan infinity x
    0,5 1e-45""".split() + [""]
LISTS = """0 1 2 6 1,2 2,1 6,6 1,2,3 1,2,3,4 -1 -1,-1 2,0 0,0 -1,2 -2 1, ,1 , 1,,2 x 1,x 0.5 8 8,1,4,8192 8,4,1,8192
    1e400 nan inf 99999999999999999999 1,2,3,1,2,3,1,2""".split() + [""]
TEXTS = ["Life is short, eat dessert first", "a", "", " ", "a a a", "naïve 日本 e\u0301", "a, b; c--d?!"]
SHARDS = ["1/1", "1/2", "2/2", "3/2", "0/2", "1/0", "x", "1", "1/", "", "-1/2"]
READ = """made/mask_bool.json made/mask_add.csv made/mask_0_1.json made/inputs.npy made/mask_row.json made/padding.json
    made/past.json made/past_2.json made/q.json made/k.json made/q_3.json made/nan.json made/context.csv
    made/result.json made/result.npz made/result.npz:scores made/result.npz:score made/all.safetensors:mask
    data/models/gpt2 data/models/notebook/selfattention_v1.npz data data/arrays/matrix_f4.npy
    data/arrays/objects.npy nowhere.csv none -""".split() + [""]
WRITTEN = """out.npz out.json out.csv out.svg out.png out.html out.safetensors out.ndjson out.npy out.tsv out.md out.txt
    out.v2 out nowhere/out.json data none -""".split() + [""]
NAMES = ARRAYS + ["all", "score", "context_vectors,scores", "scores,scores", "all,scores", "x", "", "scores,", "Scores",
                  "attention_weight", "W_query,b_query,queries"]

# Refused everywhere, so that one mode is enough to test them.
BAD = {"", " 1", "1 ", *"""-1 -0 +1 01 1.5 0x1 1_0 x nan 9223372036854775808 18446744073709551616 -9223372036854775809
    1e400 3.5e38 inf infinity 0,5 1, ,1 , 1,,2 1,x -2 99999999999999999999 nowhere/out.json nowhere.csv data
    none""".split()}


def said_to(option):
    """Everything that is said to an option; None to one without an argument."""
    argument = option.argument
    if not argument:
        return [None]
    if argument.startswith("FILE"):
        return WRITTEN if option.name in WRITES else READ
    if "|" in argument:
        choices = argument.split("|")
        near = [choice[:-1] for choice in choices]
        return [*choices, *near, choices[0].upper(), "nonsense", "", ",".join(choices)]
    if option.name.endswith("-skip"):  # each draw that is thrown away is drawn
        return [count for count in COUNTS if count != "2147483648"]
    lists = {"LIST": NAMES, "TEXT": TEXTS, "I/N": SHARDS, "N": COUNTS}
    return lists.get(argument) or (LISTS if "," in argument else REALS)


def said_by(mode, option):
    """The same without what another mode says already."""
    return [value for number, value in enumerate(said_to(option))
            if value not in BAD or number % len(MODES) == MODES.index(mode)]


def given(option, value):
    return f"--{option.name}" if value is None else f"--{option.name} {quoted(value)}"


def asked_with(mode, option):
    """A mode and a question of it to which an option can be added."""
    asked = re.sub(rf"--{option.name} \S+", "", ASKED[mode])
    company = COMPANY.get(option.name, "")
    if option.name in ("example", "rand", "randn", "text", "token-ids") or "--text" in company:
        asked = asked.replace("data/journey.csv", "", 1).replace("made/tokens.csv", "")
    if option.name == "example":
        asked = asked.replace("made/context.csv", "data/journey.csv")
    if option.name in ("past-key", "past-value") and mode != "sdpa":
        asked += " --d-out 8" if mode == "multihead" else " --d-out 4"
    if GPT2 in company:
        if mode in ("self", "causal"):
            company = company.replace("data/models/gpt2", "made/notebook_one.npz")
        elif option.name != "token-ids":
            asked = "data/models/hidden.csv" + " --context data/models/hidden.csv" * (mode == "cross")
    return " ".join(f"{mode} {asked} {company}".split(" ")).strip()


class Program:
    """The old program: its options, by mode and by command, and where the project's files are."""

    def __init__(self, folder, root):
        self.folder, self.root, self.path = folder, root, os.path.join(folder, "old", "attn")
        self.options = {command: self.options_of(command)
                        for command in (*MODES, "batch", "explain", "compare", "plot")}

    def options_of(self, command):
        text = subprocess.run([self.path, command, "--help"], capture_output=True, text=True, check=True).stdout
        found = re.findall(r"^  (?:(-\w), ?)?--([a-z][a-z-]*)(?:, --no-[a-z-]+)?(?: ([^ ].*?))?(?:  .*)?$", text, re.MULTILINE)
        return [Option(name, letter, argument) for letter, name, argument in found if name != "help"]

    def has_key(self, mode, key):
        answer = subprocess.run([self.path, mode], input=json.dumps({key: None}), capture_output=True, text=True,
                                check=False)
        return "unknown key" not in answer.stderr

    def data(self, *names):
        return os.path.join(self.folder, "data", *names)

    def load(self, *names):
        with open(self.data(*names), encoding="utf-8") as file:
            return json.load(file)
