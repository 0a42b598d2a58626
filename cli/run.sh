#!/bin/sh
# Installs what is missing, builds, and runs attn: on the built-in example, or with your arguments.
set -eu
here=$(dirname "$0")
sh "$here/build.sh" release
if [ $# -eq 0 ]; then
    set -- causal --example journey --d-out 2 --seed 789 --format table
    echo "attn $*" >&2
fi
exec "$here/../build/release/attn" "$@"
