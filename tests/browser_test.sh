#!/bin/sh
# The page of heat maps in a real browser: browser_test.sh PROGRAM-THAT-WRITES-THE-PAGE
# Installs Debian's chromium where it is missing and that is allowed; else exits 77: skipped.
set -eu
find_browser() {
    command -v chromium || command -v chromium-browser || command -v google-chrome
}
skip() {
    echo "browser test: skipped: $1"
    exit 77
}
if ! { find_browser && command -v python3; } >/dev/null; then
    command -v apt-get >/dev/null || skip "needs chromium and python3"
    [ "$(id -u)" = 0 ] || skip "needs chromium and python3; only root may install them"
    export DEBIAN_FRONTEND=noninteractive
    { apt-get update -qq && apt-get install -y -qq --no-install-recommends \
        -o DPkg::Lock::Timeout=120 chromium fonts-dejavu-core python3; } >/dev/null 2>&1 ||
        skip "needs chromium and python3, which apt-get could not install"
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$1" "$work/page.html"
"$1" "$work/large.html" large
python3 "$(dirname "$0")/browser_test.py" "$(find_browser)" "$work/page.html" "$work/large.html"
