"""Groups of lines on the commands that are no modes, and on pictures."""
import os

from lines.values import (ASKED, CAUSAL, DTYPES, MODES, NAMES, SHAPES_ARRAYS, asked_with, cut, given, quoted, said_by,
                          said_to, spread)

MODELS = "gpt2 llama bert neox mistral qwen2".split()


def explain(program):
    ways = cut("""| --token 3 | CAUSAL | --softcap 2 --alibi CAUSAL | --rope half --window 2,1 CAUSAL | --qkv-bias |
        --sink 0.5 --dropout 0.4 --dropout-seed 1 | --mask made/mask_bool.json --mask-true keep | --kv-lengths 4""")
    for mode, form, dtype, way in spread(6, MODES, ("text", "markdown"), DTYPES, ways):
        line = f"attn explain {mode} {ASKED[mode]} {way.replace('CAUSAL', CAUSAL[mode])}".strip()
        twice = line.replace("tokens.csv", "batch.json").replace("journey.csv", "journey_twice.json")
        yield f"{line} --format {form} --dtype {dtype}"
        yield f"{twice} --dropout 0.2 --format {form}"
    for model in MODELS:
        yield f"attn explain multihead data/models/hidden.csv --weights data/models/{model} --pre-norm"
        yield f"attn explain multihead --weights data/models/{model} --token-ids 1,2,3 --format markdown"
    for mode, token in spread(23, MODES[:2], (0, 40, 69, 70)):
        yield f"attn explain {mode} made/many.csv --token {token}"
    for mode in MODES:
        for option in [*program.options[mode], *program.options["explain"]]:
            values = said_by(mode, option)
            for value in values[:1] if option.name in SHAPES_ARRAYS else values:
                yield f"attn explain {asked_with(mode, option)} {given(option, value)}"


SCALES = ("auto", "robust", "row", "fixed", "global", "log")
TERMINALS = cut("""| TERM=xterm COLORTERM=truecolor CLICOLOR_FORCE=1 | TERM=xterm-256color CLICOLOR_FORCE=1 |
    TERM=dumb CLICOLOR_FORCE=1 | TERM=linux CLICOLOR_FORCE=1 | NO_COLOR=1 CLICOLOR_FORCE=1 | COLUMNS=20 |
    COLUMNS=200 CLICOLOR_FORCE=1 | COLUMNS=x | COLUMNS=0 | CLICOLOR_FORCE=0 COLORTERM=24bit |
    TERM= CLICOLOR_FORCE=1 COLORTERM=truecolor""")
DRAWN = """result.json result.ndjson result.npz result.safetensors result.csv result.npy weights.csv weights.tsv
    all.json all.npz all.safetensors all.npz:scores all.npz:inputs double.npz many.npz pretty.json nan.json
    huge.json batch.json q_4.json answers.ndjson nowhere gpt2.safetensors""".split()


def pictures(program):
    for name, scale, terminal in spread(7, DRAWN, SCALES, TERMINALS):
        yield f"{terminal} attn plot made/{name} --color-scale {scale}".strip()
    for name, scale, suffix, array in spread(8, DRAWN, SCALES, "svg png html txt".split(), ["", *NAMES]):
        yield f"attn plot made/{name} --color-scale {scale} -o out.{suffix}" + (f" --array {quoted(array)}" if array else "")
    outputs = cut("""--heatmap | --heatmap --format none | --heatmap -o out.json | --heatmap --format table --emit all |
        --plot out.svg --plot-array all --emit all | --plot out.png --plot-array scores --format none | --plot out.html""")
    for mode, terminal, scale, output in spread(11, MODES, TERMINALS, SCALES, outputs):
        yield f"{terminal} attn {mode} {ASKED[mode]} --color-scale {scale} {output}".strip()


COMPARED = """result.json result.ndjson result.npz result.safetensors result.csv result.tsv result.npy double.json
    double.npz all.json all.npz all.safetensors:scores nan.json huge.json q.json answers.ndjson nowhere""".split()


def compare(program):
    ways = cut("""| --format json | --atol 1 --rtol 0.1 | --ulp 5 --equal-nan | --dtype float64 |
        --dtype float32 --format json --atol 1e9""")
    for one, other, way in spread(12, COMPARED, COMPARED, ways):
        yield f"attn compare made/{one} made/{other} {way}".strip()
    for option in program.options["compare"]:
        for value in said_to(option):
            yield f"attn compare made/result.json made/double.npz {given(option, value)}"
            yield f"attn compare made/nan.json made/nan.json {given(option, value)}"


def inspect(program):
    files = [f"data/arrays/{name}" for name in sorted(os.listdir(program.data("arrays")))]
    files += [f"data/models/{name}" for name in sorted(os.listdir(program.data("models")))]
    files += [f"made/{name}" for name in COMPARED]
    for file, way in spread(24, files, cut("| --format json | --layer 0 | --layer 1 --format json | --layer 9")):
        yield f"attn inspect {file} {way}".strip()
    for columns in (1, 40, 200):
        yield f"COLUMNS={columns} attn inspect made/all.json"


def batch(program):
    requests = cut("""made/requests.ndjson | made/good.ndjson | data/requests.ndjson | nowhere.ndjson |
        made/matrices.ndjson --mode self | made/answers.ndjson --mode causal | made/good.ndjson made/requests.ndjson |
        --mode self data/journey.csv made/tokens.csv made/batch.json | data/golden/torch.json |
        --each --mode causal data/journey.csv made/matrices.ndjson |
        --mode multihead data/arrays/several_stored.npz:inputs""")
    ways = cut("""| --dry-run | --fail-fast | --max-failures 2 | --shard 2/3 | --emit all | --format csv |
        --kernel generic | -o out.ndjson | -o out.json | --resume out.ndjson | --heads 2 | --seed 4 --dropout 0.5 |
        --heatmap | --weights data/models/gpt2 | --mode cross | --emit all --average-heads --dry-run""")
    for jobs, name, way in spread(13, (1, 2), requests, ways):
        yield f"attn batch {name} --jobs {jobs} {way}".strip()
        if " " not in name:
            yield f"attn batch --jobs {jobs} {way} <{name}"
    answers = "answers_part answers_torn answers good result".split()
    repairs = cut("| --retry-failed | --retry-failed --fail-fast | --shard 1/2")
    for jobs, answered, repair, name in spread(14, (1, 2), answers, repairs, ("requests", "good")):
        yield (f"cp made/{answered}.ndjson out.ndjson && "
               f"attn batch made/{name}.ndjson --jobs {jobs} --resume out.ndjson {repair}").strip()
    for option in program.options["batch"]:
        yield from (f"attn batch made/good.ndjson -j 1 {given(option, value)}" for value in said_to(option))
