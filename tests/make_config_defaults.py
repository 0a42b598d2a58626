#!/usr/bin/env python3
"""Writes io/transformer/config_defaults.ndjson: the defaults of transformers' configuration classes.

    python3 tests/make_config_defaults.py TYPES >io/transformer/config_defaults.ndjson

TYPES are values of model_type. Requires torch and transformers 5.24. Each line has a type, its defaults, the keys whose
default is derived from others ("derived"), other names of keys ("names"), the types of the parts that are configs
themselves ("parts"), and of the rotary embedding: whether rope_type "default" turns a part of the columns by
partial_rotary_factor ("turns_part"), and which keys have no effect ("ignored"). Defaults of rope_parameters that keys
outside it replace are outside it.
"""
import importlib
import inspect
import json
import logging
import sys

from transformers import CONFIG_MAPPING, PretrainedConfig

SIZES = ["num_hidden_layers", "hidden_size", "num_attention_heads", "num_key_value_heads",
         "encoder_num_attention_heads"]


def dict_of(kind, **settings):
    try:
        return kind(**settings).to_dict()
    except Exception:  # sizes that do not fit each other
        return None


def without_infinity(value):
    """Infinity as transformers writes it: JSON has no such number."""
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return {"__float__": "Infinity" if value > 0 else "-Infinity"}
    if isinstance(value, dict):
        return {key: without_infinity(item) for key, item in value.items()}
    return [without_infinity(item) for item in value] if isinstance(value, (list, tuple)) else value


# Keys outside rope_parameters, and the settings that they replace in it.
ROTARY = [("rope_theta", (), "rope_theta"), ("rotary_emb_base", (), "rope_theta"),
          ("partial_rotary_factor", (), "partial_rotary_factor"), ("rotary_pct", (), "partial_rotary_factor"),
          ("rope_theta", ("full_attention",), "rope_theta"), ("global_rope_theta", ("full_attention",), "rope_theta"),
          ("rope_local_base_freq", ("sliding_attention",), "rope_theta"),
          ("local_rope_theta", ("sliding_attention",), "rope_theta")]


def rope_of(kind, path=(), **settings):
    """The settings that a class makes of these, all or those of one type of layer."""
    try:
        config = kind(**settings)
        config.standardize_rope_params()  # as the functions of other types than "default" do
    except Exception:
        return {}
    rope = config.rope_parameters or {}
    for part in path:
        rope = rope.get(part) or {}
    return dict(rope)


def turns_part(kind):
    """Whether the module computes fewer angles for a partial_rotary_factor of 1/2."""
    try:
        module = importlib.import_module(kind.__module__.replace(".configuration_", ".modeling_"))
    except ImportError:
        return False
    for _, part in inspect.getmembers(module, inspect.isclass):
        if part.__module__ != module.__name__ or not hasattr(part, "compute_default_rope_parameters"):
            continue
        types = ("main", "compress") if "v4" in module.__name__ else ("full_attention", "sliding_attention")
        has_types = "layer_type" in inspect.signature(part.compute_default_rope_parameters).parameters
        named = {"layer_type": types[0]} if has_types else {}
        counts = []
        for factor in (1.0, 0.5):
            rope = {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": factor}
            try:
                config = kind(rope_parameters={name: dict(rope) for name in types} if has_types else rope)
                counts.append(len(part.compute_default_rope_parameters(config, **named)[0]))
            except Exception:  # a module of another part of the model, whose config this is not
                break
        if len(counts) == 2 and counts[1] < counts[0]:
            return True
    return False


def rotary_of(kind, defaults):
    """Moves the defaults that keys outside rope_parameters replace, and gives what else the line says."""
    if "rope_parameters" not in defaults or not hasattr(kind, "standardize_rope_params"):
        return {}
    linear, probe = {"rope_type": "linear", "factor": 2.0}, 0.375
    added = rope_of(kind, rope_parameters=dict(linear))  # what the class adds to settings that are given
    for key, path, setting in ROTARY:
        here = defaults["rope_parameters"] or {}
        for part in path:
            here = here.get(part) or {}
        if rope_of(kind, path, **{key: probe}).get(setting) == probe and setting in here:
            defaults[key] = here.pop(setting)
        elif not path and rope_of(kind, rope_parameters=dict(linear), **{key: probe}).get(setting) == probe \
                and added.get(setting) is not None:
            defaults[key] = added[setting]
    ignored = [key for key in ("rope_theta", "partial_rotary_factor")
               if rope_of(kind, rope_parameters=dict(linear), **{key: probe}).get(key) not in (None, probe)]
    if added and "linear" not in str(rope_of(kind, rope_scaling=dict(linear))):
        ignored.append("rope_scaling")
    # Keys of other names than the class's fields come after the class has completed the settings.
    length = kind.attribute_map.get("max_position_embeddings")
    yarn = rope_of(kind, rope_parameters={"rope_type": "yarn", "factor": 2.0}, **({length: 48} if length else {}))
    if length and yarn.get("original_max_position_embeddings") not in (None, 48):
        ignored.append(length)
    return ({"turns_part": True} if turns_part(kind) else {}) | ({"ignored": ignored} if ignored else {})


def row_of(name, common):
    kind = CONFIG_MAPPING[name]
    defaults = dict_of(kind)
    names = kind.attribute_map
    derived = set()
    for size in (names.get(size, size) for size in SIZES):
        if not isinstance(defaults.get(size), int):
            continue
        for value in (defaults[size] * 2, max(1, defaults[size] // 2)):
            other = dict_of(kind, **{size: value})
            if other is not None:
                derived |= {key for key in defaults if key != size and other.get(key) != defaults[key]}
    parts = {key: value["model_type"] for key, value in sorted(defaults.items())
             if isinstance(value, dict) and "model_type" in value}
    row = {"type": name,
           "defaults": {key: value for key, value in defaults.items()
                        if key not in common and key not in derived and key not in parts},
           "derived": sorted(derived - common)}
    row |= rotary_of(kind, row["defaults"])
    if names:
        row["names"] = dict(names)
    if parts:
        row["parts"] = parts
    return row


def main():
    logging.disable(logging.CRITICAL)
    common = set(PretrainedConfig().to_dict())
    for name in sorted(set(sys.argv[1:])):
        if name in CONFIG_MAPPING and dict_of(CONFIG_MAPPING[name]) is not None:
            print(json.dumps(without_infinity(row_of(name, common)), separators=(",", ":"), allow_nan=False))


if __name__ == "__main__":
    main()
