"""The lines that same_bytes.py runs, made from the old program's own --help, from the project's data and
manual, and at random from fixed seeds. Every line is for a shell in a folder where `data` is the project's
and `made` holds what `files.make` wrote.

A group is a function of a Question that yields lines, or pairs of a line and its standard input. A new
group is such a function and its row in GROUPS.
"""
import random
from collections import namedtuple

from lines import commands, files, options, questions, values

Case = namedtuple("Case", "group line stdin")

# Each group and its cases in a quick run, which takes half a minute of processor time; at most MOST otherwise.
GROUPS = ((options.helps, 50), (options.formats, 150), (options.flags, 260), (options.keys, 180),
          (options.mixed, 220), (commands.explain, 100), (commands.pictures, 100), (commands.compare, 40),
          (commands.inspect, 40), (commands.batch, 90), (questions.models, 130), (questions.arrays, 60),
          (questions.malformed, 50), (questions.golden, 40), (questions.manual, 70), (questions.tables, 100), (questions.ends, 60),
          (questions.kernels, 12), (questions.large, 0))
MOST = 2000

make_files = files.make


def cases(folder, root, quick):
    program, found = values.Program(folder, root), []
    for group, few in GROUPS:
        name, most = group.__name__, few if quick else MOST
        made = dict.fromkeys(Case(name, *((line, "") if isinstance(line, str) else line)) for line in group(program))
        made = list(made)
        if len(made) > most:
            made = [made[at] for at in sorted(random.Random(name).sample(range(len(made)), most))]
        found += made
    return found
