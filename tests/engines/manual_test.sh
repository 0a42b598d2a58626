#!/bin/sh
# Runs every ```bash block of the manual next to a file requests.ndjson, and compares what it leaves
# in results.ndjson with the answers of one attn; the manual names each file of data/engines:
# sh manual_test.sh ATTN. Exit code 77: skipped.
set -eu
attn=$(realpath "$1")
page=$(realpath "$(dirname "$0")/../../cli/manual/scaling.md")
recipes=$(realpath "$(dirname "$0")/../../data/engines")

skip() {
    echo "engines: skipped: $1"
    exit 77
}

# Another program of this name comes with moreutils.
has_parallel() {
    command -v parallel >/dev/null && parallel --version 2>/dev/null | grep -q GNU
}

command -v bash >/dev/null || skip "there is no bash"
has_parallel || skip "needs GNU parallel (Debian: parallel)"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin" "$work/start"
ln -s "$attn" "$work/bin/attn"
export PATH="$work/bin:$PATH"
export HOME="$work" # where parallel keeps notes
cd "$work"

# Lengths differ, so that engines finish out of order; all together they are several blocks.
printf '0.5,0.25,1\n0.125,1,2\n' >start/tokens.csv
awk 'BEGIN {
    srand(1)
    for (id = 1; id <= 400; ++id) {
        mode = id % 3 ? "causal" : "self"
        printf "{\"id\": %d, \"mode\": \"%s\", \"seed\": %d, \"inputs\": ", id, mode, id
        if (id % 10 == 0) {
            print "\"tokens.csv\"}"
            continue
        }
        rows = id % 7 ? 1 + id % 50 : 200
        for (row = 0; row < rows; ++row)
            printf "%s[%.6f, %.6f, %.6f, %.6f]", row ? ", " : "[", rand(), rand(), rand(), rand()
        print "], \"emit\": [\"context_vectors\"]}"
    }
}' >start/requests.ndjson

(cd start && attn batch requests.ndjson) >expected.ndjson
[ "$(wc -l <expected.ndjson)" -eq 400 ]

# Each block becomes a file of its own.
awk '/^```/ { inside = ($0 == "```bash"); if (inside) ++block; next }
     inside { print >("block" block ".sh") }' "$page"
count=0
failed=0
for block in block*.sh; do
    count=$((count + 1))
    cp -r start "run.$block"
    if (cd "run.$block" && bash -euo pipefail "../$block") && cmp expected.ndjson "run.$block/results.ndjson"; then
        continue
    fi
    failed=1
    echo "engines: this block of scaling.md leaves other answers than attn batch requests.ndjson:"
    cat "$block"
done
[ "$count" -ge 3 ] || {
    echo "engines: scaling.md has $count blocks; expected at least 3"
    failed=1
}

for recipe in "$recipes"/*; do
    grep -qF "\`$(basename "$recipe")\`" "$page" || {
        failed=1
        echo "engines: scaling.md does not name $recipe"
    }
done
case $(cat "$page") in
*"$(cat "$recipes/slurm.sh")"*) ;;
*)
    failed=1
    echo "engines: scaling.md does not show slurm.sh as it is"
    ;;
esac
[ "$failed" -eq 0 ] && echo "engines: $count blocks of the manual: ok"
exit "$failed"
