#!/usr/bin/env python3
"""Writes malformed and merely unusual input files to a folder, and a manifest.json with them.

    python3 tests/make_hostile.py FOLDER [--small]

Needs nothing but Python 3.9. The whole set takes about 500 MB; with --small, what is large to be
slow or to fill memory is a hundredth of that size (but a zip bomb stays one of 100 MB).

manifest.json: {"matrix": [[1, 2, 3], [4, 5, 6]], "files": [{"file", "expect", "why"}, ...]}, where
expect is one of
    refused  an error in one line, soon, and in little memory
    valid    holds the matrix above; in .npz, .safetensors (and by an index) and .gguf under the name x
    either   implementations differ: reading it or refusing it will do, failing otherwise will not
Nothing may be written outside the answer, run, or read from another folder: the file `outside.txt`
and the tensor file `outside.safetensors` in FOLDER are there to be pointed at.
"""
import argparse
import json
import pathlib
import sys

sys.dont_write_bytecode = True
from hostile.folder import MATRIX, Folder  # noqa: E402
from hostile.gguf import make_gguf  # noqa: E402
from hostile.npy import make_npy  # noqa: E402
from hostile.npz import make_npz  # noqa: E402
from hostile.safetensors import make_indexes, make_safetensors  # noqa: E402
from hostile.text import make_csv, make_json  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--small", action="store_true", help="large files at a hundredth")
    options = parser.parse_args()
    folder = Folder(options.folder, options.small)
    folder.path.mkdir(parents=True, exist_ok=True)
    for folder.kind, make in {"npy": make_npy, "npz": make_npz, "safetensors": make_safetensors, "index": make_indexes,
                              "gguf": make_gguf, "json": make_json, "csv": make_csv}.items():
        make(folder)
    (folder.path / "manifest.json").write_text(json.dumps(
        {"matrix": MATRIX, "files": folder.records}, indent=1) + "\n")
    counts = {kind: sum(record["expect"] == kind for record in folder.records)
              for kind in ("refused", "valid", "either")}
    print(f"{len(folder.records)} files in {options.folder}: "
          + ", ".join(f"{count} {kind}" for kind, count in counts.items()))


if __name__ == "__main__":
    main()
