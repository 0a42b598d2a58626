#!/bin/sh
# No file includes one of a module above its own; modules on one line do not include each other.
#     sh tests/layering_test.sh [FOLDER]
set -eu
cd "${1:-$(dirname "$0")/..}"
modules='core/base
core/expression core/kernels
core/operator
core/fused core/linear
core/plan
core/layer
core/model core/check core/scan
io/text
io/file
io/read
io/write
io/model io/plot io/tokenizer
io/transformer
cli/args cli/page
cli/request
cli/question
cli/output
cli/model cli/mpi
cli/batch cli/explain cli/repro cli/compare cli/help cli/inspect cli/tokenize cli/plot
cli/check cli/partial cli/scan
cli/merge
cli'
# shellcheck disable=SC2016 # these are awk's
find core io cli -name '*.[ch]pp' | sort | tr '\n' '\0' | xargs -0 awk -v modules="$modules" '
function module(path) { return match(path, /^(core|io|cli)\/[^\/]+\//) ? substr(path, 1, RLENGTH - 1) : "cli" }
BEGIN {
    lines = split(modules, line, "\n")
    for (i = 1; i <= lines; i++) for (n = split(line[i], names, " "); n > 0; n--) level[names[n]] = i
}
FNR == 1 && !(module(FILENAME) in level) { print FILENAME ": is not in a module"; bad = 1 }
/^#include "(core|io|cli)\// {
    split($0, part, "\"")
    own = module(FILENAME); other = module(part[2])
    if (other != own && level[other] >= level[own]) {
        print FILENAME ": includes " part[2] ", which is above " own
        bad = 1
    }
}
END { exit bad }' || exit 1
