#!/usr/bin/env python3
"""Writes data/arrays/ and data/models/: files in the formats that NumPy and model hubs use, and
what they hold or give.

    python3 tests/make_data.py

Run by hand; its output is committed and the tests read that. Needs NumPy alone (1.24 wrote what is
committed) and is deterministic. .npy and .npz are written by NumPy. .safetensors are written by
`safetensors_bytes` of data_files/tensors.py in the layout of the safetensors package: tensors by falling dtype then by
name, a compact header padded with spaces to a multiple of 8.

What the models give is computed here in float64 from the definition of each model, weights as they
are stored (bfloat16 and float16 included), and owes nothing to attn.
"""
import sys

sys.dont_write_bytecode = True
from data_files.arrays import make_arrays  # noqa: E402
from data_files.families import (make_bert, make_gpt2, make_llama, make_mha, make_mistral,  # noqa: E402
                                 make_neox, make_notebook, make_qwen2)
from data_files.models import CASES  # noqa: E402
from data_files.tensors import MODELS, write_json  # noqa: E402


def make_models():
    for folder in ("mha", "notebook"):
        (MODELS / folder).mkdir(parents=True, exist_ok=True)
    for make in (make_gpt2, make_llama, make_mistral, make_qwen2, make_bert, make_neox, make_mha,
                 make_notebook):
        make()
    write_json(MODELS / "expected.json", {
        "about": "What each model's attention gives, in float64 from the weights as stored. path: "
                 "a folder or file beside this one. token_ids or hidden: what goes in; norm: "
                 "whether the layer's own input norm comes before the attention (with token_ids "
                 "of BERT: the norm of its embeddings). inputs: what the attention module is "
                 "given. queries, keys, values: (heads, tokens, d), after rope. attention_weights: "
                 "(heads, queries, keys). context_vectors: after the output projection, without "
                 "residual. Steps that a case leaves out are left to its weights and context. "
                 "same_as: the case whose request and arrays hold for this path too.",
        "cases": CASES})


if __name__ == "__main__":
    make_arrays()
    make_models()
