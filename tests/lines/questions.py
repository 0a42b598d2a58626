"""Groups of lines on what is in the project's data and manual, and on where input and output end."""
import glob
import json
import os
import re

from lines.values import ASKED, DTYPES, FAMILIES, KERNELS, MODES, cut, quoted, spread

# The input that fits a model's width; 12 otherwise.
WIDTHS = {"llama": "made/hidden_16.csv", "mistral": "made/hidden_16.csv", "qwen2": "made/hidden_16.csv",
          "neox": "made/hidden_16.csv", "selfattention": "data/journey.csv", "causalattention": "data/journey.csv",
          "multiheadattention": "made/hidden_12.csv"}


def fitting(path):
    """The mode and input for a file of weights."""
    mode = "self" if "selfatt" in path else "causal" if "causalatt" in path else "multihead"
    if path.startswith("made/"):
        return mode, "made/tokens.csv"
    found = [file for part, file in WIDTHS.items() if part in path]
    return mode, (found or ["data/models/hidden.csv"])[0] + (" --heads 2" if "/mha" in path else "")


def models(program):
    names = [name for name in sorted(os.listdir(program.data("models"))) if "." not in name]
    paths = [f"data/models/{name}" for name in names]
    for name in ("mha", "notebook"):
        paths += [f"data/models/{name}/{file}" for file in sorted(os.listdir(program.data("models", name)))]
    paths += [f"made/{family}.{suffix}" for family in FAMILIES for suffix in ("safetensors", "npz", "json")]
    inputs = cut("data/models/hidden.csv | --token-ids 3,1,4 | made/tokens.csv | data/journey.csv | --text 'a b'")
    ways = cut("""| --pre-norm | --layer 1 | --layer 9 | --heads 3 | --no-causal | --model-config none | --qkv-bias |
        --seed 1 | --rope half --rope-base 100 | --weights-layout out-in | --kv-heads 1 | --d-out 4 |
        --norm-eps 0.1 --pre-norm | --alibi | --save-weights w.safetensors | --dtype float64 | --format table |
        --kernel generic --threads 2""")
    for mode, path, words in spread(15, MODES[:3], paths, inputs):
        yield f"attn {mode} {words} --weights {path} --emit all"
    for path, way in spread(16, paths, ways):
        mode, words = fitting(path)
        yield f"attn {mode} {words} --weights {path} {way}".strip()
        yield f"attn {mode} --token-ids 3,1,4 --weights {path} {way}".strip()
    for path, family, suffix in spread(17, paths, FAMILIES, ("safetensors", "npz", "json")):
        mode, words = fitting(path)
        yield f"attn {mode} {words} --weights {path} --save-weights w.{suffix} --save-family {family} --format none"
        yield f"attn {mode} {ASKED[mode]} --init rand --save-weights w.{suffix} --save-family {family} --format none"
    for name in sorted(os.listdir(os.path.join(program.folder, "made", "configs"))):
        yield (f"attn multihead --weights data/models/{name.split('.')[1]} --model-config made/configs/{name} "
               "--token-ids 1,8,3,3,6,2 --emit all")
    for model, versions in program.load("models", "config_keys.json").items():
        asked = f"--weights data/models/{model} --model-config c.json --token-ids 1,2"
        config = program.load("models", model, "config.json")
        for key, value in {key: value for keys in versions.values() for key, value in keys.items()}.items():
            for text in (value, "x", 3, True):
                yield f"cat >c.json; attn multihead {asked}", json.dumps({**config, key: text})


def arrays(program):
    suffixes = "json csv tsv npy npz safetensors ndjson".split()
    for name, suffix, dtype in spread(19, sorted(os.listdir(program.data("arrays"))), suffixes, DTYPES):
        yield f"attn self data/arrays/{name} --init none --emit inputs --dtype {dtype} -o out.{suffix}"
    for name in "several_stored.npz several_deflated.npz names.safetensors types.safetensors".split():
        for member in ["", *"inputs query x a f4 F16 BF16 I64 inputs.npy __metadata__".split()]:
            yield f"attn self data/arrays/{name}:{member} --init none"


def malformed(program):
    """The files of make_hostile.py, by name and by stream, as inputs, weights and requests."""
    with open(os.path.join(program.folder, "made", "hostile", "manifest.json"), encoding="utf-8") as file:
        names = [quoted("made/hostile/" + entry["file"]) for entry in json.load(file)["files"]]
    for path in names:
        yield from (f"attn self {path} --init none --emit inputs", f"attn self {path}:x --init none --emit inputs",
                    f"attn self --init none --emit inputs <{path}", f"attn multihead data/journey.csv --weights {path}",
                    f"attn batch -j 1 --mode self {path}", f"attn compare {path} data/journey.csv",
                    f"attn plot {path}")


def golden(program):
    """The questions of data/golden."""
    for name in ("torch", "seeds", "onnx_attention"):
        for case in program.load("golden", f"{name}.json")["cases"]:
            request = dict(case.get("request") or case["config"])
            request.pop("id", None)
            mode = request.pop("mode")
            if isinstance(request.get("input"), str):
                request["example"] = request.pop("input")
            if name == "onnx_attention":
                request = {key: f"data/golden/{name}.npz:{value}" if isinstance(value, str) and "." in value else value
                           for key, value in request.items()}
            for way in cut("| --emit all | --kernel generic --dtype float64 | --format torch"):
                yield f"attn {mode} - {way}".strip(), json.dumps(request)
            yield f"attn explain {mode} -", json.dumps(request)


def manual(program):
    """Every command of README.md and the manual that can be pasted, of their tables and blocks."""
    pages = [os.path.join(program.root, "README.md"), *sorted(glob.glob(os.path.join(program.root, "cli/manual/*.md")))]
    text = ""
    for page in pages:
        with open(page, encoding="utf-8") as file:
            text += file.read()
    found = re.findall(r"`(attn [^`\n]*)`", text) + re.findall(r"^\$ (attn .*)", text, re.MULTILINE)
    for block in re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        found += [line for line in block.split("\n") if "attn" in line and "build/" not in line]
    for line in found:
        if "data/" in line or not re.search(r"\b[A-Z]{4,}\b|requests.ndjson$|\|\|", line):
            yield line.replace("\\|", "|")


def tables(program):
    """The mistakes of cli/mistakes.tsv, and the questions of cli/same_answers.txt, which are asked in many ways."""
    for name in ("mistakes.tsv", "same_answers.txt"):
        with open(os.path.join(program.root, "tests", "cli", name), encoding="utf-8") as file:
            yield from (line.rstrip("\n").split("\t")[-1] for line in file if "attn" in line and line[0] != "#")


def ends(program):
    """Where output cannot go, or is there already; pipes; standard streams that are closed."""
    for mode in MODES:
        asked = f"attn {mode} {ASKED[mode]}"
        for before, after in (
                ("", ">/dev/full"), ("", ">&-"), ("", "<&-"), ("", "2>&-"), ("", "-o nowhere/out.json"), ("", "-o ."),
                ("echo old >out.json; chmod 400 out.json;", "-o out.json"),
                ("echo old >out.csv;", "-o out.csv --emit all"),
                ("ln -s target.json out.json;", "-o out.json"), (">empty.tmp;", "-o empty.tmp"),
                ("echo x >full.tmp;", "-o full.tmp"), ("mkdir d;", "-o d"), ("", "-o /dev/stdout"), ("", "-o -"),
                ("mkfifo p; cat p >got &", "-o p; wait"), ("", "--plot out.svg --save-weights w.npz -o out.npz"),
                ("", "--plot out.svg -o out.svg"), ("", "-o out.json --save-weights out.json"),
                ("", "| attn self --format table"), ("", "--format npz | attn causal - --emit all"),
                ("", "--format ndjson | attn batch --mode self"), ("", "--emit all | attn plot"),
                ("", "--format csv | attn self"), ("", "--format npy | attn self --init none"),
                ("", "| attn compare - made/result.json"), ("ATTN_KERNEL=generic", ""), ("ATTN_KERNEL=x", ""),
                ("ATTN_KERNEL=", ""), ("ATTN_KERNEL=reference", "--kernel avx2 --threads 3"),
                ("", f"--emit all -o a.npz && {asked} --weights a.npz")):
            yield f"{before} {asked} {after}".strip()


def kernels(program):
    """Work that is large enough for tiles and threads; such lines are slow."""
    def words(number, different):
        return " ".join(f"w{n % different}" for n in range(number))

    questions = (f"self --text '{words(300, 97)}' --embed-dim 40",
                 f"multihead --text '{words(257, 89)}' --embed-dim 64 --heads 4 --d-out 64")
    ways = cut("""| --window 20,3 | --alibi | --softcap 4 | --sink 0.5 | --dropout 0.2 --seed 4 | --rope half |
        --mask-method renormalize | --kv-lengths 200 | --token 130 | --emit logsumexp,attention_weights""")
    for asked, kernel, dtype, way, threads in spread(22, questions, KERNELS[:5], DTYPES, ways, (1, 2)):
        yield f"attn {asked} --kernel {kernel} --dtype {dtype} --threads {threads} --format npz {way}".strip()


def large(program):
    """Weights above 64 MiB, which are written while they are computed."""
    asked = "--text \"$(seq -s ' ' 4200)\" --embed-dim 8 --vocab-size 5000"
    weights = "--emit attention_weights"
    for suffix in "npy npz safetensors json csv".split():
        yield f"attn causal {asked} {weights} -o out.{suffix}"
    yield f"attn multihead {asked} --heads 2 {weights},context_vectors --format npz"
    yield f"attn self {asked} --plot out.png --format none"
    yield f"attn self {asked} --dtype float64 --dropout 0.1 {weights} --format npy --kernel generic"
    yield f"attn self {asked} --emit all --format none --save-weights w.npz"
    yield (f"attn self {asked} --emit scores --format npy >m.npy && "
           "attn self m.npy --init none --d-out 2 --token 3 --format csv")
