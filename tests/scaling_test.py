#!/usr/bin/env python3
"""data/scaling: its arithmetic, and what it says of this machine.

    python3 tests/scaling_test.py ATTN

Costs x layers x lengths x nodes x rates: against counts of pairs and a simulation of the ring, event by event. The
model's size against the published one, and attn's reading of it. The script in its quick form: flops are those of
--dry-run, memory about that of the system, results of 1 to 4 processes equal. Needs the standard library only.
"""

import json
import math
import os
import pathlib
import subprocess
import sys

sys.dont_write_bytecode = True
from support.asked import ATTN, ROOT, check, rng, run, run_all  # noqa: E402

FOLDER = ROOT / "data" / "scaling"
sys.path.insert(0, str(FOLDER))
import checks  # noqa: E402
import costs  # noqa: E402
import random_model  # noqa: E402


def near(a, b, relative=1e-9):
    return math.isclose(a, b, rel_tol=relative, abs_tol=0)


def layers():
    kv_heads = rng.choice([1, 2, 3, 8])
    return costs.Layer(kv_heads * rng.choice([1, 2, 7]), kv_heads, rng.choice([1, 16, 64, 80, 128]))


def work_is_that_of_every_pair():
    for _ in range(300):
        layer, tokens = layers(), rng.randrange(1, 60)
        first = rng.randrange(tokens)
        pairs = {True: sum(query + 1 for query in range(first, tokens)), False: tokens * (tokens - first)}
        for causal in (True, False):
            # A product of d numbers, and d products to add, for each pair and head.
            expected = sum(2 * layer.d + 2 * layer.d for _ in range(layer.heads)) * pairs[causal]
            check(costs.attention_flops(layer, tokens, causal, first) == expected, layer, tokens, first, causal)


def parts_have_equal_work():
    for _ in range(300):
        tokens, parts = rng.randrange(200, 3000), rng.randrange(1, 9)
        for causal in (True, False):
            for by_rows in (True, False):
                cuts = costs.equal_cuts(tokens, parts, causal, by_rows)
                check(cuts[0] == 0 and cuts[-1] == tokens and cuts == sorted(cuts), cuts)
                # Pairs of a query with a number, or of a key.
                pairs = [(i + 1 if by_rows else tokens - i) if causal else tokens for i in range(tokens)]
                work = [sum(pairs[a:b]) for a, b in zip(cuts, cuts[1:])]
                check(max(work) - min(work) <= 2 * tokens, cuts, work)


def simulated_ring(layer, tokens, nodes, groups, causal, node, network):
    """Seconds, and pairs, of each node of a ring: it has two chunks of the sequence, as cli/mpi divides it, and goes
    on to the next block when it has both computed and received."""
    size = nodes // groups
    chunk = tokens // (2 * size)
    owned = [(place, 2 * size - 1 - place) for place in range(size)]

    def pairs(queries, keys):
        if not causal or keys < queries:
            return chunk * chunk
        return chunk * (chunk + 1) / 2 if keys == queries else 0

    heads = layer.heads // groups
    block = 2 * chunk * 2 * (layer.kv_heads // groups) * layer.d * 4
    free, done = [0.0] * size, [0] * size
    for step in range(size):
        computed = []
        for place in range(size):
            count = sum(pairs(q, k) for q in owned[place] for k in owned[(place - step) % size])
            done[place] += count
            computed.append(free[place] + 4 * count * heads * layer.d / (node.cores * node.rate))
        if step + 1 < size:
            passed = network.latency + block / network.bandwidth
            arrived = [max(free[place - 1], free[place]) + passed for place in range(size)]
            free = [max(computed[place], arrived[place]) for place in range(size)]
        else:
            free = computed
    return max(free), done, block * (size - 1)


def ring_is_the_simulated_one():
    for _ in range(400):
        layer = layers()
        groups = rng.choice([g for g in (1, 2, 3, 4, 8) if layer.kv_heads % g == 0])
        size = rng.randrange(1, 9)
        nodes, tokens = groups * size, 2 * size * rng.randrange(100, 5000)
        node = costs.Node(rng.choice([1, 2, 64]), 10 ** rng.uniform(9, 12), 10 ** rng.uniform(8, 11), 1e9)
        network = costs.Network(10 ** rng.uniform(7, 12), rng.choice([0, 1e-6, 1e-3]))
        for causal in (True, False):
            question = layer, tokens, nodes, groups, causal, node, network
            cost = costs.ring(*question)
            seconds, pairs, traffic = simulated_ring(*question)
            check(near(sum(pairs), tokens * (tokens + 1) / 2 if causal else tokens**2), question, pairs)
            check(max(pairs) - min(pairs) <= 1e-9 * sum(pairs), "unequal work", question, pairs)
            # The diagonal blocks of the first step have some pairs more than half.
            check(near(cost["seconds"] - cost["files"], seconds, 0.03), question, cost, seconds)
            check(near(cost["traffic"], traffic) or traffic == cost["traffic"] == 0, question, cost, traffic)
            check(near(cost["compute"], costs.attention_flops(layer, tokens, causal) / nodes / node.cores / node.rate))


def ring_limit_is_where_passing_takes_over():
    for _ in range(300):
        layer, tokens = layers(), int(10 ** rng.uniform(4, 8))
        groups = rng.choice([g for g in (1, 2, 3, 4, 8) if layer.kv_heads % g == 0])
        node = costs.Node(rng.choice([1, 64]), 10 ** rng.uniform(9, 12), 1e9, 1e9)
        network = costs.Network(10 ** rng.uniform(8, 11), rng.choice([0, 1e-6, 1e-3]))
        limit = costs.ring_limit(layer, tokens, groups, True, node, network)
        for rings, passes in ((limit // groups, False), (limit // groups + 1, True)):
            if rings < 2:
                continue
            cost = costs.ring(layer, tokens, rings * groups, groups, True, node, network)
            waits = cost["transfer"] / (rings - 1) > cost["compute"] / rings
            check(waits == passes, layer, tokens, groups, node, network, limit, cost)


def model_is_of_the_published_size():
    shapes = list(random_model.tensors(random_model.SHAPE))
    # Qwen3-0.6B: 0.6 billion parameters, of which 0.44 outside the embeddings.
    total = sum(random_model.elements(axes) for _, axes in shapes)
    embedding = random_model.elements(shapes[0][1])
    check(total == 596_049_920 and total - embedding == 440_467_456, total, embedding)
    for _ in range(5):
        shape = {"layers": rng.randrange(1, 4), "width": rng.choice([8, 24]), "heads": 4, "kv-heads": rng.choice([1, 2, 4]),
                 "head-dim": rng.choice([2, 6]), "ff": rng.randrange(1, 30), "vocab": rng.randrange(11, 99)}
        size = random_model.write_model("model", shape)
        check(size == pathlib.Path("model/model.safetensors").stat().st_size, shape)
        again = pathlib.Path("model/model.safetensors").read_bytes()
        random_model.write_model("model", shape)
        check(again == pathlib.Path("model/model.safetensors").read_bytes(), "other bytes", shape)
        done = run("model", "model", "--token-ids", "0,3,10", "--emit", "logits,attention_weights", "--nonfinite", "literal")
        result = json.loads(done.stdout)
        check(len(result["attention_weights"]) == shape["layers"], shape)
        check(all(map(math.isfinite, result["logits"])) and len(set(result["logits"])) > 1, shape, result["logits"])


def rows_of(path):
    """The first axis of a .npy file."""
    return int(pathlib.Path(path).read_bytes().split(b"'shape': (", 1)[1].split(b",", 1)[0])


def script(*words, code=0):
    command = [sys.executable, FOLDER / "scaling.py", "--attn", ATTN, *words]
    done = subprocess.run([*map(str, command)], capture_output=True, text=True)
    check(done.returncode == code, words, done.returncode, done.stderr)
    return done


def document_is_right():
    document = json.loads(script("--quick", "--repeat", 1, "--json", "--heads", 4, "--kv-heads", 2, "--d", 32,
                                 "--nodes", "1,6,64", "--tokens", "1M,3k").stdout)
    layer = costs.Layer(4, 2, 32)
    for row in document["measured"]["attention"]:
        said = row["dry_run"]
        check(said["flops"] == costs.attention_flops(layer, row["tokens"], False), row)
        pairs = sum((i + 1 if row["causal"] else row["tokens"]) for i in range(row["tokens"] - row["rows"], row["tokens"]))
        check(row["flops"] == 4 * pairs * layer.row(), row)
        cost = costs.by_rows(layer, row["tokens"], 1, row["causal"], costs.Node(1, 1, 1, 1))
        check(cost["memory"] <= said["memory_bytes"] <= 1.3 * cost["memory"] + 4e6, cost, said)
        check(row["flops_per_second"] > 1e6 and row["cpu_seconds"] > 0, row)
    ways = {}
    for row in document["checks"]:
        check(row["same"] is True, row)
        check(row["predicted_seconds"] > 0 and row["seconds"] > 0 and row["cpu_seconds"] > 0, row)
        ways.setdefault(row["way"], []).append(row["processes"])
    expected = {checks.WHOLE: [1], checks.THREADS: [1], checks.ROWS: [2, 3, 4], checks.SHARDS: [1, 2, 3, 4]}
    if "merge_bytes_per_second" in document["measured"]:
        expected[checks.KEYS] = [2, 3, 4]
    if "passed_bytes_per_second" in document["measured"]:
        expected |= {checks.RING: [2, 3, 4], checks.RINGS: [2, 3, 4]}
    check(ways == expected, ways)
    plans = document["plans"]
    for tokens in (10**6, 3000):
        for nodes in (1, 6, 64):
            rows = [row for row in plans if row["tokens"] == tokens and row["nodes"] == nodes]
            rings = {row["rings"] for row in rows if "rings" in row}
            check(rings == {1, math.gcd(2, nodes)}, rings)
            check(all(row["seconds"] >= row["compute"] > 0 for row in rows), rows)
    rates = {row["text_tokens"]: row["tokens_per_second"] for row in document["measured"]["corpus"]}
    for row in document["scans"]:
        check(near(row["core_hours"] * 3600 * rates[row["text_tokens"]], 1e9), row)
        check(near(row["seconds"] * row["nodes"] * document["cores_of_a_node"], row["core_hours"] * 3600), row)


def tables_have_their_columns():
    text = script("--quick", "--repeat", 1, "--full", "--layers", 3, "--network", "10", "--work", "kept").stdout
    widths = [line.count("|") for line in text.splitlines() if line.startswith("|")]
    blocks = "\n".join(text.splitlines()).split("\n\n")
    found = [block.splitlines() for block in blocks if block.startswith("|")]
    check(len(found) == 5 and len(widths) > 30, text)
    for lines in found:
        check(len({line.count("|") for line in lines}) == 1 and len(lines) > 2, lines)
    expected = costs.part_bytes(costs.Layer(8, 8, 64), rows_of("kept/whole.npy"))
    for part in range(4) if os.path.exists("kept/part0.npz") else ():
        size = os.path.getsize(f"kept/part{part}.npz")
        check(expected <= size <= expected + 20_000, size, expected)
    for wrong in (["--nodes", "0"], ["--tokens", "1.5M"], ["--cores", "x"], ["--kv-heads", "3"], ["--network", "0"],
                  ["--network", "nan"], ["--latency", "-1"], ["--storage", "inf"], ["--attn", "no-such-attn"]):
        done = script(*wrong, code=2)
        check(done.stdout == "" and wrong[0] in done.stderr.splitlines()[-1], wrong, done.stderr)
    # A file where a folder should be, a program that is not attn: one line, and nothing left behind.
    pathlib.Path("file").write_text("")
    temporary = pathlib.Path("temporary")
    temporary.mkdir()
    os.environ["TMPDIR"] = str(temporary.resolve())
    for wrong in (["--work", "file/folder"], ["--attn", "/bin/true"]):
        done = script(*wrong, "--quick", code=1)
        lines = [line for line in done.stderr.splitlines() if not line.startswith("scaling: attention")]
        check(done.stdout == "" and len(lines) == 1 and lines[0].startswith("scaling: "), wrong, done.stderr)
        check(not list(temporary.iterdir()), wrong, list(temporary.iterdir()))


run_all(work_is_that_of_every_pair, parts_have_equal_work, ring_is_the_simulated_one,
        ring_limit_is_where_passing_takes_over, model_is_of_the_published_size, document_is_right,
        tables_have_their_columns)
