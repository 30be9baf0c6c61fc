# Samples of `recorder export --format perf-script`, one a line: seconds since the first one, who, its
# frames without their directories, which differ between the machine of a trace and this one.
/^[^\t]/ {
	match($0, /[0-9]+\.[0-9]+: /)
	time = substr($0, RSTART, RLENGTH - 2)
	if (first == "")
		first = time
	printf "%.6f\t%s", time - first, substr($0, 1, RSTART - 1)
	next
}
/^\t/ {
	sub(/^[\t ]+/, "")
	sub(/\(([A-Z]:|\\Device)?.*\\/, "(")
	printf "\t%s", $0
	next
}
{ print "" }
