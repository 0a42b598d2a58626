#!/usr/bin/env python3
"""Writes io/transformer/config_defaults.ndjson: the defaults of transformers' configuration classes.

    python3 tests/make_config_defaults.py TYPES >io/transformer/config_defaults.ndjson

TYPES are values of model_type. Requires transformers 5.23. Each line has a type, its defaults, the keys whose default
is derived from others ("derived"), other names of keys ("names") and the types of the parts that are configs themselves
("parts").
"""
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


def written(value):
    """Infinity as config.json has it since version 5."""
    if value == float("inf"):
        return {"__float__": "Infinity"}
    return [written(element) for element in value] if isinstance(value, (list, tuple)) else value


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
           "defaults": {key: written(value) for key, value in defaults.items()
                        if key not in common and key not in derived and key not in parts},
           "derived": sorted(derived - common)}
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
            print(json.dumps(row_of(name, common), separators=(",", ":")))


if __name__ == "__main__":
    main()
