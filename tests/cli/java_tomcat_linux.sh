#!/bin/bash
# Tomcat of the distribution under load: its stacks are complete. Requests a second without the
# recorder and with it at 99 Hz, in turns, are printed and not asserted, and Tomcat's CPU time a
# request. TOMCAT_S=3 is how long one turn takes, TOMCAT_TURNS=1 how many there are of each;
# TOMCAT_PEERS=1 measures JFR (settings profile) and perf (-F 99 -g, with the JVM's perf map at its
# end) in the same turns.
# time limit: 200
. "$TOP/tests/support/cli.sh"
need_perf
home=/usr/share/tomcat10
seconds=${TOMCAT_S:-3} turns=${TOMCAT_TURNS:-1} port=18080
if [ ! -r $home/bin/bootstrap.jar ] || ! command -v ab >/dev/null ||
	! command -v java >/dev/null; then
	echo "skip java_tomcat: needs Tomcat and ab (apt-get install tomcat10-common apache2-utils)"
	exit 0
fi
java=
trap '[ ! "$java" ] || kill "$java" 2>/dev/null' EXIT

mkdir -p base/{conf,logs,temp,work,webapps/ROOT}
tomcat_pages base/conf/web.xml
cat >base/conf/server.xml <<X
<Server port="-1"><Service name="Catalina">
	<Connector port="$port" address="127.0.0.1"/>
	<Engine name="Catalina" defaultHost="localhost">
		<Host name="localhost" appBase="webapps" autoDeploy="false"/>
	</Engine>
</Service></Server>
X
# A page that works: a sorted list, in strings.
cat >base/webapps/ROOT/index.jsp <<'X'
<%@ page import="java.util.*" %><% Random r = new Random(7);
List<String> words = new ArrayList<>();
for (int i = 0; i < 400; i++) words.add(Integer.toString(r.nextInt(), 36));
Collections.sort(words); for (String w : words) out.println(w); %>
X

load() { ab -q -k -c 4 -t "$1" -n 10000000 "http://127.0.0.1:$port/index.jsp" 2>&1; }
answers() { (exec 3<>/dev/tcp/127.0.0.1/$port) 2>/dev/null; }

java -Dcatalina.home=$home -Dcatalina.base="$PWD/base" -Djava.io.tmpdir="$PWD/base/temp" \
	-cp $home/bin/bootstrap.jar:$home/bin/tomcat-juli.jar \
	org.apache.catalina.startup.Bootstrap start >tomcat.log 2>&1 & java=$!
if ! wait_for 60 answers; then
	echo "not ok tomcat_starts: $(tail -3 tomcat.log | tr '\n' ' ')"
	exit 1
fi
load "$seconds" >warm.ab

beside_nothing() { load "$seconds"; }
beside_recorder()
{
	"$RECORDER" collect --store turn.db --freq 99 2>"turn$1.log" & collect=$!
	wait_for 20 grep -q recording "turn$1.log"
	load "$seconds"
	kill $collect
	wait $collect
}
beside_jfr()
{
	jcmd $java JFR.start name=peer settings=profile filename="$PWD/peer.jfr" >jfr.log
	load "$seconds"
	jcmd $java JFR.stop name=peer >>jfr.log
}
beside_perf()
{
	perf record -a -g -F 99 -o perf.data >perf.log 2>&1 & perf=$!
	sleep 1
	load "$seconds"
	jcmd $java Compiler.perfmap >>perf.log
	kill -INT $perf
	wait $perf
}

# CPU time that Tomcat took so far, in ms; what interrupts for samples take from it is in it.
cpu_ms() { awk '{ print ($14 + $15) * 10 }' "/proc/$java/stat"; }

# Each turn of a peer has one of nothing beside it.
peers=(nothing recorder)
[ ! "${TOMCAT_PEERS:-}" ] || peers+=(jfr perf)
for turn in $(seq "$turns"); do
	for peer in "${peers[@]}"; do
		before=$(cpu_ms)
		"beside_$peer" "$turn" >"$peer$turn.ab"
		after=$(cpu_ms)
		awk -v ms=$((after - before)) '/^Complete requests/ { n = $3 }
			/^Requests per second/ { print $4, 1000 * ms / n }' "$peer$turn.ab" \
			>>"$peer.turns"
	done
done
echo "$turns turns of $seconds s: requests a second, CPU us of Tomcat a request (medians)," \
	"and how many % more than in the turn beside (median, its standard error)"
for peer in "${peers[@]}"; do
	paste -d ' ' nothing.turns "$peer.turns" | awk -v peer="$peer" '
		function median(v, n,   i, j, t) {
			for (i = 2; i <= n; i++)
				for (j = i; j > 1 && v[j] < v[j - 1]; j--) {
					t = v[j]; v[j] = v[j - 1]; v[j - 1] = t }
			return (v[int((n + 1) / 2)] + v[int(n / 2) + 1]) / 2 }
		{ rate[NR] = $3; cost[NR] = $4; more[NR] = x = 100 * ($4 / $2 - 1) }
		{ s += x; q += x * x }
		END { sd = sqrt(q / NR - (s / NR) ^ 2)
			printf "%-10s %8.0f %8.1f %7.2f +- %.2f\n", peer, median(rate, NR),
				median(cost, NR), median(more, NR), 1.25 * sd / sqrt(NR) }'
done

load $((seconds + 3)) >quality.ab & ab=$!
sleep 1
"$RECORDER" collect --store s.db --freq 499 --max-collect-sec "$seconds" --max-cpu-percent 0 \
	2>collect.log
wait $ab
"$RECORDER" show --store s.db --id 1 --process $java --json >shown.json
jq -r '"\(.samples) samples of Tomcat: \(.stack_quality)"' shown.json
check stacks_of_tomcat_are_complete jq -e '.samples >= 100 and
	(.stack_quality | 100 * ((.complete // 0) + (.stitched // 0) + (.remote // 0))) >=
	97 * .samples' shown.json
"$RECORDER" export --store s.db 1 --format folded -o s.folded 2>>collect.log
check its_page_is_named grep -q '_jspService' s.folded
