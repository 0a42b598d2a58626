#!/usr/bin/env python3
"""The memory estimate of `attn batch --dry-run`, compared with the peak that the system measures.

    python3 tests/memory_estimates.py ATTN [--seed N] [--count N] [--one I]

Questions are generated: every mode, with one or two sizes that are huge and others about those of a tile, types,
kernels, arrays that are written, decimals, masks, caches, batches, threads; inputs as text, JSON, CSV and npy. Each
runs by itself; what it takes beyond an idle program is at most 1.5 times what was said, where that is enough to be
measured, and what was said is seldom more than twice what it takes. ATTN_TEST_QUESTIONS is a count for all runs.
Needs the standard library only.
"""
import argparse
import array
import json
import os
import random
import resource
import struct
import sys
import tempfile

MB = 1 << 20
IDLE = 6 * MB  # the program itself
LEAST = 20 * MB  # what is freed, and kept by malloc, is less than half of it
MOST_LOW, MOST_HIGH = 1.5, 2.0
SIZES = [1, 1, 1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 33, 47, 48, 49, 63, 65, 127, 129]
PER_KEY = ["scores", "attention_weights"]
BY_REFERENCE = ["scaled_scores", "masked_scores", "biased_scores", "mask", "capped_scores", "weights_before_dropout"]
BY_ANY = ["inputs", "W_query", "W_key", "W_value", "W_out", "unrotated_queries", "queries", "keys", "values", "logsumexp", "present_key",
          "present_value", "head_outputs", "context_vectors", "b_query", "b_out", "token_ids", *PER_KEY]
GROWING = {"self": "n din dk dv", "causal": "n din dk dv", "multihead": "n din dk dv heads dout batch",
           "cross": "n m din dctx dk dv", "sdpa": "n m dk dv heads batch"}


def write_npy(path, shape, descr, numbers):
    """`numbers` again and again."""
    head = "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }" % (descr, "".join("%d, " % n for n in shape))
    head += " " * (63 - (10 + len(head)) % 64) + "\n"
    left = numbers.itemsize
    for length in shape:
        left *= length
    block = numbers.tobytes()
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode())
        while left > 0:
            file.write(block[:left])
            left -= len(block)
    return path


class Question:
    """Sizes first; then, where they are fit to be measured, the request and its files."""

    def __init__(self, rng):
        self.rng = rng
        self.mode = rng.choice(list(GROWING))
        self.element = 8 if rng.random() < 0.35 else 4
        self.kernel = rng.choice([None, None, None, "generic", "reference"])
        self.sizes = {name: rng.choice(SIZES) for name in "n m din dctx dk dv heads dout".split()}
        self.sizes |= {"batch": rng.choice([1, 1, 1, 1, 2, 3]), "past": rng.choice(SIZES) if rng.random() < 0.15 else 0,
                       "group": rng.choice([1, 1, 1, 2, 4])}
        if self.mode not in ("multihead", "sdpa"):
            self.sizes |= {"heads": 1, "group": 1}
        self.is_text = self.mode not in ("sdpa", "cross") and rng.random() < 0.3
        if self.is_text:
            self.sizes["batch"] = 1
        self.out_proj = self.mode == "multihead" and rng.random() < 0.7
        self.projects = self.mode != "sdpa" and not (self.mode != "multihead" and rng.random() < 0.15)
        self.bias = self.projects and rng.random() < 0.3
        self.emit = self.choose_arrays()
        if self.emit == ["all"] or any(name in BY_REFERENCE for name in self.emit):
            self.kernel = "reference"
        self.is_fit = self.grow()

    def choose_arrays(self):
        chance = self.rng.random()
        if chance < 0.45:
            return ["context_vectors"]
        if chance < 0.6:
            return ["context_vectors", "attention_weights"]
        if chance < 0.65:
            return ["all"]
        names = self.rng.sample(BY_ANY + (BY_REFERENCE if self.kernel == "reference" else []), self.rng.randint(1, 4))
        missing = {"W_out": not self.out_proj, "b_out": not self.out_proj, "b_query": not self.bias,
                   "inputs": self.mode == "sdpa", "token_ids": not self.is_text,
                   **{name: not self.projects for name in ("W_query", "W_key", "W_value")}}
        return [name for name in names if not missing.get(name)] or ["context_vectors"]

    def keys(self):
        return (self.sizes["m"] if self.mode in ("cross", "sdpa") else self.sizes["n"]) + self.sizes["past"]

    def kv_heads(self):
        return self.sizes["heads"] // self.sizes["group"]

    def scores(self):
        return self.sizes["batch"] * self.sizes["heads"] * self.sizes["n"] * self.keys()

    def parameters(self):
        s = self.sizes
        if not self.projects:
            return 0
        source = s["dctx"] if self.mode == "cross" else s["din"]
        out = s["heads"] * s["dv"] * s["dout"] if self.out_proj else 0
        return s["din"] * s["heads"] * s["dk"] + source * self.kv_heads() * (s["dk"] + s["dv"]) + out

    def written(self):
        s, numbers = self.sizes, 0
        for name in self.emit:
            if name in PER_KEY + BY_REFERENCE or name == "all":
                numbers += self.scores() * (8 if name == "all" else 1)
            elif name.startswith("W_"):
                numbers += self.parameters()
            else:
                numbers += s["batch"] * s["n"] * (s["din"] + (s["dout"] if self.out_proj else 0))
                numbers += s["batch"] * s["heads"] * max(s["n"], self.keys()) * max(s["dk"], s["dv"])
        return numbers

    def bytes(self):
        """Roughly, to aim at: nothing is held against it."""
        s = self.sizes
        numbers = self.parameters() + s["batch"] * s["heads"] * s["n"] * (s["dk"] + s["dv"])
        numbers += s["batch"] * self.kv_heads() * self.keys() * (s["dk"] + s["dv"]) + s["batch"] * s["n"] * s["din"]
        numbers += s["batch"] * s["m"] * s["dctx"] if self.mode == "cross" else 0
        numbers += 5 * self.scores() if self.kernel == "reference" else 0
        return (numbers + 2 * self.written()) * self.element + 12 * self.written()

    def work(self):
        s = self.sizes
        return 2 * self.scores() * (s["dk"] + s["dv"]) + 2 * s["batch"] * max(s["n"], self.keys()) * self.parameters()

    def grow(self):
        start, target = dict(self.sizes), 2 ** self.rng.uniform(24.6, 26.6)
        for _ in range(100):
            s = self.sizes = dict(start)
            if s["heads"] % s["group"] != 0:
                s["group"] = 1
            names = self.rng.sample(GROWING[self.mode].split(), self.rng.choice([1, 1, 2]))
            if self.mode != "sdpa" and not self.projects:
                s["dk"] = s["dv"] = s["dctx"] = s["din"]
                names = ["n"]
            for _ in range(80):
                if self.bytes() >= target:
                    break
                name = self.rng.choice(names)
                s[name] = max(s[name] + 1, int(s[name] * self.rng.uniform(1.1, 1.9)))
            if s["heads"] % s["group"] != 0:
                s["group"] = 1
            is_slow = self.kernel == "reference"
            if (self.bytes() < 2 * target and self.work() < (2e8 if is_slow else 2e9) and self.written() < 2e6 and
                    s["heads"] < 20000 and self.scores() < (1e7 if is_slow else 3e7) and
                    not (self.is_text and s["n"] > 100000)):
                return True
        return False

    def reals(self):
        code = "d" if self.element == 8 and self.rng.random() < 0.7 else "f"
        return "<f8" if code == "d" else "<f4", array.array(code, (self.rng.uniform(-1, 1) for _ in range(4099)))

    def operand(self, key, shape):
        return write_npy(key + ".npy", shape, *self.reals())

    def matrix(self, key, rows, columns):
        """A path; or, as JSON in the request, a text."""
        batch = self.sizes["batch"]
        form = self.rng.choice(["npy", "npy", "npy", "csv", "json", "ndjson", "inline"])
        if batch > 1 or form == "npy" or rows * columns > 5e5:
            return self.operand(key, ([batch] if batch > 1 else []) + [rows, columns])
        block = ["%.*f" % (self.rng.choice([2, 8, 17]), self.rng.uniform(-1, 1)) for _ in range(1009)]
        block *= 1 + -(-columns // 1009)
        lines = [",".join(block[i * 7 % 1009:i * 7 % 1009 + columns]) for i in range(rows)]
        if form == "inline":
            return [json.loads("[%s]" % line) for line in lines]
        texts = {"csv": "\n".join(lines) + "\n", "json": "[" + ",".join("[%s]" % line for line in lines) + "]",
                 "ndjson": "".join("[%s]\n" % line for line in lines)}
        with open(key + "." + form, "w") as file:
            file.write(texts[form])
        return key + "." + form

    def heads(self, key, heads, rows, width, is_packed):
        shape = [rows, heads * width] if is_packed else [heads, rows, width]
        return self.operand(key, [self.sizes["batch"]] + shape)

    def request(self):
        rng, s = self.rng, self.sizes
        asked = {"mode": self.mode, "emit": self.emit}
        if self.element == 8:
            asked["dtype"] = "float64"
        if self.kernel and not (self.kernel == "reference" and rng.random() < 0.3 and self.emit == ["all"]):
            asked["kernel"] = self.kernel
        if self.mode == "sdpa":
            is_packed = rng.random() < 0.3
            asked["query"] = self.heads("query", s["heads"], s["n"], s["dk"], is_packed)
            asked["key"] = self.heads("key", self.kv_heads(), s["m"], s["dk"], is_packed)
            asked["value"] = self.heads("value", self.kv_heads(), s["m"], s["dv"], is_packed)
            if is_packed:
                asked |= {"heads": s["heads"], "kv_heads": self.kv_heads()}
        else:
            self.ask_of_layer(asked)
        if s["past"] and (self.projects or self.mode == "sdpa"):
            asked["past_key"] = self.heads("past_key", self.kv_heads(), s["past"], s["dk"], False)
            asked["past_value"] = self.heads("past_value", self.kv_heads(), s["past"], s["dv"], False)
        else:
            s["past"] = 0
        self.ask_of_masks(asked)
        self.ask_of_text(asked)
        return asked

    def ask_of_layer(self, asked):
        rng, s = self.rng, self.sizes
        if self.is_text:
            words = ["w%d" % i for i in range(min(s["n"], rng.choice([1, 50, 5000])))]
            asked |= {"text": " ".join(rng.choice(words) for _ in range(s["n"])), "embed_dim": s["din"],
                      "vocab_size": len(words)}
        else:
            asked["inputs"] = self.matrix("inputs", s["n"], s["din"])
        if self.mode == "cross":
            asked["context"] = self.matrix("context", s["m"], s["dctx"])
        if not self.projects:
            asked["init"] = "none"
            return
        asked["init"] = rng.choice(["linear", "rand", "xavier"])
        if self.bias:
            asked["qkv_bias"] = True
        if self.mode != "multihead":
            asked |= {"d_k": s["dk"], "d_v": s["dv"]}
        elif s["group"] == 1 and not self.out_proj and not s["past"] and rng.random() < 0.3:
            asked |= {"style": "wrapper", "heads": s["heads"], "d_k": s["dk"], "d_v": s["dv"], "out_proj": False}
        else:
            asked |= {"heads": s["heads"], "kv_heads": self.kv_heads(), "d_k": s["heads"] * s["dk"],
                      "d_v": s["heads"] * s["dv"], "out_proj": self.out_proj}
            if self.out_proj:
                asked["d_out"] = s["heads"] * -(-s["dout"] // s["heads"])

    def ask_of_masks(self, asked):
        rng, s, keys = self.rng, self.sizes, self.keys()
        bits = array.array("b", (int(rng.random() < 0.7) for _ in range(4099)))
        if rng.random() < 0.25 and keys * s["n"] < 4e6:
            shape = rng.choice([[s["n"], keys], [1, keys], [s["batch"], 1, s["n"], keys]])
            is_boolean = rng.random() < 0.5
            asked["mask"] = write_npy("mask.npy", shape, "|b1", bits) if is_boolean else self.operand("mask", shape)
            if is_boolean:
                asked["mask_true"] = rng.choice(["keep", "drop"])
        if rng.random() < 0.1:
            asked["key_padding_mask"] = write_npy("padding.npy", [s["batch"], keys], "|b1", bits)
            asked.setdefault("mask_true", "keep")
        for key, chance, value in (("window", 0.15, [rng.choice([-1, 0, 3, 100]), rng.choice([-1, 0, 3, 100])]),
                                   ("alibi", 0.1, True), ("softcap", 0.1, 5), ("dropout", 0.1, 0.3),
                                   ("sink", 0.1, [0.5]), ("token", 0.12, rng.randrange(s["n"]))):
            if rng.random() < chance:
                asked[key] = value
        if rng.random() < 0.08 and self.kernel is None:
            asked["mask_method"] = "renormalize"
        if rng.random() < 0.1 and s["heads"] > 1:
            asked["average_heads"] = True

    def ask_of_text(self, asked):
        rng = self.rng
        if rng.random() < 0.35:
            asked["precision"] = rng.choice([0, 1, 2, 4, 8, 15, 20])
        if rng.random() < 0.15:
            asked["nonfinite"] = rng.choice(["null", "string", "literal"])
        if rng.random() < 0.4:
            asked["threads"] = rng.choice([1, 2, 8, 16])

    def write(self):
        text = json.dumps(self.request())
        with open("request.ndjson", "w") as file:
            file.write(text + "\n")
        with open("shown", "w") as file:
            file.write(text[:600])


def in_child(work):
    """Child processes inherit this process's peak of memory, so it uses little."""
    pid = os.fork()
    if pid == 0:
        work()
        os._exit(0)
    _, status, used = os.wait4(pid, 0)
    return os.waitstatus_to_exitcode(status), 1024 * used.ru_maxrss


def run(arguments):
    def start():
        resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
        for descriptor, name in ((1, "out"), (2, "err")):
            os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), descriptor)
        os.execv(ATTN, [ATTN, "batch", "--jobs", "1", *arguments])

    return in_child(start)


def measure(question):
    """The estimate and the use; None if the question is invalid."""
    for name in os.listdir("."):
        os.remove(name)
    code, _ = in_child(question.write)
    assert code == 0
    run(["--dry-run", "request.ndjson"])
    with open("out") as file:
        cost = json.loads(file.readline())
    if "memory_bytes" not in cost or cost["memory_bytes"] > 600 * MB or cost["flops"] > 1e10:
        return None
    code, peak = run(["request.ndjson", "-o", "answer"])
    with open("err") as file:
        assert code == 0, file.read() + open("shown").read()
    return cost["memory_bytes"], peak - IDLE


def main():
    global ATTN
    parser = argparse.ArgumentParser()
    parser.add_argument("attn")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=int(os.environ.get("ATTN_TEST_QUESTIONS", 40)))
    parser.add_argument("--one", type=int)
    options = parser.parse_args()
    ATTN = os.path.abspath(options.attn)
    low, high, ratios, tried = [], [], [], 0
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        while len(ratios) < options.count and tried < 20 * options.count:
            number = tried if options.one is None else options.one
            tried += 1
            question = Question(random.Random(options.seed * 1000003 + number))
            measured = measure(question) if question.is_fit else None
            if measured is not None and max(measured) >= LEAST:
                said, used = measured
                ratios.append(used / said)
                with open("shown") as file:
                    line = "question %d: said %.1f MB, used %.1f MB: %s %s" % (
                        number, said / MB, used / MB, file.read(), question.sizes)
                if used > MOST_LOW * said:
                    low.append(line)
                if said > MOST_HIGH * used:
                    high.append(line)
            if options.one is not None:
                print(line if measured else "no good question")
                break
        os.chdir("/")
    for line in low + high:
        print(line)
    ratios.sort()
    print("%d questions of %d: %d used more than %.1f times of what was said, %d less than 1/%.0f; used/said %s" % (
        len(ratios), tried, len(low), MOST_LOW, len(high), MOST_HIGH,
        ["%.2f" % ratios[i * (len(ratios) - 1) // 4] for i in range(5)] if ratios else []))
    sys.exit(1 if low or len(high) * 50 > len(ratios) + 50 or len(ratios) < min(20, options.count) else 0)


main()
