#!/bin/sh
# data/engines/Snakefile answers as one process does: sh snakemake_test.sh ATTN. Exit code 77: skipped.
# shellcheck disable=SC1091,SC2034,SC2154  # what setup.sh reads and sets
set -eu
ENGINE=snakemake ATTN=$1
. "$(dirname "$0")/setup.sh"
command -v snakemake >/dev/null || skip "needs snakemake (Debian: snakemake)"

interrupt_by 'exit 137'
cp "$recipes/Snakefile" .
snakemake --cores 2 >log 2>&1 && fail "a job was interrupted, and snakemake ended with 0"
snakemake --cores 2 >log 2>&1 || { cat log; fail "snakemake did not go on"; }
check_results
