"""Corpora of plain texts for scan_test.py."""
import gzip
import json


def check_plain_text(run, rng, folder, case, scratch):
    """A text a line gives the bytes of the same texts as records, in every spelling of a file, shard and resumed scan."""
    known = [f"w{i}" for i in case["token_ids"]]
    texts = [" ".join(rng.choice(known) for _ in range(rng.randint(1, len(known)))) for _ in range(12)]
    texts[3:5] = ['"' + known[0] + "\\", " " + known[0] + "\t\u00e9 {"]
    records = "".join('{"text":%s}\n' % json.dumps(text, ensure_ascii=False) for text in texts)
    (scratch / "records.ndjson").write_text(records)
    plain = "\n".join(texts)
    spellings = {"plain.txt": plain.encode(), "plain": plain.encode() + b"\n", "plain.text": b"\xef\xbb\xbf" + plain.encode(),
                 "lines.txt": plain.replace("\n", "\r\n").encode(), "blank.txt": b"\n \n" + plain.replace("\n", "\n\n\n").encode(),
                 "packed.txt.gz": gzip.compress(plain.encode()), "records.txt": records.encode()}
    same = 0
    for flags in [], ["--shard", "2/3"], ["--skip-special"]:
        expected = run("scan", folder, scratch / "records.ndjson", *flags).stdout
        for name, data in spellings.items():
            (scratch / name).write_bytes(data)
            assert run("scan", folder, scratch / name, *flags).stdout == expected, (name, flags)
            same += 1
        assert run("scan", folder, "-", *flags, input=plain).stdout == expected, flags
    for order in ("records.ndjson", "plain.txt", "records.txt"), ("plain.txt", "plain.txt", "packed.txt.gz"):
        both = json.loads(run("scan", folder, *(scratch / name for name in order)).stdout)
        assert both["corpus"]["texts"] == 3 * len(texts) and both["corpus"]["failed"]["count"] == 0, both["corpus"]
    cut = run("scan", folder, scratch / "plain.txt", "--truncate", 2)
    longer = sum(len(json.loads(run("tokenize", folder, text).stdout)["ids"]) > 2 for text in texts)
    assert json.loads(cut.stdout)["corpus"]["truncated_texts"] == longer, (cut, longer)
    assert f"note: {longer} of {len(texts)} texts are truncated" in cut.stderr, cut.stderr
    run("scan", folder, scratch / "plain.txt", "--resume", scratch / "again.json")
    assert (scratch / "again.json").read_text() == run("scan", folder, scratch / "records.ndjson").stdout
    run("scan", folder, scratch / "records.ndjson", "--resume", scratch / "again.json")
    for data, where in ((b"w1\nw2 \xff\n", "2:4"), (b"w1\nw\0\n", "2"), ("w1\n".encode("utf-16"), "1")):
        (scratch / "bad.txt").write_bytes(data)
        bad = json.loads(run("scan", folder, scratch / "bad.txt", code=1).stdout)["corpus"]["failed"]["first"]
        assert bad[0]["where"].endswith(f"bad.txt:{where}"), bad
    (scratch / "texts.ndjson").write_text(plain)  # whose name says records
    assert json.loads(run("scan", folder, scratch / "texts.ndjson", code=1).stdout)["corpus"]["texts"] == 0
    return same
