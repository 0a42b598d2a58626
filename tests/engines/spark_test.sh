#!/bin/sh
# data/engines/spark.py and spark_pipe.py answer as one process does: sh spark_test.sh ATTN. Exit code 77: skipped.
# shellcheck disable=SC1091,SC2034,SC2154  # what setup.sh reads and sets
set -eu
ENGINE=spark ATTN=$1
cache=${XDG_CACHE_HOME:-$HOME/.cache}/attn-pyspark
. "$(dirname "$0")/setup.sh"
command -v java >/dev/null || skip "needs Java 17 (Debian: openjdk-17-jre-headless)"
if [ ! -x "$cache/bin/spark-submit" ]; then
    [ "${ATTN_CI:-}" = all ] || skip "needs PySpark in $cache, which ATTN_CI=all installs"
    python3 -m venv "$cache"
    "$cache/bin/pip" install -q pyspark==4.3.0 || skip "PySpark cannot be installed"
fi

interrupt_by 'exit 137'
PYSPARK_PYTHON="$cache/bin/python3" "$cache/bin/spark-submit" --master 'local[2,4]' "$recipes/spark.py" >log 2>&1 ||
    { cat log; fail "the job did not go on"; }
check_results

# Each process counts its own lines, so the place of an error is another.
sed 's/requests.ndjson:[0-9]*/input/' expected.ndjson >expected
PYSPARK_PYTHON="$cache/bin/python3" "$cache/bin/spark-submit" --master 'local[2]' "$recipes/spark_pipe.py" >log 2>&1 ||
    { cat log; fail "the pipe failed"; }
cat results/part-* | sed 's/<stdin>:[0-9]*/input/' >results.ndjson
cmp expected results.ndjson || fail "the answers of the pipe differ from those of one process"
