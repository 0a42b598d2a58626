#!/usr/bin/env python3
"""Runs attn over the malformed files of make_hostile.py.

    python3 tests/make_hostile.py FOLDER && python3 tests/run_hostile.py build/release/attn FOLDER

What the manifest calls refused must end in one line of error, nothing on standard output and exit code
2, 3 or 4; what it calls valid must give the manifest's matrix; "either" may do one or the other. `attn inspect`,
which reads less of a file, may do either with all but the valid ones. Nothing may take longer than SECONDS or more memory than a few times the file. Needs the standard library only.
"""
import json
import os
import subprocess
import sys
import time

SECONDS = 5  # each takes well under one; a busy machine may be slow
SPARE_MEMORY = 256 << 20  # in addition to three times the file
CONTAINERS = ("npz", "safetensors", "index", "gguf")


def complaints(attn, folder, entry, matrix):
    """What is wrong with attn's answers to one file."""
    path = os.path.join(folder, entry["file"])
    in_container = entry["expect"] == "valid" and entry["file"].split("/")[0] in CONTAINERS
    named = path + ":x" if in_container else path
    yield complaint([attn, "self", named, "--init", "none", "--emit", "inputs"], path, entry["expect"],
                    lambda out: out["inputs"] == matrix)
    shape = [len(matrix), len(matrix[0])]
    expect = "valid" if entry["expect"] == "valid" else "either"
    for form in ("json", "table"):
        yield complaint([attn, "inspect", named, "--format", form], path, expect,
                        lambda out: out["arrays"][0]["shape"] == shape, form == "json")


def complaint(command, path, expect, is_right, is_json=True):
    """What is wrong with the answer of one command; empty where nothing is."""
    start = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        out, err = process.stdout.read().decode(), process.stderr.read().decode()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = code = os.waitstatus_to_exitcode(status)
    took = time.monotonic() - start
    memory, size = usage.ru_maxrss << 10, os.path.getsize(path)
    if took > SECONDS:
        return f"took {took:.1f} s"
    if expect != "either" and memory > SPARE_MEMORY + 3 * size:
        return f"took {memory >> 20} MiB"
    if code == 0:
        if expect == "refused":
            return "was accepted"
        if not is_json:
            return ""
        return "" if expect == "either" or is_right(json.loads(out)) else "gave other numbers"
    if expect == "valid":
        return "was refused: " + err.strip()
    one_line = err.startswith("attn: error: ") and err.count("\n") == 1 and err.endswith("\n")
    if code not in (2, 3, 4) or not one_line or out:
        return f"exit {code}, {len(out)} characters of output: {err.strip()[:200]}"
    return ""


def main():
    attn, folder = sys.argv[1:3]
    with open(os.path.join(folder, "manifest.json"), encoding="utf-8") as file:
        manifest = json.load(file)
    bad = 0
    for entry in manifest["files"]:
        problems = [problem for problem in complaints(attn, folder, entry, manifest["matrix"]) if problem]
        bad += bool(problems)
        for problem in problems:
            print(f"{entry['file']} ({entry['why']}): {problem}")
    print(f"{len(manifest['files'])} malformed and odd files, {bad} treated wrongly")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
