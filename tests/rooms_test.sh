#!/bin/sh
# No file includes one of a room that stands above its own; rooms of one line do not know each other.
#     sh tests/rooms_test.sh [FOLDER]
set -eu
cd "${1:-$(dirname "$0")/..}"
rooms='core/base
core/kernels
core/operator
core/fused
core/plan
core/layer
io/text
io/file
io/read
io/write
io/model io/plot
cli/args
cli/request
cli/batch cli/explain cli/compare cli/help cli/inspect cli/plot
cli'
# shellcheck disable=SC2016 # these are awk's
find core io cli -name '*.[ch]pp' | sort | tr '\n' '\0' | xargs -0 awk -v rooms="$rooms" '
function room(path) { return match(path, /^(core|io|cli)\/[^\/]+\//) ? substr(path, 1, RLENGTH - 1) : "cli" }
BEGIN {
    lines = split(rooms, line, "\n")
    for (i = 1; i <= lines; i++) for (n = split(line[i], names, " "); n > 0; n--) level[names[n]] = i
}
FNR == 1 && !(room(FILENAME) in level) { print FILENAME ": is in no room"; bad = 1 }
/^#include "(core|io|cli)\// {
    split($0, part, "\"")
    own = room(FILENAME); other = room(part[2])
    if (other != own && level[other] >= level[own]) {
        print FILENAME ": includes " part[2] ", which stands above " own
        bad = 1
    }
}
END { exit bad }' || exit 1
