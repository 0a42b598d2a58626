#!/usr/bin/env python3
"""Asks a program for the attention of every model of a golden folder, in every way that it may be asked.

    ATTN_GOLDEN=DIR python3 tests/golden_models.py build/release/attn [--only NAME] [--verbose]

DIR/models/NAME holds config.json, model.safetensors, case.json (token_ids) and expected.safetensors:
hidden_states.N, what enters block N, and attention_weights.N, (heads, queries, keys), by the model's own
library in float64. Each answer must agree with them, or be one line of error at exit code 2 or 3. What is
asked: with config.json of both versions, without it, with --model-config none; with every setting as a flag,
the model's own (which must agree, with and without its folder) and, of models that attn does not know, those of
the families that it knows; from token ids, from hidden states of the first and the last layer; with and without
--family. Exit code 77: no ATTN_GOLDEN.
"""
import argparse
import collections
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

from golden_layers import read_tensors

SUPPORTED = ["gpt2", "bert", "roberta", "camembert", "xlm-roberta", "llama", "mistral", "qwen2", "gpt_neox"]
FAMILIES = ["gpt2", "llama", "bert", "neox"]
TOLERANCE = 1e-7
# All that tensors do not show, as files of the families mean it. Of another model it is wrong.
SAID = {
    "llama": ["--causal", "--rope", "half", "--rope-base", "10000", "--norm", "rms", "--norm-eps", "1e-6",
              "--embedding-scale", "1"],
    "gpt2": ["--causal", "--rope", "none", "--norm", "layer", "--norm-eps", "1e-5", "--position-offset", "0",
             "--embedding-scale", "1"],
    "bert": ["--no-causal", "--rope", "none", "--norm", "layer", "--norm-eps", "1e-12", "--position-offset", "0",
             "--embedding-scale", "1"],
    "neox": ["--causal", "--rope", "half", "--rope-base", "10000", "--rope-dims", "2", "--norm", "layer",
             "--norm-eps", "1e-5", "--embedding-scale", "1"],
}


def true_flags(config, layer):
    """Every setting of a layer by its config, of the types whose attention attn computes; else None."""
    kind = config["model_type"]
    if kind not in SUPPORTED:
        return None
    rope = config.get("rope_parameters") or {}
    if rope.get("rope_type", "default") not in ("default", "linear", "llama3"):
        return None
    heads = config.get("n_head") or config.get("num_attention_heads")
    width = config.get("n_embd") or config.get("hidden_size")
    head = config.get("head_dim") or width // (heads or 1)
    scale = 1 / math.sqrt(head)
    flags = ["--embedding-scale", "1"]
    if kind == "gpt2":
        scale = scale / (layer + 1) if config.get("scale_attn_by_inverse_layer_idx") else scale
        flags += ["--causal", "--rope", "none", "--norm", "layer", "--norm-eps", str(config["layer_norm_epsilon"]),
                  "--position-offset", "0"]
    elif kind in ("bert", "roberta", "camembert", "xlm-roberta"):
        offset = 0 if kind == "bert" else config["pad_token_id"] + 1
        flags += ["--no-causal", "--rope", "none", "--norm", "layer", "--norm-eps", str(config["layer_norm_eps"]),
                  "--position-offset", str(offset)]
    elif kind in ("llama", "mistral", "qwen2"):
        flags += ["--causal", "--rope", "half", "--rope-base", str(rope["rope_theta"]), "--norm", "rms",
                  "--norm-eps", str(config["rms_norm_eps"])]
        slides = kind == "mistral" or (config.get("layer_types") or [""] * (layer + 1))[layer] == "sliding_attention"
        if slides and config.get("sliding_window"):
            flags += ["--window", f"{config['sliding_window'] - 1},-1"]
        if rope.get("rope_type") == "linear":
            flags += ["--rope-scaling", str(rope["factor"])]
        if rope.get("rope_type") == "llama3":
            keys = ("factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings")
            flags += ["--rope-scaling", ",".join(str(rope[key]) for key in keys)]
    elif kind == "gpt_neox":
        flags += ["--causal", "--rope", "half", "--rope-base", str(rope["rope_theta"]), "--rope-dims",
                  str(int(head * rope["partial_rotary_factor"])), "--norm", "layer",
                  "--norm-eps", str(config["layer_norm_eps"])]
    return [*flags, "--heads", str(heads), "--scale", repr(scale)]


def fitting(flags, arguments):
    """A flag without its subject is an error: those of token ids, and of norms, are left out where there are none."""
    words, has_ids = [], "--token-ids" in arguments
    has_norm = has_ids or "--pre-norm" in arguments
    for flag, value in zip(flags, [*flags[1:], ""]):
        if not flag.startswith("--"):
            continue
        of_ids, of_norm = flag in ("--embedding-scale", "--position-offset"), flag in ("--norm", "--norm-eps")
        if (of_ids and not has_ids) or (of_norm and not has_norm):
            continue
        words += [flag] if value.startswith("--") or not value else [flag, value]
    return words


def flat(value):
    if not isinstance(value, list):
        return [float(value)]
    return [number for part in value for number in flat(part)]


class Model:
    def __init__(self, folder, scratch):
        self.folder, self.name = folder, folder.name
        self.config = json.loads((folder / "config.json").read_text())
        self.expected = read_tensors(folder / "expected.safetensors")
        self.ids = ",".join(map(str, json.loads((folder / "case.json").read_text())["token_ids"] or [0])) \
            if "token_ids" in json.loads((folder / "case.json").read_text()) else "0,1,2"
        self.layers = sorted({int(name.rsplit(".", 1)[1]) for name in self.expected
                              if "attention_weights." in name and "cross" not in name})
        self.bare = scratch / self.name
        self.bare.mkdir()
        for file in folder.iterdir():
            if file.name.startswith("model"):
                (self.bare / file.name).symlink_to(file)

    def heads(self, layer):
        for prefix in ("", "encoder.", "decoder."):
            if (found := self.expected.get(f"{prefix}attention_weights.{layer}")):
                return found[0][0]
        return 2

    def hidden(self, layer):
        """A request's inputs: the hidden states that enter the layer, or None if they are not a matrix."""
        for prefix in ("", "encoder.", "decoder."):
            found = self.expected.get(f"{prefix}hidden_states.{layer}")
            if found and len(found[0]) == 2:
                (rows, columns), numbers = found
                return [list(numbers[row * columns:(row + 1) * columns]) for row in range(rows)]
        return None

    def agrees(self, layer, weights):
        computed = flat(weights)
        for prefix in ("", "encoder.", "decoder."):
            found = self.expected.get(f"{prefix}attention_weights.{layer}")
            if found and len(found[1]) == len(computed) and \
                    max(abs(a - b) for a, b in zip(found[1], computed)) <= TOLERANCE:
                return True
        return False

    def questions(self):
        """(name, arguments, standard input, layer)"""
        first, last = 0, (self.layers or [0])[-1]
        scale_of = lambda heads, width: ["--scale", repr(1 / math.sqrt(width / heads))]
        width = len(self.hidden(0)[0]) if self.hidden(0) else 8
        ways = []
        for layer in dict.fromkeys((first, last)):
            heads = self.heads(layer)
            some = ["--heads", str(heads)]
            ways += [(layer, "config", self.folder, []),
                     (layer, "no config", self.bare, some),
                     (layer, "config none", self.folder, ["--model-config", "none", *some])]
            if (self.folder / "config.v4.json").exists():
                ways.append((layer, "config v4", self.bare, ["--model-config", str(self.folder / "config.v4.json")]))
            own = true_flags(self.config, layer)
            if own is not None:
                ways.append((layer, "no config, its own settings", self.bare, own))
                ways.append((layer, "config none, its own settings", self.folder, ["--model-config", "none", *own]))
            elif self.config["model_type"] not in SUPPORTED:
                for name, flags in SAID.items():
                    ways.append((layer, f"config none, settings of {name}", self.folder,
                                 ["--model-config", "none", *some, *flags, *scale_of(heads, width)]))
        for layer, way, folder, flags in ways:
            for family in [None, *(FAMILIES if layer == first else [])]:
                base = ["multihead", "--dtype", "float64", "--emit", "attention_weights", "--weights", str(folder),
                        "--layer", str(layer), *flags, *(["--family", family] if family else [])]
                label = f"{way}, layer {layer}, family {family}"
                yield label + ", token ids", [*base, "--token-ids", self.ids], None, layer
                if (hidden := self.hidden(layer)) is not None:
                    # Without its norm an attention is determined by the flags, for any model.
                    if "settings of" not in way:
                        yield label + ", hidden states", base, json.dumps(hidden), layer
                    yield label + ", hidden states, norm", [*base, "--pre-norm"], json.dumps(hidden), layer


def ask(program, model, question):
    label, arguments, text, layer = question
    if "settings" in label:
        first = next(i for i, word in enumerate(arguments) if word in ("--heads", "--embedding-scale"))
        arguments = [*arguments[:first], *fitting(arguments[first:], arguments)]
    if text is not None:
        arguments = [arguments[0], "-", *arguments[1:]]
    done = subprocess.run([program, *arguments], input=text, capture_output=True, text=True, timeout=60)
    command = " ".join([program, *arguments])
    if done.returncode in (2, 3):
        lines = done.stderr.splitlines()
        is_one_line = len([line for line in lines if line.startswith("attn: error: ")]) == 1 and not done.stdout
        if not is_one_line:
            return "badly refused", label, command
        return ("refused" if len(lines[-1]) < 700 else "refused at length"), label, done.stderr
    if done.returncode != 0:
        return "failed", label, command
    if model.agrees(layer, json.loads(done.stdout)["attention_weights"]):
        return "agrees", label, command
    # Inputs without the norm before the layer are what was requested, and a note reports it.
    if "is not applied" in done.stderr:
        return "noted", label, command
    return "wrong", label, command


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--only")
    parser.add_argument("--verbose", action="store_true")
    arguments = parser.parse_args()
    if "ATTN_GOLDEN" not in os.environ:
        print("skipped: ATTN_GOLDEN names no folder")
        return 77
    program = str(pathlib.Path(arguments.program).resolve())
    folders = sorted((pathlib.Path(os.environ["ATTN_GOLDEN"]) / "models").iterdir())
    total, by_way, wrong = collections.Counter(), collections.Counter(), collections.defaultdict(list)
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(os.cpu_count()) as pool:
        for folder in folders:
            if not folder.is_dir() or (arguments.only and folder.name != arguments.only):
                continue
            model = Model(folder, pathlib.Path(scratch))
            results = list(pool.map(lambda question: ask(program, model, question), model.questions()))
            for verdict, label, detail in results:
                total[verdict] += 1
                by_way[(verdict, label.split(", layer")[0])] += 1
                if verdict in ("wrong", "failed", "badly refused", "refused at length"):
                    wrong[folder.name].append((verdict, label, detail))
                if arguments.verbose:
                    print(folder.name, verdict, label, detail.strip(), sep=" | ")
    for name, cases in wrong.items():
        print(f"{name}: {len(cases)}, e.g. {cases[0][0]}: {cases[0][1]}: {cases[0][2].strip()[:400]}")
    for (verdict, way), count in sorted(by_way.items()):
        print(f"  {verdict:18} {way:36} {count}")
    print(dict(total), f"; {len(wrong)} models")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
