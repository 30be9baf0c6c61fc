# Compares samples with what programs/hop_linux.c says of itself:
#
#	sort -k1,1n -k2,2n HOP_LOG | awk -f names_had.awk - t0=NS FILE t0=NS FILE...
#
# FILE is an export of an incident as perf-script, t0 where its window begins by CLOCK_MONOTONIC. A
# process runs exec(2) between a line "leaves" and the next "has", and may have either name there;
# between any other two lines it has the one name that both give. Prints "RIGHT WRONG UNNAMED"
# samples, and before that at most 20 of the wrong ones. Unnamed are those of "?": the recorder does
# not claim to know.
# shellcheck disable=all

FILENAME == "-" {
	at[$1, n[$1] + 0] = $2
	name[$1, n[$1] + 0] = $3
	what[$1, n[$1]++] = $4
	next
}

# The first of pid's lines that is not before this time.
function line_after(pid, ns,    low, high, middle)
{
	low = 0
	high = n[pid] + 0
	while (low < high) {
		middle = int((low + high) / 2)
		if (at[pid, middle] < ns)
			low = middle + 1
		else
			high = middle
	}
	return low
}

# Line i is the first after the sample.
function is_right(pid, called, i,    lives)
{
	if (called ~ /^[a-c][0-9]$/)
		return (i > 0 && name[pid, i - 1] == called) || (i < n[pid] && name[pid, i] == called)
	lives = i > 0 && i < n[pid] && what[pid, i - 1] != "ends" && what[pid, i] != "begins"
	return !lives                        # another process that has or had the number
}

# NAME PID/TID [CPU] SECONDS: PERIOD cpu-clock:
/^[^\t ].* [0-9]+\/[0-9]+ \[[0-9]+\] [0-9.]+: / {
	match($0, / [0-9]+\/[0-9]+ \[[0-9]+\] [0-9.]+: /)
	called = substr($0, 1, RSTART - 1)
	split(substr($0, RSTART + 1), part, " ")
	pid = part[1] + 0
	ns = t0 + part[3] * 1e9
	if (!(pid in n) && called !~ /^[a-c][0-9]$/)
		next
	i = line_after(pid, ns)
	if (called == "?")
		unnamed++
	else if (is_right(pid, called, i))
		right += called ~ /^[a-c][0-9]$/
	else if (++wrong <= 20) {
		printf "%s at %.0f: %s, not %s or %s\n", part[1], ns, called, \
			name[pid, i - 1], name[pid, i]
	}
}

END { print right + 0, wrong + 0, unnamed + 0 }
