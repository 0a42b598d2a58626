"""Predictions for 1 and 2 processes of this machine, and what they take; results of 1 to 4 processes."""

import dataclasses
import math

import costs
import rates

WHOLE, THREADS, ROWS, KEYS = "one thread", "two threads", "query rows", "keys, merged"
RING, RINGS, SHARDS = "ring", "heads, then rings", "shards of a corpus"


def row_of(way, processes, runs, same, cost):
    """`runs` follow one another. `cpu_seconds` is the time on a processor of the slowest process of each: what a
    machine without other load would take. `cost` is predicted, by a function of costs.py."""
    return {"way": way, "processes": processes, "predicted_seconds": cost["seconds"],
            "predicted_memory_bytes": cost.get("memory"), "seconds": sum(run.wall for run in runs), "cpu_seconds": sum(run.cpu for run in runs),
            "memory_bytes": max(run.memory for run in runs), "same": same}


def sequences(attn, tokens, measured, progress):
    """Causal attention over one sequence, its work divided as `plans` divides it among nodes."""
    rate = next(row for row in reversed(measured["attention"]) if row["causal"])["flops_per_second"]
    node = costs.Node(1, rate, measured["read_bytes_per_second"], measured.get("merge_bytes_per_second"))
    question = attn.layer, tokens
    progress("1 process")
    rows = [row_of(WHOLE, 1, [rates.best([attn.contexts(tokens, True, "whole.npy")], attn.repeat)], True,
                   costs.by_rows(*question, 1, True, node))]
    progress("2 threads")
    run = rates.best([attn.contexts(tokens, True, "threads.npy", "--threads", 2)], attn.repeat)
    rows.append(row_of(THREADS, 1, [dataclasses.replace(run, cpu=run.cpu / 2)], attn.same("threads.npy", "whole.npy"),
                       costs.by_rows(*question, 1, True, dataclasses.replace(node, cores=2))))
    for n in (2, 3, 4):
        repeat = attn.repeat if n == 2 else 1
        progress(f"{n} processes")
        runs, same = by_rows(attn, tokens, n, repeat)
        rows.append(row_of(ROWS, n, runs, same, costs.by_rows(*question, n, True, node)))
        if attn.has_parts:
            runs, same = by_keys(attn, tokens, n, repeat)
            rows.append(row_of(KEYS, n, runs, same, costs.by_keys(*question, n, True, node)))
        for split in (False, True) if attn.mpi else ():
            groups = math.gcd(attn.layer.kv_heads, n) if split else 1
            network = costs.Network(measured["passed_bytes_per_second"], 0)
            cost = costs.ring(*question, n, groups, True, node, network)
            cost["seconds"] += measured["start_seconds"]
            run, same = by_ranks(attn, tokens, n, repeat, split)
            rows.append(row_of(RINGS if split else RING, n, [run], same, cost))
    return rows


def by_rows(attn, tokens, n, repeat):
    cuts = costs.equal_cuts(tokens, n, True, True)
    commands = [attn.contexts(tokens, True, f"rows{k}.npy", "--rows", f"{cuts[k]}:{cuts[k + 1]}") for k in range(n)]
    run = rates.best(commands, repeat)
    attn.join_rows([f"rows{k}.npy" for k in range(n)], "joined.npy")
    return [run], attn.same("joined.npy", "whole.npy")


def by_keys(attn, tokens, n, repeat):
    cuts = costs.equal_cuts(tokens, n, True, False)
    parts = [f"part{k}.npz" for k in range(n)]
    run = rates.best([attn.partial(tokens, True, cuts[k], cuts[k + 1], parts[k]) for k in range(n)], repeat)
    merge = rates.best([attn.merge(parts, "merged.npy")], repeat)
    return [run, merge], attn.same("merged.npy", "whole.npy")


def by_ranks(attn, tokens, n, repeat, split):
    """`split`: the heads have an axis of their own, and are divided before the rows are."""
    run = rates.best([attn.on_ranks(n, attn.contexts(tokens, True, "ring.npy", split=split))], repeat)
    if not split:
        return run, attn.same("ring.npy", "whole.npy")
    rates.run([attn.contexts(tokens, True, "heads.npy", split=True)])
    return run, attn.same("ring.npy", "heads.npy")


def shards(corpus, texts, tokens, measured, progress):
    """Statistics of a corpus: the same bytes however it is divided."""
    attn = corpus.attn
    path = corpus.texts(texts, tokens)
    rate = next(row for row in measured["corpus"] if row["text_tokens"] == tokens)["tokens_per_second"]
    rows, whole = [], None
    for n in (1, 2, 3, 4):
        progress(f"corpus, {n} processes")
        parts = [f"shard{k}.json" for k in range(1, n + 1)]
        run = rates.best([corpus.scan(path, part, *(["--shard", f"{k}/{n}"] if n > 1 else []))
                          for k, part in enumerate(parts, 1)], attn.repeat if n < 3 else 1)
        merge = rates.run([attn.merge(parts, "stats.json")])
        merged = (attn.work / "stats.json").read_bytes()
        whole = merged if n == 1 else whole
        rows.append(row_of(SHARDS, n, [run, merge], merged == whole,
                           {"seconds": corpus.start + -(-texts // n) * tokens / rate}))
    return rows
