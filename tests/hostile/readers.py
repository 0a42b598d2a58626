"""Commands whose input has a size: tokenizers, GGUF files, files of many arrays, corpora, parts and indexes of batches."""
import json
import os
import shutil
import struct

from hostile.gguf import ARRAY, STRING, gguf, key, tensor, text, uint32
from hostile.run import Run, npy, npz, put, tensors

LETTERS = "abcdefghijklmnopqrstuvwxyz"


def words(n):
    """Different words of letters, the shorter ones first."""
    found = list(LETTERS)
    for word in found:
        if len(found) >= n:
            return found[:n]
        found.extend(word + letter for letter in LETTERS)
    return found


def ids(names):
    return {name: i for i, name in enumerate(names)}


def tokenizer(model, indent=None, **parts):
    return json.dumps({"model": model, **parts}, indent=indent)


def bpe(n, join):
    pieces = words(n)
    merges = [join(piece[:-1], piece[-1]) for piece in pieces if len(piece) > 1]
    return tokenizer({"type": "BPE", "vocab": ids(pieces), "merges": merges})


def strings(name, items):
    return key(name, ARRAY, struct.pack("<IQ", STRING, len(items)) + b"".join(map(text, items)))


def numbers(name, kind, form, items):
    return key(name, ARRAY, struct.pack("<IQ", kind, len(items)) + struct.pack("<%d%s" % (len(items), form), *items))


def gguf_tokenizer(n, scored):
    pieces = words(n)
    keys = [key("tokenizer.ggml.model", STRING, text("llama" if scored else "gpt2")), strings("tokenizer.ggml.tokens", pieces),
            numbers("tokenizer.ggml.token_type", 5, "i", [1, 3, 4] * (n // 3) + [1] * (n % 3))]
    keys += [numbers("tokenizer.ggml.scores", 6, "f", [-1.5] * n)] if scored else [
        key("tokenizer.ggml.pre", STRING, text("gpt-2")),
        strings("tokenizer.ggml.merges", [piece[:-1] + " " + piece[-1] for piece in pieces if len(piece) > 1])]
    return gguf(keys)


def tokenizers():
    file = lambda make: lambda n: ["tokenize", put("tokenizer.json", make(n)), "ab"]
    of_gguf = lambda scored: lambda n: ["tokenize", put("in.gguf", gguf_tokenizer(n, scored)), "ab"]
    piece = lambda n, **more: {"type": "WordPiece", "unk_token": "a", "vocab": ids(words(n)), **more}
    small = {"type": "WordLevel", "unk_token": "a", "vocab": {"a": 0}}
    added = lambda n: [{"id": i, "content": "<%s>" % word, "special": i % 2 == 0} for i, word in enumerate(words(n))]
    sequence = lambda n, key, step: {"type": "Sequence", key: [step] * (n // 8)}
    item = lambda kind, name: {kind: {"id": name, "type_id": 0}}
    template = lambda n: {
        "type": "TemplateProcessing", "single": [item("SpecialToken", word) for word in words(n)] + [item("Sequence", "A")],
        "pair": [item("Sequence", "A"), item("Sequence", "B")],
        "special_tokens": {word: {"id": word, "ids": [1], "tokens": [word]} for word in words(n)}}
    return {
        "tokenizer: WordPiece": file(lambda n: tokenizer(piece(n))),
        "tokenizer: WordPiece, a line for each": file(lambda n: tokenizer(piece(n), indent=1)),
        "tokenizer: WordLevel": file(lambda n: tokenizer({**piece(n), "type": "WordLevel"})),
        "tokenizer: Unigram": file(lambda n: tokenizer({"type": "Unigram", "unk_id": 0, "vocab": [[w, -1.5] for w in words(n)]})),
        "tokenizer: BPE, merges as pairs": file(lambda n: bpe(n, lambda a, b: [a, b])),
        "tokenizer: BPE, merges as texts": file(lambda n: bpe(n, lambda a, b: a + " " + b)),
        "tokenizer: added tokens": file(lambda n: tokenizer(small, added_tokens=added(n))),
        "tokenizer: normalizers": file(lambda n: tokenizer(small, normalizer=sequence(n, "normalizers", {"type": "NFC"}))),
        "tokenizer: pre-tokenizers": file(lambda n: tokenizer(small, pre_tokenizer=sequence(
            n, "pretokenizers", {"type": "Whitespace"}))),
        "tokenizer: decoders": file(lambda n: tokenizer(small, decoder=sequence(n, "decoders", {"type": "Fuse"}))),
        "tokenizer: a template": file(lambda n: tokenizer(small, post_processor=template(n))),
        "tokenizer: the last id is none": file(lambda n: tokenizer({**piece(n), "vocab": {**ids(words(n)), "-": -1}})),
        "tokenizer: the last piece is too long": file(lambda n: tokenizer({**piece(n), "vocab": {**ids(words(n)), "-" * 20000: 1}})),
        "gguf: tokens with merges": of_gguf(False), "gguf: tokens with scores": of_gguf(True),
    }


def files(gpt2):
    many = lambda n: [("t%d" % i, [1]) for i in range(n)]
    twice = lambda command, name, data: lambda n: [command, put(name, data(n)), name]
    of_arrays = lambda n: npz([(name + ".npy", npy([1])) for name, _ in many(n // 8)], 0)
    of_layers = lambda n: json.dumps({"attention_weights": [[[1]]] * n, "layer_numbers": list(range(n))})
    requests = lambda n: put("in.ndjson", "".join('{"id":%d,"mode":"self","inputs":[[1,2]]}\n' % i for i in range(n)))

    def model(n):
        os.makedirs("model", exist_ok=True)
        put("model/config.json", open(os.path.join(gpt2, "config.json"), "rb").read())
        put("model/model.safetensors", tensors(many(n)))
        return ["model", "model", "--token-ids", "1"]

    def parts(n, *then):
        """The parts of a batch in a new folder; or, once they are there, a command that reads their index."""
        folder = "parts%d" % n
        first = ["batch", requests(n // 8), "--out-dir", folder]
        if then and not os.path.isdir(folder):
            Run(first)
        if not then:
            shutil.rmtree(folder, ignore_errors=True)
        return [word.replace("INDEX", folder + "/index.ndjson").replace("PARTS", folder) for word in then] or first

    def answers(n, *then):
        Run(["batch", requests(n // 8), "--bare", "-o", "answers.ndjson"])
        return list(then)

    return {
        "gguf: keys": lambda n: ["inspect", put("in.gguf", gguf([uint32("key%d" % i, i) for i in range(n)], []))],
        "gguf: tensors": lambda n: ["inspect", put("in.gguf", gguf(
            [], [tensor("t%d" % i, (1,), 0, 32 * i) for i in range(n)], bytes(32 * n)))],
        "gguf: numbers": lambda n: ["inspect", put("in.gguf", gguf([numbers("list", 4, "I", range(n))], []))],
        "npz: compare": twice("compare", "in.npz", of_arrays), "safetensors: compare": twice("compare", "in.safetensors", lambda n: tensors(many(n))),
        "json: compare layers": twice("compare", "in.json", of_layers),
        "safetensors: one array of many": lambda n: ["self", put("in.safetensors", tensors(many(n) + [("x", [2, 2])])) + ":x"],
        "safetensors: a model": model,
        "scan: records": lambda n: ["scan", gpt2, put("in.ndjson", '{"token_ids":[1]}\n' * (n // 8)), "--layers", "0", "-o", "s.json"],
        "scan: texts that fail": lambda n: ["scan", gpt2, put("in.txt", "a b\n" * n), "--layers", "0", "-o", "s.json"],
        "batch: ids": lambda n: ["batch", requests(n), "--dry-run", "-o", "answers.ndjson"],
        "batch: answers": lambda n: answers(n, "batch", "in.ndjson", "--bare", "--resume", "answers.ndjson"),
        "batch: compare answers": lambda n: answers(n, "compare", "answers.ndjson", "answers.ndjson"),
        "batch: parts": parts,
        "batch: an index, resumed": lambda n: parts(n, "batch", requests(n // 8), "--out-dir", "PARTS", "--resume", "PARTS"),
        "batch: an index, inspected": lambda n: parts(n, "inspect", "INDEX"),
        "batch: an index, compared": lambda n: parts(n, "compare", "INDEX", "INDEX"),
    }


def readers(gpt2):
    """Name: a function from a size to the arguments of a command whose input has this size."""
    return {**tokenizers(), **files(gpt2)}
