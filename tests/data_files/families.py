"""Tiny models of every family, with what their attention gives."""
import numpy as np

from data_files.models import (CASES, Weights, add_case, attend, hidden_states, join_heads, layer_norm,
                               linear, rms_norm, rope, split_heads, write_model, write_sharded)
from data_files.tensors import MODELS, nested, safetensors_bytes, write, write_json

COMMON = {"transformers_version": "4.57.6", "initializer_range": 0.02, "use_cache": True}


def make_gpt2():
    width, heads, layers, vocabulary, positions, inner = 12, 3, 2, 11, 8, 4
    w = Weights(1)
    w.normal("wte.weight", vocabulary, width)
    w.normal("wpe.weight", positions, width)
    for n in range(layers):
        h = f"h.{n}."
        w.norm(h + "ln_1", width)
        w.put(h + "attn.bias", np.tri(positions).reshape(1, 1, positions, positions))
        w.put(h + "attn.masked_bias", np.array(-1e4))
        for name, d_in, d_out in (("attn.c_attn", width, 3 * width), ("attn.c_proj", width, width),
                                  ("mlp.c_fc", width, inner), ("mlp.c_proj", inner, width)):
            w.normal(h + name + ".weight", d_in, d_out)  # Conv1D: (in, out)
            w.normal(h + name + ".bias", d_out)
        w.norm(h + "ln_2", width)
    w.norm("ln_f", width)
    config = COMMON | {
        "activation_function": "gelu_new", "architectures": ["GPT2LMHeadModel"], "attn_pdrop": 0.1,
        "bos_token_id": 10, "embd_pdrop": 0.1, "eos_token_id": 10, "layer_norm_epsilon": 1e-05,
        "model_type": "gpt2", "n_embd": width, "n_head": heads, "n_inner": inner, "n_layer": layers,
        "n_positions": positions, "reorder_and_upcast_attn": False, "resid_pdrop": 0.1,
        "scale_attn_by_inverse_layer_idx": False, "scale_attn_weights": True,
        "torch_dtype": "float32", "vocab_size": vocabulary}
    write_model("gpt2", w.tensors, config)
    prefixed = w.renamed(lambda name: "transformer." + name)
    second = ("transformer.h.1.", "transformer.ln_f")
    write_sharded("gpt2_prefixed", [
        {name: t for name, t in prefixed.items() if name.startswith(second) == side}
        for side in (False, True)], config)

    def run(layer, inputs):
        h = f"h.{layer}.attn."
        q, k, v = np.split(inputs @ w[h + "c_attn.weight"] + w[h + "c_attn.bias"], 3, axis=1)
        q, k, v = (split_heads(x, heads) for x in (q, k, v))
        weights, outputs = attend(q, k, v, causal=True)
        context = join_heads(outputs) @ w[h + "c_proj.weight"] + w[h + "c_proj.bias"]
        return {"heads": heads, "kv_heads": heads, "causal": True, "inputs": inputs, "queries": q,
                "keys": k, "values": v, "attention_weights": weights, "context_vectors": context}

    def norm(layer, x):
        return layer_norm(x, w[f"h.{layer}.ln_1.weight"], w[f"h.{layer}.ln_1.bias"], 1e-5)

    ids = [3, 0, 10, 7, 3]
    embedded = w["wte.weight"][ids] + w["wpe.weight"][: len(ids)]
    add_case("gpt2-0-ids", "gpt2", "gpt2", layer=0, token_ids=ids, norm=True,
             **run(0, norm(0, embedded)))
    hidden = hidden_states(101, 5, width)
    add_case("gpt2-1-hidden", "gpt2", "gpt2", (), layer=1, hidden=hidden, norm=False,
             **run(1, hidden))
    add_case("gpt2-1-norm", "gpt2", "gpt2", (), layer=1, hidden=hidden, norm=True,
             **run(1, norm(1, hidden)))
    CASES.append({"id": "gpt2_prefixed-0-ids", "family": "gpt2", "path": "gpt2_prefixed",
                  "same_as": "gpt2-0-ids"})
    CASES.append({"id": "gpt2_prefixed-1-norm", "family": "gpt2", "path": "gpt2_prefixed",
                  "same_as": "gpt2-1-norm"})


def make_llama_like(family, seed, hidden, heads, kv_heads, head_dim, layer_types, theta, eps,
                    qkv_bias=False, window=None, vocabulary=11, inner=4, config=None):
    """Llama, Mistral and Qwen2 differ in biases, windows and sizes; one dtype for each layer."""
    w = Weights(seed, layer_types[0])
    w.normal("model.embed_tokens.weight", vocabulary, hidden)
    for n, dtype in enumerate(layer_types):
        m = f"model.layers.{n}."
        w.norm(m + "input_layernorm", hidden, bias=False, dtype=dtype)
        for name, size in (("q", heads), ("k", kv_heads), ("v", kv_heads)):
            w.linear(f"{m}self_attn.{name}_proj", size * head_dim, hidden, qkv_bias, dtype)
        w.linear(m + "self_attn.o_proj", hidden, heads * head_dim, False, dtype)
        w.norm(m + "post_attention_layernorm", hidden, bias=False, dtype=dtype)
        w.linear(m + "mlp.gate_proj", inner, hidden, False, dtype)
        w.linear(m + "mlp.up_proj", inner, hidden, False, dtype)
        w.linear(m + "mlp.down_proj", hidden, inner, False, dtype)
    w.norm("model.norm", hidden, bias=False)
    write_model(family, w.tensors, COMMON | {
        "attention_dropout": 0.0, "bos_token_id": 1, "eos_token_id": 2, "hidden_act": "silu",
        "hidden_size": hidden, "intermediate_size": inner, "max_position_embeddings": 32,
        "model_type": family, "num_attention_heads": heads, "num_hidden_layers": len(layer_types),
        "num_key_value_heads": kv_heads, "rms_norm_eps": eps, "rope_theta": theta,
        "tie_word_embeddings": True, "vocab_size": vocabulary,
        "torch_dtype": "bfloat16" if "BF16" in layer_types else "float32"} | config)

    def run(layer, inputs):
        a = f"model.layers.{layer}.self_attn."
        q, k, v = (split_heads(linear(inputs, w[f"{a}{name}_proj.weight"],
                                      w[f"{a}{name}_proj.bias"] if qkv_bias else None), size)
                   for name, size in (("q", heads), ("k", kv_heads), ("v", kv_heads)))
        q, k = rope(q, theta, head_dim), rope(k, theta, head_dim)
        weights, outputs = attend(q, k, v, causal=True, window=window)
        return {"heads": heads, "kv_heads": kv_heads, "causal": True, "sliding_window": window,
                "rope": {"style": "half", "base": theta, "dims": head_dim},
                "inputs": inputs, "queries": q, "keys": k, "values": v,
                "attention_weights": weights,
                "context_vectors": linear(join_heads(outputs), w[a + "o_proj.weight"])}

    def norm(layer, x):
        return rms_norm(x, w[f"model.layers.{layer}.input_layernorm.weight"], eps)

    return w, run, norm


def make_llama():
    w, run, norm = make_llama_like(
        "llama", 2, hidden=16, heads=4, kv_heads=2, head_dim=4, layer_types=["BF16", "F16"],
        theta=10000.0, eps=1e-5, config={
            "architectures": ["LlamaForCausalLM"], "attention_bias": False, "head_dim": 4,
            "mlp_bias": False, "pretraining_tp": 1, "rope_scaling": None})
    ids = [5, 1, 9, 2, 0]
    add_case("llama-0-ids", "llama", "llama", layer=0, token_ids=ids, norm=True,
             **run(0, norm(0, w["model.embed_tokens.weight"][ids])))
    hidden = hidden_states(102, 5, 16)
    add_case("llama-1-hidden", "llama", "llama", (), layer=1, hidden=hidden, norm=False,
             **run(1, hidden))


def make_mistral():
    w, run, norm = make_llama_like(
        "mistral", 3, hidden=16, heads=4, kv_heads=2, head_dim=6, layer_types=["F32"], theta=1e6,
        eps=1e-5, window=3, config={
            "architectures": ["MistralForCausalLM"], "head_dim": 6, "sliding_window": 3})
    hidden = hidden_states(103, 6, 16)
    add_case("mistral-0-norm", "mistral", "mistral", ("keys",), layer=0, hidden=hidden,
             norm=True, **run(0, norm(0, hidden)))


def make_qwen2():
    """Its sliding_window is 2 and without effect: use_sliding_window is false."""
    w, run, norm = make_llama_like(
        "qwen2", 4, hidden=16, heads=4, kv_heads=2, head_dim=4, layer_types=["F32"], theta=1e6,
        eps=1e-6, qkv_bias=True, config={
            "architectures": ["Qwen2ForCausalLM"], "max_window_layers": 1, "rope_scaling": None,
            "sliding_window": 2, "use_sliding_window": False})
    ids = [10, 4, 4, 8, 6]
    add_case("qwen2-0-ids", "qwen2", "qwen2", ("queries", "keys", "values"), layer=0,
             token_ids=ids, norm=True, **run(0, norm(0, w["model.embed_tokens.weight"][ids])))


def make_bert():
    width, heads, vocabulary, positions, inner = 12, 4, 11, 8, 4
    w = Weights(5)
    for name, size in (("word", vocabulary), ("position", positions), ("token_type", 2)):
        w.normal(f"bert.embeddings.{name}_embeddings.weight", size, width)
    w.norm("bert.embeddings.LayerNorm", width)
    b = "bert.encoder.layer.0."
    for name in ("query", "key", "value"):
        w.linear(f"{b}attention.self.{name}", width, width)
    w.linear(b + "attention.output.dense", width, width)
    w.norm(b + "attention.output.LayerNorm", width)
    w.linear(b + "intermediate.dense", inner, width)
    w.linear(b + "output.dense", width, inner)
    w.norm(b + "output.LayerNorm", width)
    config = COMMON | {
        "architectures": ["BertModel"], "attention_probs_dropout_prob": 0.1,
        "classifier_dropout": None, "hidden_act": "gelu", "hidden_dropout_prob": 0.1,
        "hidden_size": width,
        "intermediate_size": inner, "layer_norm_eps": 1e-12, "max_position_embeddings": positions,
        "model_type": "bert", "num_attention_heads": heads, "num_hidden_layers": 1,
        "pad_token_id": 0, "position_embedding_type": "absolute", "torch_dtype": "float32",
        "type_vocab_size": 2,
        "vocab_size": vocabulary}
    write_model("bert", w.tensors, config)
    # bert-base-uncased's own file: LayerNorm.gamma and .beta; and BertModel alone: no prefix
    write_model("bert_gamma", w.renamed(
        lambda name: name.removeprefix("bert.").replace("LayerNorm.weight", "LayerNorm.gamma")
        .replace("LayerNorm.bias", "LayerNorm.beta")), config)

    ids = [2, 9, 9, 5, 1]
    e = "bert.embeddings."
    embedded = (w[e + "word_embeddings.weight"][ids]
                + w[e + "position_embeddings.weight"][: len(ids)]
                + w[e + "token_type_embeddings.weight"][0])
    inputs = layer_norm(embedded, w[e + "LayerNorm.weight"], w[e + "LayerNorm.bias"], 1e-12)
    q, k, v = (split_heads(linear(inputs, w[f"{b}attention.self.{name}.weight"],
                                  w[f"{b}attention.self.{name}.bias"]), heads)
               for name in ("query", "key", "value"))
    weights, outputs = attend(q, k, v, causal=False)
    dense = b + "attention.output.dense."
    add_case("bert-0-ids", "bert", "bert", ("inputs", "queries"), layer=0, token_ids=ids,
             norm=True, heads=heads, kv_heads=heads, causal=False, inputs=inputs, queries=q,
             keys=k, values=v, attention_weights=weights,
             context_vectors=linear(join_heads(outputs), w[dense + "weight"], w[dense + "bias"]))
    CASES.append({"id": "bert_gamma-0-ids", "family": "bert", "path": "bert_gamma",
                  "same_as": "bert-0-ids"})


def make_neox():
    width, heads, layers, vocabulary, positions, inner = 16, 2, 2, 11, 8, 4
    head_dim, percent, base, eps = width // heads, 0.5, 10000, 1e-5
    dims = int(head_dim * percent)
    w = Weights(6, "F16")
    w.normal("gpt_neox.embed_in.weight", vocabulary, width)
    for n in range(layers):
        g = f"gpt_neox.layers.{n}."
        w.norm(g + "input_layernorm", width)
        w.norm(g + "post_attention_layernorm", width)
        w.put(g + "attention.bias", np.tri(positions).reshape(1, 1, positions, positions), "BOOL")
        w.put(g + "attention.masked_bias", np.array(-1e9), "F32")
        w.put(g + "attention.rotary_emb.inv_freq", base ** (-np.arange(0, dims, 2) / dims), "F32")
        w.linear(g + "attention.query_key_value", 3 * width, width)
        w.linear(g + "attention.dense", width, width)
        w.linear(g + "mlp.dense_h_to_4h", inner, width)
        w.linear(g + "mlp.dense_4h_to_h", width, inner)
    w.norm("gpt_neox.final_layer_norm", width)
    w.normal("embed_out.weight", vocabulary, width)
    write_model("neox", w.tensors, COMMON | {
        "architectures": ["GPTNeoXForCausalLM"], "attention_bias": True, "bos_token_id": 0,
        "eos_token_id": 0, "hidden_act": "gelu", "hidden_size": width, "intermediate_size": inner,
        "layer_norm_eps": eps, "max_position_embeddings": positions, "model_type": "gpt_neox",
        "num_attention_heads": heads, "num_hidden_layers": layers, "rotary_emb_base": base,
        "rotary_pct": percent, "tie_word_embeddings": False, "torch_dtype": "float16",
        "use_parallel_residual": True, "vocab_size": vocabulary})

    def run(layer, inputs):
        a = f"gpt_neox.layers.{layer}.attention."
        joined = linear(inputs, w[a + "query_key_value.weight"], w[a + "query_key_value.bias"])
        # (tokens, heads, 3, d): q, k, v of head 0, then of head 1
        q, k, v = joined.reshape(len(inputs), heads, 3, head_dim).transpose(2, 1, 0, 3)
        q, k = rope(q, base, dims), rope(k, base, dims)
        weights, outputs = attend(q, k, v, causal=True)
        context = linear(join_heads(outputs), w[a + "dense.weight"], w[a + "dense.bias"])
        return {"heads": heads, "kv_heads": heads, "causal": True,
                "rope": {"style": "half", "base": base, "dims": dims}, "inputs": inputs,
                "queries": q, "keys": k, "values": v, "attention_weights": weights,
                "context_vectors": context}

    def norm(layer, x):
        g = f"gpt_neox.layers.{layer}.input_layernorm."
        return layer_norm(x, w[g + "weight"], w[g + "bias"], eps)

    ids = [1, 8, 3, 3, 6]
    add_case("neox-0-ids", "neox", "neox", layer=0, token_ids=ids, norm=True,
             **run(0, norm(0, w["gpt_neox.embed_in.weight"][ids])))
    hidden = hidden_states(106, 5, width)
    add_case("neox-1-hidden", "neox", "neox", (), layer=1, hidden=hidden, norm=False,
             **run(1, hidden))
    add_case("neox-1-norm", "neox", "neox", (), layer=1, hidden=hidden, norm=True,
             **run(1, norm(1, hidden)))


def make_mha():
    """State dicts of torch.nn.MultiheadAttention."""
    width, heads, context_width = 8, 2, 5

    def case(name, w, weights, biases, inputs, others, steps):
        # `others` give the keys and values; the inputs themselves in self-attention
        q, k, v = (split_heads(linear(x, weight, bias), heads)
                   for x, weight, bias in zip((inputs, others, others), weights, biases))
        fields = {"heads": heads, "kv_heads": heads, "hidden": inputs}
        if others is not inputs:
            fields["context"] = others
        for key, causal in (("", False), ("_causal", True)):
            attention, outputs = attend(q, k, v, causal)
            fields["attention_weights" + key] = attention
            fields["context_vectors" + key] = linear(
                join_heads(outputs), w["out_proj.weight"],
                w["out_proj.bias"] if "out_proj.bias" in w.tensors else None)
        write(MODELS / f"mha/{name}.safetensors", safetensors_bytes(w.tensors))
        add_case("mha-" + name, "mha", f"mha/{name}.safetensors", steps, causal="both", norm=False,
                 queries=q, keys=k, values=v, **fields)

    packed = Weights(7)
    packed.normal("in_proj_weight", 3 * width, width)
    packed.normal("in_proj_bias", 3 * width)
    packed.linear("out_proj", width, width)
    x = hidden_states(107, 5, width)
    case("packed", packed, np.split(packed["in_proj_weight"], 3),
         np.split(packed["in_proj_bias"], 3), x, x, ("queries", "values"))

    plain = Weights(8)
    plain.normal("in_proj_weight", 3 * width, width)
    plain.linear("out_proj", width, width, bias=False)
    x = hidden_states(108, 5, width)
    case("no_bias", plain, np.split(plain["in_proj_weight"], 3), (None,) * 3, x, x, ())

    apart = Weights(9)  # kdim = vdim = 5
    apart.normal("q_proj_weight", width, width)
    apart.normal("k_proj_weight", width, context_width)
    apart.normal("v_proj_weight", width, context_width)
    apart.normal("in_proj_bias", 3 * width)
    apart.linear("out_proj", width, width)
    case("kdim", apart, [apart[f"{name}_proj_weight"] for name in "qkv"],
         np.split(apart["in_proj_bias"], 3), hidden_states(109, 5, width),
         hidden_states(110, 6, context_width), ())


def make_notebook():
    """State dicts of the classes that the notebooks build, and two of them as .npz and .json."""
    d_in, d_out, tokens = 3, 2, 6
    mask = np.triu(np.ones((tokens, tokens)), 1)  # their buffer: 1 where a key is masked
    x = hidden_states(111, tokens, d_in)
    names = ("W_query", "W_key", "W_value")

    def add(name, steps=("queries", "keys", "values"), **fields):
        add_case("notebook-" + name, "notebook", f"notebook/{name}", steps, norm=False, hidden=x,
                 **fields)

    def save(name, w):
        write(MODELS / f"notebook/{name}", safetensors_bytes(w.tensors))

    # SelfAttention_v1: nn.Parameter(torch.rand(d_in, d_out)), not causal
    for stem, width in (("selfattention_v1", d_out), ("selfattention_v1_square", d_in)):
        w = Weights(12 + width)
        for key in names:
            w.normal(key, d_in, width)
        q, k, v = ((x @ w[key])[None] for key in names)
        attention, outputs = attend(q, k, v, causal=False)
        steps = {"heads": 1, "kv_heads": 1, "causal": False, "layout": "in_out", "queries": q,
                 "keys": k, "values": v, "attention_weights": attention,
                 "context_vectors": outputs[0]}
        save(stem + ".safetensors", w)
        add(stem + ".safetensors", ("queries",), **steps)
        if width == d_out:
            np.savez(MODELS / "notebook" / (stem + ".npz"),
                     **{name: tensor.stored for name, tensor in w.tensors.items()})
            CASES.append({"id": f"notebook-{stem}.npz", "family": "notebook",
                          "path": f"notebook/{stem}.npz",
                          "same_as": f"notebook-{stem}.safetensors"})

    # CausalAttention: nn.Linear, with qkv_bias
    w = Weights(16)
    w.put("mask", mask)
    for key in names:
        w.linear(key, d_out, d_in)
    q, k, v = (linear(x, w[key + ".weight"], w[key + ".bias"])[None] for key in names)
    attention, outputs = attend(q, k, v, causal=True)
    save("causalattention.safetensors", w)
    add("causalattention.safetensors", heads=1, kv_heads=1, causal=True, layout="out_in", queries=q,
        keys=k, values=v, attention_weights=attention, context_vectors=outputs[0])

    # MultiHeadAttentionWrapper: independent heads side by side, no output projection
    w = Weights(17)
    for head in range(2):
        w.put(f"heads.{head}.mask", mask)
        for key in names:
            w.linear(f"heads.{head}.{key}", d_out, d_in, bias=False)
    q, k, v = (np.stack([linear(x, w[f"heads.{head}.{key}.weight"]) for head in range(2)])
               for key in names)
    attention, outputs = attend(q, k, v, causal=True)
    save("multiheadattentionwrapper.safetensors", w)
    add("multiheadattentionwrapper.safetensors", heads=2, kv_heads=2, causal=True, layout="out_in",
        style="wrapper", queries=q, keys=k, values=v, attention_weights=attention,
        context_vectors=join_heads(outputs))

    # MultiHeadAttention: one projection split into heads, output projection
    w, width, heads = Weights(18), 4, 2
    w.put("mask", mask)
    for key in names:
        w.linear(key, width, d_in, bias=False)
    w.linear("out_proj", width, width)
    q, k, v = (split_heads(linear(x, w[key + ".weight"]), heads) for key in names)
    attention, outputs = attend(q, k, v, causal=True)
    save("multiheadattention.safetensors", w)
    add("multiheadattention.safetensors", heads=heads, kv_heads=heads, causal=True, layout="out_in",
        style="split", queries=q, keys=k, values=v, attention_weights=attention,
        context_vectors=linear(join_heads(outputs), w["out_proj.weight"], w["out_proj.bias"]))
    write_json(MODELS / "notebook/multiheadattention.json",
               {name: nested(w[name]) for name in w.tensors})
    CASES.append({"id": "notebook-multiheadattention.json", "family": "notebook",
                  "path": "notebook/multiheadattention.json",
                  "same_as": "notebook-multiheadattention.safetensors"})
