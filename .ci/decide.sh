# shellcheck shell=bash
# What .ci/run decides: which skipped tests are errors, and since which commit something changed.
# These functions run no test, so tests/ci_test.sh can give them logs and repositories of its own.

# skipped_tests: the names of the tests that a log of ctest, on standard input, lists as not run, one
# per line. ctest's lines of progress are not read: there a name ends in dots, stars or blanks,
# depending on its length and on ctest's version.
skipped_tests() {
    sed -n '/^The following tests did not run:/,/^[[:space:]]*$/{
        s/^[[:space:]]*[0-9][0-9]* - \(.*\) (\(Skipped\|Disabled\|Not Run\))$/\1/p
    }'
}

# forbidden_skips MAY_SKIP: of the tests that the log on standard input lists as not run, those that
# the file MAY_SKIP does not name. One name per line there, then # and the reason.
forbidden_skips() {
    skipped_tests | grep -vxF -f <(sed -e '/^#/d' -e 's/[[:space:]]*#.*//' -e '/^$/d' "$1") || true
}

# checked_commit FILE: the commit that FILE holds, where HEAD descends from it; otherwise git's empty
# tree, from which everything differs.
checked_commit() {
    local commit=
    [ ! -e "$1" ] || read -r commit <"$1" || true
    if [[ $commit =~ ^[0-9a-f]{40,64}$ ]] && git merge-base --is-ancestor "$commit" HEAD 2>/dev/null; then
        echo "$commit"
    else
        git hash-object -t tree --stdin </dev/null
    fi
}

# has_changed BASE PATH...: whether a file under the paths differs from the commit BASE, or ATTN_CI=all
# asks for everything. A path that does not exist has been renamed: an error of the caller.
has_changed() {
    local base=$1 path
    shift
    for path in "$@"; do
        [ -e "$path" ] || {
            echo "has_changed: $path does not exist" >&2
            exit 2
        }
    done
    [ "${ATTN_CI:-}" = all ] || ! git diff --quiet "$base" -- "$@"
}
