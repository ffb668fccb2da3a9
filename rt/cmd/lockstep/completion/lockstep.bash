# bash completion for lockstep: `source <(lockstep completion bash)`
_lockstep() {
	local word rest current=${COMP_WORDS[COMP_CWORD]}
	COMPREPLY=()
	while IFS=$'\t' read -r word rest; do
		if [ "$word" = :files ]; then
			compopt -o filenames 2>/dev/null
			while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -f -- "$current")
		else
			COMPREPLY+=("$word")
		fi
	done < <("${COMP_WORDS[0]}" complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -F _lockstep lockstep
