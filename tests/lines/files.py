"""The files that lines are about: inputs as text, and what the old program makes of them."""
import json
import os
import random
import subprocess
import sys

from lines.values import FAMILIES, MODES


def numbers(draw, *shape):
    if len(shape) > 1:
        return [numbers(draw, *shape[1:]) for _ in range(shape[0])]
    return [round(draw.gauss(0, 1), 4) for _ in range(shape[0])]


def make(folder, tests):
    """folder/made: inputs as text, and what the old program makes of them."""
    made = os.path.join(folder, "made")
    os.mkdir(made)
    draw = random.Random(20)

    def put(name, content):
        with open(os.path.join(made, name), "w", encoding="utf-8") as file:
            file.write(content if isinstance(content, str) else json.dumps(content))

    def table(rows):
        return "".join(",".join(map(str, row)) + "\n" for row in rows)

    put("tokens.csv", table(numbers(draw, 6, 8)))
    put("context.csv", table(numbers(draw, 5, 3)))
    put("context_8.csv", table(numbers(draw, 9, 8)))
    put("hidden_12.csv", table(numbers(draw, 4, 12)))
    put("hidden_16.csv", table(numbers(draw, 4, 16)))
    put("many.csv", table(numbers(draw, 70, 16)))
    put("batch.json", numbers(draw, 3, 5, 8))
    for name, shape in {"q": (5, 4), "k": (7, 4), "v": (7, 3), "q_3": (4, 5, 8), "k_3": (2, 7, 8), "v_3": (2, 7, 6),
                        "q_4": (2, 4, 5, 4), "k_4": (2, 2, 7, 4), "v_4": (2, 2, 7, 4), "past": (3, 4),
                        "past_2": (1, 2, 3, 4), "mask_add": (6, 6), "mask_5_7": (5, 7)}.items():
        put(name + ".json", numbers(draw, *shape))
    put("mask_bool.json", [[(i * j) % 3 != 1 for j in range(6)] for i in range(6)])
    put("mask_0_1.json", [[(i + j) % 2 for j in range(6)] for i in range(6)])
    put("mask_row.json", [True, True, False, True, True, False])
    put("mask_add.csv", table([[0, "-inf"][i < j] if j else 0.5 for j in range(6)] for i in range(6)))
    put("padding.json", [[True, True, True, True, True, False]])
    put("nan.json", "[[1, 2, 3], [4, NaN, 6]]")
    put("huge.json", [[1e30, -1e30, 3e38], [1e-40, 1e38, 0]])
    records = [{"id": f"r{n}", "mode": MODES[n % 3], "inputs": numbers(draw, 2 + n % 5, 4), "seed": n,
                "d_out": 4, **({"heads": 2} if n % 3 == 2 else {})} for n in range(24)]
    records[5]["d_out"], records[11]["heads"], records[13]["inputs"] = 0, 3, "nowhere.csv"
    records[17] = {"id": 17, "mode": "sdpa", "query": [[1, 0]], "key": [[1, 2], [0, 1]], "value": [[1], [2]]}
    records[19]["inputs"], records[20]["sead"] = "../data/journey.csv", 3
    lines = [json.dumps(record) for record in records]
    put("good.ndjson", "".join(line + "\n" for n, line in enumerate(lines) if n not in (5, 11, 13, 20)))
    put("requests.ndjson", "\n".join(lines[:8] + ["", "{", "[1", "7", '"data/journey.csv"', "null"] + lines[8:]))
    put("matrices.ndjson", "".join(json.dumps(numbers(draw, 3, 3)) + "\n" for _ in range(5)))

    def attn(line):
        subprocess.run(["sh", "-c", line], cwd=folder, check=False, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, env={"PATH": f"{folder}/old:/usr/bin:/bin", "LC_ALL": "C"})

    for name in ("json", "ndjson", "npz", "safetensors"):
        attn(f"attn causal data/journey.csv --d-out 2 --seed 5 -o made/result.{name}")
        attn(f"attn multihead made/batch.json --heads 4 --seed 6 --emit all -o made/all.{name}")
        attn(f"attn causal data/journey.csv --d-out 2 --seed 6 --dtype float64 -o made/double.{name}")
    for name in ("csv", "tsv", "npy"):
        attn(f"attn causal data/journey.csv --d-out 2 --seed 5 -o made/result.{name}")
        attn(f"attn causal data/journey.csv --seed 5 --emit attention_weights -o made/weights.{name}")
    attn("attn causal made/many.csv --seed 5 --emit all -o made/many.npz")
    attn("attn multihead made/tokens.csv --heads 2 --emit all --nonfinite literal --pretty -o made/pretty.json")
    attn("attn batch made/requests.ndjson -j 1 -o made/answers.ndjson")
    attn("head -n 6 made/answers.ndjson >made/answers_part.ndjson")
    attn("head -c 3000 made/answers.ndjson >made/answers_torn.ndjson")
    attn("attn self --init none --emit inputs -o made/inputs.npy data/journey.csv")
    for family in FAMILIES:
        for name in ("safetensors", "npz", "json"):
            attn(f"attn multihead made/tokens.csv --heads 2 --seed 9 --save-family {family} "
                 f"--format none --save-weights made/{family}.{name}")
    attn("attn self data/journey.csv --d-out 2 --format none --save-weights made/notebook_one.npz")
    os.mkdir(os.path.join(made, "configs"))
    models = os.path.join(folder, "data", "models")
    with open(os.path.join(models, "config_changes.ndjson"), encoding="utf-8") as file:
        families = {family["name"]: family["changes"] for family in map(json.loads, file)}
    for model in "gpt2 llama mistral qwen2 bert neox".split():
        for number, (_, path, values, *_) in enumerate(families["gpt_neox" if model == "neox" else model]):
            with open(os.path.join(models, model, "config.json"), encoding="utf-8") as file:
                part = config = json.load(file)
            for key in path[:-1]:
                part = part.setdefault(key, {})
            part.pop(path[-1], None)
            part.update({path[-1]: value for value in values})
            put(f"configs/{number}.{model}.json", config)
    subprocess.run([sys.executable, os.path.join(tests, "make_hostile.py"), os.path.join(made, "hostile"), "--small"],
                   check=True, stdout=subprocess.DEVNULL)
