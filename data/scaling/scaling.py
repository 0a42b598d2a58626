#!/usr/bin/env python3
"""What attn costs past this machine: long sequences on many nodes, and a corpus through a model.

    python3 scaling.py                          rates of this machine, checks, and tables
    python3 scaling.py --nodes 16 --cores 32    other clusters
    python3 scaling.py --quick                  a minute: short sequences and a small model

It measures rates of `attn` on one core of this machine, predicts from them what 2 processes take, measures that
too, and compares the results of 1 to 4 processes. Then it extrapolates to clusters whose cores are as fast as this
one, and states what is measured and what is not. The model has the shape of Qwen3-0.6B and random weights (1.2 GB).
Exit code 1: a run failed, or results differ.
"""

import argparse
import itertools
import json
import math
import os
import pathlib
import platform
import shutil
import sys
import tempfile

import checks
import costs
import rates
import tables


def count(text):
    """1000, 64k or 10M."""
    scale = {"k": 10**3, "M": 10**6, "G": 10**9}.get(text[-1:], 1)
    number = int(text[:-1] if scale > 1 else text) * scale
    if number < 1:
        raise ValueError(text)
    return number


def positive(text):
    if not 0 < float(text) < float("inf"):
        raise ValueError(text)
    return float(text)


def listed(kind):
    def parse(text):
        return [kind(word) for word in text.split(",")]
    parse.__name__ = f"list of {kind.__name__}"
    return parse


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--attn", default="attn", help="the program (default: attn, of the PATH)")
    parser.add_argument("--tokens", type=listed(count), default=[10**6, 10**7], help="lengths (default 1M,10M)")
    parser.add_argument("--nodes", type=listed(count), default=[8, 64], help="nodes (default 8,64)")
    parser.add_argument("--cores", type=count, default=64, help="cores of a node (default 64)")
    parser.add_argument("--heads", type=count, default=8, help="heads of the layer (default 8)")
    parser.add_argument("--kv-heads", type=count, help="heads of keys and values (default: as heads)")
    parser.add_argument("--d", type=count, default=64, help="width of a head (default 64)")
    parser.add_argument("--layers", type=count, default=1, help="layers, one after another (default 1)")
    parser.add_argument("--full", action="store_true", help="attention to all tokens (default: causal)")
    parser.add_argument("--network", type=listed(positive), default=[25.0, 100.0],
                        help="Gbit/s of a node in each direction (default 25,100)")
    parser.add_argument("--latency", type=positive, default=20.0, help="microseconds of a message (default 20)")
    parser.add_argument("--storage", type=positive, help="GB/s of a node from and to storage (default: as measured, "
                        "from files in the memory of this machine)")
    parser.add_argument("--corpus", type=count, default=10**9, help="tokens of the corpus (default 1G)")
    parser.add_argument("--repeat", type=count, default=3, help="measurements, of which the best counts (default 3)")
    parser.add_argument("--quick", action="store_true", help="short sequences and a small model")
    parser.add_argument("--json", action="store_true", help="a JSON document in place of tables")
    parser.add_argument("--work", help="folder for files, 4 GB without --quick (default: temporary)")
    given = parser.parse_args()
    given.kv_heads = given.kv_heads or given.heads
    if given.heads % given.kv_heads:
        parser.error("--kv-heads must divide --heads")
    given.attn = shutil.which(given.attn)
    if not given.attn:
        parser.error("--attn: no such program; give the path of attn, such as build/release/attn")
    return given


def processor():
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def progress(text):
    print(f"scaling: {text}", file=sys.stderr, flush=True)


def measured_rates(given, attn, lengths):
    """What everything else is predicted from. `lengths` are pairs: tokens, and the queries, the last ones, that are
    computed."""
    attention = []
    for causal in (True, False):
        for tokens, rows in lengths:
            progress(f"attention over {tokens} tokens, {'causal' if causal else 'full'}")
            flops = costs.attention_flops(attn.layer, tokens, causal, tokens - rows)
            command = attn.contexts(tokens, causal, "rate.npy", "--rows", f"{tokens - rows}:{tokens}")
            done = rates.best([command], given.repeat)
            attention.append({"tokens": tokens, "rows": rows, "causal": causal, "flops": flops, "flops_per_second": flops / done.cpu,
                              "seconds": done.wall, "cpu_seconds": done.cpu, "memory_bytes": done.memory,
                              "dry_run": attn.dry_run(tokens, causal)})
    progress("reading")
    measured = {"attention": attention, "read_bytes_per_second": attn.reading_rate(lengths[-1][0])}
    if attn.has_parts:
        progress("merging")
        measured["merge_bytes_per_second"] = attn.merging_rate(lengths[1][0])
    if attn.mpi:
        progress("passing between two processes")
        measured |= attn.passing_rate(lengths[-1][0])
    return measured


def node_of(given, measured, causal, cores, storage=None):
    """A node of cores as fast as this machine's at the longest sequence measured."""
    rate = [row["flops_per_second"] for row in measured["attention"] if row["causal"] == causal][-1]
    read = measured["read_bytes_per_second"]
    return costs.Node(cores, rate, storage or read, measured.get("merge_bytes_per_second", read))


def plans(given, measured):
    """The table of long sequences, extrapolated."""
    layer, causal = costs.Layer(given.heads, given.kv_heads, given.d), not given.full
    node = node_of(given, measured, causal, given.cores, given.storage and given.storage * 1e9)
    for tokens, nodes in itertools.product(given.tokens, given.nodes):
        shared = math.gcd(layer.kv_heads, nodes)
        for gbit, groups in itertools.product(given.network, {1: 0, shared: 0}):
            network = costs.Network(gbit * 1e9 / 8, given.latency * 1e-6)
            cost = costs.ring(layer, tokens, nodes, groups, causal, node, network)
            limit = costs.ring_limit(layer, tokens, groups, causal, node, network)
            way = checks.RING if groups == 1 else checks.RINGS
            yield row_of(given, way, tokens, nodes, cost) | {"gbit": gbit, "rings": groups, "nodes_at_most": limit}
        yield row_of(given, checks.ROWS, tokens, nodes, costs.by_rows(layer, tokens, nodes, causal, node))
        yield row_of(given, checks.KEYS, tokens, nodes, costs.by_keys(layer, tokens, nodes, causal, node))


def row_of(given, way, tokens, nodes, cost):
    """Layers follow one another: time and traffic are added, memory is used again."""
    return {"way": way, "tokens": tokens, "nodes": nodes,
            **{key: value * (1 if key == "memory" else given.layers) for key, value in cost.items()}}


def scan_plans(given, measured):
    for row in measured["corpus"]:
        for nodes in given.nodes:
            node = costs.Node(given.cores, 0, 0, 0)
            yield {"text_tokens": row["text_tokens"], "nodes": nodes,
                   **costs.corpus(given.corpus, row["tokens_per_second"], nodes, node)}


def main():
    given = options()
    work = given.work or tempfile.mkdtemp(prefix="scaling.")
    try:
        os.makedirs(work, exist_ok=True)
        layer = costs.Layer(given.heads, given.kv_heads, given.d)
        attn = rates.Attn(given.attn, work, layer, given.repeat)
        lengths = [(512, 512), (1024, 1024), (4096, 64)] if given.quick else [(4096, 4096), (16384, 16384), (262144, 2048)]
        measured = measured_rates(given, attn, lengths)
        corpus = rates.Corpus(attn, given.quick)
        texts = [(256, 32), (128, 64)] if given.quick else [(4, 512), (2, 2048)]
        measured |= {"model": corpus.shape | {"bytes": corpus.bytes},
                     "corpus": [corpus.rate(count, tokens, progress) for count, tokens in texts]}
        tested = checks.sequences(attn, 768 if given.quick else 24576, measured, progress)
        tested += checks.shards(corpus, *texts[0], measured, progress)
    finally:
        if not given.work:
            shutil.rmtree(work)
    document = {"processor": processor(), "cores": os.cpu_count(), "load": os.getloadavg()[0],
                "layer": vars(layer) | {"layers": given.layers, "causal": not given.full}, "cores_of_a_node": given.cores,
                "latency_microseconds": given.latency, "measured": measured, "checks": tested,
                "plans": list(plans(given, measured)), "scan_tokens": given.corpus,
                "scans": list(scan_plans(given, measured))}
    if given.json:
        print(json.dumps(document))
    else:
        tables.show(document)
    return 0 if all(row["same"] for row in tested) else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except OSError as error:  # a full disk, a folder that cannot be written
        sys.exit(f"scaling: {error}")
