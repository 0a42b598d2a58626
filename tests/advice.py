#!/usr/bin/env python3
"""The advice of an error leads out of it: a user who follows it, error after error, never goes in a circle.

    python3 tests/advice.py ATTN [--walks N] [--seed N]

Mistakes: commands x flags x values that are missing, empty, of a wrong type, out of range or apart; flags of other
commands and programs, misspelt ones; files of every kind, shape and form of CSV; requests with the same keys; two at a
time; tests/cli/mistakes.tsv. Each flag, value, command and near word that the error offers is taken, and so on to the
end. It is a defect if the same error comes again, the next one refuses what was offered, leads back, offers what is
given, or names a flag that does not exist, and if a form of CSV that programs write is not read in the end. A planted
program has such defects. ATTN_TEST_SEED is the default of --seed.
"""

import argparse
import json
import os
import pathlib
import random
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
from support.mistakes import COMMANDS, MODES, WRITTEN, foreign_words, mistake, prepare, rows_of_table  # noqa: E402
from support.odd_files import FORMS  # noqa: E402

STEPS, TAKEN = 5, 4  # errors in a row, and offers of one that are taken
# What an example of a value is, by the words that describe it.
EXAMPLES = ((r"FILE\.(\w+)", r"new.\1"), (r"A:B|as in 0:4", "0:2"), (r"I/N", "1/2"), (r"N,\.\.\.|token ids", "1,2"),
            (r".*\bas (-?\d+,-?\d+)$", r"\1"), (r".*THEIRS=OURS.*", "a.weight=query,b.weight=key,c.weight=value"),
            (r"NAME=ARRAY|doc=0,0,1,1", "doc=0,0,1,1"), (r"TEXT", "hello"), (r"LIST", "0"), (r"FILE|a file|a path", "m.json"), (r"LEFT", "1"),
            (r"probability", "0.5"), (r"number of bytes", "500MB"), (r"number", "0.5"), (r"integer|\bN\b|seed", "2"), (r"[SXBEC]\b", "0.5"))
REFUSED = re.compile(r"unknown flag|not a flag|conflict|contradict|no effect|takes no|does not have|requires --|not found")
WRONG_FLAG = re.compile(r"unknown flag|not a flag|one dash|conflicts|no effect|does not have|takes no value|requires (?!a)|"
                        r"no negation|typographic|is a folder|is the type of|in its place|is a setting of a mode")
LEFT_OUT = re.compile(r"no such flag|leave it out|expected none|only one|one of them|alone|expected no |or no --|without it")


class Walker:
    def __init__(self, program, folder):
        self.program, self.folder, self.known, self.answers = program, folder, {}, {}
        self.before = ""  # the shell before the command
        self.names = {path.name for path in folder.iterdir()}
        self.files = {path.name: (path.read_bytes(), path.stat().st_mtime_ns)
                      for path in folder.iterdir() if path.is_file()}
        self.environment = {"PATH": f"{pathlib.Path(program).parent}:/usr/bin:/bin", "HOME": str(folder), "LC_ALL": "C.UTF-8"}

    def restore(self):
        """Undoes what a command wrote: each begins with the same files."""
        for path in self.folder.iterdir():
            if path.name not in self.names:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        for name, (content, time) in self.files.items():
            path = self.folder / name
            if not path.exists() or path.stat().st_mtime_ns != time:
                path.write_bytes(content)
                self.files[name] = content, path.stat().st_mtime_ns

    def error(self, words):
        """The message of the error, or None."""
        key = (self.before, *words)
        if key not in self.answers:
            # An object among the words is a request in a file.
            named = [word if not word.startswith("{") else f"key{abs(hash(word))}.json" for word in words]
            for name, word in zip(named, words):
                if name != word:
                    (self.folder / name).write_text(word)
            try:
                line = self.before + shlex.join(["attn", *named])
                done = subprocess.run(["bash", "-c", line], cwd=self.folder, env=self.environment, timeout=10,
                                      stdin=subprocess.DEVNULL, capture_output=True)
            except subprocess.TimeoutExpired:  # it computes
                return self.answers.setdefault(key, None)
            self.restore()
            text = done.stderr.decode(errors="replace")
            found = re.findall(r"^attn: (?:error: |\d+ of \d+ records failed; the first(?:, record \d+)?: )(.*)$", text, re.M)
            self.answers[key] = found[0] if done.returncode and found else None
        return self.answers[key]

    def flags(self, command):
        """Its flags, with what their values are; empty for a switch."""
        if command not in self.known:
            done = subprocess.run([self.program, command, "--help", "--all"], capture_output=True, text=True,
                                  env={**self.environment, "COLUMNS": "200"})
            text = done.stdout + subprocess.run([self.program, command, "--help"], capture_output=True, text=True).stdout
            self.known[command] = {
                flag: value or "" for flag, value in
                re.findall(r"^ {2,6}(?:-\w, )?(--[a-z][a-z0-9-]*)(?: (?!  )([^\s]+(?:\|\S+)*))?", text, re.M)}
        return self.known[command]

    def kind(self, words, flag):
        modes = [word for word in words[:2] if word in MODES or word == words[0]]
        return next((self.flags(mode)[flag] for mode in reversed(modes) if flag in self.flags(mode)), None)

    def offers_of_keys(self, words, at, message):
        """The same for an error at a key of a request."""
        document = json.loads(words[at])
        found = re.match(r"\S+\.json:\d+:\d+: (\w+)(?: .*?)?: (.*)", message)
        unknown = re.search(r'unknown key "(\w+)"', message)
        key, rest = (unknown[1], message) if unknown else (found[1], found[2]) if found else (None, "")
        if key not in document:
            return
        advice = rest.partition("; ")[2] or rest
        others = {name: value for name, value in document.items() if name != key}

        def changed(new):
            return words[:at] + [json.dumps(new)] + words[at + 1:]

        near = re.search(r'did you mean "?([\w.-]+)"?\?|attn calls it "(\w+)"', advice)
        if near:
            name = near[1] or near[2]
            yield "", changed({**others, name: document[key]} if unknown else {**document, key: name})
        if LEFT_OUT.search(advice):
            yield "", changed(others)
        choice = re.search(r"expected ([\w.,-]+(?:\|[\w.,-]+)+)", advice)
        bound = re.search(r"(?:integer|probability|number)s? (?:from|of at least) (-?\d+)", advice)
        required = re.match(r"requires (\w+)(?: (\w+))?", rest)
        if required and required[1] in document and document[required[1]] != "none":
            yield f"{required[1]} is given", words
        elif choice and not required:
            yield from ((value, changed({**document, key: value})) for value in choice[1].split("|"))
        elif bound and not near:
            yield bound[1], changed({**document, key: "0:2" if "A:B" in advice else int(bound[1])})
        elif "true or false" in advice:
            yield "true", changed({**document, key: True})

    def offers(self, words, message):
        """What a user would do who reads it: (what was offered, the new words)."""
        document = next((i for i, word in enumerate(words) if word.startswith("{")), None)
        if document is not None and ".json:" in message:
            yield from self.offers_of_keys(words, document, message)
            return
        place, _, rest = message.partition(": ")
        parts = re.split(r"; |(?<=: )", rest, maxsplit=1)
        advice = parts[1] if len(parts) > 1 else (rest if re.match("requires|expected", rest) else "")
        flag = (re.match(r"--?[A-Za-z][\w-]*", place) or [None])[0]
        at = next((i for i, word in reversed(list(enumerate(words))) if flag and (
            word == flag or word.startswith(flag + "=")) or word == LETTERS.get(flag)), None)
        has_value = at is not None and "=" not in words[at] and at + 1 < len(words) and place.endswith(words[at + 1]) \
            and place != flag and words[at + 1] != ""
        has_value |= at is not None and at + 1 < len(words) and words[at + 1] == "" and place.endswith("''")
        end = None if at is None else at + 1 + has_value

        def with_value(value):
            return words[:at] + [words[at].split("=")[0], value] + words[end:]

        if place.startswith("---") or "A:B with A below B, and B at most" in advice or '"' in advice.replace("'\"'", "").partition("did you mean")[0]:
            return
        if flag and sum(word.split("=")[0] in (flag, LETTERS.get(flag)) for word in words) > 1:
            return
        if rest.startswith("requires a value"):
            at = next((i for i, word in enumerate(words) if word in (flag, LETTERS.get(flag)) and
                       (i + 1 == len(words) or not words[i + 1] or words[i + 1].startswith("--"))), None)
            if at is None:
                return
            example = next((text for pattern, text in EXAMPLES[1:] if re.search(pattern, advice)), "2")
            choice = re.search(r"--[\w-]+ ([\w.,-]+)\|", advice)
            value = WRITTEN[flag][-1] if flag in WRITTEN else choice[1] if choice else example
            yield value, words[:at + 1] + [value] + words[at + 1:]
            return
        near = re.search(r"did you mean (\S+?)\?(?:$|;)", advice) or re.match(r"unknown flag; expected (--[\w-]+)$", rest)
        called = re.search(r"attn calls it (--[\w-]+)", advice)
        if near and near[1].startswith("--") and at is not None:
            yield "", words[:at] + [near[1]] + words[at + 1:]
        elif near and at is not None and has_value:
            bad = re.search(r'unknown array "(.*?)"', rest)
            yield near[1], with_value(words[at + 1].replace(bad[1], near[1]) if bad else near[1])
        elif near and place in words:
            yield near[1], [near[1] if word == place else word for word in words]
        if called and at is not None and "ve it" not in advice and "has it" not in advice and self.kind(words, called[1]) is not None:
            yield "", words[:at] + [called[1]] + words[at + 1:]
        if at is not None and LEFT_OUT.search(advice):
            yield "nothing", words[:at] + words[end:]
        elif place in words[1:] and LEFT_OUT.search(advice):
            inputs = [i for i, word in enumerate(words) if word == place and not words[i - 1].startswith("--")]
            where = (inputs or [words.index(place)])[-1]
            yield "nothing", words[:where] + words[where + 1:]
        if re.search(r"ha(s|ve) (it|--)", advice):
            return
        if at is not None and not called and not WRONG_FLAG.search(rest):
            choice = re.search(r"expected ([\w.,-]+(?:\|[\w.,-]+)+)", advice)
            for value in choice[1].split("|") if choice else []:
                if not value.isupper():
                    yield value, with_value(value)
            first = re.search(r"expected ([a-z0-9]+), .* or ", advice)
            bound = re.search(r"(?:integer|probability|number)s? (?:from|of at least|above) (-?\d+)", advice)
            if first and not choice:
                yield first[1], with_value(first[1])
            elif "A:B" in advice:
                yield "0:2", with_value("0:2")
            elif bound and not choice:
                yield bound[1], with_value(bound[1] if "above" not in bound[0] else str(int(bound[1]) + 1))
            elif not choice and not re.search(r"--[a-z]|even number", advice):
                example = next((re.sub(pattern, value, found[0]) for pattern, value in EXAMPLES
                                if (found := re.search(pattern, advice))), None)
                if example:
                    yield example, with_value(example)
        if called or near or re.search(r"\bas from\b|hf download|what the tensors do not show|other modes take|requires --format json|no effect on query|on the command line|by --layer N|\bas attn\b|attn [a-z]+ .*--", advice):
            return
        base = words
        if at is not None and WRONG_FLAG.search(rest) and not rest.startswith("requires"):
            base = words[:at] + words[end:]
        replaced = place if re.match("is a folder|is not a file|one matrix|unexpected second", rest) else (re.findall(r"(?:in place of|without) (\S+?)[,;]?(?:$| )", rest) or [None])[0]
        if replaced == "query":
            base = [word for i, word in enumerate(base) if {"--query", "--key", "--value"}.isdisjoint(base[max(i - 1, 0):i + 1])]
        elif replaced in base:
            held = next((i for i, word in reversed(list(enumerate(base))) if word == replaced and
                         not base[i - 1].startswith("--")), base.index(replaced))
            base = base[:held] + base[held + 1 + (replaced.startswith("--") and bool(self.kind(words, replaced))):]
        offers = [self.offered(words, advice[:found.start()], found) for found in re.finditer(
            r"(?<![\w-])(--[a-z][a-z0-9-]+)(?:[ =](?:with )?([^\s;,()]+|,(?= )))?", advice)]
        offers = [offer for offer in offers if offer]
        if re.search(r"(?: and|,) --|, and --|--layers \d+ --emit", advice) and not re.search(r" or (?:--(?!max)|booleans)", advice) and offers:
            offers = [[word for offer in offers for word in offer]]
        for added in offers:
            new = list(base)
            for offered in (word for word in added if word.startswith("--") and word in new):
                held = new.index(offered)
                new = new[:held] + new[held + 1 + bool(self.kind(words, offered)):]
            yield "" if rest.startswith("unknown flag; expected") else " ".join(added), new + added

    def offered(self, words, before, found):
        """The flag and the value that a message names, or an example of one; None where it is of another command."""
        flag, value = found[1], (found[2] or "").rstrip("?.:").split("|")[0]
        kind = self.kind(words, flag)
        if kind is None or flag in ("--help", "--version") or value == "as" or re.search(r"(attn (?!calls)[a-z]+|as|or no) ?$|\([^)]*$|in place of", before):
            return None
        choices = kind.split("|") if "|" in kind else []
        if flag == "--ignore-arrays":  # with the names of the file's arrays
            return [flag, found.string[found.end(1):].split(";")[0].strip()]
        if kind == "NAME" and re.fullmatch("[a-z-]+", value):  # one of more than its help lists
            return [flag, value]
        example = re.fullmatch(r"[a-z]+|[A-Z,.:/\[\]a-z]*[A-Z][A-Z,.:/\[\]]*|'.*|\.\.\.", value) and value not in choices + words
        if kind and (not value or example):
            value = choices[0] if choices and not choices[0].isupper() else next(
                (text for pattern, text in EXAMPLES[1:] if re.search(pattern, kind)), "2")
        suffix = re.search(r"ends in (\.\w+)", before + found.string[found.start():])
        if suffix:
            value = "new" + suffix[1]
        return [flag] + ([value] if suffix and kind else [WRITTEN[flag][-1] if flag in WRITTEN and value not in words else value] if kind else [])

    def missing_elsewhere(self, message):
        """A flag that a command is said to have, and has not."""
        found = re.search(r"; (?:attn calls it (--[\w-]+); )?attn ([a-z]+(?:(?:, | and )[a-z]+)*) ha(?:s|ve) it", message)
        found = found if message.startswith("--") else None
        if not found:
            return None
        flag = found[1] or message.split(":")[0].split(" ")[0]
        of = lambda command: {**self.flags(command), **self.flags("partial")} if command == "partial" else self.flags(command)
        names = [name for name in re.split(", | and ", found[2]) if flag not in of(name)]
        return f"attn {names[0]} has no {flag}" if names and not flag.startswith("--no-") else None

    def no_flag(self, message):
        """A flag that the advice names and no command has."""
        advice = re.split(r"; |requires |expected ", message, maxsplit=1)[1:]
        known = {flag for command in COMMANDS for flag in self.flags(command)} | {"--help", "--version"}
        known |= {"--no-" + flag[2:] for flag in known}
        names = [name for text in advice for name in re.findall(r"(?<![\w-])--[a-z][a-z0-9-]+", text)]
        return next((f"{name} is not a flag" for name in names if name not in known and "hf download" not in message), None)

    def leads_out(self, words, steps=3):
        """Whether the command works, or does so after what its errors offer."""
        message = self.error(words)
        if message is None or steps == 0:
            return message is None
        converted = re.search(r"iconv -f [\w-]+ -t UTF-8", message)
        if converted:
            name = next(word for word in words if word.startswith("utf-"))
            self.before = f"{converted[0]} {name} > new-{name}; "
            return self.leads_out([word.replace(name, "new-" + name) for word in words], steps - 1)
        return any(self.leads_out(new, steps - 1) for _, new in self.offers(words, message) if new != words)

    def circles(self, words, path=(), taken=None, steps=STEPS):
        """Where the advice leads back; each with the way there."""
        message = self.error(words)
        if message is None:
            return
        line = self.before + "attn " + " ".join(word if word and " " not in word else f"'{word}'" for word in words)
        here = path + (f"{line}\n      {message}",)
        if any(way.split("\n      ")[1] == message for way in path) and taken != "nothing":
            yield "the same error again", here
            return
        if self.missing_elsewhere(message) or self.no_flag(message):
            yield self.missing_elsewhere(message) or self.no_flag(message), here
        if taken and taken.startswith("--") and message.startswith(taken.split(" ")[0]) and REFUSED.search(message) \
                and not re.search(r"requires (--\S+)|no effect on query", message):
            yield f"{taken} was offered, and is refused", here
            return
        if steps == 0:
            return
        done, ends = set(), []
        for offered, new in self.offers(words, message):
            if new == words:
                yield f"{offered} is given already", here
                continue
            if tuple(new) in done or len(done) == TAKEN:
                continue
            done.add(tuple(new))
            ends.append(list(self.circles(new, here, offered, steps - 1)))
        # One of several offers may lead back by way of another error, if another offer does not.
        for what, way in (end for found in ends for end in found):
            is_long = what == "the same error again" and len({step.split("\n      ")[1] for step in way[-2:]}) == 2
            if not is_long or [] not in ends:
                yield what, way


LETTERS = {"--output": "-o", "--format": "-f", "--emit": "-e", "--token": "-t"}


PLANTED = """#!/bin/sh
case "$2 $*" in
*--help*) printf '  --heads N   a number\\n  --good N    a number\\n' ;;
*--heads*) echo 'attn: error: --heads 2: not a flag of attn self' >&2; exit 2 ;;
a*--good*) exit 0 ;;
*) echo "attn: error: of $2: no heads; expected --heads N, or --good N" >&2; exit 2 ;;
esac
"""


def planted(folder):
    """What is found where a flag is refused after it was offered, and where one changes nothing."""
    folder.mkdir()
    (folder / "attn").write_text(PLANTED)
    (folder / "attn").chmod(0o755)
    return [[what for what, _ in Walker(str(folder / "attn"), folder).circles(["self", name])] for name in "ab"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--walks", type=int, default=400)
    parser.add_argument("--seed", type=int, default=int(os.environ.get("ATTN_TEST_SEED", "1")))
    parser.add_argument("--words", help="follows the errors of this command alone")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder, found, program = pathlib.Path(name) / "walk", [], f"{name}/bin/attn"
        pathlib.Path(program).parent.mkdir()
        pathlib.Path(program).symlink_to(pathlib.Path(asked.program).resolve())
        if planted(pathlib.Path(name) / "planted") != [
                ["--heads 2 was offered, and is refused"],
                ["--heads 2 was offered, and is refused", "the same error again"]]:
            sys.exit("advice: the defects of a planted program are not found")
        folder.mkdir()
        prepare(program, folder)
        walker, draw, foreign = Walker(program, folder), random.Random(asked.seed), foreign_words()
        lines = [("", asked.words.split(" "))] if asked.words else [
            *(("", mistake(walker, draw, foreign)) for _ in range(asked.walks)),
            *draw.sample(list(rows_of_table()), min(900, asked.walks // 3))]
        for walker.before, words in lines:
            found += walker.circles(words)
        for command in () if asked.words else ("self X", "compare X X", "sdpa --query X --key X --value X", "plot X -o new.svg"):
            for form in draw.sample(sorted(FORMS), len(FORMS) // 4 if asked.walks < 1000 else len(FORMS)):
                walker.before, words = "", command.replace("X", form).split()
                if not walker.leads_out(words):
                    found.append(("is not read", (f"attn {' '.join(words)}\n      {walker.error(words)}",)))
    shown = set()
    for what, way in found:
        kind = what + re.sub(r"\d+", "N", way[-1].split("\n      ")[1])
        if kind not in shown:
            print(f"advice: {what}:\n  " + "\n  ".join(way))
        shown.add(kind)
    print(f"advice: {len(lines)} mistakes, {len(walker.answers)} commands, {len(found)} circles, {len(shown)} kinds")
    sys.exit(1 if found else 0)


main()
