"""Runs the programs of `attn repro`, over generated questions that cover every option.

    python3 tests/repro_test.py ATTN LANGUAGE [COUNT]

LANGUAGE is numpy, torch, onnx or c. Models of ONNX run in onnxruntime where it is installed, and some in the reference of
onnx. Each program must confirm attn's numbers. One number of every tenth program is then changed, and the program must
report it. The same for programs whose numbers are in a file of their own. Exit code 77: the library or the compiler is
missing.
"""

import contextlib
import io
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import types
import unittest.mock

from support.asked import rng, run as attn
from wrong.question import random_question  # exit code 77 without NumPy

language = sys.argv[2]
count = int(sys.argv[3]) if len(sys.argv) > 3 else 200


def array(*shape):
    if len(shape) == 1:
        return [round(rng.uniform(-2, 2), 3) for _ in range(shape[0])]
    return [array(*shape[1:]) for _ in range(shape[0])]


def chance(p=0.3):
    return rng.random() < p


MASKS = (("--mask-mod", "q // 2 >= k // 2 || k < 1"), ("--chunk", "2"), ("--mask-mod", "k != 3 && (q - k) % 3 < 2"),
         ("--mask-mod", "!(h == 1) || m[k % 3] > 0.2", "--let", "m=0.1,0.3,0.5"), ("--mask-mod", "q_len > 0"),
         ("--mask-mod", "0.0 / 0 || k == 0"), ("--mask-mod", "k // max(q, 1) < 2"))
FORMULAS = (("--score-mod", "score - 0.1 * abs(q - k)"), ("--score-mod", "k % 3 > 0 ? tanh(score) : 0.5 * h"),
            ("--score-mod", "min(score, 2) + max(exp(-k), 0.25) * pow(abs(score) + 1, 0.5)"), ("--score-mod", "0.5 * (q - k)"),
            ("--score-mod", "score * r[q % 2 * 2 + k % 2]", "--let", "r=0.5,1,1.5,-1"), ("--prob-mod", "p * p + 0.01 * b"))


def softmax_question():
    """Its mode and flags, and in the folder its request and parameters, which every second layer draws instead."""
    one_head = ("heads", "groups", "odd_heads", "lengths_differ") if chance() else ()
    q = random_question(rng, unwanted=one_head)
    # Short programs, whose numbers are in them.
    while q.entries * q.heads * q.queries * q.keys > 500 or q.heads * max(q.d, q.d_v) > 32:
        q = random_question(rng, unwanted=one_head)
    drawn = []
    if q.weights and chance(0.5):
        drawn = q.draw(rng)
    if q.rope and q.rope_scaling == 1 and chance(): drawn += ["--rope-scaling", rng.choice(
        ["8,1,4,64", '{"rope_type":"yarn","factor":4,"original_max_position_embeddings":8}'])]
    if chance(): drawn += rng.choice(MASKS if chance(0.5) else FORMULAS)
    q.write(folder)
    return q.mode, q.flags("weights.npz") + drawn


def linear_question():
    batch, tokens, kv_heads = rng.choice([0, 1, 2]), rng.randint(1, 5), rng.choice([1, 2])
    leading, heads = (batch,) if batch else (), kv_heads * rng.choice([1, 2, 3])
    d, d_v = rng.choice([2, 3, 4]), rng.choice([1, 2, 4])
    flags, has_columns = [], chance()
    rule = rng.choice(["linear", "gated", "delta", "gated_delta"])
    if chance():
        request = {"inputs": array(*leading, tokens, heads * d)}
        flags += ["--heads", str(heads), "--seed", str(rng.randint(0, 99))]
        if chance(): flags += ["--kv-heads", str(kv_heads)]
        if chance(): flags += ["--qkv-bias"]
        if chance(): flags += [rng.choice(["--out-proj", "--no-out-proj"])]
    elif has_columns:
        flags += ["--heads", str(heads), "--kv-heads", str(kv_heads)]
        request = {"query": array(*leading, tokens, heads * d), "key": array(*leading, tokens, kv_heads * d),
                   "value": array(*leading, tokens, kv_heads * d_v)}
    else:
        request = {"query": array(*leading, heads, tokens, d), "key": array(*leading, kv_heads, tokens, d),
                   "value": array(*leading, kv_heads, tokens, d_v)}
        if rule in ("delta", "gated_delta") and chance(0.7): request["beta"] = array(*leading, kv_heads, tokens)
        if chance(0.5): request["past_state"] = array(*leading, kv_heads, d, d_v)
    if chance(0.5): flags += ["--rule", rule]
    if rule in ("gated", "gated_delta"):
        if "inputs" in request and heads == 1 and not batch: request["decay"] = [[-abs(x)] for x in array(tokens)]
        else: flags += ["--decay", rng.choice(["-0.2", "0", "-Infinity"])] if chance(0.7) else ["--decay-form", "plain", "--decay", "0.8"]
    if rule in ("delta", "gated_delta") and "beta" not in request: flags += ["--beta", "0.6"]
    elif chance(): flags += ["--bonus", "0.7"]
    if chance(): flags += ["--qk-norm"]
    (folder / "request.json").write_text(json.dumps(request))
    return "linear", flags


def model_question():
    """A layer of a model: its norms of inputs and of queries and keys, of each head or of all of them."""
    kv_heads, d, d_in, prefix = rng.choice([1, 2]), rng.choice([2, 4]), rng.randint(2, 6), "model.layers.0."
    heads, spans = kv_heads * rng.choice([1, 2, 3]), chance()
    weights = {f"self_attn.{name}_proj.weight": array(*shape) for name, shape in (
        ("q", (heads * d, d_in)), ("k", (kv_heads * d, d_in)), ("v", (kv_heads * d, d_in)), ("o", (d_in, heads * d)))}
    if chance(0.7):
        for name, count in (("q", heads), ("k", kv_heads)): weights[f"self_attn.{name}_norm.weight"] = array(d * count if spans else d)
    weights["input_layernorm.weight"] = array(d_in)
    norm = rng.choice(["layer", "rms", "rms-plus-one"])
    if norm == "layer" and chance(0.5): weights["input_layernorm.bias"] = array(d_in)
    numpy.savez(folder / "weights.npz", **{prefix + name: numpy.array(x, "float32") for name, x in weights.items()})
    batch = (2,) if chance() else ()
    (folder / "request.json").write_text(json.dumps({"inputs": array(*batch, rng.randint(1, 5), d_in)}))
    return "multihead", ["--heads", str(heads), "--kv-heads", str(kv_heads), "--weights", "weights.npz", "--causal", "--scale", "0.5",
                         "--rope", "half", "--rope-base", "100", "--norm", norm, "--norm-eps", "0.001", rng.choice(["--pre-norm", "--no-pre-norm"])]


def with_gradients(mode, flags):
    """Flags of a loss, with its operand in the request."""
    request = json.loads((folder / "request.json").read_text())
    flags = flags + ["--backward"]
    if mode != "linear":
        if chance(0.15): flags += ["--qk-norm"]
        if chance(0.1) and "--sink" not in flags: flags += ["--softmax-plus", "1.5"]
        if chance(0.1) and "--prob-mod" not in flags: flags += ["--prob-mod", rng.choice(["sqrt(p)", "p / (p + 0.1)", "p > 0.1 ? p : 0.5 * p"])]
        if chance(0.1) and "--score-mod" not in flags: flags += ["--score-mod", "score / (k - q - 0.5) + sqrt(score * score + 1)"]
    if chance(0.6): return flags + (["--loss", rng.choice(["sum", "mean"])] if chance(0.7) else [])
    ran = attn(mode, "request.json", *flags, "--emit", "context_vectors", code=None, cwd=folder)
    if ran.returncode: return flags  # which is refused
    shape = numpy.shape(json.loads(ran.stdout)["context_vectors"])
    name = rng.choice(["target", "grad_output"])
    request[name] = array(*shape)
    (folder / "request.json").write_text(json.dumps(request))
    return flags + (["--loss", "mse"] if name == "target" and chance(0.5) else [])


def run_python(program, _):
    """In this process, which has the library loaded. Returns what went wrong, or nothing."""
    # Every fourth model is run by the reference of onnx.
    hides = language == "onnx" and ran % 4 == 0
    hidden = unittest.mock.patch.dict(sys.modules, {"onnxruntime": None}) if hides else contextlib.nullcontext()
    names = vars(sys.modules.setdefault("program", types.ModuleType("program")))  # flex_attention looks there
    names.clear()
    names["__name__"] = "program"
    try:
        with contextlib.redirect_stdout(io.StringIO()), hidden:
            exec(compile(program, "program", "exec"), names)
    except SystemExit as end:
        return str(end.code)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def built_c(source, binary):
    """What the compiler says of a program; nothing if it is built."""
    return subprocess.run([compiler, "-std=c99", "-Wall", "-Werror", "-o", binary, source, "-lm"],
                          capture_output=True, text=True).stderr


def run_c(program, folder):
    source, binary = folder / "program.c", folder / "program"
    source.write_text(program)
    if said := built_c(source, binary): return said
    ran = subprocess.run([binary], capture_output=True, text=True)
    return ran.stderr + ("" if ran.returncode in (0, 1) else f"exit code {ran.returncode}")


def last_number(program, in_c, in_python):
    """Where the last number of the last array that one of these patterns finds is."""
    block = re.search(in_c if language == "c" else in_python, program, re.S)
    last = list(re.finditer(r"-?\d+(\.\d+)?(e[-+]?\d+)?(?=[\]}])", block.group()))[-1]
    return block.start() + last.start(), block.start() + last.end()


def with_one_number_changed(program):
    """The last expected number, which is of the last array, is off by 1.5 of its own tolerance."""
    begin, end = last_number(program, r"(?s:.*)\b\w+_tolerance\S* =\s*\{.*?\};", r"(?s:.*)tolerance = .*?dtype")
    tolerance = float(program[begin:end])
    begin, end = last_number(program, r"(?s:.*)\bexpected_\w+\S* =\s*\{.*?\};", r"(?s:.*)expected = .*?dtype")
    return program[:begin] + repr(float(program[begin:end]) + 1.5 * tolerance) + program[end:]


def changed(data):
    """The last number, which is of the last array, is another one."""
    if data.suffix == ".bin":
        content = bytearray(data.read_bytes())
        content[-1] ^= 0x40  # an exponent
        data.write_bytes(content)
        return
    arrays = dict(numpy.load(data))
    list(arrays.values())[-1].flat[-1] += 1
    numpy.savez(data, **arrays)


def check_data_file(folder, flags):
    """Yields what is wrong with a program whose numbers are in a file of their own."""
    suffix, data_suffix = (".c", ".bin") if language == "c" else (".py", ".npz")
    program, data = folder / f"long{suffix}", folder / f"long{data_suffix}"

    def written():
        return attn("repro", *flags, "--to", language, "-o", program, code=None)

    def ran():
        """What the program says from another folder; nothing if it confirms the numbers."""
        command = [sys.executable, program]
        if language == "c":
            command = [folder / "long"]
            if said := built_c(program, *command): return said
        result = subprocess.run(command, capture_output=True, text=True, cwd="/")
        return result.stderr if result.returncode else ""

    if said := written().stderr or ran():
        yield said
        return
    changed(data)
    if not ran(): yield "a changed number in the file is not found"
    data.write_bytes(data.read_bytes()[:1000])
    if not ran(): yield "a file that is cut off is not found"
    data.unlink()
    if not ran(): yield "a missing file is not found"
    program.unlink()
    data.mkdir()  # which cannot be replaced
    if written().returncode == 0 or program.exists(): yield "a program without its numbers"
    data.rmdir()
    data.write_bytes(b"other")
    if written().returncode != 2 or data.read_bytes() != b"other": yield "another file is replaced"
    data.unlink()
    program.unlink(missing_ok=True)


compiler = os.environ.get("CC") or shutil.which("cc")
if language == "c":
    if compiler is None:
        print("skipped: requires a C compiler")
        sys.exit(77)
    run = run_c
    import numpy
else:
    try:
        __import__(language)
        import numpy
    except ImportError as error:
        print(f"skipped: {error}")
        sys.exit(77)
    if language == "onnx":
        import onnx.reference
        with contextlib.suppress(ImportError): import onnxruntime
        numpy.seterr(all="ignore")  # the reference divides by 0
    else:
        numpy.seterr(all="raise", under="ignore")
    run = run_python

wrong, refused, options, ran = [], {}, {}, 0
with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    while ran < count and sum(refused.values()) < 9 * count:
        mode, flags = rng.choice([linear_question, model_question] + [softmax_question] * 5)()
        flags += ["--dtype", rng.choice(["float32", "float64"])]
        if language != "onnx" and not (language == "c" and mode == "linear") and chance(0.5):
            flags = with_gradients(mode, flags)
        request = json.loads((folder / "request.json").read_text())
        words = mode, "request.json", *flags
        made = attn("repro", *words, "--to", language, code=None, cwd=folder)
        if made.returncode:  # a combination that the mode itself refuses
            is_long = "--backward" in flags and "the program would hold" in made.stderr
            if (not is_long and attn(*words, code=None, cwd=folder).returncode == 0) or made.stdout:
                wrong.append(f"{words}: {made.stderr}")
            reason = re.sub(r"[\d\[\]]+", "N", made.stderr.strip())[:90]
            refused[reason] = refused.get(reason, 0) + 1
            continue
        ran += 1
        for option in [mode] + [flag for flag in flags if flag.startswith("--")] + list(request):
            options[option] = options.get(option, 0) + 1
        said = run(made.stdout, folder)
        if said: wrong.append(f"{words} {json.dumps(request)}: {said}")
        elif ran % 10 == 0 and not run(with_one_number_changed(made.stdout), folder):
            wrong.append(f"{words}: a changed number is not found")

    # Integers that do not fit in 64 bits, and one that fits only as an unsigned integer.
    large = {"query": [[1]], "key": [[1], [2], [0]],
             "value": [[63202603507981926400], [-9423456789012345856], [-123456789012345680000]]}
    (folder / "large.json").write_text(json.dumps(large))
    made = attn("repro", "sdpa", folder / "large.json", "--to", language, "--dtype", "float64")
    if said := made.stderr or run(made.stdout, folder): wrong.append(f"large integers: {said}")

    mask = [[chance(0.7) for _ in range(60)] for _ in range(60)]
    (folder / "long.json").write_text(json.dumps({"inputs": array(60, 12), "mask": mask}))
    for flags in [["multihead", str(folder / "long.json"), "--heads", "6", "--kv-heads", "2", "--mask-true", "keep",
                   "--dropout", "0.3", "--dropout-seed", "1", "--qkv-bias"],
                  ["linear", "--rand", "150,8", "--rule", "gated_delta", "--decay", "-0.1", "--beta", "0.5",
                   "--heads", "2", "--dtype", "float64"]]:
        wrong += [f"{flags}: {words}" for words in check_data_file(folder, flags)]

for line in wrong[:10]: print(line)
if "-v" in sys.argv:
    print(json.dumps(options))
    for reason, times in sorted(refused.items(), key=lambda item: -item[1]): print(times, reason)
missing = {"self", "causal", "multihead", "cross", "sdpa", "linear"} - set(options)
print(f"{ran} programs, {len(wrong)} wrong, {sum(refused.values())} combinations refused by the mode")
sys.exit(1 if wrong or missing or ran < count else 0)
