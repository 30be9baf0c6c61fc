# bash completion of recorder. The program itself knows the candidates: recorder complete WORD...

_recorder()
{
	local cur=${COMP_WORDS[COMP_CWORD]} line lines

	mapfile -t lines < <("${COMP_WORDS[0]}" complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
	COMPREPLY=()
	[ "$cur" = '=' ] && cur=
	for line in "${lines[@]}"; do
		case $line in
		:files) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
		:dirs) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -d -- "$cur") ;;
		*) COMPREPLY+=("$(printf '%q' "${line%%$'\t'*}")") ;;
		esac
	done
}
complete -o nosort -F _recorder recorder
