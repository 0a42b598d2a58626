#!/bin/sh
# The schemas in data/schema: the one made from tables matches them, and every document that attn
# writes fits its own: sh schema_test.sh ATTN MAKE_SCHEMA. Exit code 77: skipped.
set -eu
attn=$(realpath "$1")
make_schema=$(realpath "$2")
cd "$(dirname "$0")/.."
if ! "$make_schema" | cmp - data/schema/request.json; then
    echo "schema: out of date: attn_make_schema >data/schema/request.json"
    exit 1
fi
if ! python3 -c 'from jsonschema import Draft202012Validator' 2>/dev/null; then
    echo "schema: skipped: needs python3-jsonschema 4"
    exit 77
fi
exec python3 tests/schema_test.py "$attn"
