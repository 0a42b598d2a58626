#!/bin/sh
# Fuzzes: tests/fuzz.sh SECONDS [TARGET...], each target for so long; all of them where none is
# named. Needs Clang with libFuzzer. Findings are in build/fuzz/found/TARGET; kept in tests/fuzz/found/TARGET,
# it is a test for every build.
set -eu
cd "$(dirname "$0")/.."
seconds=${1:-60}
[ $# = 0 ] || shift
mkdir -p build
if ! { cmake --preset fuzz && cmake --build --preset fuzz; } >build/fuzz.log 2>&1; then
    tail -n 30 build/fuzz.log
    exit 1
fi
fuzz=$PWD/build/fuzz/tests/fuzz
# shellcheck disable=SC2046  # a list of words
[ $# != 0 ] || set -- $("$fuzz" 2>/dev/null || true)

# Few bytes are kept after they are freed, so that memory is what the program takes. Leaks are
# looked for at the end: after each run it would take longer than the run.
export ASAN_OPTIONS="quarantine_size_mb=16:${ASAN_OPTIONS:-}"
failed=
for target; do
    corpus=$PWD/build/fuzz/corpus/$target found=$PWD/build/fuzz/found/$target
    mkdir -p "$corpus/kept" "$found"
    "$fuzz" --target="$target" --corpus="$corpus" "$corpus/kept" "$corpus/seeds" \
        -dict="$corpus/words.dict" -max_total_time="$seconds" -max_len=8192 -detect_leaks=0 -timeout=5 \
        -rss_limit_mb=512 -malloc_limit_mb=512 -artifact_prefix="$found/" \
        -print_final_stats=1 >"$found.log" 2>&1 || failed="$failed $target"
    runs=$(sed -n 's/^stat::number_of_executed_units: //p' "$found.log")
    echo "$target: ${runs:-0} runs$(case " $failed " in *" $target "*) echo ", FOUND: $found.log" ;; esac)"
done
[ -z "$failed" ]
