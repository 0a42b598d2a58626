#!/usr/bin/env python3
"""Writes data/models/config_cases.json: what transformers makes of changed keys of config.json.

    python3 tests/make_config_cases.py build/release/attn    # torch, transformers 5.24, safetensors

Each case changes keys of a model in data/models ("-" takes one out) and keeps one query's attention
weights of layer 0, as the library's own classes compute them with float64 parameters. Where attn
refuses the case, the key that its error names is kept instead: read those before keeping the file.
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import torch
import transformers
from safetensors.torch import load_file, save_file

MODELS = pathlib.Path(__file__).resolve().parent.parent / "data/models"
IDS = [1, 8, 3, 3, 6, 2]
ABOUT = ("What attention the models in this folder have at layer 0 with these token ids, when keys of their "
         "config.json are changed or missing: one query's weights, by heads, as transformers 5.24 computes "
         "them with float64 parameters (angles and softmax in float32). refused: the key by which attn "
         "refuses what it does not compute, or what contradicts itself; code: the exit code.")

COMMON = [
    {}, {"use_cache": False}, {"attention_dropout": 0.5}, {"tie_word_embeddings": True},
    {"torch_dtype": "float32"}, {"pruned_heads": {}}, {"output_attentions": True},
    {"cross_attention_hidden_size": None}, {"sliding_window": None}, {"qk_norm": False}, {"clip_qkv": None},
    {"attn_logit_softcapping": None}, {"is_decoder": True}, {"is_decoder": False}, {"is_causal": True},
    {"is_causal": False}, {"_attn_implementation_autoset": True}, {"transformers_version": "4.30.0"},
]
ROTARY = [
    {"rope_theta": 2.0}, {"rope_theta": None},
    {"rope_parameters": {"rope_theta": 3.0, "rope_type": "default"}, "rope_theta": "-"},
    {"rope_parameters": {"full_attention": {"rope_theta": 3.0, "rope_type": "default"}, "sliding_attention": {"rope_theta": 2.0, "rope_type": "default"}}, "rope_theta": "-"},
    {"rope_scaling": {"type": "linear", "factor": 2.0}},
    {"rope_scaling": {"rope_type": "linear", "factor": 4.0}}, {"rope_scaling": {"rope_type": "default"}},
    {"rope_scaling": {}},
    {"rope_parameters": {"rope_type": "linear", "factor": 2.0, "rope_theta": 5.0}, "rope_theta": "-"},
    {"rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8}},
    {"rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8}, "original_max_position_embeddings": 16},
    {"rope_scaling": {"rope_type": "dynamic", "factor": 2.0}, "max_position_embeddings": 4},
    {"rope_scaling": {"rope_type": "yarn", "factor": 2.0, "original_max_position_embeddings": 4}},
    {"partial_rotary_factor": 1.0}, {"partial_rotary_factor": 0.5},
    {"rope_scaling": {"rope_type": "linear", "factor": 2.0, "rope_theta": 7.0}},
    {"rope_scaling": {"rope_type": "linear", "factor": 2.0}, "rope_parameters": {"rope_type": "default", "rope_theta": 9.0}},
    {"rope_theta": 7.0, "rope_parameters": {"rope_type": "default", "rope_theta": 7.0}},
    {"rope_theta": 7.0, "rope_parameters": {"rope_type": "default", "rope_theta": 9.0}},
]
LLAMA = [
    {"head_dim": None}, {"head_dim": "-"}, {"num_key_value_heads": "-"}, {"rms_norm_eps": 0.5},
    {"rms_norm_eps": "-"}, {"pretraining_tp": 2}, {"num_hidden_layers": 1}, {"attention_bias": False},
    {"attention_bias": True}, {"sliding_window": 2}, {"sliding_window": "-"},
    {"sliding_window": 3, "layer_types": ["sliding_attention", "sliding_attention"]},
    {"layer_types": ["full_attention", "full_attention"]}, {"use_sliding_window": True},
    {"use_sliding_window": True, "sliding_window": 2},
    {"use_sliding_window": True, "sliding_window": 2, "max_window_layers": 0},
    {"use_sliding_window": True, "sliding_window": "-", "max_window_layers": 0},
    {"use_sliding_window": True, "sliding_window": 2, "max_window_layers": "-"},
    {"use_sliding_window": True, "sliding_window": 2, "layer_types": ["sliding_attention", "sliding_attention"]},
    {"use_sliding_window": True, "sliding_window": 2, "layer_types": ["full_attention", "full_attention"]},
    {"use_sliding_window": False, "sliding_window": 2, "layer_types": ["sliding_attention", "sliding_attention"]},
    {"use_sliding_window": False, "sliding_window": None}, {"max_window_layers": 0},
    {"query_pre_attn_scalar": 3}, {"attention_multiplier": 0.1}, {"attn_logit_softcapping": 1.0},
]
NEOX = [
    {"rotary_pct": 1.0}, {"rotary_pct": "-"}, {"rotary_pct": 0.25},
    {"rotary_pct": 0.5, "partial_rotary_factor": 0.5}, {"rotary_pct": 1.0, "partial_rotary_factor": 0.5},
    {"rotary_emb_base": 2}, {"rotary_emb_base": "-"}, {"rotary_emb_base": 2, "rope_theta": 2},
    {"rotary_emb_base": "-", "rope_theta": 2},
    {"rotary_pct": "-", "rotary_emb_base": "-", "rope_parameters": {"rope_theta": 2.0, "partial_rotary_factor": 1.0, "rope_type": "default"}},
    {"use_parallel_residual": False}, {"attention_bias": True}, {"attention_bias": False},
    {"layer_norm_eps": 0.5}, {"head_dim": 8}, {"rope_theta": "-"},
]
GPT2 = [
    {"scale_attn_weights": False}, {"scale_attn_by_inverse_layer_idx": True},
    {"scale_attn_weights": False, "scale_attn_by_inverse_layer_idx": True}, {"layer_norm_epsilon": 0.5},
    {"layer_norm_epsilon": "-"}, {"add_cross_attention": True}, {"n_ctx": 8}, {"summary_type": "attn"},
    {"rope_theta": 2.0}, {"sliding_window": 2},
    {"task_specific_params": {"text-generation": {"max_length": 50}}},
]
BERT = [
    {"layer_norm_eps": 0.5}, {"layer_norm_eps": "-"}, {"position_embedding_type": "absolute"},
    {"position_embedding_type": "-"}, {"position_embedding_type": "relative_key"},
    {"is_decoder": True, "add_cross_attention": True}, {"type_vocab_size": 2},
    {"pooler_num_attention_heads": 12, "pooler_size_per_head": 128, "directionality": "bidi", "pooler_type": "x"},
    {"gradient_checkpointing": False}, {"rope_theta": 2.0},
]
CH = {model: COMMON + ROTARY + LLAMA for model in ("llama", "mistral", "qwen2")} | {
    "neox": COMMON + ROTARY + NEOX, "gpt2": COMMON + GPT2, "bert": COMMON + BERT}


def attention(model, folder):
    """The weights of layer 0, (heads, queries, keys)."""
    tensors = load_file(MODELS / model / "model.safetensors")
    save_file({name: t.double() if t.is_floating_point() else t for name, t in tensors.items()},
              folder / "model.safetensors", metadata={"format": "pt"})
    network = transformers.AutoModel.from_pretrained(folder, dtype=torch.float64, attn_implementation="eager").eval()
    with torch.no_grad():
        return network(torch.tensor([IDS]), output_attentions=True).attentions[0][0].double()


def case(attn, model, changes, folder):
    config = json.loads((MODELS / model / "config.json").read_text())
    if "layer_types" in changes:
        changes = changes | {"layer_types": changes["layer_types"][:config["num_hidden_layers"]]}
    without = [key for key, value in changes.items() if value == "-"]
    changes = {key: value for key, value in changes.items() if value != "-"}
    config = {key: value for key, value in (config | changes).items() if key not in without}
    (folder / "config.json").write_text(json.dumps(config))
    # NeoX's file holds frequencies in the attention, which would have to be the config's.
    stored = (MODELS / model / "model.safetensors").read_bytes()
    (folder / "plain.safetensors").write_bytes(stored.replace(b"attention.rotary_emb", b"elsewhere.rotary_emb"))
    run = subprocess.run([attn, "multihead", "--weights", folder / "plain.safetensors", "--token-ids",
                          ",".join(map(str, IDS))], capture_output=True, text=True)
    one = {"model": model, "changes": changes, "without": without}
    if run.returncode:
        found = re.search(r"(?:config\.json: |safetensors:)(\S+?):? ", run.stderr)
        named = [found[1]] if found else [key for key in [*changes, *without] if key in run.stderr]
        assert named, (one, run.stderr)
        return one | {"code": run.returncode, "refused": named[0]}
    query = 2 if model == "bert" else len(IDS) - 1
    try:
        weights = attention(model, folder)[:, query].tolist()
    except Exception as error:  # the library cannot load it: no truth
        print(model, changes, without, type(error).__name__)
        return None
    return one | {"query": query, "attention_weights": [[round(x, 7) for x in head] for head in weights]}


def main():
    transformers.logging.set_verbosity_error()
    attn = str(pathlib.Path(sys.argv[1]).resolve())
    with tempfile.TemporaryDirectory() as folder:
        cases = [case(attn, model, one, pathlib.Path(folder)) for model, changes in CH.items() for one in changes]
    lines = ",\n".join(json.dumps(one, separators=(",", ":")) for one in cases if one)
    (MODELS / "config_cases.json").write_text(
        f'{{"about": "{ABOUT}",\n"token_ids": "{",".join(map(str, IDS))}",\n"cases": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    main()
