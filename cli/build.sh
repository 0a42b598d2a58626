#!/bin/sh
# Installs what is missing and builds one preset: sh cli/build.sh [PRESET [tests]]. The program alone,
# or with `tests` all there is. Cheap when run again.
set -eu
cd "$(dirname "$0")/.."
preset=${1:-release}
what=${2:-program}

# Outside Debian and its relatives CMake fetches the libraries, and a compiler, CMake and Ninja must
# be there already.
sh cli/install.sh g++ cmake ninja-build libcli11-dev nlohmann-json3-dev zlib1g-dev \
    libpng-dev libpcre2-dev libutf8proc-dev libstb-dev libfribidi-dev fonts-dejavu-core fonts-droid-fallback fonts-unifont
with_tests=
target=attn
if [ "$what" = tests ]; then
    sh cli/install.sh doctest-dev jq python3-jsonschema python3-numpy # the manual, schemas, repro
    with_tests=-DATTN_TESTS=ON
    target=all
elif [ ! -e "build/$preset/CMakeCache.txt" ]; then
    with_tests=-DATTN_TESTS=OFF # once tests are built they stay
fi

log=build/$preset.log
mkdir -p build
# shellcheck disable=SC2086  # nothing or one word
if ! cmake --preset "$preset" $with_tests >"$log" 2>&1; then
    cat "$log" >&2
    exit 1
fi
# On a terminal Ninja says how far it is; elsewhere the build talks only when it fails.
if [ -t 2 ]; then
    cmake --build --preset "$preset" --target $target >&2
elif ! cmake --build --preset "$preset" --target $target >>"$log" 2>&1; then
    cat "$log" >&2
    exit 1
fi
