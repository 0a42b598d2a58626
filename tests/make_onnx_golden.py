#!/usr/bin/env python3
"""Writes data/golden/onnx_{attention,linear,flexattention}.{json,npz}: the Attention, LinearAttention and
FlexAttention cases of ONNX's own conformance suite.

    pip install onnx==1.23.2 && python3 tests/make_onnx_golden.py [attention] [linear] [flexattention]

One record a case: its name, the request that asks attn the same, and which of attn's arrays must equal
which expected one. Arrays are in the npz as NAME.query and so on; half precision is widened to float32,
and `rtol` is the tolerance for the case's own rounding."""

import json
import pathlib
import sys
import warnings

import numpy as np
import onnx
from onnx.backend.test.case.node import collect_testcases

DATA = pathlib.Path(__file__).resolve().parent.parent / "data" / "golden"
OPERANDS = {"Q": "query", "K": "key", "V": "value", "attn_mask": "mask",
            "past_key": "past_key", "past_value": "past_value"}
# qk_matmul_output_mode: before the mask; after the soft cap; after the mask; after the softmax.
MATMUL_OUTPUT = ["capped_scores", "capped_scores", "biased_scores", "attention_weights"]
RTOL = {"float32": 1e-5, "float64": 1e-14, "float16": 2e-3, "bfloat16": 2e-2}
# FlexAttention's graphs by their case: the same as attn's formulas.
FORMULAS = {"score_mod": {"score_mod": "score + 0.5"}, "prob_mod": {"prob_mod": "p * 0.5"},
            "causal_mask": {"mask_mod": "q >= k"}, "soft_cap": {"score_mod": "tanh(score / 20) * 20"},
            "relative_positional": {"score_mod": "score + (q - k)"}}


def widened(array):
    array = np.asarray(array)
    kept = (np.bool_, np.float32, np.float64)
    return array if array.dtype in kept else array.astype(np.float32)


def record_of(case, arrays):
    node = case.model.graph.node[0]
    attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    inputs, outputs = case.data_sets[0]
    names = [n for n in node.input if n]
    slots = ["Q", "K", "V", "attn_mask", "past_key", "past_value", "nonpad_kv_seqlen"]
    given = {slot: inputs[names.index(n)] for slot, n in zip(slots, node.input) if n}
    name = case.name.removeprefix("test_attention_")
    request = {"id": name, "mode": "sdpa"}
    for slot, key in OPERANDS.items():
        if slot in given:
            arrays[f"{name}.{key}"] = widened(given[slot])
            request[key] = f"{name}.{key}"
    if "attn_mask" in given and given["attn_mask"].dtype == np.bool_:
        request["mask_true"] = "keep"
    if "nonpad_kv_seqlen" in given:
        request["kv_lengths"] = [int(n) for n in given["nonpad_kv_seqlen"].reshape(-1)]
    if given["Q"].ndim == 3:
        request["heads"] = attributes["q_num_heads"]
        request["kv_heads"] = attributes["kv_num_heads"]
    if attributes.get("is_causal"):
        request["causal"] = True
    window = [attributes.get(f"{side}_window_size", -1) for side in ("left", "right")]
    if window != [-1, -1]:
        request["window"] = window
    if "causal" in request or "window" in request:
        request["causal_align"] = "bottom-right" if "kv_lengths" in request else "top-left"
    for key in ("scale", "softcap"):
        if attributes.get(key):
            request[key] = attributes[key]
    matmul = MATMUL_OUTPUT[attributes.get("qk_matmul_output_mode", 0)]
    expected = {}
    wanted = ["context_vectors", "present_key", "present_value", matmul]
    present = [n for n in node.output if n]
    for array, output in zip(wanted, node.output):
        if output:
            arrays[f"{name}.expected.{array}"] = widened(outputs[present.index(output)])
            expected[array] = f"{name}.expected.{array}"
    request["emit"] = sorted(expected)
    return {"request": request, "expected": expected, "rtol": RTOL[np.asarray(inputs[0]).dtype.name]}


def linear_record_of(case, arrays):
    node = case.model.graph.node[0]
    attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    inputs, outputs = case.data_sets[0]
    names = [n for n in node.input if n]
    name = case.name.removeprefix("test_linear_attention_")
    request = {"id": name, "mode": "linear", "heads": attributes["q_num_heads"],
               "kv_heads": attributes["kv_num_heads"],
               "rule": attributes.get("update_rule", b"gated_delta").decode()}
    for key in names:
        arrays[f"{name}.{key}"] = widened(inputs[names.index(key)])
        request[key] = f"{name}.{key}"
    if attributes.get("scale"):
        request["scale"] = attributes["scale"]
    expected = {}
    for array, output in zip(["context_vectors", "present_state"], outputs):
        arrays[f"{name}.expected.{array}"] = widened(output)
        expected[array] = f"{name}.expected.{array}"
    request["emit"] = sorted(expected)
    return {"request": request, "expected": expected, "rtol": RTOL[np.asarray(inputs[0]).dtype.name]}


def flex_record_of(case, arrays):
    node = case.model.graph.node[0]
    attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    inputs, outputs = case.data_sets[0]
    name = case.name.removeprefix("test_").removeprefix("flexattention_")
    request = {"id": name, "mode": "sdpa"} | FORMULAS.get(name, {})
    if attributes.keys() & {"score_mod", "prob_mod"} and name not in FORMULAS:
        raise ValueError(f"{case.name}: a graph without a formula")
    if attributes.get("scale"):
        request["scale"] = attributes["scale"]
    for key, array in zip(["query", "key", "value"], inputs):
        arrays[f"{name}.{key}"] = widened(array)
        request[key] = f"{name}.{key}"
    if inputs[0].dtype == np.float64:
        request["dtype"] = "float64"
    arrays[f"{name}.expected.context_vectors"] = widened(outputs[0])
    request["emit"] = ["context_vectors"]
    return {"request": request, "expected": {"context_vectors": f"{name}.expected.context_vectors"},
            "rtol": RTOL[inputs[0].dtype.name]}


def write(file, op_type, record):
    cases = [c for c in collect_testcases(None)
             if [n.op_type for n in c.model.graph.node] == [op_type]]
    arrays, records = {}, []
    for case in cases:
        records.append(record(case, arrays))
    np.savez_compressed(DATA / f"{file}.npz", **arrays)
    lines = ",\n".join(json.dumps(r) for r in records)
    (DATA / f"{file}.json").write_text(
        f'{{"source": "onnx {onnx.__version__}, its {op_type} node tests", "cases": [\n{lines}\n]}}\n')
    print(len(records), "cases,", len(arrays), "arrays")


def main():
    warnings.filterwarnings("ignore")
    wanted = sys.argv[1:] or ["attention", "linear", "flexattention"]
    if "attention" in wanted:
        write("onnx_attention", "Attention", record_of)
    if "linear" in wanted:
        write("onnx_linear", "LinearAttention", linear_record_of)
    if "flexattention" in wanted:
        write("onnx_flexattention", "FlexAttention", flex_record_of)


if __name__ == "__main__":
    main()
