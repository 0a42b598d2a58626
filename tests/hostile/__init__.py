"""Malformed, odd and excessive files: what make_hostile.py and hostile_shapes.py write."""
