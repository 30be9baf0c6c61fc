#!/bin/bash
# Peers over a network: four hosts, each in a network namespace of its own behind a bridge, speak
# TLS with certificates of an authority of their own. One has no recorder; another's clock is 3 s
# ahead.
# time limit: 200
. "$TOP/tests/support/cli.sh"
need_perf
unset RECORDER_STORE RECORDER_CONFIG RECORDER_SHIP_AUTH http_proxy https_proxy
for program in ip openssl jq python3; do
	command -v $program >/dev/null && continue
	echo "skip peers_networks: no $program here"
	exit 0
done
# The bridge, too, is in a namespace, which ends with this script.
if [ -z "${IN_OWN_NETWORK:-}" ]; then
	if ! unshare --net ip link add test0 type veth peer name test1 2>/dev/null; then
		echo "skip peers_networks: no network namespaces, or no veth, here"
		exit 0
	fi
	IN_OWN_NETWORK=1 exec unshare --net bash "$0"
fi

pids=
trap 'kill $pids 2>/dev/null; wait' EXIT
ip link add bridge0 type bridge
ip link set bridge0 up
declare -A holder
add_host() # NUMBER
{
	unshare --net --uts sh -c "hostname web$1; exec sleep 300" &
	pids="$pids $!"
	holder[$1]=$!
	wait_for 10 eval "! [ /proc/$!/ns/net -ef /proc/self/ns/net ]"
	ip link add "port$1" type veth peer name eth0 netns "$!"
	ip link set "port$1" master bridge0 up
	on "$1" sh -c "ip link set lo up; ip link set eth0 up
		ip address add 10.77.0.$1/24 dev eth0"
}
on() # NUMBER COMMAND...
{
	local pid=${holder[$1]}
	shift
	nsenter -t "$pid" --net --uts "$@"
}

# ---- certificates --------------------------------------------------------------------------------

authority()
{
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 \
		-subj /CN=authority -keyout ca.key -out ca.pem
}
certificate() # NUMBER
{
	openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj "/CN=web$1" \
		-keyout "web$1.key" -out "web$1.csr" &&
	openssl x509 -req -in "web$1.csr" -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 \
		-extfile <(echo "subjectAltName=IP:10.77.0.$1") -out "web$1.pem"
}
(umask 077; echo 0123456789abcdef0123 >token; authority; for i in 1 2 3; do certificate $i; done) \
	2>openssl.err

# ---- recorders -----------------------------------------------------------------------------------

record() # NUMBER ADDRESS ARG...
{
	local i=$1 at=$2
	shift 2
	nsenter -t "${holder[$i]}" --net --uts "$RECORDER" collect --store "web$i.db" \
		--log-file "web$i.log" --freq 49 --http "$at" --http-token token --pre-sec 20 \
		--delay-after-trigger-sec 1 --max-cpu-percent 0 --collect-multiple 9 "$@" &
	pids="$pids $!"
}
records() { grep -q 'recording this machine' "web$1.log"; }
peer() { echo "peer+https://10.77.0.$1:9427;CA=ca.pem;Auth=token"; }

for i in 1 2 3 4; do add_host $i; done
touch app.log
record 2 10.77.0.2:9427 --http-cert web2.pem --http-key web2.key
record 3 127.0.0.1:9428
nsenter -t "${holder[3]}" --net python3 "$TOP/tests/support/peer_clock.py" \
	http://127.0.0.1:9428 3 10.77.0.3 9427 web3.pem web3.key >clock.port 2>clock.err &
pids="$pids $!"
wait_for 20 test -s clock.port
record 1 10.77.0.1:9427 --http-cert web1.pem --http-key web1.key \
	--stop-on-event-log-message "$PWD/app.log@boom;Peers=10.77.*" \
	--ship "$(peer 2)" --ship "$(peer 3)" --ship "$(peer 4)"
for i in 1 2 3; do
	if ! wait_for 30 records $i; then
		echo "not ok they_record: $(tail -n 3 web$i.log)"
		exit 1
	fi
done
check they_have_networks_of_their_own eval '! ip address | grep -q 10.77 &&
	! on 4 curl -s -m 2 http://127.0.0.1:9427/'

# ---- one fires -----------------------------------------------------------------------------------

heads() { "$RECORDER" list --store "web$1.db" --json 2>/dev/null; }
has_one() { heads "$1" | jq -se 'map(select(.state == "complete")) | length == 1'; }
sleep 2                                      # some past
echo boom >>app.log
check the_incident_is_stored wait_for 30 has_one 1
check the_second_has_the_same_window wait_for 60 has_one 2
check and_the_third wait_for 60 has_one 3
uuid=$(heads 1 | jq -r .uuid)
for i in 2 3; do
	check "web${i}_is_of_its_group" eval "heads $i | jq -r .reason | grep -qF '[group $uuid]'"
done
remarks() { "$RECORDER" show --store web1.db --id 1 --json 2>/dev/null | jq -r .remarks; }
told() { [ "$(remarks | grep -c 'has the same window')" = 2 ]; }
check the_incident_tells_who_has_it wait_for 30 told
check and_whose_clock_is_ahead eval \
	"remarks | grep -E '10\.77\.0\.3.* (2\.9|3\.0)[0-9]+ s ahead of ours'"

# ---- the three side by side, from the first ------------------------------------------------------

for i in 2 3 4; do echo "ship = $(peer $i)"; done >group.conf
export XDG_CACHE_HOME=$PWD/cache
on 1 "$RECORDER" show --store web1.db --config group.conf --group-id "$uuid" --json >side 2>err
check they_stand_side_by_side \
	[ "$(jq -r 'select(.row == "host").host' side | sort | tr '\n' ' ')" = 'web1 web2 web3 ' ]
check the_one_that_is_down_is_named grep -q 'left out: .*10.77.0.4' err
check no_stranger_is_trusted eval '! on 1 "$RECORDER" list --store \
	"peer+https://10.77.0.2:9427;Auth=token" 2>err && grep -qi certificate err'
