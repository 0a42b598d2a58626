#!/bin/sh
# Installs what is missing, builds, and runs every test. Further arguments go to ctest.
set -eu
cd "$(dirname "$0")/.."
sh cli/build.sh release
exec ctest --preset release -j "$(nproc 2>/dev/null || echo 2)" "$@"
