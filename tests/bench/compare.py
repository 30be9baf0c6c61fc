"""make bench-compare OLD=COMMIT [NEW=COMMIT] [ROUNDS=7]: what moved between two commits.

    compare.py OLD NEW [ROUNDS [ROWS]]        ROWS: names of STEPS, comma between them; all of them

Machines differ by a factor of three, and one machine by a third from hour to hour. So both commits
are built here, below build/bench/compare/, and each step runs by turns: old new, new old, ... Of
each number the ratio new / old is formed round by round. Printed are the medians of both, the
median of the ratios and its 95 % interval (ranks of the binomial distribution; no shape is
assumed). A number moved if the interval leaves out 1; what did not move is printed with -v. Goals
are those of the ratios to commit 386384e; a missed one changes the exit code with --strict. What
an old commit's bench programs do not know has no row; what is measured from outside (show,
nettrace, start, switch, interrupt, live, load, load_native) has one for every commit.

The same as JSON, with the machine: build/bench/compare/results.jsonl
"""
import argparse
import contextlib
import json
import math
import os
import platform
import shutil
import statistics
import subprocess
import sys
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
WORK = os.path.join(TOP, "build/bench/compare")
TRACE = os.path.join(TOP, "../shared/data/etl/net.4.5.2.x64.etl.zip")
PYTHON = """
def walk(n, rows):
    return sorted(rows, key=lambda r: r % n)[0] if n < 3 else walk(n - 1, rows) + walk(n - 2, rows)
while True:
    walk(12, list(range(50)))
"""
# What a recorder needs before it where tracefs is not mounted; exec: its pid stays that of unshare.
IN_MOUNTS = [] if os.path.exists("/sys/kernel/tracing/events") else [
    "unshare", "-m", "sh", "-c", 'mount -t tracefs t /sys/kernel/tracing && exec "$@"', "sh"]
# Words at the end of a key, and whether more of it is better. What has none of them is no cost.
UNITS = {"per_s": True, "per_mb": True, "times_faster": True, "ms": False, "us": False,
         "ns": False, "per_sample": False, "per_event": False, "per_17_frames": False,
         "per_stack": False, "kb": False, "mb": False, "bytes": False, "percent": False}
# (step, words in the key, at most this ratio; at least, where more is better)
GOALS = [("live", "us_per_sample", 0.4), ("load", "us_per_sample", 0.4),
         ("etl", "etl source wall_ms", 0.5),
         ("export", "load for an export wall_ms", 0.6), ("export", "write folded wall_ms", 0.6),
         ("export", "write perfview-xml wall_ms", 0.6), ("export", "write html wall_ms", 0.6),
         ("export", "write pprof wall_ms", 0.6)]


def program(tree, name):
    return os.path.join(tree, "build/linux/programs", name)


def rows_of(*command, limit=300, **keys):
    """What a bench program prints with --json: {"ROW KEY": number}."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=limit, **keys)
    if done.returncode:
        raise RuntimeError("%s: %s" % (os.path.basename(command[0]), done.stderr.strip()[-200:]))
    numbers = {}
    for line in done.stdout.splitlines():
        row = json.loads(line)
        for key, value in row.items():
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                numbers["%s %s" % (row["row"], key)] = value
    return numbers


def cost_of(*command):
    """(wall ms, CPU ms) of a command that ends with 0."""
    begin = time.monotonic()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, use = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise RuntimeError("%s ended with %d" % (" ".join(command), child.returncode))
    return (time.monotonic() - begin) * 1000, (use.ru_utime + use.ru_stime) * 1000


def best_of_3(name, *command):
    costs = [cost_of(*command) for _ in range(3)]
    return {name + " wall_ms": min(c[0] for c in costs), name + " cpu_ms": min(c[1] for c in costs)}


def recorder_of(tree):
    return os.path.join(tree, "build/linux/recorder")


@contextlib.contextmanager
def recording(tree, store, *options):
    """(recorder, ms until it records) while it does."""
    own = subprocess.Popen([*IN_MOUNTS, recorder_of(tree), "collect", "--store", store, *options],
                           stderr=subprocess.PIPE, text=True)
    try:
        begin = time.monotonic()
        for line in own.stderr:
            if "recording this machine" in line:
                break
        yield own, (time.monotonic() - begin) * 1000
    finally:
        own.terminate()
        own.communicate(timeout=60)


def pipeline(tree, work, _):
    return rows_of(program(tree, "bench_pipeline"), "--json", "--keep", "--no-exports",
                   "--samples", "1000000", "--dir", work)


def export(tree, work, _):
    """After pipeline(), whose store this is."""
    store = os.path.join(work, "bench.db")
    numbers = rows_of(program(tree, "bench_export_linux"), "--json", recorder_of(tree), store, work)
    numbers.update(best_of_3("show", recorder_of(tree), "show", "1", "--store", store))
    return numbers


def nettrace(tree, work, tools):
    trace, store = os.path.join(WORK, "run/long.nettrace"), os.path.join(work, "from/s.db")
    if not os.path.exists(trace):
        subprocess.check_call([sys.executable, "tests/bench/nettrace_repeat.py",
                               "tests/data/nettrace/exceptions.nettrace", trace, "100"], cwd=tools)
    shutil.rmtree(os.path.dirname(store), ignore_errors=True)
    os.mkdir(os.path.dirname(store))
    wall, cpu = cost_of(recorder_of(tree), "collect", "--from", trace, "--store", store)
    return {"nettrace 100 MB wall_ms": wall, "nettrace 100 MB cpu_ms": cpu}


def symbols(tree, work, _):
    binary = shutil.which("node") or sys.executable
    return rows_of(program(tree, "bench_symbols"), "--json", os.path.realpath(binary), work)


def unwind(tree, *_):
    return rows_of(program(tree, "bench_unwind_linux"), "--json", "/usr/bin/python3", "-c", PYTHON)


def rules(tree, *_):
    return rows_of(program(tree, "bench_triggers"), "--json")


def etl(tree, *_):
    numbers = rows_of(program(tree, "bench_etl_source"), "--json", TRACE)
    numbers["etl source us_per_event"] = (numbers["etl source wall_ms"] * 1000 /
                                          numbers["etl source events"])
    return numbers


def start(tree, work, tools):
    """Among 1,000 processes."""
    return rows_of(program(tools, "bench_start_linux"), "--json", "--dir", work, recorder_of(tree))


def switch(tree, work, tools):
    """What --thread-time adds to a switch between two threads, in the kernel."""
    bench = [program(tools, "bench_probes_linux"), "switch", "1"]
    without = float(subprocess.check_output(bench))
    store = os.path.join(work, "switch.db")
    with recording(tree, store, "--thread-time", "--symbol-cache-mb", "0"):
        time.sleep(0.5)
        ns = float(subprocess.check_output(bench))
    return {"switch without_ns": without, "switch added_ns": max(ns - without, 1)}


def interrupted(tools, stack_bytes=4096):
    """How long a thread with so much stack stands still for a sample at 4,999 Hz, in ns."""
    bench, depth = [program(tools, "bench_probes_linux"), "interrupt"], str(stack_bytes)
    subprocess.check_call([*bench, "3", depth], stdout=subprocess.DEVNULL)
    told = subprocess.run([*bench, "5", depth], capture_output=True, text=True, check=True)
    ns, per_s = (int(word) for word in told.stdout.split())
    if per_s < 4000:
        raise RuntimeError("only %d interrupts a second: most were no samples" % per_s)
    return ns


def interrupt(tree, work, tools):
    """The kernel's part of a sample, beside what perf pays for one without any stack."""
    store, numbers = os.path.join(work, "interrupt.db"), {}
    with recording(tree, store, "--freq", "4999", "--max-cpu-percent", "0"):
        numbers["interrupt median_ns"] = interrupted(tools)
        numbers["interrupt deep_stack_ns"] = interrupted(tools, 32768)
    if shutil.which("perf"):
        perf = subprocess.Popen(["perf", "record", "-q", "-a", "-e", "cpu-clock", "-F", "4999",
                                 "-o", os.path.join(work, "interrupt.data")],
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            numbers["interrupt perf_without_stacks_ns"] = interrupted(tools)
        finally:
            perf.terminate()
            perf.wait()
    return numbers


def cpu_s(pid):
    """Of all threads, those that have ended too: clock_getcpuclockid(3)."""
    return time.clock_gettime((~pid << 3) | 2)


def cost_a_sample(tree, work, name, warm_s, *options):
    """Of what runs already: all that a sample costs outside of the kernel's interrupt in 20 s after
    the first ones, and what the start costs."""
    store = os.path.join(work, name + ".db")
    seen = []
    with recording(tree, store, "--freq", "99", "--max-cpu-percent", "0",
                   *options) as (own, ready_ms):
        for seconds in (warm_s, 20):
            time.sleep(seconds)
            told = subprocess.run([recorder_of(tree), "status", "--json", "--store", store],
                                  capture_output=True, text=True, timeout=20)
            seen.append((json.loads(told.stdout)["samples"], cpu_s(own.pid)))
    samples = seen[1][0] - seen[0][0]
    return {name + " recording_ms": ready_ms, name + " start_cpu_ms": seen[0][1] * 1000,
            name + " us_per_sample": (seen[1][1] - seen[0][1]) * 1e6 / max(samples, 1)}


def live(tree, work, _):
    """One burn on each CPU."""
    burns = [subprocess.Popen([program(tree, "burn"), "60"], stdout=subprocess.DEVNULL)
             for _ in range(os.cpu_count())]
    try:
        return cost_a_sample(tree, work, "live", 5)
    finally:
        for process in burns:
            process.terminate()
            process.wait()


def load(tree, work, tools, name="load", options=()):
    """The seven programs of load.sh, which ends them when its input does."""
    here = os.path.join(work, "load")
    os.makedirs(here, exist_ok=True)
    of = subprocess.Popen(["bash", "-c", ". tests/bench/load.sh; cd \"$0\" && load_start 90; "
                           "read -r; load_stop", here], cwd=tools, env={**os.environ, "TOP": tools},
                          stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    try:
        time.sleep(4)                    # JITs warm up
        return cost_a_sample(tree, work, name, 20, *options)
    finally:
        of.communicate(b"\n", timeout=60)


def load_native(tree, work, tools):
    """The same without what 386384e did not do yet, as far as it can be left out: the memory of
    the JVM is read all the same."""
    told = subprocess.check_output([recorder_of(tree), "help", "collect"], text=True)
    options = [option for option in ("--no-python", "--no-node", "--no-dotnet-names",
                                     "--history-mb=0") if option.split("=")[0] in told]
    return load(tree, work, tools, "load_native", options)


STEPS = {"pipeline": pipeline, "export": export, "symbols": symbols, "unwind": unwind,
         "rules": rules, "etl": etl, "nettrace": nettrace, "live": live, "start": start,
         "switch": switch, "load": load, "load_native": load_native, "interrupt": interrupt}


def built(commit):
    """The commit's tree, built; a directory is taken as it is."""
    if os.path.isdir(commit):
        return os.path.abspath(commit)
    name = subprocess.check_output(["git", "-C", TOP, "rev-parse", "--short=8",
                                    commit + "^{commit}"], text=True).strip()
    tree = os.path.join(WORK, name)
    if not os.path.exists(os.path.join(tree, "build/linux/recorder")):
        print("building", name, file=sys.stderr)
        os.makedirs(os.path.join(tree, "build"), exist_ok=True)
        archive = subprocess.Popen(["git", "-C", TOP, "archive", name], stdout=subprocess.PIPE)
        subprocess.check_call(["tar", "x", "-C", tree], stdin=archive.stdout)
        deps = os.path.join(tree, "build/deps")
        if not os.path.lexists(deps):
            os.symlink(os.path.join(TOP, "build/deps"), deps)
        subprocess.check_call(["make", "-s", "-C", tree, "-j%d" % os.cpu_count(), "programs"],
                              stdout=subprocess.DEVNULL)
    return tree


def interval(values):
    """95 % of the median, or the whole range where there are fewer than six."""
    values = sorted(values)
    n = len(values)
    rank, tail = 0, 0.5 ** n
    while rank + 1 < n // 2 and tail + math.comb(n, rank + 1) * 0.5 ** n <= 0.025:
        rank += 1
        tail += math.comb(n, rank) * 0.5 ** n
    return values[rank], values[n - 1 - rank]


def is_more_better(key):
    for unit, more in UNITS.items():
        if key.endswith(("_" + unit, " " + unit)):
            return more
    return None


def goal_of(step, key, ratio):
    """(goal, whether it is held), or None."""
    for of, words, goal in GOALS:
        if of == step and key.endswith(words):
            return goal, ratio >= goal if is_more_better(key) else ratio <= goal
    return None


def tell(step, rounds, verbose, out):
    """A line for each number that moved; returns the goals that were missed."""
    missed = []
    for key in rounds[0][0]:
        pairs = [(old[key], new[key]) for old, new in rounds if old.get(key) and key in new]
        more = is_more_better(key)
        if not pairs or more is None:
            continue
        ratios = [new / old for old, new in pairs]
        old, new, ratio = (statistics.median(v) for v in (*zip(*pairs), ratios))
        low, high = interval(ratios)
        moved = len(ratios) >= 6 and (low > 1 or high < 1)
        verdict = "" if not moved else "better" if (ratio > 1) == more else "worse"
        goal = goal_of(step, key, ratio)
        verdict = verdict or "did not move"
        out.write(json.dumps({"step": step, "row": key, "old": old, "new": new, "ratio": ratio,
                              "ratio_low": low, "ratio_high": high, "rounds": len(ratios),
                              "verdict": verdict, "goal": goal and goal[0]}) + "\n")
        if goal and not goal[1]:
            missed.append("%s: %.2f, goal %g" % (key, ratio, goal[0]))
        if moved or goal or verbose:
            print("%-44s %10.4g -> %10.4g   x %.2f (%.2f to %.2f)  %s%s" % (
                key, old, new, ratio, low, high, verdict,
                "" if not goal else ", goal %g: %s" % (goal[0], "holds" if goal[1] else "MISSED")))
    return missed


def main():
    asked = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    asked.add_argument("old")
    asked.add_argument("new")
    asked.add_argument("rounds", nargs="?", type=int, default=7)
    asked.add_argument("steps", nargs="?", default=",".join(STEPS))
    asked.add_argument("-v", "--verbose", action="store_true")
    asked.add_argument("--strict", action="store_true")
    asked = asked.parse_args()
    os.makedirs(WORK, exist_ok=True)
    trees = built(asked.old), built(asked.new)
    for which in "old", "new":
        os.makedirs(os.path.join(WORK, "run", which), exist_ok=True)
    missed = []
    with open(os.path.join(WORK, "results.jsonl"), "w", encoding="utf-8") as out:
        machine = {"machine": platform.release(), "cpus": os.cpu_count(), "old": asked.old,
                   "new": asked.new, "load_average_1m": os.getloadavg()[0],
                   "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}
        out.write(json.dumps(machine) + "\n")
        print(" ".join("%s %s" % pair for pair in machine.items()))
        for step in asked.steps.split(","):
            if step == "etl" and not os.path.exists(TRACE):
                print("skip etl: the trace is not there")
                continue
            rounds = []
            try:
                for turn in range(asked.rounds):
                    both = [None, None]
                    for which in (0, 1) if turn % 2 == 0 else (1, 0):
                        work = os.path.join(WORK, "run", ("old", "new")[which])
                        both[which] = STEPS[step](trees[which], work, trees[1])
                    rounds.append(both)
            except (RuntimeError, subprocess.SubprocessError) as failure:
                print("skip %s: %s" % (step, failure))
                missed.append(step + ": it failed")
                continue
            missed += tell(step, rounds, asked.verbose, out)
    shutil.rmtree(os.path.join(WORK, "run"))
    if missed:
        print("missed: " + "; ".join(missed))
    return 1 if missed and asked.strict else 0


if __name__ == "__main__":
    sys.exit(main())
