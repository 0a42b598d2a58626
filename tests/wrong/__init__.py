"""Attention in NumPy, independent of attn: right, and wrong in the ways of real programs."""
