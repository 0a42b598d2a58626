#!/bin/sh
# The man page is roff without a fault: man_test.sh ATTN. Exit code 77: there is no groff.
set -eu
attn=$(realpath "$1")
command -v groff >/dev/null || {
    echo "man: skipped: there is no groff"
    exit 77
}
page=$("$attn" help --man)
warnings=$(printf '%s\n' "$page" | groff -man -ww -Tutf8 -z 2>&1)
[ -z "$warnings" ] || {
    echo "$warnings"
    exit 1
}
text=$(printf '%s\n' "$page" | groff -man -Tascii -P-cbou 2>/dev/null)
for section in NAME SYNOPSIS COMMANDS FILES ENVIRONMENT 'EXIT STATUS' EXAMPLES; do
    echo "$text" | grep -qx "$section" || {
        echo "man: no section $section"
        exit 1
    }
done
echo "man: ok"
