#!/usr/bin/env bash
# .ci/decide.sh: which skipped tests it reports, on logs of ctest in tests/ci, and what it takes for
# changed, in repositories made here. Skipped without git.
set -euo pipefail
command -v git >/dev/null || exit 77
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=.ci/decide.sh disable=SC1091  # a file of its own
. "$here/../.ci/decide.sh"
unset ATTN_CI
failures=0
checks=0

# expect WHAT EXPECTED FOUND
expect() {
    checks=$((checks + 1))
    [ "$2" = "$3" ] && return
    printf '%s: expected\n%s\nfound\n%s\n' "$1" "$2" "$3"
    failures=$((failures + 1))
}

scratch=$(mktemp -d)
trap 'rm -r "$scratch"' EXIT

# --- Skipped tests. Each log is a run of ctest; NAME.skipped lists what was skipped in it.
for log in "$here"/ci/*.log; do
    names=${log%.log}.skipped
    expect "skipped_tests, $log" "$(cat "$names")" "$(skipped_tests <"$log")"
    expect "nothing may be skipped, $log" "$(cat "$names")" "$(forbidden_skips /dev/null <"$log")"

    # Every second name may be skipped, with a reason or without, among comments. The others are forbidden.
    mapfile -t skipped <"$names"
    for odd in 0 1; do
        printf '# Reasons\n\n' >"$scratch/may_skip"
        awk -v "odd=$odd" 'NR % 2 == odd { print $0 (NR % 4 < 2 ? "  # a reason # of two parts" : "") }' "$names" \
            >>"$scratch/may_skip"
        expect "names $odd of two may be skipped, $log" "$(awk -v "odd=$odd" 'NR % 2 != odd' "$names")" \
            "$(forbidden_skips "$scratch/may_skip" <"$log")"
    done

    # A part of a name, a pattern or a longer name permits nothing.
    for name in "${skipped[@]}"; do
        printf '%s\n' "${name:0:-1}" "${name}x" '.*' "x$name" >"$scratch/may_skip"
        expect "names that are not quite '$name'" "$(cat "$names")" \
            "$(forbidden_skips "$scratch/may_skip" <"$log")"
    done
done

# A name that no test has any more permits nothing, and misleads.
while read -r name; do
    checks=$((checks + 1))
    grep -qF "NAME \"${name%%: *}: " "$here/CMakeLists.txt" && continue
    echo ".ci/may_skip: no test is called '$name'"
    failures=$((failures + 1))
done < <(sed -e '/^#/d' -e 's/[[:space:]]*#.*//' "$here/../.ci/may_skip")

# --- What has changed.
nothing=$(git hash-object -t tree --stdin </dev/null)
git() { command git -c user.name=t -c user.email=t@example.org -c init.defaultBranch=main "$@"; }
cd "$scratch"
git init -q repository
cd repository
# commit FILE TEXT: prints its hash.
commit() {
    mkdir -p "$(dirname "$1")"
    echo "$2" >"$1"
    git add . && git commit -qm "$1" && git rev-parse HEAD
}
first=$(commit core/a 1)
commit io/b 1 >/dev/null
git checkout -qb side
side=$(commit cli/c 1)
git checkout -q main
mkdir cli
echo 1 >cli/d
second=$(commit core/a 2)
third=$(commit io/b 2)

base_of() {
    printf %b "$1" >"$scratch/checked"
    checked_commit "$scratch/checked"
}
expect "no file" "$nothing" "$(checked_commit "$scratch/missing")"
for hash in "$first" "$second" "$third"; do
    expect "an ancestor" "$hash" "$(base_of "$hash\n")"
    expect "an ancestor, without a newline" "$hash" "$(base_of "$hash")"
    expect "an ancestor, before a remark" "$hash" "$(base_of "$hash\nremark\n")"
done
for text in "" "\n" "$side\n" "HEAD\n" "main\n" "${third:0:39}\n" "${third}0\n" "$third $second\n" \
    "${third/[0-9a-f]/g}\n" "0123456789012345678901234567890123456789\n" "--all\n" "$nothing\n"; do
    expect "not an ancestor: '$text'" "$nothing" "$(base_of "$text")"
done
git clone -q --depth 1 "file://$PWD" "$scratch/shallow"
expect "a commit that a shallow clone lacks" "$nothing" \
    "$(cd "$scratch/shallow" && checked_commit <(echo "$first"))"

changes() {
    # A subshell: has_changed ends the script at a path that does not exist.
    local code=0
    (has_changed "$@" 2>/dev/null) || code=$?
    case $code in
    0) echo yes ;;
    1) echo no ;;
    *) echo fault ;;
    esac
}
# since PATHS EXPECTED BASE: of a change of many commits each one counts, not only the last.
since() {
    # shellcheck disable=SC2086  # a list of paths
    expect "changed since $3: $1" "$2" "$(changes "$3" $1)"
}
since core yes "$first"
since core/a yes "$first"
since io yes "$first"
since cli yes "$first"
since core no "$second"
since io yes "$second"
since "core io" yes "$second"
since "core cli" no "$second"
since io no "$third"
since "core io cli" no "$third"
for path in core io cli "core io"; do since "$path" yes "$nothing"; done
since renamed fault "$first"
since "core renamed" fault "$third"
ATTN_CI=all since core yes "$third"
echo 3 >core/a
since core yes "$third"
since io no "$third"
git checkout -q core/a
rm cli/d
since cli yes "$third"

echo "$checks checks, $failures failed"
[ "$failures" = 0 ]
