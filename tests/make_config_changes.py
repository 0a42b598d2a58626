#!/usr/bin/env python3
"""Writes data/models/config_changes.ndjson: what transformers makes of changed keys of each family's config.

    python3 tests/make_config_changes.py build/release/attn [NAME...] >data/models/config_changes.ndjson
    python3 tests/make_config_changes.py build/release/attn --all [NAME...]    # every change; prints what differs

Each line has a family of data/models/families.ndjson and its changes: the path of a key, its new value (without one the
key is taken out), whether the config is in the form of version 4, and what comes of it: three elements of
last_hidden_state as transformers computes it in float64, or the exit code of attn where it refuses the change. Every
key is taken out, set to other values of its type, to other types and to null, and rotary settings are given in every
way. A change that transformers refuses is left out. An exception, where attn differs on purpose, also has attn's
elements and the reason. A difference that is not an exception, and an exception without one, are errors: exit code 1.
Requires torch, safetensors and transformers 5.24.
"""
import copy
import hashlib
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import torch
import transformers
from make_model_cases import drawn, in_float64
from safetensors.numpy import save_file

MODELS = pathlib.Path(__file__).resolve().parent.parent / "data/models"
PER_FAMILY, PER_ROPE = 8, 8
UNREAD = {"architectures", "transformers_version", "dtype", "model_type", "id2label", "label2id"}
FALCON = "the eager form of the library adds the ALiBi bias twice; attn adds it once, as the others do"
# Where attn differs from transformers: family, key, value, and the reason.
EXCEPTIONS = {("falcon-40b", "alibi", "true"): FALCON, ("falcon-7b", "alibi", "true"): FALCON,
              ("mpt", "max_seq_len", "1"): "the library takes the bias of one position for all; attn has no such table"}
# Changes that have a rule of their own: they are always recorded.
ALWAYS = {("bailing_hybrid", "rope_parameters", json.dumps({"rope_type": "yarn", "factor": 2.0})),
          ("dbrx", "clip_qkv", "0.0"), ("esm1", "position_embedding_type", "null"),
          ("gemma3-sees", "use_bidirectional_attention", "true"), ("gpt_oss", "beta_fast", "0.0"),
          ("gpt_oss", "beta_slow", "0.0"), ("gpt_oss", "truncate", "0"), ("gpt_oss", "truncate", "null"),
          ("granitemoehybrid-dense", "time_step_limit", "[0.0, 0.0]"),
          ("mimo_v2_flash", "partial_rotary_factor", ""),
          ("mistral", "layer_types", json.dumps(["full_attention"] * 3)), ("mistral4", "head_dim", "6"),
          ("mistral4", "partial_rotary_factor", json.dumps(1 / 6)), ("mixtral", "norm_topk_prob", "false"),
          ("stablelm", "partial_rotary_factor", "0.125")}
WITHOUT_EFFECT = {"initializer_range", "initializer_factor", "use_cache"}  # on a model that is read and runs once
LINEAR = {"rope_type": "linear", "factor": 2.0}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 4}
ROPES = [LINEAR, {"type": "linear", "factor": 2.0}, LINEAR | {"type": "yarn"}, LINEAR | {"rope_theta": 9.0},
         LINEAR | {"rope_theta": None}, YARN, YARN | {"attention_factor": 0.7}, YARN | {"rope_theta": 9.0},
         {"rope_type": "yarn", "factor": 2.0}, {"rope_type": "dynamic", "factor": 2.0}, {"rope_type": "default"},
         {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 8},
         {"rope_type": "default", "rope_theta": 33.0}, {"rope_type": "lineer", "factor": 2.0}, {},
         {"rope_type": "default", "rope_theta": 44.0, "partial_rotary_factor": 0.5},
         {"full_attention": LINEAR, "sliding_attention": {"rope_type": "default", "rope_theta": 5.0}},
         {"full_attention": YARN | {"rope_theta": 9.0}}]
ADDED = {"partial_rotary_factor": [0.5, 1.0, None], "rope_theta": [7.0, None], "original_max_position_embeddings": [4, None],
         "rope_local_base_freq": [5.0], "global_rope_theta": [5.0], "rotary_pct": [0.5], "rotary_emb_base": [5],
         "sliding_window": [2, None], "use_sliding_window": [True], "max_window_layers": [0], "head_dim": [None],
         "num_experts_per_tok": [1], "num_experts_per_token": [1], "norm_topk_prob": [True, False],
         "moe_renormalize": [True, False], "attn_logit_softcapping": [1.0], "query_pre_attn_scalar": [3],
         "mlp_only_layers": [[0]], "no_rope_layers": [[0] * 8], "num_hidden_layers": [1], "is_causal": [False]}


def others(value):
    """Other values of the type, other types and null."""
    if isinstance(value, bool):
        found = [not value, int(value), str(value).lower(), None]
    elif isinstance(value, int):
        found = [0, 1, value + 1, value * 2, value // 2, -1, value + 0.5, str(value), True, None, [value]]
    elif isinstance(value, float):
        found = [value * 2 + 0.125, value / 2, 0.0, 1.0, -value - 1, int(value) + 1, str(value), True, None]
    elif isinstance(value, str):
        found = [value + "x", value[:1] + value[2:], value.upper(), "", 1, True, None, [value]]
    elif isinstance(value, list):
        found = [value[:-1], value + value[-1:], value[::-1], [], None, "x", 1, True]
        found += [[entry] * len(value) for entry in value] + [[w, *value[1:]] for entry in value[:1] for w in others(entry)]
    elif isinstance(value, dict):
        found = [{}, None, "x", 1, []]
    else:
        found = [0, 1, 2, 0.5, True, False, "x", [1]]
    return [other for other in found if json.dumps(other) != json.dumps(value)]


def changes(config, root=()):
    """(path, values of 0 or 1 element) of every change."""
    for key, value in config.items():
        if key in UNREAD or key.endswith(("_token_id", "dropout", "_pdrop")):
            continue
        path = (*root, key)
        yield path, []
        if not (isinstance(value, dict) and "model_type" in value):
            yield from ((path, [other]) for other in others(value))
        if isinstance(value, dict):
            yield from changes(value, path)
    if "model_type" not in config or any(isinstance(v, dict) and "model_type" in v for v in config.values()):
        return
    for key, values in ADDED.items():
        if key not in config:
            yield from (((*root, key), [value]) for value in values)
    for key in ("rope_scaling", "rope_parameters"):
        yield from (((*root, key), [rope]) for rope in ROPES)
    if isinstance(layers := config.get("num_hidden_layers"), int) and "layer_types" not in config:
        yield from (((*root, "layer_types"), [[kind] * layers])
                    for kind in ("full_attention", "sliding_attention", "slidng_attention", "linear_attention"))


def changed(config, path, values):
    config = copy.deepcopy(config)
    part = config
    for name in path[:-1]:
        part = part[name]
    part.pop(path[-1], None)
    part.update({path[-1]: value for value in values})
    return config


def older(config):
    """The form of version 4, if there is one: rope_theta and rope_scaling."""
    rope = config.get("rope_parameters")
    if not isinstance(rope, dict) or "rope_theta" not in rope:
        return None
    config = {key: value for key, value in config.items() if key != "rope_parameters"}
    rope = dict(rope)
    config |= {key: rope.pop(key) for key in ("rope_theta", "partial_rotary_factor") if key in rope}
    return config | ({"rope_scaling": rope} if rope.get("rope_type", "default") != "default" else {})


class Family:
    def __init__(self, case, folder, program):
        self.case, self.folder, self.program, self.truths = case, pathlib.Path(folder), program, {}
        tensors = {name: drawn(name, *row).astype(np.float64) for name, row in case["tensors"].items()}
        save_file(tensors, self.folder / "model.safetensors", metadata={"format": "pt"})

    def run(self):
        """The exit code, and attn's last_hidden_state."""
        out = self.folder / "out.npz"
        done = subprocess.run([self.program, "model", self.folder, "--token-ids", ",".join(map(str, self.case["token_ids"])),
                               "--dtype", "float64", "--emit", "last_hidden_state", "-o", out], capture_output=True)
        if done.returncode:
            return done.returncode, None
        with np.load(out) as arrays:
            return 0, arrays["last_hidden_state"].reshape(-1)

    def truth(self):
        """What transformers computes, or None where it refuses, or has no tensor for a parameter."""
        try:
            config = transformers.AutoConfig.from_pretrained(self.folder)
            known = {key: value for key, value in config.to_dict().items() if key not in WITHOUT_EFFECT}
            key = json.dumps(known, sort_keys=True, default=str)
            if key not in self.truths:  # many changes give the same configuration
                self.truths[key] = self.last_hidden_state(config)
            return self.truths[key]
        except Exception:
            return None

    def last_hidden_state(self, config):
        model, about = transformers.AutoModel.from_pretrained(
            self.folder, config=config, dtype=torch.float64, attn_implementation="eager",
            experts_implementation="eager", output_loading_info=True, ignore_mismatched_sizes=True)
        missing = [name for name in about["missing_keys"] if "pooler" not in name]
        if missing or about["mismatched_keys"]:
            return None
        with torch.no_grad():
            out = model.eval()(input_ids=torch.tensor([self.case["token_ids"]]), use_cache=False)
        return out.last_hidden_state[0].double().numpy().reshape(-1)

    def result(self, config):
        """What the file keeps of a config: three elements or an exit code; and attn's elements if they differ."""
        (self.folder / "config.json").write_text(json.dumps(config | {"dtype": "float64"}))
        code, mine = self.run()
        if code:
            return code, None
        expected = self.truth()
        if expected is None or not np.isfinite(expected).all():
            return None, None
        differs = mine.size != expected.size or np.abs(mine - expected).max() > 1e-7 * max(1, np.abs(expected).max())
        return three_of(expected), three_of(mine) if differs else None


def three_of(numbers):
    return [float(f"{numbers[i]:.8g}") for i in (-1, -2, numbers.size // 2)]


def entry_of(name, path, values):
    return name, path[-1], json.dumps(values[0]) if values else ""


def order(name, form, path, values):
    return hashlib.md5(json.dumps([name, form, path, values]).encode()).hexdigest()


def main():
    in_float64()
    transformers.logging.set_verbosity(50)
    transformers.logging.disable_progress_bar()
    program, takes_all = str(pathlib.Path(sys.argv[1]).resolve()), "--all" in sys.argv
    names = [word for word in sys.argv[2:] if word != "--all"]
    unseen, unexpected = {entry for entry in EXCEPTIONS if not names or entry[0] in names}, 0
    for line in (MODELS / "families.ndjson").read_text().splitlines():
        case = json.loads(line)
        name = case["name"]
        if names and name not in names:
            continue
        with tempfile.TemporaryDirectory() as folder:
            family, kept = Family(case, folder, program), []
            forms = [case["config"]] + [config for config in [older(case["config"])] if config]
            for form, config in enumerate(forms):
                if not isinstance(family.result(config)[0], list):
                    continue
                space = sorted(changes(config), key=lambda change: order(name, form, *change))
                if not takes_all:
                    always = [c for c in space if entry_of(name, *c) in ALWAYS | EXCEPTIONS.keys()]
                    ropes = [c for c in space if "rop" in c[0][-1] or "rot" in c[0][-1]]
                    sample = ropes[:PER_ROPE] + [c for c in space if c not in ropes][:PER_FAMILY]
                    space = sample + [c for c in always if c not in sample]
                for path, values in space:
                    result, mine = family.result(changed(config, path, values))
                    entry = entry_of(name, path, values)
                    reason = EXCEPTIONS.get(entry)
                    if mine and reason:
                        unseen.discard(entry)
                        kept.append([form, list(path), values, result, mine, reason])
                    elif mine:
                        unexpected += 1
                        print(name, form, ".".join(path), values, "differs", file=sys.stderr)
                    elif result is not None:
                        kept.append([form, list(path), values, result])
        if kept and not takes_all:
            print(json.dumps({"name": name, "older": forms[1:], "changes": kept}, separators=(",", ":")))
        elif takes_all:
            print(name, len(kept), "agree, are refused or are exceptions", flush=True)
    for entry in sorted(unseen):
        print(*entry, "is an exception that does not differ", file=sys.stderr)
    return 1 if unseen or unexpected else 0


if __name__ == "__main__":
    sys.exit(main())
