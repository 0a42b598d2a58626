#!/bin/sh
# data/engines/dask_shards.py answers as one process does: sh dask_test.sh ATTN. Exit code 77: skipped.
# shellcheck disable=SC1091,SC2034,SC2154  # what setup.sh reads and sets
set -eu
ENGINE=dask ATTN=$1
. "$(dirname "$0")/setup.sh"
# Debian's Python, which has Debian's packages.
python=/usr/bin/python3
$python -c 'import distributed' 2>/dev/null || skip "needs Dask (Debian: python3-distributed)"

# shellcheck disable=SC2016  # the parent of the process that runs it: a worker
interrupt_by 'kill -KILL "$PPID"; exit 137'
$python "$recipes/dask_shards.py" >log 2>&1 || { cat log; fail "the cluster did not go on"; }
check_results
