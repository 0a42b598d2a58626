#!/usr/bin/env python3
"""Writes data/models/families.ndjson: a small model of each family, and what transformers computes for it.

    python3 tests/make_model_cases.py GOLDEN >data/models/families.ndjson

GOLDEN/NAME holds config.json, safetensors and case.json (token_ids). A case has the config, the tensors' names, shapes,
means and deviations, and a few arrays that the library computes in float64. The elements are not stored: they are
drawn from the tensor's name (`drawn`), here and in tests/cli/model_families_test.cpp. A case is kept if the library
gives the arrays of GOLDEN/NAME/expected.safetensors with the stored weights. Requires torch and transformers 5.23.
"""
import json
import pathlib
import sys
import tempfile

import numpy as np
import torch
import transformers
from safetensors.numpy import load_file, save_file
from support.array_files import read_safetensors
from support.drawn import drawn

MAX_TOKENS = 6


def in_float64():
    """Everything that the library converts to float32 becomes float64."""
    torch.set_default_dtype(torch.float64)
    to, softmax, arange = torch.Tensor.to, torch.nn.functional.softmax, torch.arange
    wide = lambda value: torch.float64 if value is torch.float32 else value

    def to_wide(self, *args, **named):
        return to(self, *[wide(a) for a in args], **{key: wide(value) for key, value in named.items()})

    torch.Tensor.to = to_wide
    as_type = torch.Tensor.type
    torch.Tensor.type = lambda self, dtype=None, **named: as_type(self, *([] if dtype is None else [wide(dtype)]), **named)
    torch.Tensor.float = lambda self: to(self, torch.float64)
    torch.nn.functional.softmax = lambda x, dim=None, _stacklevel=3, dtype=None: softmax(x, dim=dim, dtype=wide(dtype))
    torch.softmax = lambda x, dim, dtype=None: softmax(x, dim=dim, dtype=wide(dtype))
    torch.arange = lambda *args, **named: arange(*args, **{k: wide(v) for k, v in named.items()})
    torch.float = torch.float64


def computed(folder, token_ids):
    config = transformers.AutoConfig.from_pretrained(folder)
    model = transformers.AutoModel.from_pretrained(folder, dtype=torch.float64, attn_implementation="eager",
                                                   experts_implementation="eager").eval()
    text = config.get_text_config()
    with torch.no_grad():
        out = model(input_ids=torch.tensor([token_ids]), output_hidden_states=True, output_attentions=True,
                    use_cache=False)
    arrays = {"last_hidden_state": out.last_hidden_state[0].numpy()}
    layers = text.num_hidden_layers
    for layer, states in enumerate(out.hidden_states[:layers]):
        arrays[f"hidden_states.{layer}"] = states[0].numpy()
    for layer, weights in enumerate(out.attentions or []):
        if weights is not None and len(out.attentions) == layers:
            arrays[f"attention_weights.{layer}"] = weights[0].numpy()
    return arrays


def agree(arrays, expected):
    for name, values in arrays.items():
        if name in expected:
            bound = 1e-8 * max(1, np.abs(expected[name]).max())
            if values.shape != expected[name].shape or not np.abs(values - expected[name]).max() <= bound:
                return f"{name} differs"
    return "" if "last_hidden_state" in expected else "no last_hidden_state"


def tensors_of(folder):
    kinds = {"F32": "<f4", "F16": "<f2", "I64": "<i8", "BF16": "<u2", "U8": "<u1", "BOOL": "<u1", "F64": "<f8"}
    tensors = {}
    for path in sorted(folder.glob("*.safetensors")):
        if path.name == "expected.safetensors":
            continue
        for name, (dtype, shape, content) in read_safetensors(path)[0].items():
            values = np.frombuffer(content, kinds[dtype]).reshape(shape)
            if dtype == "BF16":
                values = (values.astype(np.uint32) << 16).view(np.float32)
            tensors[name] = (dtype, values)
    return tensors


def rounded(x):
    return float(f"{x:.2g}")


def drawn_tensors(folder):
    """Shape, mean and deviation of each tensor of numbers, and its drawn elements."""
    tensors, values = {}, {}
    for name, (kind, stored) in tensors_of(folder).items():
        if kind.startswith(("F", "BF")):
            tensors[name] = [list(stored.shape), rounded(stored.mean()), rounded(stored.std())]
            values[name] = drawn(name, *tensors[name])
    return tensors, values


def case_of(folder):
    config = json.loads((folder / "config.json").read_text())
    ids = json.loads((folder / "case.json").read_text()).get("token_ids")
    if not ids or json.loads((folder / "case.json").read_text()).get("decoder_ids"):
        return None, "not a decoder or an encoder of tokens"
    problem = agree(computed(folder, ids), load_file(folder / "expected.safetensors"))
    if problem:
        return None, problem
    ids = ids[:MAX_TOKENS]
    tensors, values = drawn_tensors(folder)
    with tempfile.TemporaryDirectory() as temporary:
        config["dtype"] = "float32"
        (pathlib.Path(temporary) / "config.json").write_text(json.dumps(config))
        save_file(values, pathlib.Path(temporary) / "model.safetensors", metadata={"format": "pt"})
        arrays = computed(temporary, ids)
    weights = sorted((name for name in arrays if name.startswith("attention")), key=lambda n: int(n.split(".")[1]))
    kept = ["last_hidden_state"] + weights[-1:]
    text = {name: [[float(f"{x:.10g}") for x in row] for row in arrays[name].reshape(-1, arrays[name].shape[-1])]
            for name in kept}
    return {"name": folder.name, "config": config, "tensors": tensors, "token_ids": ids, "expected": text}, ""


def main():
    in_float64()
    transformers.logging.set_verbosity_error()
    for folder in sorted(pathlib.Path(sys.argv[1]).iterdir()):
        if len(sys.argv) > 2 and folder.name not in sys.argv[2:]:
            continue
        try:
            case, problem = case_of(folder)
        except Exception as error:  # of the library
            case, problem = None, repr(error)[:200]
        if case is None:
            print(f"{folder.name}: {problem}", file=sys.stderr)
        else:
            print(json.dumps(case, separators=(",", ":")), flush=True)


if __name__ == "__main__":
    main()
