_complete_@NAME@() {
    local line=${COMP_LINE:0:COMP_POINT} words current
    read -ra words <<< "$line"
    [[ $line == *[[:space:]] ]] && words+=("")
    current=${words[${#words[@]} - 1]}
    local IFS=$'\013'
    COMPREPLY=($(
        _CLAP_IFS="$IFS" \
        _CLAP_COMPLETE_INDEX=$((${#words[@]} - 1)) \
        _CLAP_COMPLETE_COMP_TYPE="$COMP_TYPE" \
        _CLAP_COMPLETE_SPACE=false \
        @VARIABLE@=bash \
        "@NAME@" -- "${words[@]}"
    )) || { unset COMPREPLY; return; }
    COMPREPLY=("${COMPREPLY[@]#"${current%"${current##*[:=]}"}"}")
    [[ ${COMPREPLY-} =~ [=/:]$ ]] || compopt +o nospace 2> /dev/null
}
complete -o nospace -o bashdefault -F _complete_@NAME@ @NAME@
