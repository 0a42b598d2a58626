#!/bin/sh
# Installs what is missing, builds, and runs every test. Further arguments go to ctest.
set -eu
cd "$(dirname "$0")/.."
# Tests that find no browser (Debian: chromium) or GNU parallel are skipped.
sh cli/build.sh release tests
exec ctest --preset release -j "$(nproc 2>/dev/null || echo 2)" "$@"
