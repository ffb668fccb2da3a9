#compdef lockstep
# zsh completion for lockstep: as _lockstep in a folder of $fpath, or
# `source <(lockstep completion zsh)`
_lockstep() {
	local line files
	local -a found
	for line in "${(@f)$("${words[1]}" complete "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
		case $line in
		'') ;;
		:files) files=1 ;;
		*) found+=("${${line//:/\\:}/$'\t'/:}") ;;
		esac
	done
	(( $#found )) && _describe lockstep found
	[[ -n $files ]] && _files
}
if [[ $funcstack[1] = _lockstep ]]; then
	_lockstep "$@"
else
	compdef _lockstep lockstep
fi
