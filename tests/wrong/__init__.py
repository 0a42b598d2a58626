"""Attention in NumPy, independent of attn: right, and wrong in the ways of real programs."""

import sys

try:
    import numpy
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)
