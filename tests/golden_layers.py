#!/usr/bin/env python3
"""Compares `attn model` with the models of a golden folder, layer by layer.

    ATTN_GOLDEN=DIR python3 tests/golden_layers.py build/release/attn [--only NAMES] [--folder models]

DIR/models/NAME, or another folder than models, holds config.json, perhaps config.v4.json, model.safetensors (or model.gguf alone), case.json (token_ids and the library's
own float32 errors) and expected.safetensors in float64. In float64 |a - b| <= 1e-9 max(1, max |b|); in float32 at most
4 times the library's own error and one unit in the last place of the largest value. Exit code 77: no ATTN_GOLDEN.
"""
import argparse
import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile
from array import array
from concurrent.futures import ThreadPoolExecutor

sys.dont_write_bytecode = True
from support.array_files import npy_head, read_safetensors  # noqa: E402

REFUSED = {"bamba", "falcon_h1", "granitemoehybrid", "jamba", "nemotron_h"}
CODES = {"F64": "d", "F32": "f", "I64": "q"}


def read_tensors(path):
    """{name: (shape, numbers)}"""
    return {name: (shape, array(CODES[dtype], content)) for name, (dtype, shape, content) in read_safetensors(path)[0].items()}


def written_name(name):
    """The name that attn gives to an array of expected.safetensors."""
    if name.startswith("decoder.cross_attention_weights."):
        return name[len("decoder."):]
    for prefix in ("encoder.", "decoder."):
        if name.startswith(prefix):
            return prefix[:-1] + "_" + name[len(prefix):]
    return name


def largest_difference(found, expected):
    largest = 0.0
    for a, b in zip(found, expected):
        if a != b:
            difference = abs(a - b)
            if not difference <= largest:  # NaN too
                largest = difference
    return largest


def ask(program, folder, case, config, dtype, out):
    command = [program, "model", str(config if config.suffix == ".gguf" else folder), "--emit",
               "hidden_states,attention_weights,recurrent_state,cross_attention_weights,last_hidden_state",
               "--dtype", dtype, "-o", out]
    if config.suffix != ".gguf":
        command += ["--model-config", str(config)]
    if case.get("token_ids"):
        command += ["--token-ids", ",".join(map(str, case["token_ids"]))]
    if case.get("decoder_ids"):
        command += ["--decoder-ids", ",".join(map(str, case["decoder_ids"]))]
    for name, flag in (("pixel_values", "--pixel-values"), ("input_features", "--input-features"),
                       ("input_values", "--input-values"), ("spatial_shapes", "--spatial-shapes")):
        if case["inputs"].get(name):
            command += [flag, case["inputs"][name]]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


def check(program, folder, dtype, config, expected, case):
    """What is wrong, or nothing."""
    with tempfile.TemporaryDirectory() as temporary:
        case["inputs"] = {}
        for name, (shape, values) in expected.items():
            if name.startswith("input."):
                kind = {"d": "<f8", "f": "<f4", "q": "<i8"}[values.typecode]
                path = os.path.join(temporary, name + ".npy")
                pathlib.Path(path).write_bytes(npy_head(shape, kind) + values.tobytes())
                case["inputs"][name[len("input."):]] = path
        out = os.path.join(temporary, "out.safetensors")
        run = ask(program, folder, case, config, dtype, out)
        if run.returncode != 0:
            return f"exit {run.returncode}: {run.stderr.strip()[:400]}"
        found = read_tensors(out)
    for name, (shape, values) in sorted(expected.items()):
        if name.startswith("input."):
            continue
        own = written_name(name)
        if own not in found:
            return f"{name} is missing"
        if list(found[own][0]) != list(shape):
            return f"{name}: shape {found[own][0]}, not {shape}"
        size = max((abs(x) for x in values), default=0.0)
        own_values = found[own][1]
        if folder.name == "wavlm" and name.startswith("attention_weights"):  # the library gives the mean over heads
            cells = len(own_values) // shape[0]
            own_values = [sum(own_values[i::cells]) / shape[0] for i in range(cells)] * shape[0]
        difference = largest_difference(own_values, values)
        bound = 1e-9 * max(1.0, size)
        if dtype == "float32":
            bound = 4 * case["float32_error"].get(name, 0) + size * 2.0 ** -23
        if not difference <= bound:
            return f"{name}: differs by {difference:.2e}, bound {bound:.2e}"
    return ""


def main():
    golden = os.environ.get("ATTN_GOLDEN")
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--folder", default="models")
    options = parser.parse_args()
    if not golden:
        print("skipped: ATTN_GOLDEN names no folder")
        sys.exit(77)
    jobs = []
    for folder in sorted((pathlib.Path(golden) / options.folder).iterdir()):
        if not folder.is_dir():
            continue
        # Of a GGUF file in several parts the first is named.
        for config in sorted(folder.glob("config*.json")) or sorted(folder.glob("*.gguf"))[:1]:
            jobs += [(folder, dtype, config) for dtype in ("float64", "float32")]

    def run(job):
        folder, dtype, config = job
        case = json.loads((folder / "case.json").read_text())
        kind = json.loads(config.read_text()).get("model_type", "") if config.suffix == ".json" else ""
        expected = read_tensors(folder / "expected.safetensors")
        problem = check(options.program, folder, dtype, config, expected, case)
        if kind in REFUSED and folder.name != "granitemoehybrid-dense":
            problem = "" if "state-space" in problem else "not refused: " + problem
        return folder.name, dtype, config.name, problem

    wrong = collections.defaultdict(list)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(run, jobs))
    for name, dtype, config, problem in results:
        if problem:
            wrong[name].append(f"{dtype} {config}: {problem}")
    for name, problems in wrong.items():
        print(f"{name}: {problems[0]}" + (f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""))
    names = {job[0].name for job in jobs}
    print(f"{len(names) - len(wrong)} of {len(names)} models agree, {sum(not r[3] for r in results)} of "
          f"{len(results)} questions")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
