# From a transcript of LiveStacks, what etw_transcript and an assembler need to play it again:
# `awk -v dir=DIR -f livestacks_page.awk TRANSCRIPT >LINES` writes DIR/MODULE.s for each module.
#
# The function with index k of a module lies k * 0x60000 behind 0x1000, where the linker begins the
# code. Frames without a function lie in a module without symbols, which has a folder of its own.

function hex(text,   i, v)
{
	for (i = 1; i <= length(text); i++)
		v = v * 16 + index("0123456789ABCDEF", substr(text, i, 1)) - 1
	return v
}

/^ +[0-9]+ \[/ {
	head = (/EatCPU/ ? "samples " : "calls ") $1 " " $3 + 0
	if (!had[$3]++)
		print "process", $3 + 0, substr($2, 2)
	next
}

/^    / {
	bang = index($1, "!")
	plus = match($1, /\+0x[0-9A-F]+$/)
	module = substr($1, 1, bang - 1)
	name = substr($1, bang + 1, plus - bang - 1)
	offset = hex(substr($1, plus + 3))
	path = name == "" ? "unnamed/" module : module
	if (!(path in number)) {
		number[path] = n++
		paths[n] = path
	}
	source = dir "/" path ".s"
	if (name == "") {
		if (!sized[path]++)
			print ".skip 0x80000" >source
	} else {
		if (!((path, name) in at)) {
			at[path, name] = 4096 + 393216 * functions[path]++
			printf ".def \"%s\"; .scl 2; .type 32; .endef\n", name >source
			printf ".globl \"%s\"\n\"%s\": .skip 0x60000\n", name, name >source
		}
		offset += at[path, name]
	}
	stack = stack sprintf(" 7ff0%02x%06x", number[path], offset)
	next
}

{
	line[++lines] = head stack
	stack = ""
}

END {
	for (pid in had)
		for (i = 1; i <= n; i++)
			printf "image %d 7ff0%02x000000 page/%s %s/%s\n", pid, i - 1, paths[i], dir, paths[i]
	for (i = 1; i <= lines; i++)
		print line[i]
}
