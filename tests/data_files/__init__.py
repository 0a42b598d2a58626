"""What make_data.py writes into data/arrays and data/models."""
