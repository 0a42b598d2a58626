#!/bin/sh
# Installs what is missing and builds one preset: sh cli/build.sh [PRESET]. Cheap when run again.
set -eu
cd "$(dirname "$0")/.."
preset=${1:-release}

# Debian and its relatives; elsewhere CMake fetches the libraries, and a compiler, CMake and Ninja
# must be there already.
packages="g++ cmake ninja-build libcli11-dev nlohmann-json3-dev libxtensor-dev zlib1g-dev libpng-dev doctest-dev"
if command -v dpkg-query >/dev/null && command -v apt-get >/dev/null; then
    missing=
    for package in $packages; do
        dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' ||
            missing="$missing $package"
    done
    if [ -n "$missing" ]; then
        echo "installing:$missing" >&2
        as_root=
        [ "$(id -u)" = 0 ] || as_root=sudo
        $as_root apt-get update -qq >&2
        # shellcheck disable=SC2086  # a list of words
        $as_root env DEBIAN_FRONTEND=noninteractive \
            apt-get install -y -qq --no-install-recommends $missing >&2
    fi
fi

# The build talks only when it fails.
log=build/$preset.log
mkdir -p build
if ! { cmake --preset "$preset" && cmake --build --preset "$preset"; } >"$log" 2>&1; then
    cat "$log" >&2
    exit 1
fi
