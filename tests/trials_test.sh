#!/bin/sh
# The patches of tests/trials add what CONTRIBUTING describes, in as few sources of core, io and cli as each
# says in its first lines. They omit the manual, the schema and lists in messages, which change often.
# Usage: trials_test.sh          applies them to a copy of the sources
#        trials_test.sh FOLDER   also builds the copy, in this folder, which is kept, and asks the program
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
if [ $# -eq 0 ]; then
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
else
    mkdir -p "$1"
    folder=$(cd "$1" && pwd)
fi
copy=$folder/trials
rm -rf "$copy"
mkdir -p "$copy"
git -C "$root" ls-files -z --cached --others --exclude-standard |
    (cd "$root" && xargs -0 tar -cf - --ignore-failed-read 2>/dev/null) | tar -xf - -C "$copy"

failed=0
expect() { # WHAT FOUND EXPECTED
    if [ "$2" != "$3" ]; then
        echo "$1: found $2; expected $3"
        failed=1
    fi
}

for patch in "$root"/tests/trials/*.patch; do
    files=$(grep -cE '^diff --git a/(core|io|cli)/.*\.[ch]pp ' "$patch")
    most=$(sed -n 's/^Files: at most //p' "$patch")
    [ "$files" -le "$most" ] || expect "$patch" "$files files" "at most $most"
    # Not as a part of the checkout that the folder may lie in.
    GIT_CEILING_DIRECTORIES=$folder git -C "$copy" apply -C1 "$patch"
done
grep -q key_bias "$copy/core/plan/operand_table.hpp"
[ $# -ne 0 ] || exit $failed
cmake -S "$copy" -B "$copy/build" -DCMAKE_BUILD_TYPE=None -DCMAKE_CXX_FLAGS=-O0 -DCMAKE_UNITY_BUILD=ON >"$copy.log"
cmake --build "$copy/build" --target attn -j"$(nproc)" >>"$copy.log"
attn=$copy/build/attn

# key_bias: added to the scores of its key, as an additive mask of the same numbers is.
cd "$copy"
heads='"query": [[[1, 0.5], [0, 2]], [[-1, 1], [2, 0.25]], [[0.5, 1], [1, 1]], [[3, 0], [0, -1]]],
       "key": [[[1, 0], [0, 1], [1, 1]], [[0.5, 1], [2, 0], [1, -1]]],
       "value": [[[1, 2], [3, 4], [5, 6]], [[6, 5], [4, 3], [2, 1]]]'
bias='[[0.5, -1, 0], [2, 0, -0.25]]'
mask='[[[0.5, -1, 0]], [[0.5, -1, 0]], [[2, 0, -0.25]], [[2, 0, -0.25]]]'
echo "{\"mode\": \"sdpa\", $heads, \"key_bias\": $bias}" >bias.json
echo "{\"mode\": \"sdpa\", $heads, \"mask\": $mask, \"mask_kind\": \"additive\"}" >mask.json
echo "$bias" >bias_alone.json
echo "{\"mode\": \"sdpa\", $heads}" >plain.json
numbers() { sed 's/.*"context_vectors"/"context_vectors"/' "$1"; }
"$attn" sdpa plain.json --output of_plain.json
for kernel in reference auto; do
    "$attn" sdpa mask.json --kernel $kernel --output of_mask.json
    "$attn" sdpa bias.json --kernel $kernel --output of_bias.json
    "$attn" sdpa plain.json --kernel $kernel --key-bias bias_alone.json --output of_flag.json
    for found in of_bias of_flag; do
        expect "$kernel $found" "$(numbers $found.json)" "$(numbers of_mask.json)"
    done
done
"$attn" sdpa bias.json --emit all --output all.json
"$attn" sdpa --config all.json --output again.json
expect "a saved result" "$(numbers again.json)" "$(numbers of_mask.json)"
"$attn" check bias.json --against of_mask.json >said.txt || expect check "$(cat said.txt)" right
! "$attn" check bias.json --against of_plain.json >said.txt || expect check "$(cat said.txt)" wrong
"$attn" repro bias.json --to c --output bias.c
cc -O1 bias.c -lm -o of_bias
./of_bias >said.txt || expect repro "$(cat said.txt)" "exit 0"
"$attn" explain sdpa bias.json >said.txt
grep -q key_bias said.txt || expect explain "no key_bias" "its term"
exit $failed
