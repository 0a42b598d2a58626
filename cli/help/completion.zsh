#compdef attn
_attn() {
    local before=${(M)PREFIX##*[=,]} line="${(j: :)words[1,CURRENT-1]} $PREFIX"
    local -a found suffix
    found=("${(@f)$($words[1] completion --words $line 2>/dev/null)}")
    if [[ $found[1] == files ]]; then
        compset -P '--*='
        _files
        return
    fi
    [[ $found[1] != list ]] || suffix=(-S '')
    # Words without what precedes the last = or comma, each with its help after a colon.
    found=("${(@)${(@)found[2,-1]#$before}/$'\t'/:}")
    compset -P '*[=,]'
    _describe attn found $suffix
}

if [ "$funcstack[1]" = _attn ]; then
    _attn "$@"
else
    compdef _attn attn
fi
