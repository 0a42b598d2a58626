"""Mistakes in commands, at random and of a table, and the files that they name."""

import json
import pathlib
import re
import shlex
import shutil
import subprocess

from support.odd_files import FILES

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
GPT2 = "data/models/gpt2"
BASES = [line.split() for line in (
    "self x.csv", "causal x.csv", "multihead x.csv --heads 3", "cross x.csv --context x.csv",
    "sdpa --query q.npy --key q.npy --value q.npy", "linear --query q.npy --key q.npy --value q.npy", "linear x.csv",
    f"multihead --weights {GPT2} --token-ids 1,2", f"multihead h.csv --weights {GPT2}/model.safetensors",
    f"model {GPT2} --token-ids 3,1,4", "model data/models/bert --token-ids 3,1,4", "batch b.ndjson",
    f"scan {GPT2} c.ndjson", "partial causal x.csv --kv-range 0:3", "merge p0.npz p1.npz", "explain self x.csv",
    "explain r.json", "compare r.json r.npz", "check causal x.csv --against r.json", "repro causal x.csv", "plot r.json",
    "inspect r.json", "tokenize data/tokenizers/gpt2 hello", "self request.json", "multihead r.npz --heads 3")]
VALUES = ["", "x", "-1", "0", "1.5", ".5", "1e9", "2", "1,2", "0:2", "1 2", "m.json", "all", "none", "float16", "nothing.csv"]
INPUTS = ["x.csv", "m.json", "q.npy", "r.json", "r.npz", "p0.npz", "w.safetensors", "b.ndjson", "request.json",
          "words.csv", "empty.json", "gone.csv", "gone/x.npy", GPT2, f"{GPT2}/config.json", f"{GPT2}/model.safetensors",
          "data/models/hidden.csv", "data/models/mha/packed.safetensors", "data/tokenizers/gpt2/tokenizer.json", "[[1,2]]",
          "two words", "x.csv:inputs", "r.npz:gone", "-"]
INPUTS += sorted(FILES)
WRITTEN = {"--output": ["new.x", "new.csv", "new.npz", "new.json", "new.h"], "--plot": ["new.x", "new.svg"],
           "--out-dir": ["folder"], "--resume": ["new.json"], "--save-weights": ["new.x", "new.npz"],
           "--save-family": ["gpt2"]}
MODES = ("self", "causal", "multihead", "cross", "sdpa", "linear")
COMMANDS = MODES + ("model", "batch", "scan", "partial", "merge", "explain", "compare", "check", "repro", "plot", "inspect",
                    "tokenize")


def foreign_words():
    rows = [line.split("\t") for line in (ROOT / "cli/args/names.tsv").read_text().splitlines() if line]
    return sorted({word for row in rows if row[0] in ("option", "flag") for word in row[2].split()})


def mistaken_request(walker, draw, foreign):
    """A request with a mistake or two in its keys."""
    mode = draw.choice(MODES)
    document = {"mode": mode, **({name: [[1, 2], [3, 4]] for name in ("query", "key", "value")} if mode == "sdpa" else
                                 {"inputs": [[1, 2], [3, 4]]})}
    for _ in range(draw.choice((1, 1, 2))):
        keys = sorted(walker.flags(mode if draw.random() < 0.8 else "check"))
        key = draw.choice(keys)[2:].replace("-", "_").removeprefix("no_")
        if draw.random() < 0.3:
            at = draw.randrange(len(key))
            key = draw.choice(foreign + [key[:at] + key[at + 1:]] * len(foreign))
        document[key] = draw.choice(("", "x", -1, 0, 1.5, 2, [1, 2], ["a"], True, {}, "float16", "gone.csv", [[1, 2]], "1,2"))
    return [mode, json.dumps(document)]


def mistake(walker, draw, foreign):
    """The words of a command with one mistake or two."""
    if draw.random() < 0.25:
        return mistaken_request(walker, draw, foreign)
    words = list(draw.choice(BASES))
    for _ in range(draw.choice((1, 1, 1, 2))):
        flags = walker.flags(words[0]) if draw.random() < 0.8 or words[1] not in MODES else walker.flags(words[1])
        flag = draw.choice(sorted(flags))
        values = INPUTS if re.search("FILE|LIST", flags[flag]) and draw.random() < 0.5 else VALUES
        value = draw.choice(WRITTEN.get(flag, values + flags[flag].split("|")[:4]))
        way = draw.randrange(8)
        if way == 0:
            other = walker.flags(draw.choice(COMMANDS))
            flag = draw.choice(sorted(other))
            words += [flag] + ([draw.choice(WRITTEN.get(flag, VALUES))] if other[flag] else [])
        elif way == 1:
            at = draw.randrange(2, len(flag))
            words += [flag[:at] + flag[at + 1:] if draw.random() < 0.5 else flag[:at] + "e" + flag[at:]]
            words += [value] if flags[flag] else []
        elif way == 2:
            words += ["--" + draw.choice(foreign).replace("_", "-")] + draw.choice(([], [value]))
        elif way == 3:
            files = [i for i, word in enumerate(words) if i and ("." in word or "/" in word)]
            if files:
                words[draw.choice(files)] = draw.choice(INPUTS)
        elif way == 4 and len(words) > 2:
            at = draw.randrange(1, len(words))
            words = words[:at] + words[at + 1:]
        elif way == 5 and flags[flag]:
            words += [flag]
        else:
            words += [flag] + (value.split(" ") if flags[flag] and value != "" else [value] if flags[flag] else [])
    return words


def rows_of_table():
    """The mistakes of a table: the shell before the last command, and its words."""
    for row in (ROOT / "tests/cli/mistakes.tsv").read_text().splitlines():
        line = row.split("\t", 2)[2]
        at = line.rfind("attn ")
        if at == max(line.rfind(mark + "attn ") + len(mark) for mark in ("; ", "| ", "&& ")) or at == 0:
            words = re.split(" *[|<>;&]", line[at + 5:])[0]
            if "$" not in words and "{" not in words and words.count("'") % 2 == words.count('"') % 2 == 0:
                yield line[:at], shlex.split(words)


def prepare(program, folder):
    # Copies, since commands may name any of them as an output.
    for part in ("models", "tokenizers"):
        shutil.copytree(ROOT / "data" / part, folder / "data" / part)
    for name in ("journey.csv", "journey_twice.json"):
        shutil.copyfile(ROOT / "data" / name, folder / "data" / name)
    records = (ROOT / "data/requests.ndjson").read_text().replace('"journey', '"data/journey')
    files = {"x.csv": (ROOT / "data/journey.csv").read_text(), "h.csv": (ROOT / "data/models/hidden.csv").read_text(),
             "m.json": "[[1,2,3],[4,5,6]]", "words.csv": "a,b\nc,d\n", "empty.json": "[]", "b.ndjson": records,
             "c.ndjson": '{"token_ids":[1,2,3]}\n', "request.json": '{"inputs":[[1,2],[3,4]],"d_out":2}'}
    for name in ("x.pt", "weights.bin", "model.gguf", "picture.png", *"123456"):
        files[name] = {"x.pt": "PK\3\4", "weights.bin": "PK\3\4", "model.gguf": "GGUF"}.get(name, "PNG"[len(name) < 2:])
    (folder / "dangling").symlink_to("nowhere")
    for name, content in {**FILES, **files}.items():
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    (folder / "q.npy").write_bytes((ROOT / "data/arrays/matrix_f4.npy").read_bytes())
    for line in ("causal x.csv --emit all -o r.json", "causal x.csv --emit all -o r.npz", "partial causal x.csv --kv-range 0:3 -o p0.npz",
                 "partial causal x.csv --kv-range 3:6 -o p1.npz", "multihead x.csv --heads 3 --save-weights w.safetensors -o new.json"):
        subprocess.run([program, *line.split()], cwd=folder, check=True)
