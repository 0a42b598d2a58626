#!/usr/bin/env python3
"""Writes malformed and merely unusual input files to a folder, and a manifest.json with them; and runs attn over them.

    python3 tests/make_hostile.py [FOLDER] [--small] [--run ATTN]

Needs nothing but Python 3.9. The whole set takes about 500 MB; with --small, what is large to be
slow or to fill memory is a hundredth of that size (but a zip bomb stays one of 100 MB).

manifest.json: {"matrix": [[1, 2, 3], [4, 5, 6]], "files": [{"file", "expect", "why"}, ...]}, where
expect is one of
    refused  an error in one line, exit code 2, 3 or 4, soon, and in little memory
    valid    holds the matrix above; in .npz, .safetensors (and by an index), .pt, .gguf, .h, .pb and .msgpack under the name x
    either   implementations differ: reading it or refusing it will do, failing otherwise will not
`attn inspect`, which reads less of a file, may do either with all but the valid ones.
Nothing may be written outside the answer, run, or read from another folder: the file `outside.txt`
and the tensor file `outside.safetensors` in FOLDER are there to be pointed at.
"""
import argparse
import json
import os
import pathlib
import sys
import tempfile

sys.dont_write_bytecode = True
from hostile import run  # noqa: E402
from hostile.bare import make_h, make_hex, make_pb, make_raw, make_txt  # noqa: E402
from hostile.flax import make_flax  # noqa: E402
from hostile.folder import MATRIX, Folder  # noqa: E402
from hostile.gguf import make_gguf  # noqa: E402
from hostile.npy import make_npy  # noqa: E402
from hostile.npz import make_npz  # noqa: E402
from hostile.result_folder import make_result_folders  # noqa: E402
from hostile.safetensors import make_indexes, make_safetensors  # noqa: E402
from hostile.text import make_csv, make_json  # noqa: E402
from hostile.torch import make_torch  # noqa: E402

SECONDS = 5  # each takes well under one; a busy machine may be slow
SPARE_MB = 256  # in addition to three times the file
CONTAINERS = ("npz", "safetensors", "index", "gguf", "pt", "folder", "h", "pb", "msgpack")
BARE = {"raw": ":float32:2x3", "hex": ":int16:2x3"}


def complaints(path, entry):
    """What is wrong with attn's answers to one file."""
    kind = entry["file"].split("/")[0]
    in_container = entry["expect"] == "valid" and kind in CONTAINERS
    named = str(path) + BARE.get(kind, ":x" if in_container else "")
    yield complaint(["self", named, "--init", "none", "--emit", "inputs"], path, entry["expect"],
                    lambda out: out["inputs"] == MATRIX)
    expect = "valid" if entry["expect"] == "valid" else "either"
    for form in ("json", "table"):
        yield complaint(["inspect", named, "--format", form], path, expect,
                        lambda out: out["arrays"][0]["shape"] == [len(MATRIX), len(MATRIX[0])], form == "json")


def complaint(arguments, path, expect, is_right, is_json=True):
    """What is wrong with the answer of one command; empty where nothing is."""
    done = run.Run(arguments)
    if done.seconds > SECONDS:
        return f"took {done.seconds:.1f} s"
    if expect != "either" and done.mb > SPARE_MB + 3 * path.stat().st_size / run.MB:
        return f"took {done.mb:.0f} MiB"
    if done.code == 0 and expect != "refused":
        return "" if expect == "either" or not is_json or is_right(json.loads(done.out)) else "gave other numbers"
    err = done.err.decode()
    one_line = err.startswith("attn: error: ") and err.count("\n") == 1 and err.endswith("\n")
    if done.code not in run.ERRORS or not one_line or done.out or expect == "valid":
        return f"exit {done.code}, {len(done.out)} bytes of output: {err.strip()[:200]}"
    return ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=pathlib.Path, nargs="?")
    parser.add_argument("--small", action="store_true", help="large files at a hundredth")
    parser.add_argument("--run", type=os.path.abspath, metavar="ATTN", help="hold its answers against the manifest")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Folder((options.folder or pathlib.Path(scratch) / "files").resolve(), options.small)
        folder.path.mkdir(parents=True, exist_ok=True)
        for folder.kind, make in {"npy": make_npy, "npz": make_npz, "safetensors": make_safetensors,
                                  "index": make_indexes, "gguf": make_gguf, "pt": make_torch, "json": make_json,
                                  "csv": make_csv, "folder": make_result_folders, "raw": make_raw,
                                  "hex": make_hex, "h": make_h, "pb": make_pb, "txt": make_txt, "msgpack": make_flax}.items():
            make(folder)
        (folder.path / "manifest.json").write_text(json.dumps(
            {"matrix": MATRIX, "files": folder.records}, indent=1) + "\n")
        run.ATTN, bad = options.run, 0
        os.chdir(scratch)
        for entry in folder.records if options.run else ():
            problems = [problem for problem in complaints(folder.path / entry["file"], entry) if problem]
            bad += bool(problems)
            for problem in problems:
                print(f"{entry['file']} ({entry['why']}): {problem}")
        os.chdir("/")
    counts = {kind: sum(record["expect"] == kind for record in folder.records)
              for kind in ("refused", "valid", "either")}
    print(f"{len(folder.records)} files: " + ", ".join(f"{count} {kind}" for kind, count in counts.items()), end="")
    print(f"; {bad} treated wrongly" * bool(options.run))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
