#!/usr/bin/env python3
"""Runs attn while its memory fails: one allocation, two in a row, and all from one on.

    python3 tests/failing_memory.py ATTN LIBRARY DATA [--runs N] [--only NAME]

LIBRARY is support/failing_memory.cpp. Each allocation of each scenario fails, an hour of one core, or those of N
runs of each. An answer is right as a whole, or one line that says what is lacking, with its exit code, and nothing is
left; in a batch one record says so and the others are answered. Needs the standard library only.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile

SECONDS = 20
EVER_AFTER = 1 << 40
FOLDER = "answers"
LACKING = ("memory: ", "Cannot allocate memory")


def scenarios(data):
    """Name: arguments, in a folder of their own; names that end with `batch` answer records."""
    journey = os.path.join(data, "journey.csv")
    requests = os.path.join(data, "requests.ndjson")
    gpt2 = os.path.join(data, "models", "gpt2")
    llama = os.path.join(data, "models", "llama")
    causal = ["causal", journey, "--d-out", "2"]
    return {
        "json": causal + ["--emit", "all", "--pretty"],
        "help": ["help", "formats"],
        "npz": ["multihead", journey, "--heads", "2", "--d-out", "4", "--emit", "all", "-o", "out.npz",
                "--save-weights", "w.safetensors"],
        "csv": ["self", journey, "--d-out", "2", "-o", "out.csv"],
        "threads": ["sdpa", "long.json", "--kernel", "generic", "--threads", "3", "-o", "out.npy"],
        "operands": ["cross", "in.json", "--context", "in.json", "--d-out", "2", "--mask", "mask.json",
                     "--mask-true", "keep", "-o", "out.json"],
        "deflated": ["self", os.path.join(data, "arrays", "large_deflated.npz"), "--init", "none", "-o", "out.npz"],
        "text": ["multihead", "--text", "the cat sat on the mat", "--heads", "3", "--d-out", "6", "--rope", "half",
                 "--dropout", "0.5", "--format", "table"],
        "model": ["multihead", "--weights", gpt2, "--layer", "1", "--token-ids", "1,2,3", "--format", "ndjson"],
        "llama": ["explain", "multihead", "--weights", llama, "--layer", "0", "--token-ids", "1,2,3"],
        "inspect": ["inspect", gpt2, "--format", "json"],
        "explain": ["explain", "causal", journey, "--d-out", "2"],
        "compare": ["compare", "a.json", "b.json"],
        "check": ["check", "self", journey, "--d-out", "2", "--against", "b.json", "--threads", "2", "-o",
                  "out.json"],
        "png": causal + ["--plot", "out.png", "-o", "out.json"],
        "page": causal + ["--plot", "out.html", "--format", "none"],
        "plot": ["plot", "a.json", "-o", "out.svg"],
        "batch": ["batch", requests, "--jobs", "3", "-o", "out.ndjson"],
        "resumed batch": ["batch", requests, "--jobs", "2", "--resume", "half.ndjson"],
        "folder of a batch": ["batch", requests, "--jobs", "2", "--records-per-file", "2", "--out-dir", FOLDER],
    }


def make_files(attn, data, folder):
    journey = os.path.join(data, "journey.csv")
    rows = [[(7 * i + 3 * j) % 5 / 4 - 0.5 for j in range(8)] for i in range(600)]
    write = lambda name, text: open(os.path.join(folder, name), "w").write(text)
    write("long.json", json.dumps({"query": rows, "key": rows, "value": rows}))
    write("in.json", json.dumps({"inputs": rows[:3]}["inputs"]))
    write("mask.json", "[[true,true,false],[true,true,true],[false,true,true]]")
    for name, seed in (("a.json", "1"), ("b.json", "2")):
        subprocess.run([attn, "self", journey, "--d-out", "2", "--seed", seed, "-o", name], cwd=folder, check=True)
    subprocess.run([attn, "batch", os.path.join(data, "requests.ndjson"), "-o", "whole.ndjson"], cwd=folder,
                   check=False, stderr=subprocess.DEVNULL)
    lines = open(os.path.join(folder, "whole.ndjson")).readlines()
    write("half.ndjson", "".join(lines[:1]))


class Scenario:
    def __init__(self, attn, library, arguments, made):
        self.attn, self.library, self.arguments, self.made = attn, library, arguments, made
        self.folder = tempfile.mkdtemp()
        self.is_batch = arguments[0] == "batch"
        self.right = self.run(0, 0)
        self.seen = int(open(self.made + "/seen").read())

    def run(self, at, count):
        """(exit code, stdout, stderr, {file: bytes}) of one run."""
        shutil.rmtree(self.folder)
        os.mkdir(self.folder)
        for name in os.listdir(self.made):
            if name != "seen":
                shutil.copy(os.path.join(self.made, name), self.folder)
        environment = dict(os.environ, LD_PRELOAD=self.library, FAIL_AT=str(at), FAIL_COUNT=str(count))
        if at == 0:
            environment["FAIL_SEEN"] = self.made + "/seen"
        try:
            done = subprocess.run([self.attn] + self.arguments, cwd=self.folder, env=environment, timeout=SECONDS,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        except subprocess.TimeoutExpired:
            return ("hangs", b"", b"", {})
        paths = [os.path.join(place, name) for place, _, names in os.walk(self.folder) for name in names]
        files = {os.path.relpath(path, self.folder): open(path, "rb").read() for path in paths}
        return (done.returncode, done.stdout, done.stderr, files)

    def complaint(self, at, count):
        """What is wrong with a run that lacks memory; empty where nothing is."""
        code, out, err, files = self.run(at, count)
        if (code, out, files) == (self.right[0], self.right[1], self.right[3]):
            return ""
        text = err.decode(errors="replace")
        if self.is_batch:
            problem = self.complaint_of_batch(code, files)
            return problem and f"{problem}: {text.strip()[:300]}"
        left = sorted(set(files) - set(os.listdir(self.made)))
        one_line = text.startswith("attn: error: ") and text.count("\n") == 1 and text.endswith("\n")
        lacking = any(word in text for word in LACKING)
        # If memory fails after the last byte, while everything is freed, both exist.
        is_whole = (out, files) == (self.right[1], self.right[3])
        if code in (3, 4) and one_line and lacking and (is_whole or (not out and not left)):
            return ""
        return f"exit {code}, {len(out)} bytes of output, files {left}: {text.strip()[:300]}"

    def complaint_of_folder(self, code, files):
        """Every line of the index refers to elements that are there."""
        index = files.get(FOLDER + "/index.ndjson", b"").splitlines()
        for line in map(json.loads, index):
            for array in line.get("arrays", []):
                if array["offset"] + array["bytes"] > len(files[FOLDER + "/" + line["file"]]):
                    return f"{line['file']} without {array['entry']}"
            if "error" in line and not any(word in line["error"]["message"] for word in LACKING):
                return "error " + line["error"]["message"]
        if any(os.path.basename(name).startswith(".") for name in files):
            return f"files {sorted(files)}"
        right = self.right[3][FOLDER + "/index.ndjson"].splitlines()
        if len(index) > len(right) or (code in (0, 1) and len(index) != len(right)):
            return f"exit {code}, {len(index)} answers of {len(right)}"
        return "" if code in (0, 1, 3, 4) else f"exit {code}"

    def complaint_of_batch(self, code, files):
        if FOLDER in self.arguments:
            return self.complaint_of_folder(code, files)
        name = self.arguments[-1]
        left = sorted(set(files) - set(os.listdir(self.made)) - {name})
        if left:
            return f"files {left}"
        right, found = self.right[3][name].splitlines(), files.get(name, b"").splitlines()
        if len(found) > len(right) or (code in (0, 1) and len(found) != len(right)):
            return f"exit {code}, {len(found)} answers of {len(right)}"
        for answer, expected in zip(found, right):
            if answer != expected and not any(word.encode() in answer for word in ('"memory"', LACKING[1])):
                return "answer " + answer.decode(errors="replace")[:200]
        return "" if code in (0, 1, 3, 4) else f"exit {code}"

    def close(self):
        shutil.rmtree(self.folder)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("attn")
    parser.add_argument("library")
    parser.add_argument("data")
    parser.add_argument("--runs", type=int)
    parser.add_argument("--only")
    words = parser.parse_args()
    attn, library = os.path.abspath(words.attn), os.path.abspath(words.library)
    made = tempfile.mkdtemp()
    make_files(attn, os.path.abspath(words.data), made)
    runs = wrong = 0
    for name, arguments in scenarios(os.path.abspath(words.data)).items():
        if words.only not in (None, name):
            continue
        scenario = Scenario(attn, library, arguments, made)
        before, started = wrong, runs
        step = 1 if words.runs is None else -(-scenario.seen // words.runs)
        for at in range(1, scenario.seen + 1, step):
            ways = (1, 2, EVER_AFTER)
            # Where not all are tried, they share the places.
            for count in ways if step == 1 else (ways[at // step % 3],):
                runs += 1
                problem = scenario.complaint(at, count)
                if problem:
                    wrong += 1
                    many = "all" if count == EVER_AFTER else count
                    print(f"{name}: {many} from allocation {at} on: {problem}", flush=True)
        print(f"{name}: {scenario.right[0]}, {scenario.seen} allocations, {runs - started} runs, "
              f"{wrong - before} wrong", flush=True)
        scenario.close()
    shutil.rmtree(made)
    print(f"{runs} runs, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
