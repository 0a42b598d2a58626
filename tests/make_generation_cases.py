#!/usr/bin/env python3
"""Writes data/models/generation.ndjson: what transformers generates, and models of other inputs than tokens alone.

    python3 tests/make_generation_cases.py GOLDEN >data/models/generation.ndjson

A case of a model that data/models/families.ndjson has gives its name only. Others have the fields of
tests/make_model_cases.py, `decoder_ids`, and `inputs`, which are drawn as tensors are. `generated` are the tokens of
greedy generation with the cache; `logits` are those after the last one, in float64.
"""
import json
import pathlib
import sys
import tempfile

import numpy as np
import torch
import transformers
from safetensors.numpy import load_file, save_file

from make_model_cases import MAX_TOKENS, drawn, drawn_tensors, in_float64, rounded

GENERATING = ["gpt2", "gpt_neox", "bloom", "llama", "qwen2-window", "gemma3", "gemma2", "qwen3_5-text", "qwen3_next",
              "lfm2", "olmo_hybrid", "kimi_linear", "bailing_hybrid", "deepseek_v3", "minicpm3", "mixtral", "qwen3_moe",
              "gpt_oss", "cohere2", "t5", "umt5", "bart", "marian", "pegasus", "t5gemma"]
SEEING_OR_HEARING = ["vit", "dinov2", "clip-vision", "siglip-vision", "wav2vec2", "hubert", "wavlm", "whisper",
                     "moonshine"]
# The decoders of these models alone, with the config and the tensors of their classes ...ForCausalLM.
DECODERS_ALONE = ["bart-decoder", "mbart-decoder", "pegasus-decoder", "marian-decoder", "whisper-decoder"]
COUNT = 5


def numbers(values):
    return [float(f"{x:.10g}") for x in np.asarray(values, dtype=np.float64).reshape(-1)]


def decoder_alone(folder):
    config = transformers.AutoConfig.from_pretrained(folder)
    model = transformers.AutoModelForCausalLM.from_config(config)
    tensors = {}
    for name, values in model.state_dict().items():
        if name.startswith("model."):  # the head is the embedding
            is_factor = "norm" in name and name.endswith("weight")
            tensors[name] = [list(values.shape), float(is_factor), 0.3]
    config = json.loads(model.config.to_json_string()) | {"architectures": [type(model).__name__]}
    return config, tensors, {name: drawn(name, *form) for name, form in tensors.items()}


def loaded(kind, folder, values, config):
    with tempfile.TemporaryDirectory() as temporary:
        (pathlib.Path(temporary) / "config.json").write_text(json.dumps(config))
        save_file(values, pathlib.Path(temporary) / "model.safetensors", metadata={"format": "pt"})
        model, info = kind.from_pretrained(temporary, dtype=torch.float64, attn_implementation="eager",
                                           experts_implementation="eager", output_loading_info=True)
    if info["missing_keys"]:
        raise ValueError(f"the file lacks {sorted(info['missing_keys'])[0]}")
    return model.eval()


def generation(model, ids):
    """The sequence that goes on, the new tokens, and the logits after them. A decoder begins with its start token."""
    is_pair = model.config.is_encoder_decoder
    model.generation_config.forced_eos_token_id = model.generation_config.forced_bos_token_id = None
    inputs = {"input_ids": torch.tensor([ids]), "attention_mask": torch.ones(1, len(ids), dtype=torch.long)}
    with torch.no_grad():
        whole = model.generate(**inputs, max_new_tokens=COUNT, do_sample=False, num_beams=1, use_cache=True)[0].tolist()
        first = whole[:1] if is_pair else ids
        given = {"input_ids": torch.tensor([ids if is_pair else whole])}
        if is_pair:
            given["decoder_input_ids"] = torch.tensor([whole])
        logits = model(**given, use_cache=False).logits[0, -1].numpy()
    assert whole[:len(first)] == first
    return first, whole[len(first):], logits


def main():
    in_float64()
    transformers.logging.set_verbosity_error()
    golden = pathlib.Path(sys.argv[1])
    known = {json.loads(line)["name"] for line in open("data/models/families.ndjson")}
    for name in sys.argv[2:] or GENERATING + SEEING_OR_HEARING + DECODERS_ALONE:
        is_alone = name in DECODERS_ALONE
        folder = golden / name.removesuffix("-decoder" if is_alone else "")
        config = json.loads((folder / "config.json").read_text())
        case = json.loads((folder / "case.json").read_text())
        ids, decoder_ids = (case.get("token_ids") or [])[:MAX_TOKENS], (case.get("decoder_ids") or [])[:2]
        tensors, values = drawn_tensors(folder)
        if is_alone:
            ids, decoder_ids = [3, 1, 4, 15, 9, 26], []
            config, tensors, values = decoder_alone(folder)
        config["dtype"] = "float32"
        row = {"name": name}
        if name not in known:
            row |= {"config": config, "tensors": tensors}
        row |= {"token_ids": ids}
        try:
            if name in GENERATING or is_alone:
                kind = transformers.AutoModelForSeq2SeqLM if decoder_ids else transformers.AutoModelForCausalLM
                first, generated, logits = generation(loaded(kind, folder, values, config), ids)
                if decoder_ids:
                    row["decoder_ids"] = first
                row |= {"generated": generated, "expected": {"logits": numbers(logits)}}
            else:
                if decoder_ids:
                    row["decoder_ids"] = decoder_ids
                row["inputs"], given = {}, {}
                for key, stored in load_file(folder / "expected.safetensors").items():
                    if key.startswith("input."):
                        form = [list(stored.shape), rounded(stored.mean()), rounded(stored.std())]
                        row["inputs"][key[6:]] = form
                        given[key[6:]] = torch.tensor(drawn(key, *form).astype(np.float64))[None]
                if decoder_ids:
                    given["decoder_input_ids"] = torch.tensor([decoder_ids])
                with torch.no_grad():
                    out = loaded(transformers.AutoModel, folder, values, config)(**given)
                row["expected"] = {"last_hidden_state": numbers(out.last_hidden_state[0])}
                if decoder_ids:
                    row["expected"]["encoder_last_hidden_state"] = numbers(out.encoder_last_hidden_state[0])
        except Exception as error:  # of the library
            print(f"{name}: {error!r}"[:300], file=sys.stderr)
            continue
        print(json.dumps(row, separators=(",", ":")), flush=True)


if __name__ == "__main__":
    main()
