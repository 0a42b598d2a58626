#!/bin/sh
# Runs every ```bash block of the manual next to a file requests.ndjson, and compares what it leaves
# in results.ndjson with the answers of one attn; the manual names each file of data/engines:
# sh manual_test.sh ATTN. Exit code 77: skipped.
# shellcheck disable=SC1091,SC2034,SC2154  # what setup.sh reads and sets
set -eu
page=$(realpath "$(dirname "$0")/../../cli/manual/scaling.md")
ENGINE=engines ATTN=$1
. "$(dirname "$0")/setup.sh"

# Another program of this name comes with moreutils.
has_parallel() {
    command -v parallel >/dev/null && parallel --version 2>/dev/null | grep -q GNU
}

command -v bash >/dev/null || skip "there is no bash"
has_parallel || skip "needs GNU parallel (Debian: parallel)"

# All can be answered, and some name a file; all together they are several blocks.
ln -s "$attn" bin/attn
mkdir start
printf '0.5,0.25,1\n0.125,1,2\n' >start/tokens.csv
sed -e '77d' -e 's/\(.*0, "mode": .*"inputs": \).*/\1"tokens.csv"}/' requests.ndjson >start/requests.ndjson
(cd start && attn batch requests.ndjson) >expected.ndjson

# Each block becomes a file of its own.
awk '/^```/ { inside = ($0 == "```bash"); if (inside) ++block; next }
     inside { print >("block" block ".sh") }' "$page"
count=0
for block in block*.sh; do
    count=$((count + 1))
    cp -r start "run.$block"
    if ! { (cd "run.$block" && bash -euo pipefail "../$block") && cmp expected.ndjson "run.$block/results.ndjson"; }; then
        cat "$block"
        fail "this block of scaling.md leaves other answers than attn batch requests.ndjson"
    fi
done
[ "$count" -ge 3 ] || fail "scaling.md has $count blocks; expected at least 3"

for recipe in "$recipes"/*; do
    grep -qF "\`$(basename "$recipe")\`" "$page" || fail "scaling.md does not name $recipe"
done
case $(cat "$page") in
*"$(cat "$recipes/slurm.sh")"*) echo "engines: $count blocks of the manual: ok" ;;
*) fail "scaling.md does not show slurm.sh as it is" ;;
esac
