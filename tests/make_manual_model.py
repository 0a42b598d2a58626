#!/usr/bin/env python3
"""Trains data/models/manual: a GPT-2 of two layers that has read this project's manual. make_manual_model.py FOLDER

Half of the training is the manual's prose, half are random tokens that repeat, from which the second layer learns to
look for what came after the last occurrence of a token (an induction head). Requires PyTorch, tokenizers, safetensors.
"""
import json
import math
import pathlib
import re
import sys

import tokenizers
import torch
from safetensors.torch import save_file
from torch.nn import functional

WIDTH, HEADS, LAYERS, LENGTH, VOCABULARY, BATCH, STEPS = 64, 4, 2, 96, 640, 32, 4000


def prose():
    """The manual without its tables and blocks of code."""
    pages = sorted(pathlib.Path(__file__).resolve().parents[1].glob("cli/manual/*.md"))
    text = "\n\n".join(re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.M | re.S) for page in pages)
    text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", re.sub(r"^\|.*$", "", text, flags=re.M))
    return re.sub(r"\n{2,}", "\n", re.sub(r"(?<!\n)\n(?![\n#-])", " ", text))


def drawn_parameters():
    """Parameters under the names of transformers, as GPT-2 draws them."""
    def normal(*shape, deviation=0.02):
        return (torch.randn(*shape) * deviation).requires_grad_()

    made = {"wte.weight": normal(VOCABULARY, WIDTH), "wpe.weight": normal(LENGTH, WIDTH)}
    for norm in ["ln_f", *(f"h.{i}.ln_{n}" for i in range(LAYERS) for n in (1, 2))]:
        made[f"{norm}.weight"] = torch.ones(WIDTH, requires_grad=True)
        made[f"{norm}.bias"] = torch.zeros(WIDTH, requires_grad=True)
    for i in range(LAYERS):
        for name, rows, columns in (("attn.c_attn", 1, 3), ("attn.c_proj", 1, 1), ("mlp.c_fc", 1, 4), ("mlp.c_proj", 4, 1)):
            made[f"h.{i}.{name}.weight"] = normal(rows * WIDTH, columns * WIDTH)
            made[f"h.{i}.{name}.bias"] = torch.zeros(columns * WIDTH, requires_grad=True)
    return made


def logits(p, ids):
    """GPT-2, with Conv1D's weights: (in, out)."""
    def norm(x, name):
        return functional.layer_norm(x, (WIDTH,), p[f"{name}.weight"], p[f"{name}.bias"])

    def linear(x, name):
        return x @ p[f"{name}.weight"] + p[f"{name}.bias"]

    x = p["wte.weight"][ids] + p["wpe.weight"][:ids.shape[1]]
    for i in range(LAYERS):
        heads = [part.unflatten(-1, (HEADS, -1)).transpose(1, 2)
                 for part in linear(norm(x, f"h.{i}.ln_1"), f"h.{i}.attn.c_attn").chunk(3, -1)]
        mixed = functional.scaled_dot_product_attention(*heads, is_causal=True).transpose(1, 2).flatten(2)
        x = x + linear(mixed, f"h.{i}.attn.c_proj")
        inner = functional.gelu(linear(norm(x, f"h.{i}.ln_2"), f"h.{i}.mlp.c_fc"), approximate="tanh")
        x = x + linear(inner, f"h.{i}.mlp.c_proj")
    return norm(x, "ln_f") @ p["wte.weight"].T


def main(folder):
    """Trains and writes the model and its tokenizer."""
    torch.manual_seed(1)
    torch.set_num_threads(1)
    text = prose()
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    tokenizer.train_from_iterator([text], tokenizers.trainers.BpeTrainer(
        vocab_size=VOCABULARY, show_progress=False, initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet()))
    ids = torch.tensor(tokenizer.encode(text).ids)
    p = drawn_parameters()
    optimizer = torch.optim.AdamW(p.values(), lr=1, betas=(0.9, 0.98), weight_decay=0.01)
    for step in range(STEPS):
        for group in optimizer.param_groups:
            group["lr"] = 3e-3 * min(1, (step + 1) / 200) * (0.02 + 0.98 * (1 + math.cos(math.pi * step / STEPS)) / 2)
        starts = torch.randint(len(ids) - LENGTH - 1, (BATCH // 2,))
        read = torch.stack([ids[start:start + LENGTH + 1] for start in starts])
        period = int(torch.randint(6, LENGTH // 2, ()))
        drawn = ids[torch.randint(len(ids), (BATCH // 2, period))]
        repeated = drawn.repeat(1, LENGTH // period + 2)[:, :LENGTH + 1]
        batch = torch.cat([read, repeated])
        targets = batch[:, 1:].clone()
        targets[BATCH // 2:, :period - 1] = -100  # nobody can know them
        loss = functional.cross_entropy(logits(p, batch[:, :-1]).flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 500 == 0:
            print(step, f"{loss.item():.3f}", flush=True)
    out = pathlib.Path(folder)
    out.mkdir(parents=True, exist_ok=True)
    save_file({name: tensor.detach().half().contiguous() for name, tensor in p.items()}, out / "model.safetensors")
    tokenizer.save(str(out / "tokenizer.json"), pretty=False)
    (out / "config.json").write_text(json.dumps({
        "model_type": "gpt2", "n_embd": WIDTH, "n_head": HEADS, "n_layer": LAYERS, "n_positions": LENGTH,
        "vocab_size": VOCABULARY, "activation_function": "gelu_new", "layer_norm_epsilon": 1e-05}, indent=1) + "\n")


main(*sys.argv[1:])
