# bash completion for attn, 3.2 or later
_attn() {
    local cur=${COMP_WORDS[COMP_CWORD]} kind word _
    # bash separates --flag=value at the sign.
    [[ $cur != = ]] || cur=
    COMPREPLY=()
    {
        read -r kind
        while IFS=$'\t' read -r word _; do
            word=${word#--*=}
            [[ $word != "$cur"* ]] || COMPREPLY+=("$word")
        done
    } < <("$1" completion --words "${COMP_LINE:0:COMP_POINT}" 2>/dev/null)
    case $kind in
    list) compopt -o nospace 2>/dev/null ;;
    files)
        local IFS=$'\n'
        COMPREPLY=($(compgen -f -- "$cur"))
        compopt -o filenames 2>/dev/null ;;
    esac
}
complete -F _attn attn
