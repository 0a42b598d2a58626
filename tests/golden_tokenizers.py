#!/usr/bin/env python3
"""Asks a program for the tokens of every text of a golden folder.

    ATTN_GOLDEN=DIR python3 tests/golden_tokenizers.py build/release/attn [--only NAME]

DIR/tokenizers/NAME holds tokenizer.json and cases.json: texts with ids, tokens and ids without special tokens, by the
library tokenizers. All must be equal. Exit code 77: no ATTN_GOLDEN.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor


def asked(attn, folder, text, more):
    # The longest texts do not fit into a word of the command line, and zero bytes never do.
    done = subprocess.run([attn, "tokenize", folder, "--format", "json", *more],
                          input=text.encode(), capture_output=True, check=False)
    if done.returncode != 0:
        return done.stderr.decode()
    return json.loads(done.stdout)


def differences(attn, folder):
    """The number of texts, and those that differ."""
    cases = json.loads((folder / "cases.json").read_text())
    wrong = []
    for case in cases:
        whole, plain = (asked(attn, folder, case["text"], more) for more in ([], ["--no-special-tokens"]))
        if isinstance(whole, str) or isinstance(plain, str) or \
                (whole["ids"], whole["tokens"], plain["ids"]) != (case["ids"], case["tokens"], case["ids_plain"]):
            wrong.append((case["text"], whole, plain))
    return len(cases), wrong


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("attn")
    parser.add_argument("--only")
    given = parser.parse_args()
    if "ATTN_GOLDEN" not in os.environ:
        print("skipped: needs ATTN_GOLDEN, a folder with tokenizers/NAME/tokenizer.json and cases.json")
        return 77
    folders = sorted(path.parent for path in
                     pathlib.Path(os.environ["ATTN_GOLDEN"]).glob("tokenizers/*/tokenizer.json"))
    folders = [folder for folder in folders if given.only in (None, folder.name)]
    failed = not folders
    attn = os.path.abspath(given.attn)
    with ThreadPoolExecutor() as pool:
        for folder, (count, wrong) in zip(folders, pool.map(lambda one: differences(attn, one), folders)):
            print(f"{folder.name}: {count - len(wrong)} of {count} texts are equal")
            for text, whole, plain in wrong[:3]:
                print(f"    {text!r}: {whole} {plain}")
            failed = failed or bool(wrong)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
