#!/usr/bin/env python3
"""An error that names a flag is left by that flag: every suggestion of a generated mistake is followed.

    python3 tests/suggestions.py ATTN [--all] [--seed N]

Mistakes: commands x their flags x values that are wrong or unusual; flags of other commands; a required flag that is
missing; each kind of file, of any shape or form of CSV, in each place that reads one; tests/cli/mistakes.tsv. A
suggestion is a dead end if the same error, or one that refuses the suggested flag, comes again. The forms of CSV that
programs write must be read in the end. Without --all: a part of them, drawn by the seed.
"""

import argparse
import concurrent.futures
import pathlib
import random
import re
import struct
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
from support.array_files import npy_head  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
SAMPLE = 700
BASES = {
    "self": "x.csv", "causal": "x.csv", "multihead": "x.csv --heads 3 --d-out 3", "cross": "x.csv --context x.csv",
    "sdpa": "--query m.json --key m.json --value m.json", "linear": "--query m.json --key m.json --value m.json",
    "model": "data/models/gpt2 --token-ids 3,1,4", "batch": "b.ndjson",
    "scan": "data/models/gpt2 c.ndjson", "partial": "causal x.csv --kv-range 0:3", "merge": "p.npz",
    "explain": "self x.csv", "compare": "m.json m.json", "check": "causal x.csv --against r.json",
    "repro": "causal x.csv", "plot": "r.json", "inspect": "m.json", "tokenize": "data/tokenizers/bpe.json hello"}
# Commands that take the flags of the mode that their line names; a batch takes those of all.
OF_MODES = ("explain", "check", "repro", "partial")
MODES = ("self", "causal", "multihead", "cross", "sdpa", "linear")
WRITTEN = ("--output", "--out-dir", "--resume", "--plot", "--save-weights")
VALUES = ("x", "-1", "0", "1e9", "2", "m.json", "all", "none", "1,2", "float16")
EXAMPLES = {"N": "2", "X": "0.5", "S": "0.5", "FILE": "m.json", "LIST": "1", "NAME": "x", "TEXT": "hello",
            "TYPE": "float16", "I/N": "1/2", "N,...": "1"}
# Errors that refuse the flag that they begin with.
UNFIT = re.compile(r"unknown flag|not a flag|conflict|contradict|no effect|would have|not in format|takes no|"
                   r"does not have|requires")
# The flag or input that such an error begins with is what has to go.
REPLACED = re.compile(r"unknown flag|one dash|not a flag|does not have this setting|unexpected|takes no value|"
                      r"conflicts|is a folder|cannot be written as|not a key|takes three|has no negation|at random")

FORMS = {  # name: bytes that programs write for [[0.1, 0.5], [1.25, 3]], or words with such numbers
    "decimal-comma.csv": "0,1;0,5\n1,25;3,0\n", "decimal-column.csv": "0,5\n1,25\n", "tabs.tsv": "0.1\t0.5\n1.25\t3\n",
    "decimal-tabs.tsv": "0,1\t0,5\n1,25\t3\n", "decimal-quotes.csv": 'x,n\n"0,1",5\n"1,25",3\n',
    "decimal-labels.csv": 'the,"0,1"\nof,"1,25"\n', "decimal-blanks.txt": "the 0,1 0,5\nof 1,25 3\n",
    "trailing.csv": "0.1,0.5,\n1.25,3,\n", "trailing-header.csv": "a,b,\n0.1,0.5,\n1.25,3,\n",
    "fortran.csv": "1.0D-01,5.0D-01\n1.25D+00,3.0D+00\n", "fortran-blanks.txt": " 1.0D-01 5.0D-01\n 1.25D+00 3.0D+00\n",
    "utf-16.csv": "0.1,0.5\n1.25,3\n".encode("utf-16"), "utf-16-be.csv": b"\xfe\xff" + "0.1,0.5\n".encode("utf-16-be"),
    "utf-16-bare.csv": "0.1,0.5\n".encode("utf-16-le"), "utf-32.csv": "0.1,0.5\n".encode("utf-32"),
    "bom.csv": "\ufeff0.1,0.5\n1.25,3\n", "glove.txt": 'the 0.1 0.5\n" 1.25 3\nof 0.2 0.3\n',
    "glove-quotes.txt": 'the 0.1 0.5\n" 1.25 3\n\'\' 0.2 0.3\n" 0.5 0.25\n',
    "word2vec.txt": "2 2\nthe 0.1 0.5\nof 1.25 3\n",
    "tensor.txt": "tensor([[0.1000, 0.5000],\n        [1.2500, 3.0000]])\n",
    "tensor-type.txt": "tensor([[0.1000, 0.5000],\n        [1.2500, 3.0000]], dtype=torch.float64)\n",
    "array.txt": "array([[0.1 , 0.5 ],\n       [1.25, 3.  ]])\n", "printed.txt": "[[0.1  0.5 ]\n [1.25 3.  ]]\n",
}


def npy(descriptor, shape, data):
    return npy_head(shape, descriptor) + data


FILES = {
    "vector.json": "[0.9,0.1]", "number.json": "3", "matrix3.json": "[[[1,2],[3,4]],[[5,6],[7,8]]]",
    "matrix4.json": "[[[[1,2],[3,4]]]]", "ragged.json": "[[1,2],[3]]", "empty.json": "[]", "nan.json": "[[1,NaN],[3,4]]",
    "text.txt": "hello world\n", "words.csv": "a,b\nc,d\n", "true.csv": "True,False\nTrue,True\n", "nothing.csv": "",
    "column.csv": "1\n2\n3\n", "other-width.csv": "1,2,3,4,5\n", "object.json": '{"a": [[1,2],[3,4]]}',
    "two.json": '{"a": [[1,2],[3,4]], "b": [[1,2],[3,4]]}', "lines.ndjson": "[[1,2]]\n[[3,4]]\n",
    "v2.npy": npy("<V2", (2, 2), b"\x80\x3f\x00\x40" * 2), "bfloat16.npy": npy("bfloat16", (2, 2), b"\x80\x3f\x00\x40" * 2),
    "vector.npy": npy("<f4", (2,), struct.pack("<2f", 0.5, 0.25)), "strings.npy": npy("<U1", (1,), b"a\0\0\0"),
    **FORMS}


class Walk:
    def __init__(self, program, folder):
        self.program, self.folder = program, folder
        self.environment = {"PATH": f"{folder}/bin:/usr/bin:/bin", "HOME": folder, "LC_ALL": "C.UTF-8"}
        self.known = {}

    def run(self, line):
        done = subprocess.run(["bash", "-c", line], cwd=self.folder, env=self.environment, capture_output=True,
                              stdin=subprocess.DEVNULL, timeout=600)
        return done.returncode, done.stderr.decode(errors="replace")

    def error(self, line):
        """The message of the line's error, and of a record's; nothing where there is none."""
        code, text = self.run(line)
        found = re.findall(r"^attn: (?:error: |\d+ of \d+ records failed; the first(?:, record \d+)?: )(.*)$", text, re.M)
        if code == 0 or not found:
            return None
        return found[0]

    def flags(self, command):
        """The flags that its help lists, with what their values are; nothing for a switch."""
        if command not in self.known:
            text = subprocess.run([self.program, command, "--help", "--all"], capture_output=True, text=True).stdout
            flags = {}
            for match in re.finditer(r"^ {2,6}(?:-\w, )?(--[a-z][a-z0-9-]*)(?:, (--no-[a-z-]+))?"
                                     r"(?: (\S+)|\n +(\w+(?:\|\w+)+))?", text, re.M):
                flags[match[1]] = match[3] or match[4]
                if match[2]:
                    flags[match[2]] = None
            self.known[command] = flags
        return self.known[command]

    def flags_of_line(self, line):
        words = re.findall(r"[\w.-]+", line)
        flags = {}
        for command in BASES:
            is_asked = command in words and any(f"attn {other}" in line for other in OF_MODES)
            if re.search(rf"attn {command}\b", line) or is_asked or ("attn batch" in line and command in MODES):
                flags.update(self.flags(command))
        return flags

    def value(self, flag, kind, named):
        """What a message names as the value, or an example of its kind."""
        if flag == "--output":
            suffix = re.search(r"ends in (\.\w+)", named or "")
            return "new" + (suffix[1] if suffix else ".json")
        if flag == "--plot":
            return "new.svg"
        if flag == "--resume" and (named or "").startswith(" as well"):
            return ""
        word = re.match(r"[ =]('[^']*'|\"[^\"]*\"|[^\s;()]+)", named or "")
        word = word[1].rstrip(",?:") if word else ""
        if flag == "--csv-decimal":
            return "." if (named or "").startswith(" .") else "','"
        if re.fullmatch(r"[a-z0-9]+(\|[a-z0-9]+)+", word):
            return word.split("|")[0]
        sentence = word in WORDS or word.startswith("-") or re.fullmatch(r"[A-Z]+(,\.\.\.)?|[a-z]+\|.*", word)
        if word and not sentence:
            return word
        if "|" in kind:
            return kind.split("|")[0]
        return EXAMPLES.get(kind, "1")

    def suggestions(self, message):
        """The flags that it names after the finding, each with the text that follows, and the other commands named."""
        parts = re.split(r"; |requires |expected ", message, maxsplit=1)
        if len(parts) < 2:
            return
        for match in re.finditer(r"(?<![\w-])(--[a-z][a-z0-9-]+|-o(?= ))", parts[1]):
            before, after = parts[1][:match.start()].split(";")[-1], parts[1][match.end():]
            # Words of a whole command, and of one that wrote the file.
            if re.search(r"\b(as in|use|as from) (attn|hf) |\bas $|\($|hf download", before):
                continue
            others = re.findall(r"attn ([a-z]+)[^,]*$", before) or re.findall(r"attn ([a-z]+),", before)
            yield {"-o": "--output"}.get(match[1], match[1]), after, others

    def followed(self, line, message, flag, added, everything):
        """The lines that follow the suggestion: the first that leaves the error is enough."""
        subject = re.match(r"(-{1,2}[A-Za-z][\w-]*)", message)
        if flag == "--output":
            line = re.sub(r"(?<!\S)(-o +|--output[ =])\S+", "", line)
        for name in re.findall(r'"(\w+)" is not a key of a request', message):
            line = re.sub(rf'"{name}": ("[^"]*"|[^,}}]*)', '"id": 1', line)
        if "in place of query, key and value" in message:
            line = without(without(without(line, "--query"), "--key"), "--value")
        for name in re.findall(r"in place of (?:the )?(?:standard input|([^\s;]+))", message):
            line = without(line, name) if name.startswith("-") else line.replace(f" {name.split(':')[0]}", "", 1)
        if not REPLACED.search(message):
            yield insert(line, added)
        if subject:
            yield insert(without(without(line, "-o") if subject[1] == "--output" else line, subject[1]), added)
        yield insert(line, everything)
        if not message.startswith("-"):
            place = message.split(": ")[0].split(":")[0]
            at = line.rfind(f" {place}")
            if at >= 0:
                rest = line[:at] + line[at + 1 + len(place):]
                yield insert(rest, added)
                yield insert(rest, everything)

    def is_refused(self, line, message, flag, depth=2):
        """Whether the line has the same error, or one that refuses the flag; and the error."""
        error = self.error(line)
        if error == message:
            return True, error
        if error is None or not re.match(rf"({flag})\b", error) or not UNFIT.search(error):
            return False, error
        required = re.search(r"requires (--[a-z-]+)", error)
        kind = self.flags_of_line(line).get(required[1], False) if required and depth else False
        if kind is False:
            return True, error
        value = f" {self.value(required[1], kind, error[required.end():])}" if kind else ""
        return self.is_refused(insert(line, required[1] + value), message, flag, depth - 1)

    def dead_ends(self, line):
        message = self.error(line)
        if message is None:
            return []
        found, flags = [], self.flags_of_line(line)
        usable = {flag: flag + (f" {self.value(flag, flags[flag], after)}" if flags[flag] else "")
                  for flag, after, _ in self.suggestions(message) if flag in flags}
        for flag, _, others in self.suggestions(message):
            if flag in ("--help", "--version") or (message.startswith(flag) and "takes no value" in message):
                continue
            named = [other for other in others if other in BASES and f"attn {other} " not in line]
            if flag not in flags or named:
                if not any(flag in self.flags(other) for other in named or BASES):
                    found.append(f"{flag} is not a flag: {message} | {line}")
                elif not named and not re.search(r"ha(s|ve) it|never does|masks|is computed", message):
                    found.append(f"{flag} is a flag of another command: {message} | {line}")
                continue
            errors = []
            everything = " ".join(usable.values())
            for trial in self.followed(line, message, flag, usable[flag], everything):
                refusing = "|".join(usable) if everything in trial else flag
                is_refused, error = self.is_refused(trial, message, refusing)
                errors.append(f"{trial} -> {error}")
                if not is_refused:
                    break
            else:
                found.append(f"{usable[flag]} is a dead end: {message} | {line} | " + " | ".join(errors))
        return found

    def is_read(self, line, depth=3):
        """Whether the line works, or does so after what its errors suggest."""
        code, text = self.run(line)
        if code == 0:
            return True
        message = self.error(line)
        if depth == 0 or message is None:
            return False
        converted = re.search(r"iconv -f [\w-]+ -t UTF-8", message)
        if converted:
            name = re.search(r"utf-\d\d\S*csv", line)[0]
            # Lines run at the same time: each has a file of its own.
            new = f"{line.split()[1]}-{name}"
            return self.is_read(f"{converted[0]} {name} > {new}; " + line.replace(name, new), depth - 1)
        flags = self.flags_of_line(line)
        return any(self.is_read(insert(line, flag + (f" {self.value(flag, flags[flag], after)}" if flags[flag] else "")),
                                depth - 1)
                   for flag, after, _ in self.suggestions(message) if flag in flags)


WORDS = set("or and as where is for reads in with which chooses alone names takes on to adds has lifts the writes masks of "
            "if does multiplies removes draws reads that a an there may from must, well, computes its gives".split())


def insert(line, added):
    """The line with the words at the end of its last attn command."""
    end = len(line)
    for mark in (" | ", " > ", " 2>", "; ", " && "):
        at = line.find(mark, line.rfind("attn "))
        end = min(end, at) if at >= 0 else end
    return f"{line[:end]} {added}{line[end:]}"


def without(line, flag):
    """The line without the flag, and without its value."""
    return re.sub(rf"(?<!\S){re.escape(flag)}(?:=\S*|(?: +(?![-|>&])('[^']*'|\"[^\"]*\"|\S+))?)(?=\s|$)", "", line)


def mistakes(walk):
    everything = sorted({flag for command in BASES for flag in walk.flags(command)})
    for command, base in BASES.items():
        flags = walk.flags(command)
        for flag, kind in flags.items():
            if flag in ("--help", "--threads", "--jobs", "--all"):
                continue
            values = [" " + value for value in VALUES] if kind else [""]
            if kind and "|" in kind:
                values = [" x"] + [" '" + value + "'" for value in re.findall(r"[\w.,-]+", kind)]
            if flag in WRITTEN:
                values = [" new.x", " new.csv", " new.npz", " new.h", " new.svg"]
            yield from (f"attn {command} {base} {flag}{value}" for value in values)
            if kind and flag not in WRITTEN and ("FILE" in kind or "LIST" in kind):
                yield from (f"attn {command} {base} {flag} {name}" for name in FILES)
            short = without(f"attn {command} {base}", flag)
            if short != f"attn {command} {base}":
                yield short
        yield from (f"attn {command} {base} {flag} 2" for flag in everything if flag not in flags)
        yield f"attn {command}"
        words = base.split()
        for at, word in enumerate(words):
            if "." in word or "/" in word:
                yield from (f"attn {command} " + " ".join(words[:at] + [name] + words[at + 1:]) for name in FILES)
    for line in (ROOT / "tests/cli/mistakes.tsv").read_text().splitlines():
        yield "rm -rf parts; " + line.split("\t", 2)[2]


def forms():
    for command in ("self X", "compare X X", "sdpa --query X --key X --value X", "inspect X", "plot X -o new.svg"):
        yield from (f"attn {command}".replace("X", name) for name in FORMS
                    if not (command.startswith("plot") and name == "decimal-column.csv"))
    for name in ("v2.npy", "bfloat16.npy"):
        yield from (f"attn self {name}", f"attn compare {name} {name}")
    yield "attn sdpa --query m.json --key m.json --value m.json --mask true.csv"


PLANTED = """#!/bin/sh
case "$2 $*" in
*--help*) printf '  --heads N   a number\\n  --good N    a number\\n' ;;
*--heads*) echo 'attn: error: --heads 2: not a flag of attn self' >&2; exit 2 ;;
a*--good*) exit 0 ;;
*) echo "attn: error: of $2: no heads; expected --heads N, or --good N" >&2; exit 2 ;;
esac
"""


def planted(folder):
    """What is found where a flag is refused after it was suggested, and where one changes nothing."""
    (folder / "bin").mkdir(parents=True)
    (folder / "bin/attn").write_text(PLANTED)
    (folder / "bin/attn").chmod(0o755)
    walk = Walk(str(folder / "bin/attn"), str(folder))
    return [[end.split(":")[0] for end in walk.dead_ends(line)] for line in ("attn self a", "attn self b")]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        ends = planted(pathlib.Path(folder) / "planted")
        if ends != [["--heads 2 is a dead end"], ["--heads 2 is a dead end", "--good 2 is a dead end"]]:
            sys.exit(f"suggestions: the dead ends of a planted program are {ends}")
        root = pathlib.Path(folder) / "walk"
        (root / "bin").mkdir(parents=True)
        (root / "bin/attn").symlink_to(pathlib.Path(asked.program).resolve())
        (root / "data").symlink_to(ROOT / "data")
        for name, content in {**FILES, "m.json": "[[1,2],[4,5]]", "c.ndjson": '{"token_ids":[1,2,3]}\n',
                              "x.csv": (ROOT / "data/journey.csv").read_text(),
                              "x.pt": "PK\3\4", "pytorch_model.bin": "PK\3\4", "model.gguf": "GGUF",
                              "picture.png": "PNG"}.items():
            (root / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        (root / "dangling").symlink_to("nowhere")
        # Without the records' own "emit", which the flag does not replace.
        records = (ROOT / "data/requests.ndjson").read_text().replace('"journey', '"data/journey')
        (root / "b.ndjson").write_text(re.sub(r', "emit": \[[^]]*\]', "", records))
        walk = Walk(str(root / "bin/attn"), str(root))
        for line in ("attn causal x.csv -o r.json", "attn partial causal x.csv --kv-range 0:3 -o p.npz"):
            if walk.run(line)[0] != 0:
                sys.exit(f"suggestions: {line}: {walk.run(line)[1]}")
        lines, read = list(dict.fromkeys(mistakes(walk))), list(forms())
        if not asked.all:
            lines = random.Random(asked.seed).sample(lines, SAMPLE)
            read = random.Random(asked.seed).sample(read, 25)
        with concurrent.futures.ThreadPoolExecutor(2) as workers:
            found = [f"is not read: {line} | {walk.error(line)}"
                     for line, good in zip(read, workers.map(walk.is_read, read)) if not good]
            found += [end for ends in workers.map(walk.dead_ends, lines) for end in ends]
    for end in found:
        print("suggestions:", end)
    print(f"suggestions: {len(lines)} mistakes and {len(read)} forms, {len(found)} dead ends")
    sys.exit(1 if found else 0)


main()
