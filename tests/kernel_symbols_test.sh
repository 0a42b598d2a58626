#!/bin/sh
# Files compiled for wider instructions may give the linker nothing but their table: sh ... OBJECT...
set -eu
[ $# -gt 1 ]
failed=0
for object in "$@"; do
    shared=$(nm --defined-only "$object" | awk '$2 ~ /[A-Zuvw]/ && $3 !~ /_tableE$/ {print $3}')
    if [ -n "$shared" ]; then
        echo "$object shares: $shared"
        failed=1
    fi
    nm --defined-only "$object" | grep -q -E '_tableE$'
done
exit $failed
