#!/bin/sh
# The page of heat maps in a real browser: browser_test.sh PROGRAM-THAT-WRITES-THE-PAGE
# Exits 77, skipped, where no browser or Python is there: Debian has chromium and python3.
set -eu
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
if [ -z "$browser" ] || ! command -v python3 >/dev/null; then
    echo "browser test: skipped: needs chromium and python3"
    exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$1" "$work/page.html"
"$1" "$work/large.html" large
"$1" "$work/odd.html" odd
"$1" "$work/packed.html" packed
"$1" "$work/walk.html" walk
python3 "$(dirname "$0")/browser_test.py" "$browser" \
    "$work/page.html" "$work/large.html" "$work/odd.html" "$work/packed.html" "$work/walk.html"
