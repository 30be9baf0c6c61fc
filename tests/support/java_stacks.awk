# Stacks of stopped Java threads, compared with jstack's frame for frame.
#
#	awk -f java_stacks.awk FOLDED JSTACK
#
# FOLDED is `recorder export --format folded --metric off-cpu`: of each thread, the stack on which it
# spent the most time counts. Frames that jstack hides (lambda forms and classes of lambdas) are left
# out. Prints each frame that differs, and at the end "same N differ N threads N".

function is_hidden(name) { return name ~ /LambdaForm\$|\$\$Lambda|^\[|InjectedInvoker/ }

FNR == NR {
	value = $NF
	n = split($0, frame, ";")
	if (n < 3 || !match(frame[2], /-[0-9]+$/))
		next
	tid = substr(frame[2], RSTART + 1)
	if (value + 0 <= most[tid] + 0)
		next
	most[tid] = value
	count[tid] = 0
	for (i = 3; i <= n; i++) {
		name = frame[i]
		if (name !~ /^\[java\]!/)
			continue
		sub(/^\[java\]!/, "", name)
		sub(/_\[[ij]\].*$/, "", name)
		if (!is_hidden(name))
			ours[tid, ++count[tid]] = name
	}
	next
}

function hex(text,    i, v) {
	for (i = 3; i <= length(text); i++)
		v = v * 16 + index("123456789abcdef", substr(text, i, 1))
	return v
}

function compare(    i, k, longest) {
	if (!depth)
		return
	if (!(tid in count)) {
		print "no stack of " title
		return
	}
	threads++
	longest = depth > count[tid] ? depth : count[tid]
	for (i = 1; i <= longest; i++) {
		k = depth + 1 - i
		if (ours[tid, i] == theirs[k]) {
			same++
			continue
		}
		differ++
		print title " frame " i ": " ours[tid, i] ", not " theirs[k]
	}
}

/^"/ {
	compare()
	depth = 0
	title = $1
	tid = "none"
	if (match($0, /nid=(0x)?[0-9a-f]+/)) {
		tid = substr($0, RSTART + 4, RLENGTH - 4)
		tid = tid ~ /^0x/ ? hex(tid) : tid
	}
}
/^\tat / {
	name = $2
	sub(/\(.*/, "", name)
	if (is_hidden(name))
		next
	sub(/.*\//, "", name)
	theirs[++depth] = name
}
END {
	compare()
	print "same " same + 0 " differ " differ + 0 " threads " threads + 0
}
