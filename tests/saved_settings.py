#!/usr/bin/env python3
"""Asks saved results again with other flags, and compares with the same flags given afresh.

    python3 tests/saved_settings.py ATTN [--count N] [--seed S] [--only TEXT] [--show N]

A case is a question, the format that its result is saved in, and one or two flags that contradict or
add to it. For each way to ask a saved result again (`attn MODE --config RESULT`, `attn repro RESULT`,
`attn check RESULT`, `attn explain MODE --config RESULT`) the output must be that of the question's own
flags with the contradicted ones replaced. An error must name the flag and the result, unless the
same flags fail afresh too. --count 0 runs every case. Needs the standard library only.
"""
import argparse
import collections
import concurrent.futures
import gzip
import itertools
import os
import pathlib
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
from support.array_files import npy_head  # noqa: E402

DATA = pathlib.Path(__file__).resolve().parent.parent / "data"
OPERANDS = {"context", "target", "grad_output", "mask", "key_padding_mask", "past_key", "past_value", "past_state", "tokens"}
LOSS = {"loss", "target", "grad_output"}
GOOD = {"equal", "refused", "both refuse", "no result"}
SOURCES = ("rand", "randn", "text", "example", "token_ids", "INPUT")

JOURNEY = {"INPUT": "journey.csv"}
EXAMPLE = {"example": "journey"}
TEXT = {"text": "Life is short, eat dessert first"}
RAND = {"rand": "6,4"}
IDS = {"token_ids": "1,2,3"}


def model(name, **flags):
    return {"weights": f"data/models/{name}", **IDS, **flags}


def bare(name, **flags):
    return {"weights": f"data/models/{name}", **flags}


# Flags by key; False is --no-KEY and True a flag alone.
QUESTIONS = [
    *(("self", {**source, **more}) for source in (JOURNEY, EXAMPLE, TEXT, RAND)
      for more in ({}, {"d_out": 2, "seed": 3}, {"init": "none"}, {"d_k": 6, "window": "1"})),
    *(("causal", {**source, **more}) for source in (JOURNEY, EXAMPLE, TEXT, RAND)
      for more in ({"dropout": 0.5, "seed": 1}, {"d_out": 8, "rope": "half"},
                   {"alibi": True, "d_v": 5, "qkv_bias": True})),
    *(("multihead", {**source, **more}) for source in (JOURNEY, TEXT, RAND)
      for more in ({"heads": 1, "d_out": 6}, {"d_out": 6, "heads": 2, "causal": False},
                   {"d_out": 12, "heads": 6, "kv_heads": 2, "scale": 0.25},
                   {"d_out": 2, "heads": 2, "style": "wrapper"},
                   {"d_out": 12, "heads": 6, "alibi": True, "alibi_slopes": "geometric"},
                   {"d_out": 12, "heads": 3, "rope": "interleaved", "out_bias": False})),
    ("multihead", {"rand": "6,4", "heads": 2, "init": "mha"}),
    ("self", {"randn": "5,3", "init": "normal,0,0.5", "draw_order": "key,query,value"}),
    ("multihead", {"rand": "4,6", "heads": 2, "rng": "numpy", "init": "randn", "qkv_joined": True}),
    ("sdpa", {"randn": "2,4,3", "dropout": 0.5, "seed": 2}),
    ("multihead", {"rand": "4,6", "heads": 2, "device": "cuda", "dropout": 0.5, "seed": 2, "rng_skip": 8}),
    ("sdpa", {"randn": "2,4,3", "dropout": 0.5, "dropout_stream": "cuda", "dropout_kernel": "flash", "seed": 2}),
    # Given values that equal those that would follow.
    *(("causal", {**source, **more}) for source in (JOURNEY, RAND)
      for more in ({"d_out": 3}, {"d_out": 4, "d_k": 4}, {"d_v": 4}, {"d_out": 5, "d_k": 3},
                   {"d_out": 4, "scale": 0.5}, {"causal_align": "top-left", "alibi": False},
                   {"d_out": 4, "rope": "half", "rope_base": 10000, "rope_dims": 4},
                   {"alibi": True, "alibi_slopes": "published"}, {"qkv_bias": False, "dropout": 0},
                   {"rng_skip": 0, "init": "linear", "mask_method": "neg-inf"})),
    *(("multihead", {**source, **more}) for source in (JOURNEY, TEXT)
      for more in ({"d_out": 6, "heads": 1}, {"d_out": 6, "heads": 3, "kv_heads": 3},
                   {"d_out": 6, "heads": 2, "causal": True, "out_bias": True, "out_proj": True},
                   {"d_out": 6, "d_v": 6, "heads": 2}, {"d_out": 3, "style": "split"})),
    ("self", {**TEXT, "embed_dim": 3, "embed_seed": 0}),
    ("linear", {**JOURNEY, "decay": "-0.1", "rule": "gated", "qk_norm": False}),
    ("cross", {**JOURNEY, "context": "context.csv", "causal": False, "d_out": 3}),
    ("sdpa", {"query": "q.npy", "key": "k.npy", "value": "v.npy", "causal": False, "heads": 1}),
    # Compressed and stacked inputs, masks and caches.
    ("causal", {"INPUT": "journey.csv.gz", "d_out": 2}),
    ("multihead", {"INPUT": "batch.json", "heads": 2, "kv_lengths": "2,3"}),
    ("multihead", {"INPUT": "batch.json", "d_out": 4, "heads": 2, "tokens": "a,b,c"}),
    ("self", {**JOURNEY, "mask": "mask.csv", "mask_kind": "additive"}),
    ("causal", {**JOURNEY, "mask": "keep.json", "mask_true": "keep", "d_out": 2}),
    ("multihead", {**JOURNEY, "heads": 3, "key_padding_mask": "padding.json", "mask_true": "drop"}),
    ("causal", {**JOURNEY, "d_out": 2, "past_key": "past.json", "past_value": "past.json"}),
    ("sdpa", {"query": "q.npy", "key": "k.npy", "value": "v.npy", "rope": "half", "rope_base": 100,
              "alibi": True, "alibi_slopes": "slopes.csv"}),
    ("linear", {**JOURNEY, "d_out": 2, "past_state": "past.json", "decay": "-0.2"}),
    ("linear", {**JOURNEY, "decay": "decay.json"}),
    *(("cross", {**source, "context": "context.csv", **more}) for source in (JOURNEY, EXAMPLE)
      for more in ({}, {"d_out": 6, "heads": 2}, {"causal": True, "causal_align": "bottom-right"})),
    *(("sdpa", {"query": "q.npy", "key": "k.npy", "value": "v.npy", **more})
      for more in ({}, {"heads": 2}, {"causal": True, "softcap": 2}, {"scale": 1, "sink": "0.5"},
                   {"alibi": True, "heads": 4, "window": "2,0"})),
    ("sdpa", {"example": "softmax"}),
    *((mode, {**source, "d_out": 2, "backward": True, **more})
      for mode, source in (("self", JOURNEY), ("causal", EXAMPLE), ("multihead", {**JOURNEY, "heads": 2}))
      for more in ({}, {"loss": "mean"}, {"target": "two.csv"}, {"loss": "mse", "target": "two.csv"},
                   {"grad_output": "two.csv"})),
    *(("linear", {**source, **more}) for source in (JOURNEY, EXAMPLE, RAND)
      for more in ({}, {"decay": "-0.1", "d_out": 2}, {"decay": "-0.1", "beta": "0.5", "heads": 2,
                                                       "d_out": 6, "qk_norm": True})),
    ("linear", {"query": "q.npy", "key": "k.npy", "value": "v.npy", "beta": "0.25"}),
    *(("multihead", model(name, **more)) for name in ("gpt2", "llama", "bert", "neox", "mistral",
                                                      "qwen2", "manual")
      for more in ({}, {"layer": 0, "norm_eps": 0.01}, {"scale": 0.7, "causal": True})),
    ("multihead", model("gpt2", pre_norm=False, position_offset=2)),
    ("multihead", model("llama", rope_base=500, heads=2)),
    ("multihead", bare("gpt2", INPUT="wide.csv")),
    ("multihead", bare("gpt2", INPUT="wide.csv", pre_norm=True)),
    ("self", bare("notebook/selfattention_v1.safetensors", INPUT="journey.csv")),
    ("causal", bare("notebook/causalattention.safetensors", INPUT="journey.csv")),
    ("multihead", bare("notebook/multiheadattention.safetensors", INPUT="journey.csv", heads=2)),
    ("multihead", bare("notebook/multiheadattentionwrapper.safetensors", INPUT="journey.csv")),
    ("multihead", bare("mha/packed.safetensors", INPUT="eight.csv", heads=2)),
    ("linear", bare("notebook/selfattention_v1.safetensors", INPUT="journey.csv", decay="-0.5")),
]

CHANGES = {
    "every": ({"seed": 5}, {"scale": 0.5}, {"dtype": "float64"}, {"token": 1}, {"kernel": "generic"},
              {"precision": 3}, {"emit": "context_vectors"}, {"context_length": 50}),
    "layers": ({"d_out": 4}, {"d_k": 2}, {"d_k": 12}, {"d_v": 4}, {"init": "none"},
               {"init": "rand"}, {"init": "xavier"}, {"qkv_bias": True}, {"rng_skip": 2},
               {"init": "xavier_normal,0.5"}, {"qkv_joined": True}, {"draw_order": "out,key,query,value"},
               {"text": "two words"}, {"rand": "5,3"}, {"randn": "4,3"}, {"example": "pair"},
               {"INPUT": "other.csv"}, {"INPUT": "wide.csv"}, {"weights_layout": "out-in"}),
    "text": ({"embed_dim": 4}, {"embed_seed": 3}, {"vocab_size": 60}, {"text": "a b a"}),
    "rand": ({"rand": "4,6"}, {"rand": "2,4,4"}),
    "heads": ({"heads": 1}, {"heads": 2}, {"heads": 3}, {"heads": 6}, {"kv_heads": 1},
              {"kv_heads": 2}, {"average_heads": True}, {"head": 0}),
    "out": ({"out_proj": False}, {"out_bias": False}, {"out_bias": True}, {"out_proj": True}),
    "multihead": ({"style": "wrapper"}, {"style": "split"}, {"init": "mha"}),
    "causal": ({"causal": True}, {"causal": False}),
    "softmax": ({"softcap": 1.5}, {"alibi": True}, {"alibi": False},
                {"alibi": True, "alibi_slopes": "geometric"}, {"alibi_slopes": "published"},
                {"rope": "half"}, {"rope": "none"}, {"rope": "interleaved"}, {"rope_base": 100},
                {"rope_dims": 2}, {"rope_scaling": "2"}, {"window": "1"}, {"window": "-1,-1"},
                {"causal_align": "top-left"}, {"causal_align": "bottom-right"}, {"sink": "1"},
                {"dropout": 0.25}, {"dropout": 0.25, "dropout_seed": 4}, {"dropout_skip": 3},
                {"mask_method": "renormalize"}, {"dropout_stream": "mkl"}, {"device": "cuda"}, {"device": "cpu"}, {"dropout_stream": "cuda", "gpu": "t4"}, {"kv_lengths": "2"},
                {"mask": "mask.csv", "mask_kind": "additive"}, {"top": 2, "emit": "top_keys"}),
    "linear": ({"rule": "linear"}, {"rule": "gated"}, {"decay": "-0.3"}, {"beta": "0.5"},
               {"qk_norm": True}, {"qk_norm": False}, {"rule": "gated-delta"}),
    "loss": ({"backward": False}, {"loss": "sum"}, {"loss": "mean"}, {"loss": "mse"}, {"target": "two.csv"},
             {"grad_output": "two.csv"}),
    "model": ({"model_config": "none"}, {"norm_eps": 0.5}, {"pre_norm": False}, {"pre_norm": True},
              {"layer": 1}, {"layer": 0}, {"norm": "rms"}, {"norm": "layer"}),
    "ids": ({"token_ids": "1,2"}, {"token_ids": "4,3,2,1"}, {"position_offset": 0},
            {"position_offset": 1}, {"embedding_scale": 2}),
}


def changes_of(mode, question):
    names = ["every", "softmax" if mode != "linear" else "linear"]
    names += ["layers"] * (mode != "sdpa" and "query" not in question)
    names += ["text"] * ("text" in question) + ["rand"] * ("rand" in question)
    names += ["heads"] * (mode in ("multihead", "cross", "linear", "sdpa"))
    names += ["out"] * (mode in ("multihead", "cross", "linear"))
    names += ["multihead"] * (mode == "multihead")
    names += ["causal"] * (mode in ("multihead", "cross", "sdpa"))
    names += ["model", "ids"] * ("weights" in question) + ["loss"] * ("backward" in question)
    return [change for name in names for change in CHANGES[name]]


def words_of(flags):
    words = []
    for key, value in flags.items():
        name = key.replace("_", "-")
        if key == "INPUT":
            words.insert(0, value)
        elif value is True or value is False:
            words.append(("--" if value else "--no-") + name)
        else:
            words += ["--" + name, str(value)]
    return words


def is_operand(key, value):
    return key in OPERANDS or (key == "decay" and value.endswith(".json"))


def replaced(question, change):
    """The question's flags with the change. A new input takes the old one's place."""
    if any(key in SOURCES for key in change):
        is_text = "text" in change and "text" in question
        of_text = lambda key: key.startswith("embed_") or key == "vocab_size"
        question = {key: value for key, value in question.items()
                    if key not in SOURCES and key != "tokens" and (is_text or not of_text(key))}
    if "INPUT" in change:  # the result gives its settings alone
        question = {key: value for key, value in question.items() if not is_operand(key, value)}
    streams = {"rng", "dropout_stream"}
    if "device" in change:
        question = {key: value for key, value in question.items() if key not in streams}
    elif "device" in question and streams & change.keys():
        question = {**dict.fromkeys(streams, question["device"]),
                    **{key: value for key, value in question.items() if key != "device"}}
    if change.get("backward") is False or (LOSS & change.keys() and change.get("loss") != "mse"):
        question = {key: value for key, value in question.items() if key not in LOSS}
    return {**question, **change}


class Runner:
    def __init__(self, program, folder):
        self.program, self.folder = program, folder

    def run(self, *words):
        done = subprocess.run([self.program, *words], cwd=self.folder, capture_output=True, timeout=120,
                              stdin=subprocess.DEVNULL, env={"PATH": "/usr/bin:/bin", "COLUMNS": "80"})
        return done.returncode, done.stdout, done.stderr.decode()

    def save(self, mode, flags, name):
        if not (self.folder / name).exists():
            emit = {} if "emit" in flags else {"emit": "all"}
            temporary = f"{os.getpid()}.{random.getrandbits(60)}.{name}"
            code, _, _ = self.run(mode, *words_of({**flags, **emit}), "-o", temporary)
            if code != 0:
                return False
            os.replace(self.folder / temporary, self.folder / name)
        return True


def without_command(text):
    """A program's text without the lines that repeat the command."""
    return b"\n".join(line for line in text.split(b"\n") if b"attn " not in line)


def verdict(fresh, again, old, result, change):
    """equal, refused, both refuse, old numbers, differs, accepted, a bad error, or a crash."""
    (code, text, _), (other, found, error) = fresh, again
    if any(status not in (0, 1, 2, 3) for status in (code, other)):
        return "crash"
    if code not in (0, 1):
        return "both refuse" if other in (2, 3) else "accepted"
    if other in (0, 1) and (code, text) == (other, found):
        return "equal"
    if other in (0, 1):
        return "old numbers" if found == old else "differs"
    names_flag = any("--" + key.replace("_", "-") in error or key in error or str(value) in error
                     for key, value in change.items())
    return "refused" if names_flag and result in error else "bad error"


def without_places(done):
    """The numbers of a page, without what is in parentheses: where each setting comes from."""
    text, count = done[1], 1
    while count:
        text, count = re.subn(rb"\([^()]*\)", b"", text)
    return done[0], b" ".join(re.findall(rb"-?\d+\.\d+(?:e[-+]\d+)?|\d+ %", text)), done[2]


def case_id(case):
    mode, question, change, form, dtype, way = case
    return " ".join([way, mode, *words_of(question), "|", *words_of(change), f"[{form} {dtype}]"])


def run_case(runner, case):
    mode, question, change, form, dtype, way = case
    base = {**question, "dtype": dtype}
    asked = {"emit": "all", **replaced(base, change)}
    saved = "r%016x.%s" % (hash((mode, str(base))) & (2**64 - 1), form)
    if not runner.save(mode, base, saved):
        return "no result", ()
    if way in ("config", "settings"):
        own = [question["INPUT"]] if way == "settings" else []
        out = f"o{random.getrandbits(60):x}.json"

        def ask(*words):
            code, _, error = runner.run(*words, "-o", out)
            path = runner.folder / out
            text = path.read_bytes() if path.exists() else b""
            path.unlink(missing_ok=True)
            return code, text, error
        old = ask(mode, *words_of({**base, "emit": "all"}))
        fresh = ask(mode, *words_of(asked))
        again = ask(mode, *own, *words_of(change), "--config", saved)
    elif way == "explain":
        asked.pop("emit")
        fresh = runner.run("explain", mode, *words_of(asked))
        again = runner.run("explain", mode, *words_of(change), "--config", saved)
        old = runner.run("explain", mode, *words_of(base))
        fresh, again, old = map(without_places, (fresh, again, old))
    elif way == "repro":
        for flags in (asked, base, change):
            flags.pop("emit", None)
        strip = lambda done: (done[0], without_command(done[1]), done[2])
        fresh = strip(runner.run("repro", mode, *words_of(asked)))
        again = strip(runner.run("repro", saved, *words_of(change)))
        old = strip(runner.run("repro", mode, *words_of(base)))
    else:
        theirs = "t%016x.npz" % (hash((mode, str(asked))) & (2**64 - 1))
        if not runner.save(mode, asked, theirs):
            theirs = saved
        flags = {key: value for key, value in asked.items() if key != "emit"}
        part = {key: value for key, value in change.items() if key != "emit"}
        fresh = runner.run("check", mode, *words_of(flags), "--against", theirs)
        again = runner.run("check", saved, *words_of(part), "--against", theirs)
        old = None, None, None
    word = verdict(fresh, again, old[1] if old[0] == 0 else None, saved, change)
    return word, (fresh, again)


def all_cases():
    for mode, question in QUESTIONS:
        single = changes_of(mode, question)
        pairs = [{**one, **two} for one, two in itertools.combinations(single, 2)
                 if not set(one) & set(two)]
        for change, form, dtype, way in itertools.product(
                single + pairs, ("json", "npz", "safetensors", "ndjson"), ("float32", "float64"),
                ("config", "settings", "repro", "check", "explain")):
            file = way in ("check", "repro") and "INPUT" in change
            explained = way in ("explain", "repro", "check") and (
                {"emit", "top", "precision", "average_heads", "head", "token", "kernel",
                 "dtype"} & change.keys())
            # Settings for the input that the result has too.
            unnamed = way == "settings" and (
                "INPUT" not in question or any(key in SOURCES for key in change) or
                any(is_operand(*item) for item in question.items()))
            if not file and not explained and not unnamed:
                yield mode, dict(question), dict(change), form, dtype, way


def prepare(folder):
    folder.joinpath("data").symlink_to(DATA)
    shutil.copy(DATA / "journey.csv", folder / "journey.csv")
    rows = lambda n, d, shift: "\n".join(
        ",".join(str(((i * 7 + j * 3 + shift) % 11) / 8 - 0.5) for j in range(d)) for i in range(n))
    folder.joinpath("other.csv").write_text(rows(5, 3, 1) + "\n")
    folder.joinpath("context.csv").write_text(rows(6, 3, 2) + "\n")
    folder.joinpath("two.csv").write_text(rows(6, 2, 8) + "\n")
    folder.joinpath("wide.csv").write_text(rows(4, 12, 3) + "\n")
    folder.joinpath("eight.csv").write_text(rows(4, 8, 4) + "\n")
    with gzip.open(folder / "journey.csv.gz", "wb") as file:
        file.write(folder.joinpath("journey.csv").read_bytes())
    for name, text in (
            ("batch.json", "[[[0.1,0.2],[0.3,0.4],[0,1]],[[0,1],[-1,2],[2,2]]]"),
            ("keep.json", str([[(i + j) % 3 != 1 or i == j for j in range(6)] for i in range(6)]).lower()),
            ("padding.json", "[false,false,true,false,false,false]"),
            ("past.json", "[[0.5,0.1],[0.3,-1]]"), ("slopes.csv", "0.3\n"),
            ("decay.json", "[[-0.5],[-1],[-0.25],[-2],[0],[-1]]")):
        folder.joinpath(name).write_text(text)
    folder.joinpath("mask.csv").write_text("0,-1,0,-2,0,-1\n" * 6)
    for name, shift in (("q", 5), ("k", 6), ("v", 7)):
        text = rows(5, 8, shift).replace("\n", ",")
        numbers = [float(x) for x in text.split(",")]
        folder.joinpath(name + ".npy").write_bytes(npy_head((5, 8)) + struct.pack("<40f", *numbers))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("attn")
    parser.add_argument("--count", type=int, default=150)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--show", type=int, default=10)
    options = parser.parse_args()
    cases = [case for case in all_cases() if not options.only or options.only in case_id(case)]
    if options.count and options.count < len(cases):
        cases = random.Random(options.seed).sample(cases, options.count)
    counts, shown = collections.Counter(), collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        prepare(folder)
        runner = Runner(os.path.abspath(options.attn), folder)
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for case, (word, runs) in zip(cases, pool.map(lambda c: run_case(runner, c), cases)):
                counts[word] += 1
                shown[word] += 1
                if word not in GOOD and shown[word] <= options.show:
                    print(f"{word}: {case_id(case)}")
                    texts = [text for _, text, _ in runs]
                    start = max(len(os.path.commonprefix(texts)) - 60, 0)
                    for name, (code, text, error) in zip(("afresh", "again"), runs):
                        print(f"    {name}: {code} {error.strip()} {text[start:start + 160]!r}")
    print(", ".join(f"{count} {word}" for word, count in sorted(counts.items())), "of", len(cases))
    if counts["equal"] < len(cases) / 4:
        print("too few are equal")
        return 1
    return 1 if counts.keys() - GOOD else 0


if __name__ == "__main__":
    sys.exit(main())
