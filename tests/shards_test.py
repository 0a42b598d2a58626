#!/usr/bin/env python3
"""attn batch --out-dir: the arrays are those of the text form, bit for bit, whatever interrupts it.

    python3 tests/shards_test.py ATTN

Formats x records per file x jobs x arrays x types x records that fail; indexes cut anywhere, repairs,
shards. Full disks, killed and stopped runs: faults.py. The reference: the answers as text, and NumPy's reader of npz;
safetensors are read by their specification. Needs NumPy; the check of the manual's DuckDB line needs
DuckDB. Exit code 77: skipped.
"""

import itertools
import json
import os
import pathlib
import re
import shutil
import subprocess

from shards_folder import SUFFIX, check_equal_text, files_of, matrix, read_folder, requests, unique_requests  # may exit with 77
from support.asked import ATTN, ROOT, check, rng, run, run_all


def arrays_are_those_of_text():
    pathlib.Path("r.ndjson").write_text(requests(60))
    for bare in ([], ["--bare"]):
        text = run("batch", "r.ndjson", *bare, code=1).stdout
        for store in (None,) if bare else (None, "float16", "bfloat16"):
            kept = {}
            for form, n, jobs in itertools.product(SUFFIX, (1, 7, 1000), (1, 3)):
                if store == "bfloat16" and form == "npz" or store and n == 7:
                    continue
                shutil.rmtree("out", ignore_errors=True)
                done = run("batch", "r.ndjson", "--out-dir", "out", "--format", form, "--records-per-file", n,
                           "--jobs", jobs, *bare, *(["--store", store] if store else []), code=1)
                check(done.stdout == "", done.stdout)
                check_equal_text("out", text, store)
                files = files_of("out")
                check(kept.setdefault((form, n), files) == files, "jobs change the bytes", form, n)
                check(len([name for name in files if name.startswith("part")]) <= -(-60 // n), sorted(files))


def models_have_arrays_by_layer():
    model = str(ROOT / "data" / "models" / "gpt2")
    records = [{"id": f"m{i}", "mode": "model", "model": model, "token_ids": [1, 2, 3 + i], **more} for i, more in
               enumerate(({}, {"emit": ["attention_weights", "hidden_states"]}, {"layers": [1], "emit": ["queries"]}))]
    pathlib.Path("r.ndjson").write_text("".join(json.dumps(record) + "\n" for record in records))
    for bare in ([], ["--bare"]):
        shutil.rmtree("out", ignore_errors=True)
        run("batch", "r.ndjson", "--out-dir", "out", *bare)
        check_equal_text("out", run("batch", "r.ndjson", *bare).stdout)
        check(run("batch", "r.ndjson", "--out-dir", "out", *bare, "--resume").stderr == "", "models resume")


def cut_anywhere_it_goes_on():
    pathlib.Path("r.ndjson").write_text(unique_requests(23))
    for form, n, bare in itertools.product(SUFFIX, (1, 5, 1000), ([], ["--bare"])):
        words = ["batch", "r.ndjson", "--out-dir", "out", "--format", form, "--records-per-file", n, *bare]
        text = run("batch", "r.ndjson", *bare, code=1).stdout
        shutil.rmtree("out", ignore_errors=True)
        run(*words, code=1)
        whole = files_of("out")
        index = whole["index.ndjson"]
        ends = [0, *(m.end() for m in re.finditer(b"\n", index))]
        for cut in {*rng.sample(ends, 3), *(rng.randrange(len(index)) for _ in range(4)), len(index)}:
            shutil.rmtree("out")
            os.mkdir("out")
            for name, data in whole.items():
                pathlib.Path("out", name).write_bytes(data)
            zeros = rng.choice((0, 0, 1, 5000))
            (pathlib.Path("out") / "index.ndjson").write_bytes(index[:cut] + bytes(zeros))
            # A killed run leaves the next part, whole or not.
            suffix = SUFFIX[form]
            pathlib.Path(f"out/.attn-part-00001{suffix}").write_bytes(b"torn")
            pathlib.Path(f"out/part-00077{suffix}").write_bytes(b"of no index")
            done = run(*words, "--resume", *rng.choice(([], ["--jobs", "3"])), code=1)
            after = files_of("out")
            check(all(name in ("index.ndjson", *whole) or name.startswith("part-0") for name in after), sorted(after))
            check(f"part-00077{suffix}" not in after and f".attn-part-00001{suffix}" not in after, sorted(after))
            kept = index[:cut].rfind(b"\n") + 1
            check(after["index.ndjson"].startswith(index[:kept]), form, n, bare, cut, done.stderr)
            check(cut < len(index) or after == whole, "a complete index changes", sorted(set(after) ^ set(whole)))
            check_equal_text("out", text, has_extra=True)


def failed_records_are_answered_again():
    names = []
    lines = []
    for i, text in enumerate(unique_requests(40).splitlines()):
        record = json.loads(text)
        if i % 5 == 2:
            names.append(f"late{i}.json")
            record = {"id": f"id {i}", "mode": "self", "inputs": names[-1]}
        lines.append(json.dumps(record))
    pathlib.Path("r.ndjson").write_text("\n".join(lines) + "\n")
    for form, n in itertools.product(SUFFIX, (1, 4, 1000)):
        words = ["batch", "r.ndjson", "--out-dir", "out", "--format", form, "--records-per-file", n]
        shutil.rmtree("out", ignore_errors=True)
        for name in names:
            pathlib.Path(name).unlink(missing_ok=True)
        run(*words, code=1)
        for i, name in enumerate(names):
            pathlib.Path(name).write_text(json.dumps(matrix(2, 3)))
            if i not in (len(names) // 2, len(names) - 1):
                continue
            run(*words, "--resume", "--retry-failed", code=1)
            check_equal_text("out", run("batch", "r.ndjson", code=1).stdout)
            before = files_of("out")
            run(*words, "--resume", code=1)
            check(files_of("out") == before, "a complete index changes")
        # Interrupted by a missing part, it leaves all as it is.
        part = sorted(name for name in before if name.startswith("part"))[0]
        os.rename(f"out/{part}", "part.kept")
        for more in ([], ["--retry-failed"]):
            done = run(*words, "--resume", *more, code=None)
            check(done.returncode in (3, 4) and part in done.stderr, done.returncode, done.stderr)
            check({**files_of("out"), part: before[part]} == before, "a refused folder changes")
        os.rename("part.kept", f"out/{part}")


def what_does_not_belong_is_refused():
    pathlib.Path("r.ndjson").write_text(unique_requests(9))
    words = ["batch", "r.ndjson", "--out-dir", "out"]
    run(*words, "--records-per-file", 4, code=1)
    before = files_of("out")
    for more, code in ((["--records-per-file", 4], 4), (["--resume", "--format", "safetensors"], 3),
                       (["--resume", "--records-per-file", 4, "--format", "safetensors"], 3),
                       (["--resume", "--records-per-file", 4, "--seed", "5", "--bare"], 3),
                       (["--resume", "out2", "--records-per-file", 4], 2), (["--resume", "-o", "x.ndjson"], 2),
                       (["--dry-run"], 2), (["--format", "json"], 2), (["--precision", "3"], 2),
                       (["--nonfinite", "null"], 2), (["--store", "bfloat16"], 2)):
        done = run(*words, *more, code=code)
        check(re.fullmatch(r"attn: error: [^\n]*\n", done.stderr) and done.stdout == "", more, done)
        check(files_of("out") == before, more)
    lines = before["index.ndjson"].splitlines(keepends=True)
    for _ in range(60):  # a changed line is not gone on with
        i = rng.randrange(len(lines))
        # Without its line end, the last line is one cut short, which is answered again.
        at = rng.randrange(len(lines[i]) - (i == len(lines) - 1))
        changed = lines[i][:at] + bytes([lines[i][at] ^ 1]) + lines[i][at + 1:]
        text = b"".join([*lines[:i], changed, *lines[i + 1:]])
        pathlib.Path("out/index.ndjson").write_bytes(text)
        done = run(*words, "--records-per-file", 4, "--resume", code=None)
        same = files_of("out")["index.ndjson"] == text
        check(same and done.returncode in (1, 3), i, at, done.returncode, done.stderr)
    for more in ([], ["--resume"]):  # without an index, a part is somebody else's
        shutil.rmtree("out")
        os.mkdir("out")
        pathlib.Path("out/part-00007.npz").write_bytes(b"mine")
        done = run(*words, *more, code=4)
        check("part-00007.npz" in done.stderr and files_of("out") == {"part-00007.npz": b"mine"}, more, done)


def shards_share_a_folder():
    pathlib.Path("r.ndjson").write_text(unique_requests(31))
    text = run("batch", "r.ndjson", code=1).stdout.splitlines(keepends=True)
    words = ["batch", "r.ndjson", "--out-dir", "out", "--records-per-file", "3"]
    running = [subprocess.Popen([ATTN, *words, "--shard", f"{i}/4"], stderr=subprocess.DEVNULL) for i in range(1, 5)]
    for process in running:
        check(process.wait() in (0, 1), process.returncode)
    seen = set()
    for i in range(4):
        index = f"index-{i + 1}-of-4.ndjson"
        check_equal_text("out", "".join(text[i::4]), index=index)
        for line, arrays in read_folder("out", index):
            check(arrays is None or json.loads(text[line["record"]])["id"] == line["id"], line["id"])
            seen |= {entry["entry"] for entry in line.get("arrays", [])}
        run(*words, "--shard", f"{i + 1}/4", "--resume", code=(0, 1))
    check(len(seen) == sum(len(arrays or ()) for i in range(4) for _, arrays in
                           read_folder("out", f"index-{i + 1}-of-4.ndjson")), "entries repeat")


def large_records_end_a_part():
    pathlib.Path("r.ndjson").write_text("".join(
        json.dumps({"id": i, "mode": "self", "rand": [1500, 2], "seed": i, "emit": ["scores", "attention_weights"]})
        + "\n" for i in range(7)))  # 18 MB each
    run("batch", "r.ndjson", "--out-dir", "large", "--jobs", 2)
    lines = [json.loads(line) for line in pathlib.Path("large/index.ndjson").read_text().splitlines()]
    check([line["file"][-5] for line in lines] == list("0000111"), [line["file"] for line in lines])
    whole = files_of("large")
    pathlib.Path("large/index.ndjson").write_bytes(b"".join(whole["index.ndjson"].splitlines(keepends=True)[:2]))
    run("batch", "r.ndjson", "--out-dir", "large", "--resume")
    check_equal_text("large", run("batch", "r.ndjson").stdout, has_extra=True)


def the_manual_reads_them():
    """Each python block of the manual about --out-dir, and its line of DuckDB."""
    page = (ROOT / "cli" / "manual" / "batch.md").read_text()
    section = page[page.index("## Answers as files of arrays"):]
    section = section[:section.index("\n## ", 3)] if "\n## " in section[3:] else section
    blocks = re.findall(r"```(\w+)\n(.*?)```", section, re.S)
    check({"sh", "python", "sql"} <= {language for language, _ in blocks}, blocks)
    shutil.copytree(ROOT / "data", "data")
    for language, code in blocks:
        if language == "sh":
            path = f"{os.path.dirname(ATTN)}:/usr/bin:/bin"
            done = subprocess.run(["sh", "-ec", code], env={**os.environ, "PATH": path}, capture_output=True, text=True,
                                  check=False)
            check(done.returncode in (0, 1), code, done.stderr)
        elif language == "python":
            exec(compile(code, "batch.md", "exec"), {})  # the manual's own text
    lines = [json.loads(line) for line in pathlib.Path("out/index.ndjson").read_text().splitlines()]
    try:
        import duckdb
    except ImportError:
        return "but the line of DuckDB, which needs DuckDB"
    for language, code in blocks:
        if language == "sql":
            rows = duckdb.sql(code).fetchall()
            check(len(rows) == sum(len(line.get("arrays", [])) for line in lines), code, len(rows))
    pathlib.Path("r.ndjson").write_text(requests(40))
    run("batch", "r.ndjson", "--out-dir", "some", code=1)
    lines = [json.loads(line) for line in pathlib.Path("some/index.ndjson").read_text().splitlines()]
    failed = duckdb.sql("SELECT count(*) FROM read_json('some/index.ndjson') WHERE error IS NOT NULL").fetchall()[0][0]
    check(failed == sum("error" in line for line in lines) > 0, "errors", failed)
    return None


run_all(arrays_are_those_of_text, models_have_arrays_by_layer, cut_anywhere_it_goes_on,
        failed_records_are_answered_again, what_does_not_belong_is_refused, shards_share_a_folder,
        large_records_end_a_part, the_manual_reads_them)
