"""What attention over a long sequence, and a corpus through a model, cost on many nodes: arithmetic alone.

Units are seconds, bytes and floating-point operations, two per multiply-add. All nodes are equal, and float32
takes 4 bytes. Nothing here is measured: rates are arguments."""

import dataclasses
import math

FLOAT, DOUBLE = 4, 8


@dataclasses.dataclass(frozen=True)
class Layer:
    """One attention layer, without its projections. Heads share keys and values in equal groups."""
    heads: int
    kv_heads: int
    d: int

    def row(self):
        """Numbers of one token's queries, and of its context."""
        return self.heads * self.d

    def kv_row(self):
        """Numbers of one token's key and value."""
        return 2 * self.kv_heads * self.d


@dataclasses.dataclass(frozen=True)
class Node:
    """`rate`: operations a second of one core. `read`: bytes a second from storage, and to it. `merge`: bytes of
    parts a second that one process of `attn merge` joins."""
    cores: int
    rate: float
    read: float
    merge: float


@dataclasses.dataclass(frozen=True)
class Network:
    """`bandwidth`: bytes a second into and out of a node at the same time."""
    bandwidth: float
    latency: float


def attention_flops(layer, tokens, causal, first=0):
    """Of Q K^T and of weights times V, for the queries from `first` on. Causal attention has about half of the pairs,
    and computes no others but those in tiles on the diagonal."""
    pairs = (tokens * (tokens + 1) - first * (first + 1)) / 2 if causal else tokens * (tokens - first)
    return 4 * pairs * layer.row()


def ring(layer, tokens, nodes, groups, causal, node, network):
    """`mpirun -n NODES attn`, one process a node: `groups` rings, each with its heads, which have a common divisor
    with the nodes. The nodes of a ring have the queries, keys and values of equally many rows. In each of `steps`
    steps a node computes on one block of keys and values, and passes it on to the next node in the meantime."""
    steps = nodes // groups
    compute = attention_flops(layer, tokens, causal) / (nodes * steps * node.cores * node.rate)
    block = tokens * layer.kv_row() * FLOAT / nodes
    transfer = network.latency + block / network.bandwidth if steps > 1 else 0
    rows = tokens * layer.row() / nodes
    files = (rows * 2 * FLOAT + block) / node.read
    return {"seconds": files + compute + (steps - 1) * max(compute, transfer), "compute": steps * compute,
            "transfer": (steps - 1) * transfer, "files": files, "traffic": (steps - 1) * block,
            "memory": rows * (2 * FLOAT + DOUBLE) + 3 * block}


def ring_limit(layer, tokens, groups, causal, node, network):
    """The number of nodes at which a step's transfer takes as long as its computation. Beyond it more nodes make a
    ring no faster: its time is that of moving all keys and values past a node."""
    # compute = flops groups / (nodes^2 cores rate), transfer = latency + bytes / (nodes bandwidth): a quadratic
    # equation in 1 / nodes.
    a = attention_flops(layer, tokens, causal) * groups / (node.cores * node.rate)
    b = tokens * layer.kv_row() * FLOAT / network.bandwidth
    return math.floor(2 * a / (b + math.sqrt(b * b + 4 * a * network.latency)))


def equal_cuts(tokens, parts, causal, by_rows):
    """Where to cut a sequence so that every part has the same work: of queries (`--rows`), or of keys
    (`--kv-range`). A causal query of a higher number has more keys, a key of a higher number fewer queries."""
    def cut(share):
        if not causal:
            return share
        return math.sqrt(share) if by_rows else 1 - math.sqrt(1 - share)
    return [round(tokens * cut(k / parts)) for k in range(parts + 1)]


def by_rows(layer, tokens, nodes, causal, node):
    """`attn MODE --rows A:B` on each node, and nothing to merge. Every node reads all operands and writes the context
    of its rows. `attn` has the operands in memory, and either a copy of one, while it separates heads, or the
    context."""
    rows = equal_cuts(tokens, nodes, causal, True)
    widest = max(b - a for a, b in zip(rows, rows[1:])) * layer.row() * FLOAT
    queries = tokens * layer.row() * FLOAT
    keys = tokens * layer.kv_row() * FLOAT
    compute = attention_flops(layer, tokens, causal) / (nodes * node.cores * node.rate)
    traffic = keys + queries + widest
    return {"seconds": traffic / node.read + compute, "compute": compute, "files": traffic / node.read,
            "traffic": traffic, "memory": keys + 2 * queries}


def part_bytes(layer, tokens):
    """What `attn partial` writes: the context of every query, and its logsumexp."""
    return tokens * (layer.row() * FLOAT + layer.heads * DOUBLE)


def by_keys(layer, tokens, nodes, causal, node):
    """`attn partial --kv-range A:B` on each node, then `attn merge` of all parts on one. A causal part has the
    queries from its first key on, but writes the context of all. `merge` is the time of the merge, in
    `seconds` as well."""
    keys = equal_cuts(tokens, nodes, causal, False)
    widest = max(b - a for a, b in zip(keys, keys[1:])) * layer.kv_row() * FLOAT
    queries = tokens * layer.row() * FLOAT
    part = part_bytes(layer, tokens)
    compute = attention_flops(layer, tokens, causal) / (nodes * node.cores * node.rate)
    files = (widest + queries + part) / node.read
    merge = nodes * part / node.merge
    return {"seconds": files + compute + merge, "compute": compute, "files": files, "merge": merge,
            "traffic": widest + queries + part, "memory": widest + queries + part}


def corpus(tokens, tokens_per_second, nodes, node):
    """`attn scan --shard K/N`, one process a core: `tokens_per_second` is one core's."""
    return {"core_hours": tokens / tokens_per_second / 3600,
            "seconds": tokens / tokens_per_second / (nodes * node.cores)}
