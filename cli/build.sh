#!/bin/sh
# Installs what is missing and builds one preset: sh cli/build.sh [PRESET]. Cheap when run again.
set -eu
cd "$(dirname "$0")/.."
preset=${1:-release}

# Outside Debian and its relatives CMake fetches the libraries, and a compiler, CMake and Ninja must
# be there already.
sh cli/install.sh g++ cmake ninja-build libcli11-dev nlohmann-json3-dev libxtensor-dev zlib1g-dev \
    libpng-dev doctest-dev

# The build talks only when it fails.
log=build/$preset.log
mkdir -p build
if ! { cmake --preset "$preset" && cmake --build --preset "$preset"; } >"$log" 2>&1; then
    cat "$log" >&2
    exit 1
fi
