#!/usr/bin/env bash
# A shell completes what help lists: completion_test.sh bash|zsh|fish ATTN. Exit code 77:
# there is no such shell.
set -euo pipefail
shell=$1
attn=$(realpath "$2")
complete_zsh=$(realpath "$(dirname "$0")/support/complete.zsh")
command -v "$shell" >/dev/null || {
    echo "completion: skipped: there is no $shell"
    exit 77
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin"
ln -s "$attn" "$work/bin/attn"
export PATH="$work/bin:$PATH" HOME="$work" XDG_CONFIG_HOME="$work" XDG_DATA_HOME="$work"
cd "$work"
attn completion "$shell" >script
"$shell" -n script
touch one.csv 'with blank.csv'
mkdir folder
failed=0
count=0

# offered LINE: what the shell offers at its end, a line each, sorted; of NAME=VALUE and A,B the last.
case $shell in
bash)
    # shellcheck source=/dev/null
    source ./script
    complete_line() {
        # As readline parts words: = is a word of its own.
        read -ra COMP_WORDS <<<"${1//=/ = }"
        [[ $1 != *[\ =] ]] || COMP_WORDS+=('')
        COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
        COMP_LINE=$1 COMP_POINT=${#1}
        COMPREPLY=()
        _attn attn
        printf '%s\n' "${COMPREPLY[@]+"${COMPREPLY[@]}"}"
    }
    ;;
zsh) complete_line() { zsh -f "$complete_zsh" "$PWD/script" "$1"; } ;;
fish) complete_line() { fish -c "source script; complete -C '$1'" | cut -f 1; } ;;
esac
offered() {
    complete_line "$1" | sed -e 's/^--.*=//' -e 's/.*,//' -e 's,/$,,' -e 's/\\//g' | sort -u
}

# expect LINE WORDS: exactly these are offered. at_least LINE WORDS: these and perhaps others.
expect() {
    local here there
    here=$(offered "$1") there=$(printf '%s\n' "$2" | sort -u)
    count=$((count + 1))
    [ "$here" = "$there" ] || complain "$1" "$there" "$here"
}
at_least() {
    local missing
    missing=$(comm -13 <(offered "$1") <(printf '%s\n' "$2" | sort -u))
    count=$((count + 1))
    [ -z "$missing" ] || complain "$1" "$missing" "none of these"
}
complain() {
    echo "completion: $shell: $1: expected $(tr '\n' ' ' <<<"$2"); found $(tr '\n' ' ' <<<"$3")"
    failed=1
}

names=$(attn help | sed -n 's/^  \([a-z-]*\) .*/\1/p')
commands=$(attn help | sed -n '/^Topics/q;s/^  \([a-z-]*\) .*/\1/p')
modes='self causal multihead cross sdpa linear'
at_least 'attn ' "$commands"
expect 'attn help ' "$names"
expect 'attn check ' "$(tr ' ' '\n' <<<"$modes")"
expect 'attn repro ' "$(tr ' ' '\n' <<<"$modes")"
expect 'attn explain ' "$(tr ' ' '\n' <<<"$modes")"
expect 'attn completion ' "$(printf '%s\n' bash fish zsh)"
expect 'attn self o' one.csv
expect 'attn self w' 'with blank.csv'
expect 'attn self --weights fol' folder
expect 'attn explain self o' one.csv
expect 'attn compare one.csv o' one.csv
expect 'attn self --emit scores,mas' "$(printf '%s\n' mask masked_scores masked_weights)"
expect 'attn self --emit=scores,mas' "$(printf '%s\n' mask masked_scores masked_weights)"
expect 'attn plot --array biased' biased_scores

# Flags, by the first column of help; of a choice its names.
for command in $commands; do
    [ "$command" != help ] || continue # attn help --help explains the flag
    attn "$command" --help | sed -n 's/^  \(-.*\)/\1/p' | sed 's/   *.*//' >flags
    long=$(grep -o -- '--[a-z-]*' flags)
    case " $modes " in
    *" $command "*) expect "attn $command --" "$long" ;;
    *) at_least "attn $command --" "$long" ;;
    esac
    # The other shells take a moment for each line.
    [ "$shell" = bash ] || [ "$command" = multihead ] || continue
    while read -r flag choice; do
        choice=$(tr '|' '\n' <<<"$choice")
        expect "attn $command $flag " "$choice"
        expect "attn $command $flag=" "$choice"
    done < <(sed -n 's/.*\(--[a-z-]*\) \([a-z0-9|-]*|[a-z0-9|-]*\)$/\1 \2/p' flags)
done
[ "$failed" -eq 0 ] && echo "completion: $shell: $count lines: ok"
exit "$failed"
