"""The document of scaling.py as tables of Markdown."""


def size(number):
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if number < 999.5 or unit == "TB":
            return f"{number:.3g} {unit}" if number < 999.5 else f"{number:.0f} {unit}"
        number /= 1000
    return None


def duration(seconds):
    for limit, unit, name in ((100, 1, "s"), (6000, 60, "min"), (48 * 3600, 3600, "h")):
        if seconds < limit:
            return f"{seconds / unit:.3g} {name}"
    return f"{seconds / 86400:.3g} days"


def tokens(number):
    return f"{number // 10**6} M" if number % 10**6 == 0 else f"{number:,}"


def table(columns, rows):
    print("\n| " + " | ".join(columns) + " |\n|" + "---|" * len(columns))
    for row in rows:
        print("| " + " | ".join(row) + " |")


def show(document):
    measured, layer = document["measured"], document["layer"]
    print(f"Measured on {document['processor']}, {document['cores']} cores, load {document['load']:.1f}; the best of several runs,"
          "\none thread a process. Rates are per second of a core's time.")
    table(["attention", "tokens", "queries", "GFLOP/s of a core", "memory"],
          [["causal" if row["causal"] else "full", tokens(row["tokens"]), tokens(row["rows"]), f"{row['flops_per_second'] / 1e9:.0f}",
            size(row["memory_bytes"])] for row in measured["attention"]])
    print(f"\nReading: {size(measured['read_bytes_per_second'])}/s, from the system's cache.")
    if "merge_bytes_per_second" in measured:
        print(f"Merging parts of the keys: {size(measured['merge_bytes_per_second'])}/s.")
    else:
        print("Merging parts of the keys: not measured, because this attn lacks it; taken to be as fast as reading.")
    if "passed_bytes_per_second" in measured:
        print(f"Starting two processes with MPI: {measured['start_seconds']:.2f} s; passing between them: at least "
              f"{size(measured['passed_bytes_per_second'])}/s.")
    else:
        print("Rings were not measured: attn was built without MPI, or mpirun was not found.")
    table(["texts", "tokens/s of a core", "memory"],
          [[f"{row['texts']} of {row['text_tokens']} tokens", f"{row['tokens_per_second']:.0f}", size(row["memory_bytes"])]
           for row in measured["corpus"]])

    print("\nPredicted from these rates, and measured: one causal sequence, and one corpus. `core` is the time that the"
          "\nslowest process has on its core, `clock` the time that passes, on a machine of "
          f"{document['cores']} cores with other load.")
    columns = ["work divided by", "processes", "predicted", "core", "clock", "memory predicted", "measured", "same result"]
    table(columns, [check_cells(row) for row in document["checks"]])

    print(f"\nExtrapolated: {layer['layers']} layer(s) of {layer['heads']} heads x {layer['d']}, float32, "
          f"{'causal' if layer['causal'] else 'full'}; nodes of {document['cores_of_a_node']} such cores.")
    columns = ["tokens", "nodes", "work divided by", "Gbit/s", "time", "computing", "passing", "files", "merging", "memory",
               "traffic", "nodes at most"]
    table(columns, [plan_cells(row) for row in document["plans"]])

    model = measured["model"]
    print(f"\nExtrapolated: {document['scan_tokens']:,} tokens through a model of {model['layers']} layers of width "
          f"{model['width']}, one process a core.")
    table(["tokens of a text", "nodes", "core hours", "time"],
          [[tokens(row["text_tokens"]), str(row["nodes"]), f"{row['core_hours']:.0f}", duration(row["seconds"])]
           for row in document["scans"]])


def check_cells(row):
    memory = row["predicted_memory_bytes"]
    return [row["way"], str(row["processes"]), *(f"{row[key]:.2f} s" for key in ("predicted_seconds", "cpu_seconds", "seconds")),
            size(memory) if memory else "-", size(row["memory_bytes"]), "yes" if row["same"] else "NO"]


def plan_cells(row):
    def cell(key, form):
        return form(row[key]) if key in row else "-"
    return [tokens(row["tokens"]), str(row["nodes"]), row["way"], cell("gbit", "{:g}".format), cell("seconds", duration),
            cell("compute", duration), cell("transfer", duration), cell("files", duration), cell("merge", duration),
            cell("memory", size), cell("traffic", size), cell("nodes_at_most", "{:,}".format)]
