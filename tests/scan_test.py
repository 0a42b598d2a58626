"""Compares `attn scan` and `attn merge` with an independent program in NumPy, integer by integer.

    python3 tests/scan_test.py ATTN [FAMILY ...]

The model of every family of data/models, and encoder-decoder models: texts of ids and words, padded ones and ones that fail,
x --skip-special x layers x types. The program takes the weights that `attn batch` writes and has TransformerLens's patterns of
previous_token_head, duplicate_token_head and induction_head. Then shards x jobs x threads x groupings of merges, kills at any
moment with --resume, and changed files of statistics: the bytes of one process, or one line of error. One family in three,
or all with ATTN_TEST_WHOLE. Exit code 77: no NumPy.
"""

import json
import math
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
from fractions import Fraction

sys.dont_write_bytecode = True
from plain_corpus import check_plain_text  # noqa: E402
from support.asked import ATTN, ROOT, rng, run  # noqa: E402

try:
    import numpy as np
    from support.array_files import safetensors
    from support.drawn import drawn
except ImportError:
    sys.exit(77)

chosen = sys.argv[2:]
STATS = ["entropy", "sink", "previous_token", "induction", "duplicate_token", "distance", "key_mass"]
SPECIAL = {1, 2}
ONE = 1 << 24


def write_model(folder, case):
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(case["config"]))
    (folder / "model.safetensors").write_bytes(safetensors(
        {name: ("F32", row[0], drawn(name, *row).tobytes()) for name, row in case["tensors"].items()}))
    added = [{"id": i, "content": f"w{i}", "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
              "special": True} for i in SPECIAL]
    (folder / "tokenizer.json").write_text(json.dumps(
        {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": None,
         "pre_tokenizer": {"type": "Whitespace"}, "post_processor": None, "decoder": None,
         "model": {"type": "WordLevel", "vocab": {f"w{i}": i for i in range(100)}, "unk_token": "w0"}}))


def make_texts(case, count):
    """Short ones that repeat tokens, within the table of positions; among them failing and padded ones."""
    known = case["token_ids"]
    texts = []
    for i in range(count):
        ids = [rng.choice(known[:3] + [1, 2]) for _ in range(rng.randint(1, len(known)))]
        text = {"id": f"t{i}", "token_ids": ids}
        kind = rng.randrange(8)
        if kind == 0: text = {"text": " ".join(f"w{i}" for i in ids), "meta": {"a": [1]}}
        if kind == 1: text["token_ids"] = ids + [10**6]
        if kind == 2: text["attention_mask"] = [rng.choice([0, 1, 1]) for _ in ids]
        if kind == 3 and "decoder_ids" in case: text["decoder_ids"] = [3, 4, 3, 4, 3][:rng.randint(1, 5)]
        texts.append(text)
    return texts


def weights_of(folder, texts, flags):
    """The answer of attn batch to each text: {(part, layer): (heads, n, n)}, or None where it failed."""
    lines = "".join(json.dumps({"mode": "model", "model": str(folder), **text, "emit": ["attention_weights"]}) + "\n"
                    for text in texts)
    done = run("batch", *flags, code=(0, 1), input=lines)
    answers = []
    for line in done.stdout.splitlines():
        answer = json.loads(line)
        if "error" in answer:
            answers.append(None)
            continue
        found = {}
        for part in "", "encoder", "decoder":
            name = part + "_" * bool(part) + "attention_weights"
            for layer, weights in zip(answer["layer_numbers"], answer.get(name, [])):
                if weights is None: continue
                found[part, layer] = np.asarray(weights, dtype=np.float64)
                if "float64" not in flags: found[part, layer] = found[part, layer].astype(np.float32).astype(np.float64)
        answers.append(found)
    assert len(answers) == len(texts), done.stderr
    return answers


def values_of(weights, ids, counted):
    """A list of values for each statistic, of one head."""
    n = len(ids)
    w = np.where(counted[None, :], weights, 0.0)
    same = np.tril(ids[:, None] == ids[None, :], -1) & counted[None, :]
    after = np.concatenate([np.zeros((n, 1), dtype=bool), same[:, :-1]], axis=1)
    previous = np.eye(n, k=-1, dtype=bool)
    rows = counted & (weights.sum(axis=1) != 0)
    first = int(np.argmax(counted)) if counted.any() else 0
    place = np.arange(n)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(w > 0, w * np.log(w), 0.0)
    by_row = {"entropy": -terms.sum(axis=1), "sink": w[:, first], "previous_token": (w * previous).sum(axis=1),
              "induction": (w * after).sum(axis=1), "duplicate_token": (w * same).sum(axis=1),
              "distance": (w * abs(place[:, None] - place[None, :])).sum(axis=1)}
    found = {name: by_row[name][rows] for name in by_row}
    found["key_mass"] = w[counted].sum(axis=0)[counted]
    return found


def bin_of(name, fixed):
    value = Fraction(max(fixed, 0), ONE)
    if name in ("distance", "key_mass"):
        bin = 0
        while bin < 63 and value**2 >= Fraction(2) ** (bin + 1 - 16): bin += 1
        return bin
    return min(63, math.floor(value * (4 if name == "entropy" else 64)))


def expected_sums(texts, answers, skips):
    sums, tokens = {}, 0
    for text, answer in zip(texts, answers):
        if answer is None: continue
        seen = set()
        for (part, layer), heads in answer.items():
            n = heads.shape[-1]
            ids = text.get("token_ids") or [int(w[1:]) for w in text.get("text", "").split()]
            if part == "decoder": ids = text.get("decoder_ids") or [text["start"]]
            ids = np.asarray(ids)
            assert len(ids) == n, (ids, n)
            counted = np.ones(n, dtype=bool)
            if part != "decoder" and "attention_mask" in text: counted &= np.asarray(text["attention_mask"]) == 1
            if skips: counted &= ~np.isin(ids, list(SPECIAL))
            if part not in seen: tokens += n
            seen.add(part)
            for head, weights in enumerate(heads):
                for name, values in values_of(weights, ids, counted).items():
                    to = sums.setdefault((name, part, layer, head), [])
                    to.extend(int(x) for x in np.rint(values * ONE))
    return sums, tokens


def check(document, texts, answers, skips, stats):
    sums, tokens = expected_sums(texts, answers, skips)
    corpus = document["corpus"]
    failed = [i + 1 for i, answer in enumerate(answers) if answer is None]
    assert corpus["records"] == len(texts) and corpus["complete"] and corpus["tokens"] == tokens, (corpus, tokens)
    assert [f["record"] for f in corpus["failed"]["first"]] == failed, (corpus["failed"], failed)
    layers = [(layer.get("part", ""), layer["layer"], layer["heads"]) for layer in document["sums"]["layers"]]
    assert set(document["sums"]) == {"layers", *stats}
    numbers = 0
    for name in stats:
        of = document["sums"][name]
        assert {key[1:] for key in sums if key[0] == name} == \
            {(part, layer, head) for part, layer, heads in layers for head in range(heads)}
        for row, (part, layer, heads) in enumerate(layers):
            for head in range(heads):
                values = sums[name, part, layer, head]
                got = {key: of[key][row][head] for key in
                       ("count", "sum", "squares", "least", "most", "variance", "histogram")}
                mean = document[name][row][head]
                place = (name, part, layer, head, got, values)
                assert got["count"] == len(values), place
                assert int(got["sum"]) == sum(values) and int(got["squares"]) == sum(v * v for v in values), place
                bins = [0] * 64
                for v in values: bins[bin_of(name, v)] += 1
                assert got["histogram"] == bins, place
                if not values:
                    assert got["least"] is got["most"] is got["variance"] is mean is None, place
                    continue
                assert (got["least"], got["most"]) == (min(values) / ONE, max(values) / ONE), place
                exact = Fraction(sum(values), len(values))
                spread = Fraction(sum(v * v for v in values), len(values)) - exact**2
                assert math.isclose(mean, float(exact / ONE), rel_tol=1e-15), place
                assert math.isclose(got["variance"], float(spread / ONE**2), rel_tol=1e-12, abs_tol=1e-20), place
                numbers += len(values)
    return numbers


def write_corpus(path, texts):
    path.write_text("".join(json.dumps({k: v for k, v in text.items() if k != "start"}) + "\n" for text in texts))


def check_family(folder, case):
    """The number of values that were compared."""
    texts = make_texts(case, 6)
    for text in texts: text["start"] = case.get("decoder_ids", [0])[0]
    corpus = folder.parent / "corpus.ndjson"
    write_corpus(corpus, texts)
    numbers = 0
    plain = [{k: v for k, v in text.items() if k != "start"} for text in texts]
    for flags in ([], ["--dtype", "float64", "--threads", "3"]):
        answers = weights_of(folder, plain, flags)
        if all(not answer for answer in answers): continue
        for skips in (False, True):
            stats = STATS if rng.random() < 0.6 else sorted(rng.sample(STATS, 3), key=STATS.index)
            # A text without an attention layer's weights is not one that failed in the batch.
            done = run("scan", folder, corpus, "--stats", ",".join(rng.sample(stats, len(stats))), *flags,
                       *["--skip-special"] * skips, code=1 if None in answers else 0)
            numbers += check(json.loads(done.stdout), texts, answers, skips, stats)
    return numbers


def check_joins(folder, case, scratch):
    """Every division of a corpus gives the bytes of one process."""
    texts = make_texts(case, 40)
    corpus = scratch / "corpus.ndjson"
    write_corpus(corpus, texts)
    whole = run("scan", folder, corpus, "--jobs", 1, "--threads", 1, code=1).stdout
    for jobs, threads in ((1, 2), (2, 1), (3, 4), (8, 1)):
        assert run("scan", folder, corpus, "--jobs", jobs, "--threads", threads, code=1).stdout == whole
    joined = 0
    for n in (2, 3, 4, 7, 60):
        files = []
        for i in range(1, n + 1):
            files.append(scratch / f"{i}-{n}.json")
            run("scan", folder, corpus, "--shard", f"{i}/{n}", "--jobs", rng.randint(1, 3), "-o", files[-1], code=(0, 1))
        for _ in range(3):
            rng.shuffle(files)
            left, step = list(files), 0
            while len(left) > 1:  # any grouping
                group = [left.pop() for _ in range(min(len(left), rng.randint(2, 4)))]
                step += 1
                target = scratch / f"merged{step}.json"
                run("merge", *group, "-o", target)
                left.insert(rng.randint(0, len(left)), target)
            assert left[0].read_text() == whole, n
            joined += 1
        twice = run("merge", files[0], *files, code=3)
        assert "each shard once" in twice.stderr and not twice.stdout, twice
    other = run("merge", scratch / "1-2.json", scratch / "1-4.json", code=3)
    assert "one division" in other.stderr and not other.stdout, other
    return joined


def check_kills(folder, case, scratch):
    """A scan that is killed again and again writes what an undisturbed one does."""
    corpus = scratch / "long.ndjson"
    repeats, lasted = 60, math.inf
    while lasted > 1.5:  # about a second, whatever the machine and the build
        write_corpus(corpus, make_texts(case, 40) * repeats)
        begin = time.time()
        whole = run("scan", folder, corpus, code=1).stdout
        lasted = time.time() - begin
        repeats = max(1, int(repeats / lasted))
        if repeats == 1: break
    kills = 0
    for kill in (signal.SIGKILL, signal.SIGTERM):
        target = scratch / f"resumed{kill}.json"
        for attempt in range(200):
            scan = subprocess.Popen([ATTN, "scan", folder, corpus, "--resume", target], stderr=subprocess.PIPE)
            try:
                scan.wait(rng.uniform(0, min(lasted, 1)) * (0.4 + attempt / 20))
            except subprocess.TimeoutExpired:
                scan.send_signal(kill)
                kills += 1
            error = scan.communicate()[1].decode()
            assert scan.returncode in (1, -kill), (scan.returncode, error)
            if target.exists(): json.loads(target.read_text())
            if scan.returncode == 1: break
        assert target.read_text() == whole, kill
        unfinished = list(scratch.glob(".attn-*"))  # which nothing can remove after SIGKILL
        assert kill == signal.SIGKILL or not unfinished, unfinished
        for path in unfinished: path.unlink()
    other = run("scan", folder, corpus, "--resume", target, "--skip-special", code=3)
    assert "has other settings" in other.stderr, other.stderr
    corpus.write_text(corpus.read_text().replace('"id": "t', '"id": "u', 1))
    assert "has other records" in run("scan", folder, corpus, "--resume", target, code=3).stderr
    return kills


def check_damage(folder, case, scratch):
    """A changed file is refused with one line, or joined; never a crash."""
    corpus = scratch / "corpus.ndjson"
    for shard in "1/2", "2/2":
        run("scan", folder, corpus, "--shard", shard, "-o", scratch / f"half{shard[0]}.json", code=(0, 1))
    text = (scratch / "half1.json").read_text()
    refused = 0
    replacements = ["-1", "0", "1e400", "99999999999999999999", "null", "[]", "{}", '"x"', '"-170141183460469231731687303715884105728"',
                    '"170141183460469231731687303715884105727"', "18446744073709551615", "true", '"18446744073709551616"', "0.3"]
    for _ in range(400):
        document = json.loads(text)
        at, path = document, []
        while isinstance(at, (dict, list)) and at and (len(path) < 2 or rng.random() < 0.85):
            key = rng.randrange(len(at)) if isinstance(at, list) else rng.choice(
                list(at) if path else ["config", "corpus", "sums"])
            path.append((at, key))
            at = at[key]
        holder, key = path[-1]
        if rng.random() < 0.2: del holder[key]
        else: holder[key] = "@"
        changed = json.dumps(document).replace('"@"', rng.choice(replacements))
        (scratch / "bad.json").write_text(changed)
        done = run("merge", scratch / "bad.json", scratch / "half2.json", code=(0, 3))
        if done.returncode:
            refused += 1
            assert done.stderr.startswith("attn: error: ") and done.stderr.count("\n") == 1 and not done.stdout, done
    assert refused > 150, refused
    many = json.loads((scratch / "half2.json").read_text())
    many["sums"]["layers"] = [{"layer": layer, "heads": 1 << 40} for layer in range(16)]
    (scratch / "bad.json").write_text(json.dumps(many))
    assert "as attn scan writes it" in run("merge", scratch / "bad.json", code=3).stderr
    return refused


def check_plot(folder, case):
    """Rows of pictures are named after the layers that were scanned."""
    text = json.dumps({"token_ids": case["token_ids"]})
    document = json.loads(run("scan", folder, "-", "--layers", "-1", input=text).stdout)
    (last,) = {f"{layer['part']} {layer['layer']}" if "part" in layer else str(layer["layer"])
               for layer in document["sums"]["layers"]}
    drawn = run("plot", "-", "--array", "sink", input=json.dumps(document)).stdout
    assert any(line.startswith(last + " ") for line in drawn.splitlines()[2:3]), (last, drawn)


def check_words(folder, case):
    """Ids that the model has but the tokenizer lacks are not special; a failed record is reported by its line."""
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    tokenizer["model"]["vocab"] = {f"w{i}": i for i in range(3)}
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    ids = [*case["token_ids"], 1]
    assert max(ids) >= 3
    lines = json.dumps({"token_ids": ids[1:]}) + '\n{"text": ""}\n{}\n'
    document = json.loads(run("scan", folder, "-", "--skip-special", code=1, input=lines).stdout)
    assert document["sums"]["entropy"]["count"][0][0] == sum(i not in SPECIAL for i in ids[1:]), document
    failed = [(record["record"], record["where"]) for record in document["corpus"]["failed"]["first"]]
    assert [record for record, _ in failed] == [2, 3], failed
    assert all(where.startswith(f"<stdin>:{record}") for record, where in failed), failed


def main():
    cases = [json.loads(line) for line in (ROOT / "data/models/families.ndjson").open()]
    cases += [case for case in map(json.loads, (ROOT / "data/models/generation.ndjson").open())
              if case.get("token_ids") and "config" in case]
    if chosen: cases = [case for case in cases if case["name"] in chosen]
    elif "ATTN_TEST_WHOLE" not in os.environ: cases = [case for i, case in enumerate(cases) if i % 3 == len(cases) % 3]
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        numbers, scanned, without = 0, 0, []
        for i, case in enumerate(cases):
            folder = scratch / str(i)
            write_model(folder, case)
            compared = check_family(folder, case)
            numbers += compared
            scanned += compared > 0
            if not compared: without.append(case["name"])
        print(f"{scanned} models, {numbers} values; none of {', '.join(without) or 'none'}")
        assert chosen or scanned > 0.9 * len(cases)
        case = next((case for case in cases if len(case["token_ids"]) > 4), cases[0])
        folder = scratch / "joined"
        write_model(folder, case)
        check_plot(folder, case)
        print(check_joins(folder, case, scratch), "groupings,", check_kills(folder, case, scratch), "kills,",
              check_damage(folder, case, scratch), "changed files refused,",
              check_plain_text(run, rng, folder, case, scratch), "plain files")
        check_words(folder, case)


main()
