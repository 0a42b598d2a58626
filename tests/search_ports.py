"""Wrong programs by class, whose mistake `attn check --search` names; right ones are never called wrong.

    python3 tests/search_ports.py ATTN [PATTERN]

A class is a row of a table: what is asked, a pattern that a line of the report has, and the port in NumPy, apart from
attn. Each runs with its weights and, where these are not needed, with its outputs alone.
"""

import re
import subprocess
import sys
import tempfile

import wrong  # exit code 77 without NumPy
import numpy as np

BATCH, HEADS, TOKENS, D = 2, 3, 8, 16
Q, K = np.arange(TOKENS)[:, None], np.arange(TOKENS)[None]
CAUSAL, ALL = K <= Q, np.ones((TOKENS, TOKENS), bool)
random = np.random.default_rng(1)
q, k, v = (random.normal(size=(BATCH, HEADS, TOKENS, D)).astype(np.float32).astype(float) for _ in range(3))
decay, beta = -random.random((BATCH, HEADS, TOKENS)), random.random((BATCH, HEADS, TOKENS))
decay, beta = (x.astype(np.float32).astype(float) for x in (decay, beta))
unit_k = (k / np.linalg.norm(k, axis=-1, keepdims=True)).astype(np.float32).astype(float)
SETS = {seed: (np.random.default_rng(seed).random((TOKENS, TOKENS)) < 0.5) | (Q == K) for seed in (3, 4)}
BLOCKS = np.array([[1, 0, 0, 1], [0, 1, 0, 0], [1, 1, 1, 0], [0, 1, 0, 1]], bool)[Q // 2, K // 2]


def attend(mask=ALL, scale=D**-0.5, bias=0, sink=-np.inf, axis=-1, cosine=False, q=q, k=k, v=v):
    if cosine:
        q, k = (x / np.linalg.norm(x, axis=-1, keepdims=True) for x in (q, k))
    s = np.where(mask, q @ k.swapaxes(-1, -2) * scale + bias, -np.inf)
    most = np.maximum(np.maximum(s.max(axis, keepdims=True), sink), -1e30)
    total = np.exp(s - most).sum(axis, keepdims=True) + np.exp(sink - most)
    w = np.exp(s - most) / np.where(total == 0, 1, total)
    return {"scores": s, "attention_weights": w, "context_vectors": w @ v, "most": most[..., 0],
            "logsumexp": (np.log(total) + most)[..., 0]}


def weighed(weights):
    w = weights(np.where(ALL, q @ k.swapaxes(-1, -2) * D**-0.5, 0))
    return {"attention_weights": w, "context_vectors": w @ v}


def output(change):
    return {"context_vectors": change(attend()["context_vectors"])}


def stated(change, **conventions):
    right = attend(**conventions)
    return {"context_vectors": right["context_vectors"],
            "logsumexp": change(right["logsumexp"], right["most"], right["scores"])}


def normed(x, centre=True):
    x = x - centre * x.mean(-1, keepdims=True)
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5)


def recurrent(undecayed=False, after=False, previous=False):
    result = np.zeros(v.shape)
    for at in np.ndindex(BATCH, HEADS):
        state = np.zeros((D, D))
        for t in range(TOKENS):
            key, value, factor = unit_k[at][t], v[at][t], np.exp(decay[at][t])
            before = state if undecayed or after else factor * state
            added = np.outer(key, beta[at][t] * (value - key @ before))
            made = factor * (state + added) if after else factor * state + added
            result[at][t] = q[at][t] @ (state if previous else made) * D**-0.5
            state = made
    return {"context_vectors": result}


MASKS = (  # asked, named, seen; * needs the weights or as many columns as keys
    ("--causal", "--prefix-len 3", CAUSAL | (K < 3)),
    ("", "--prefix-len 2", CAUSAL | (K < 2)),
    ("--causal", "--segment-ids 0,0,1,1,1,2,2,2", CAUSAL & ((Q > 1) * 1 + (Q > 4) == (K > 1) * 1 + (K > 4))),
    ("", "--segment-ids 0,0,1,1,1,2,2,2", (Q > 1) * 1 + (Q > 4) == (K > 1) * 1 + (K > 4)),
    ("--causal", "--segment-ids 0,0,1,1,1,1,1,1", CAUSAL & ((Q < 2) == (K < 2))),
    *(("--causal", f"--chunk {n}", CAUSAL & (Q // n == K // n)) for n in (2, 3, 4)),
    ("--causal", "--no-causal --chunk 3", Q // 3 == K // 3),
    *((flags, "--dilation 2", mask & ((Q - K) % 2 == 0)) for flags, mask in (("--causal", CAUSAL), ("", ALL))),
    ("--causal", "--dilation 3", CAUSAL & ((Q - K) % 3 == 0)),
    ("--causal", "--dilation 2 --window 4,0", CAUSAL & ((Q - K) % 2 == 0) & (Q - K <= 4)),
    *(("--causal", f"--window {w},0 --keep-first {n}", CAUSAL & ((K < n) | (Q - K <= w)))
      for n, w in ((1, 1), (1, 2), (2, 1), (2, 2))),
    ("--causal", r"k < 1 \|\| q < 1 \|\| \(q - k <= 1 && k - q <= 1\)", (K < 1) | (Q < 1) | (abs(Q - K) <= 1)),
    ("--causal", r"k < 1 \|\| q < 1 \|\| \(q - k <= 1 && k <= q\)", (K < 1) | (Q < 1) | (CAUSAL & (Q - K <= 1))),
    ("", r"k < 2 \|\| q < 2", (K < 2) | (Q < 2)),
    ("--causal", "k // 2 <= q // 2", K // 2 <= Q // 2),
    ("", "k // 3 <= q // 3", K // 3 <= Q // 3),
    ("", "blocks of 2", BLOCKS),
    ("--causal", "causal blocks of 2", CAUSAL & BLOCKS),
    ("", "--kv-lengths 5", ALL & (K < 5)),
    ("--causal", "--kv-lengths 6", CAUSAL & (K < 6)),
    ("", "k >= 2", ALL & (K >= 2)),
    ("", "--kv-lengths 7", ALL & (K < 7)),
    ("", "without the first key", ALL & (K > 0)),
    ("--causal", "before the query", K < Q),
    ("", "k < q", K < Q),
    *((flags, "the query's position and later keys", K >= Q) for flags in ("--causal", "")),
    ("--causal", "up to the one after", K <= Q + 1),
    ("--causal", "--no-causal", ALL),
    ("", "--causal", CAUSAL),
    *((flags, "--window 2,", CAUSAL & (Q - K <= 2)) for flags in ("", "--causal", "--causal --window 3")),
    ("", "--window 1,1", abs(Q - K) <= 1),
    ("--causal", "--window 2,1", (Q - K <= 2) & (K - Q <= 1)),
    ("", "q != k", Q != K),
    ("--causal", r"q - k < 3 \|\| \(q - k\) % 3 == 0", CAUSAL & ((Q - K < 3) | ((Q - K) % 3 == 0))),
    ("--causal", r"q // 3 == k // 3 \|\| k % 3 == 3 - 1", CAUSAL & ((Q // 3 == K // 3) | (K % 3 == 2))),
    ("", r"query \d attends to keys", SETS[3]),
    ("--causal", r"query \d attends to keys", CAUSAL & SETS[4]),
)
SINKS = np.array([0.5, -0.75, 1.25])[:, None, None]
SLOPES = np.array([1, 0.5, 0.25])[:, None, None]
FLIPPED = "key heads in the opposite order"
SCALES = (("1/d_k", 1 / D), (r"--scale 1\b", 1), (r"ln\(2\)/sqrt\(d_k\)", np.log(2) / D**0.5), (r"--scale 0.3\b", 0.3),
          (r"1/sqrt\(heads d_k\)", (HEADS * D) ** -0.5), (r"sqrt\(d_k\)", D**0.5), (r"1/sqrt\(kv_len\)", TOKENS**-0.5))
FUNCTIONS = (("score", lambda s: s), ("max(score, 0)", lambda s: np.maximum(s, 0)),
             ("max(score, 0) * max(score, 0)", lambda s: np.maximum(s, 0) ** 2),
             ("1 / (1 + exp(-score))", lambda s: 1 / (1 + np.exp(-s))), ("exp(score)", np.exp))
OUTPUTS = (("batch entries in the opposite", lambda o: o[::-1]), ("heads in the opposite", lambda o: o[:, ::-1]),
           ("of each head the next", lambda o: np.roll(o, -1, 1)), ("tokens in the opposite", lambda o: o[:, :, ::-1]),
           ("of each token the previous", lambda o: np.roll(o, 1, 2)),
           ("of each token the next", lambda o: np.roll(o, -1, 2)),
           ("columns in the opposite", lambda o: o[..., ::-1]), ("output times 2", lambda o: 2 * o),
           ("output times 0.37", lambda o: 0.37 * o), ("the residual", lambda o: o + q), ("a layer norm", normed),
           ("an RMS norm", lambda o: normed(o, False)), ("the residual.*, after a layer norm", lambda o: normed(o + q)))
SUMS = (("in base 2", lambda x, most, s: x / np.log(2)), ("in base 10", lambda x, most, s: x / np.log(10)),
        ("without the maximum", lambda x, most, s: x - most), ("the sum, not", lambda x, most, s: np.exp(x)),
        (r"maximum \+ log2", lambda x, most, s: most + np.log2(np.exp(x - most))), ("negated", lambda x, most, s: -x),
        ("the maximum alone", lambda x, most, s: most), ("exponentials times", lambda x, most, s: x + 0.7),
        ("smoothed keys", lambda x, most, s: x - s.mean(-1)), ("mean in place", lambda x, most, s: x - np.log(TOKENS)))
CLASSES = [
    *((f"mask {named}", f"sdpa {flags}", named, lambda mask=mask: attend(mask)) for flags, named, mask in MASKS),
    *((f"scale {named}", "sdpa", named, lambda scale=scale: attend(scale=scale)) for named, scale in SCALES),
    *((f"weights {named}", "sdpa", re.escape(f"weights {named} ("), lambda f=f: weighed(f)) for named, f in FUNCTIONS),
    *((f"weights {named} / n", "sdpa", re.escape(f"weights {named} / kv_len"),
       lambda f=f: weighed(lambda s: f(s) / TOKENS)) for named, f in FUNCTIONS),
    *((f"weights {named} / sum", "sdpa", re.escape(f"weights {named} / sum"),
       lambda f=f: weighed(lambda s: f(s) / f(s).sum(-1, keepdims=True))) for named, f in FUNCTIONS[1:4]),
    ("weights of max", "sdpa", r"e\^max", lambda: attend(sink=attend()["scores"].max(-1, keepdims=True))),
    *((f"cosine {scale}", "sdpa", f"--qk-norm l2 and --scale {scale}|--qk-norm l2 .asked: off", lambda scale=scale: attend(scale=scale, cosine=True))
      for scale in (D**-0.5, 1, 10, 7.3)),
    *((f"denominator {more}", "sdpa", f"--softmax-plus {more} ", lambda more=more: attend(sink=np.log(more))) for more in (0.5, 2, 5)),
    *((f"asked {asked}", f"sdpa --softmax-plus {asked}", f"--softmax-plus {n} ",
       lambda n=n: attend(sink=np.log(n))) for asked, n in ((1, 0), (1, 2), (2, 1), (3, 0.7))),
    *((f"sink {s}", flags, f"--sink={s}\\b", lambda s=s: attend(sink=s))
      for flags in ("sdpa", "sdpa --sink 0.25") for s in (0.5, -1, 2)),
    ("no norm", "sdpa --qk-norm l2", "--no-qk-norm", attend),
    ("scale with a norm", "sdpa --qk-norm l2", "--scale 3.7", lambda: attend(scale=3.7, cosine=True)),
    ("sink in base 2", "sdpa --sink 0.5", "--sink=0.3465", lambda: attend(sink=0.5 * np.log(2))),
    ("sink after the maximum", "sdpa --sink 0.5", "each row's maximum",
     lambda: attend(sink=0.5 + attend()["scores"].max(-1, keepdims=True))),
    ("slopes in base 2", "sdpa --alibi --alibi-slopes 1,0.5,0.25", "slopes of ALiBi times 0.693147",
     lambda: attend(bias=-abs(Q - K) * SLOPES * np.log(2))),
    *((f"{FLIPPED}{of}", "sdpa", f"{FLIPPED}{of} ", port) for of, port in (
        ("", lambda: attend(k=k[:, ::-1], v=v[:, ::-1])), (", of keys alone", lambda: attend(k=k[:, ::-1])),
        (", of values alone", lambda: attend(v=v[:, ::-1])))),
    ("keys of the first head", "sdpa", "first key head for all, of keys alone", lambda: attend(k=k[:, :1])),
    ("padded keys", "sdpa", "8, as padded keys", lambda: attend(sink=np.log(8))),
    ("sinks of heads", "sdpa", "--sink=0.5,-0.75,1.25", lambda: attend(sink=SINKS)),
    ("sink left out", "sdpa --sink 0.5", "left out", attend),
    ("softmax over queries", "sdpa", "over queries", lambda: attend(axis=-2)),
    ("softmax over heads", "sdpa", "over heads", lambda: attend(axis=1)),
    ("values of keys", "sdpa", "query, key, key", lambda: attend(v=k)),
    *((f"output {named}", "sdpa", named, lambda change=change: output(change)) for named, change in OUTPUTS),
    *((f"logsumexp {named}", "sdpa", named, lambda change=change: stated(change)) for named, change in SUMS),
    *((f"causal logsumexp {named}", "sdpa --causal", named, lambda change=change: stated(change, mask=CAUSAL))
      for named, change in SUMS[:3]),
    ("logsumexp without the sink", "sdpa --sink 0.5", "without the sink",
     lambda: stated(lambda x, most, s: np.log(np.exp(s).sum(-1)), sink=0.5)),
    *((f"state {named}", "linear --rule gated_delta", named, lambda of=of: recurrent(**of))
      for named, of in (("before the decay", {"undecayed": True}), ("decayed after", {"after": True}),
                        ("read before", {"previous": True}), ("right", {}))),
    *((f"right {flags}", f"sdpa {flags}", "right", lambda of=of: attend(**of))
      for flags, of in (("", {}), ("--causal", {"mask": CAUSAL}), ("--sink 0.5", {"sink": 0.5}),
                        ("--causal --window 2", {"mask": CAUSAL & (Q - K <= 2)}))),
]


def failure_of(attn, folder, flags, pattern, arrays):
    np.savez(f"{folder}/theirs.npz", **{name: array.astype(np.float32) for name, array in arrays.items()})
    ran = subprocess.run([attn, "check", *flags.split(), f"{folder}/{flags.split()[0]}.npz", "--against",
                          f"{folder}/theirs.npz", "--search"], capture_output=True, text=True, timeout=60)
    lines = [line for line in ran.stdout.splitlines() if line.startswith(("matches", "indistinguishable", "no change"))]
    found = ran.returncode == 0 if pattern == "right" else any(re.search(pattern, line) for line in lines)
    return "" if found else "; ".join(lines) or ran.stdout + ran.stderr


def main(attn, only=""):
    failed = []
    with tempfile.TemporaryDirectory() as folder, np.errstate(all="ignore"):
        arrays = {"query": q, "key": k, "value": v}
        np.savez(f"{folder}/sdpa.npz", **{name: x.astype(np.float32) for name, x in arrays.items()})
        arrays |= {"key": unit_k, "decay": decay, "beta": beta}
        np.savez(f"{folder}/linear.npz", **{name: x.astype(np.float32) for name, x in arrays.items()})
        for name, flags, pattern, port in CLASSES:
            given = {key: x for key, x in port().items() if key not in ("scores", "most")}
            if "logsumexp" not in name: given.pop("logsumexp", None)
            for dropped in ((), ("attention_weights",)) if "attention_weights" in given else ((),):
                some = {key: x for key, x in given.items() if key not in dropped}
                why = failure_of(attn, folder, flags, pattern, some) if re.search(only, name) else ""
                if why: failed.append(f"{name} ({', '.join(some)}): {why}")
    print("\n".join(failed) or f"{len(CLASSES)} classes are named")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
