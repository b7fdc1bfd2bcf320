# Completion of adjutant for bash 3.2 and later, as `adjutant completions bash` prints it.
_adjutant() {
    local line=${COMP_LINE:0:COMP_POINT} prefix='' type=${COMP_TYPE:-9} word i
    local words=()
    # Bash cuts words at : and = too; what stands together is put together again.
    for ((i = 0; i <= COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        if ((i == COMP_CWORD)); then word=${line#"${line%%[![:space:]]*}"}; fi
        if ((i > 0)) && [[ $line != [[:space:]]* ]]; then
            words[${#words[@]} - 1]+=$word
        elif ((i == 0)) || [[ -n $line ]]; then
            words+=("$word")
        fi
        line=${line#"${line%%[![:space:]]*}"}
        line=${line#"$word"}
    done
    word=${words[${#words[@]} - 1]}
    # It replaces only what stands behind the last of them.
    if [[ $COMP_WORDBREAKS == *:* && $word == *:* ]]; then prefix=${word%"${word##*[:=]}"}
    elif [[ $COMP_WORDBREAKS == *=* && $word == *=* ]]; then prefix=${word%"${word##*=}"}; fi
    COMPREPLY=()
    while IFS= read -r word; do
        word=${word#"$prefix"}
        if ((type == 9)) && [[ $word == *' '* ]]; then printf -v word %q "$word"; fi
        COMPREPLY+=("$word")
    done < <(
        _ADJUTANT_COMPLETE=bash _ADJUTANT_COMPLETE_TYPE=$type \
            _CLAP_COMPLETE_INDEX=$((${#words[@]} - 1)) adjutant -- "${words[@]}" 2>/dev/null
    )
    if ((${#COMPREPLY[@]} == 1)) && [[ ${COMPREPLY[0]} == *[/=] ]]; then compopt -o nospace 2>/dev/null; fi
}
complete -o bashdefault -o nosort -F _adjutant adjutant 2>/dev/null || complete -o bashdefault -F _adjutant adjutant
