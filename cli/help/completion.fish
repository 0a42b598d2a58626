# fish completion for attn, 3.0 or later
function __attn_complete
    set -l words (commandline -opc)
    set -l last (commandline -ct)
    set -l found ($words[1] completion --words "$words $last" 2>/dev/null)
    if test "$found[1]" = files
        set -l flag (string match -r -- '^--[a-z-]+=' "$last")
        for path in (__fish_complete_path (string replace -- "$flag" '' "$last"))
            echo "$flag$path"
        end
    else
        string join \n -- $found[2..-1]
    end
end
complete -c attn -f -a '(__attn_complete)'
