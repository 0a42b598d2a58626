#!/bin/sh
# Files compiled for wider instructions may give the linker nothing but their table: sh ... OBJECT...
set -eu
[ $# -gt 1 ]
failed=0
for object in "$@"; do
    shared=$(nm --defined-only "$object" | awk '$2 ~ /[A-Zuvw]/ && $3 !~ /_(float32|float64|draws)E$/ {print $3}')
    if [ -n "$shared" ]; then
        echo "$object shares: $shared"
        failed=1
    fi
    nm --defined-only "$object" | grep -q -E '_(float32|float64|draws)E$'
done
exit $failed
