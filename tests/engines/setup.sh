# shellcheck shell=sh disable=SC2034,SC2153,SC2164  # it is sourced, with set -e
# What the tests of engines share; sourced with ENGINE and ATTN set. In a new folder, which becomes the
# working directory: requests.ndjson, of which one record fails; expected.ndjson, the answers of one
# process; and on the PATH an attn that is interrupted once, halfway through the second part.
attn=$(realpath "$ATTN")
recipes=$(realpath "$(dirname "$0")/../../data/engines")

skip() {
    echo "$ENGINE: skipped: $1"
    exit 77
}

fail() {
    echo "$ENGINE: $1"
    exit 1
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin"
export PATH="$work/bin:$PATH" HOME="$work"
cd "$work"

# Lengths differ, so that parts end out of order.
awk 'BEGIN {
    srand(1)
    for (id = 1; id <= 400; ++id) {
        if (id == 77) {
            print "{\"id\": 77, \"mode\": \"self\", \"inputs\": [[1, 2], [3]]}"
            continue
        }
        rows = id % 7 ? 1 + id % 50 : 200
        printf "{\"id\": %d, \"mode\": \"causal\", \"seed\": %d, \"inputs\": ", id, id
        for (row = 0; row < rows; ++row)
            printf "%s[%.6f, %.6f, %.6f, %.6f]", row ? ", " : "[", rand(), rand(), rand(), rand()
        print "], \"emit\": [\"context_vectors\"]}"
    }
}' >requests.ndjson
"$attn" batch requests.ndjson >expected.ndjson 2>/dev/null && fail "no record failed"
[ "$(wc -l <expected.ndjson)" -eq 400 ] || fail "attn gave $(wc -l <expected.ndjson) answers; expected 400"

# interrupt_by COMMAND...: how the process that writes the second part ends at its first try, with half of
# its bytes written.
interrupt_by() {
    cat >bin/attn <<END
#!/bin/sh
for last in "\$@"; do :; done
case "\$*" in
*" --resume "*2)
    if [ ! -e "$work/interrupted" ]; then
        "$attn" "\$@" 2>/dev/null
        truncate -s \$((\$(wc -c <"\$last") / 2)) "\$last"
        touch "$work/interrupted"
        $*
    fi
    [ -s "\$last" ] && touch "$work/resumed"
    ;;
esac
exec "$attn" "\$@"
END
    chmod +x bin/attn
}

# check_results: the engine has answered, after it went on with the part that was interrupted.
check_results() {
    [ -e interrupted ] || fail "no process was interrupted"
    [ -e resumed ] || fail "the second part was not resumed"
    cmp expected.ndjson results.ndjson || fail "the answers differ from those of one process"
    echo "$ENGINE: 400 answers, as of one process"
}
