"""Numbers that depend on the name of a tensor alone: those of tests/support/drawn_model.cpp."""
import math

import numpy as np


def hash_of(name):
    value = 0xCBF29CE484222325
    for byte in name.encode():
        value = ((value ^ byte) * 0x100000001B3) & ((1 << 64) - 1)
    return value


def drawn(name, shape, mean, deviation):
    """splitmix64 from the hash of the name; 24 bits each, uniform with this mean and deviation, as float32."""
    count = math.prod(shape)
    state = np.uint64(hash_of(name)) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    state = state ^ (state >> np.uint64(31))
    uniform = (state >> np.uint64(40)).astype(np.float64) * 2.0**-23 - 1
    return np.asarray(mean + deviation * math.sqrt(3) * uniform, dtype=np.float32).reshape(shape)
