#!/bin/bash
# Go programs, whole and stripped: names from .gopclntab, and the scheduler's stack.
# time limit: 120
. "$TOP/tests/support/cli.sh"
need_perf
export RECORDER_STORE=$TMP/s.db

# Goroutines that hand each other the processor.
cat >go.go <<'GO'
package main

import (
	"os"
	"runtime"
	"runtime/pprof"
	"time"
)

var kept [][]byte

//go:noinline
func leaks() { for i := 0; i < 20000; i++ { kept = append(kept, make([]byte, 1000)) } }

func profile(name string) {
	runtime.GC()
	if file, err := os.Create(name); err == nil {
		pprof.WriteHeapProfile(file)
		file.Close()
	}
}

//go:noinline
func pass(a, b chan int) { for { b <- <-a + 1 } }
func main() {
	runtime.MemProfileRate = 4096
	profile("before.pb.gz")
	leaks()
	profile("heap.pb.gz")
	a, b := make(chan int), make(chan int)
	go pass(a, b)
	go pass(b, a)
	a <- 1
	time.Sleep(4 * time.Second)
}
GO
why="Go is not installed"
command -v go >/dev/null && why=$(GOCACHE=$TMP/gocache CGO_ENABLED=0 go build -o go go.go 2>&1)
if [ "$why" ]; then
	echo "skip go_linux: $(head -n 1 <<<"$why")"
	exit 0
fi
strip -o stripped go

for name in go stripped; do
	"$RECORDER" run --freq 999 -o "$name.folded" -f -- "./$name" 2>err
	samples=$(awk '{ n += $NF } END { print n + 0 }' "$name.folded")
	check "${name}_is_recorded" [ "$samples" -ge 50 ]
	check "${name}_has_its_functions" grep -q \
		'runtime.goexit.*;[a-z]*!main.pass;[a-z]*!runtime.chan' "$name.folded"
	check "${name}_has_the_scheduler" grep -q \
		';[a-z]*!runtime.mcall;[a-z]*!runtime.park_m' "$name.folded"
	# Inside mcall itself, as the leaf, the goroutine is still below it.
	check "${name}_has_nothing_below_the_scheduler" expect_exit 1 grep -E \
		'(BROKEN|truncated\]|![^;]*);[a-z]*!runtime.mcall;[^[]' "$name.folded"
done

# 20,000 blocks of 1,000 bytes take 1,024 each.
"$RECORDER" collect --from heap.pb.gz --store heap.db 2>log
kb=$("$RECORDER" report --store heap.db --metric heap-net --by-name --json 2>/dev/null |
	jq -s 'map(select(.name? and (.name | endswith("!main.leaks"))).self_kb) | add | round')
check its_own_heap_profile_is_read [ "${kb:-0}" -gt 19000 -a "${kb:-0}" -lt 22000 ]
# It is of one moment: nothing of it is a rate, and nothing grows.
"$RECORDER" report --store heap.db --memory >memory 2>&1
check what_is_in_use_is_not_what_was_allocated \
	grep -qE 'its heap; (19|20|21)[.0-9]* MB in use$' memory
check it_has_no_suspects expect_exit 1 grep -E 'MB/s|s \*' memory
"$RECORDER" collect --from before.pb.gz --store heap.db 2>log
check two_of_them_are_compared_as_they_are jq -se '.[0].base_factor == 1' \
	<("$RECORDER" diff 2 1 --store heap.db --metric heap-net --json 2>/dev/null)

# One that runs is told of its own profile.
./go & program=$!
wait_for 20 grep -q '^c000000000-' /proc/$program/maps
"$RECORDER" run --heap --store runs.db -p $program >out 2>log & recorder=$!
wait_for 20 grep -q 'was not started with' log
kill -INT $recorder
check one_that_runs_has_a_profile_of_its_own grep -q 'looks like a Go program, whose own' log
wait
