# What zsh offers at the end of a line: zsh -f complete.zsh SCRIPT LINE. A second zsh at a terminal of its own
# completes; what it would add to its list is printed between two lines that hold a null byte.
zmodload zsh/zpty
zpty inner zsh -f -i
setup=$(mktemp)
cat >$setup <<'END'
PROMPT=
autoload -Uz compinit
compinit -u -D
source $SCRIPT
bindkey '^I' complete-word
mark () { print -r -- $'\0' }
compprefuncs=(mark)
comppostfuncs=(mark exit)
zstyle ':completion:*' insert-tab false
compadd () {
    # these only ask
    if [[ ${@[1,(i)(-|--)]} == *-(O|A|D)\ * ]]; then
        builtin compadd "$@"
        return
    fi
    local -a found
    builtin compadd -A found "$@"
    (( $#found )) && print -rl -- $found
}
print ready
END
zpty -w inner "SCRIPT=${(q)1} source $setup"
while zpty -r inner line && [[ $line != *ready* ]]; do :; done
rm $setup
zpty -w -n inner "$2"$'\t'
integer marks=0
while zpty -r inner line; do
    if [[ $line == *$'\0'* ]]; then
        (( ++marks == 2 )) && break
    elif (( marks == 1 )); then
        print -r -- ${line%%[$'\r\n']*}
    fi
done
