#!/bin/bash
# conf/requests/ with the real servers: one slow request among a thousand fires, with its URL.
# time limit: 400
. "$TOP/tests/support/cli.sh"

for tool in curl python3; do
	if ! command -v $tool >/dev/null; then
		echo "skip requests: $tool is missing"
		exit 0
	fi
done
server=
root=$(mktemp -d)                            # Apache's workers are of another user
chmod 755 "$root"
trap '[ ! "$server" ] || kill $server 2>/dev/null; wait; rm -rf "$root"' EXIT
free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0))
print(s.getsockname()[1])'; }
head -c 3000 /dev/zero | tr '\0' x >"$root/slow.txt"
echo fast >"$root/fast.txt"

# NAME FAST SLOW: the rule of conf/requests/NAME.conf, with the log of this server, NAME.log.
serves()
{
	local name=$1 url=http://127.0.0.1:$port recorder
	check "$name"_answers wait_for 20 curl -sf -o /dev/null "$url/$2"
	sed "s,/var/log/[^@]*@,$PWD/$name.log@," "$TOP/conf/requests/$name.conf" >"$name.rule"
	"$RECORDER" collect --config "$name.rule" --source none --store "$name.db" \
		--history-mb 0 --max-collect-sec 60 --collect-multiple 1 \
		--delay-after-trigger-sec 2 >out 2>"$name.err" & recorder=$!
	wait_for 10 grep -q 'recording ' "$name.err"
	curl -s -o /dev/null "$url/$2[1-500]"
	curl -s -o /dev/null "$url/$3"
	curl -s -o /dev/null "$url/$2[501-1000]"
	wait $recorder
	kill $server
	wait $server 2>/dev/null
	server=
	check "$name"_wrote_a_thousand_lines [ "$(wc -l <"$name.log")" -ge 1000 ]
	check "$name"_one_slow_request_fires [ "$(grep -c 'fired: .* was over' "$name.err")" = 1 ]
	check "$name"_with_its_url grep -q "was over the limit of .*GET /${3/\?/[?]} " "$name.err"
}

nginx=$(command -v nginx || echo "$TOP/build/deps/servers/usr/sbin/nginx")
if "$nginx" -v 2>nginx.version; then
	port=$(free_port)
	cat >nginx.conf <<-END
		daemon off;
		user $(id -un);
		error_log $PWD/nginx.error;
		pid $PWD/nginx.pid;
		events { worker_connections 64; }
		http {
		client_body_temp_path $PWD/body_temp;
		proxy_temp_path $PWD/proxy_temp;
		fastcgi_temp_path $PWD/fastcgi_temp;
		uwsgi_temp_path $PWD/uwsgi_temp;
		scgi_temp_path $PWD/scgi_temp;
		$(sed -n "s,^#\t\(\(log_format\|access_log\) .*\),\1,p" \
			"$TOP/conf/requests/nginx.conf" |
			sed "s,/var/log/nginx/recorder.log,$PWD/nginx.log,")
		server {
			listen 127.0.0.1:$port;
			root $root;
			location /slow.txt { limit_rate 2000; limit_rate_after 10; }
		}
		}
	END
	"$nginx" -c "$PWD/nginx.conf" -p "$PWD" >nginx.out 2>&1 & server=$!
	serves nginx fast.txt? slow.txt
else
	echo "skip nginx: it is not here, or does not run: $(head -1 nginx.version)"
fi

modules=/usr/lib/apache2/modules
if command -v apache2 >/dev/null && [ -e $modules/mod_ratelimit.so ]; then
	port=$(free_port)
	{
		cat <<-END
			ServerRoot $PWD
			ServerName localhost
			Listen 127.0.0.1:$port
			PidFile $PWD/apache.pid
			ErrorLog $PWD/apache.error
			LoadModule mpm_event_module $modules/mod_mpm_event.so
			LoadModule authz_core_module $modules/mod_authz_core.so
			LoadModule env_module $modules/mod_env.so
			LoadModule ratelimit_module $modules/mod_ratelimit.so
			DocumentRoot $root
			User nobody
			Group nogroup
			<Location /slow.txt>
			SetOutputFilter RATE_LIMIT
			SetEnv rate-limit 2
			</Location>
		END
		sed -n "s,^#\t\(\(LogFormat\|CustomLog\) .*\),\1,p" \
			"$TOP/conf/requests/apache.conf" |
			sed "s,/var/log/apache2/recorder.log,$PWD/apache.log,"
	} >apache.conf
	apache2 -X -f "$PWD/apache.conf" >apache.out 2>&1 & server=$!
	serves apache fast.txt? slow.txt
else
	echo "skip apache: it is not installed (apache2-bin)"
fi

if command -v node >/dev/null; then
	port=$(free_port)
	cat >server.js <<-END
		require('node:http').createServer((request, response) => {
			const ms = new URL(request.url, 'http://h').searchParams.get('ms');
			setTimeout(() => response.end('done'), ms);
		}).listen($port, '127.0.0.1');
	END
	NODE_OPTIONS="--require $TOP/conf/requests/node.cjs" RECORDER_REQUESTS=$PWD/node.log \
		timeout 120 node server.js >node.out 2>&1 & server=$!
	serves node '?ms=0&n=' '?ms=700'
else
	echo "skip node: it is not installed"
fi

tomcat=/usr/share/tomcat10
if [ -x $tomcat/bin/catalina.sh ] && command -v java >/dev/null; then
	port=$(free_port)
	mkdir -p base/{conf,logs,temp,work,webapps/ROOT}
	tomcat_pages base/conf/web.xml
	echo '<% Thread.sleep(Integer.parseInt(request.getParameter("ms"))); %>done' \
		>base/webapps/ROOT/wait.jsp
	{
		cat <<-END
			<Server port="-1"><Service name="Catalina">
			<Connector port="$port" address="127.0.0.1" protocol="HTTP/1.1"
			           maxKeepAliveRequests="-1"/>
			<Engine name="Catalina" defaultHost="localhost">
			<Host name="localhost" appBase="webapps" autoDeploy="false">
		END
		sed -n '/^#\t<Valve/,/\/>$/s/^#//p' "$TOP/conf/requests/tomcat.conf" |
			sed "s,directory=\"[^\"]*\",directory=\"$PWD\"," |
			sed 's,prefix="recorder",prefix="tomcat",'
		echo '</Host></Engine></Service></Server>'
	} >base/conf/server.xml
	CATALINA_BASE=$PWD/base CATALINA_HOME=$tomcat $tomcat/bin/catalina.sh run \
		>tomcat.out 2>&1 & server=$!
	wait_for 30 curl -sf -o /dev/null "http://127.0.0.1:$port/wait.jsp?ms=0"
	: >tomcat.log
	serves tomcat 'wait.jsp?ms=0&n=' 'wait.jsp?ms=900'
else
	echo "skip tomcat: it is not installed (tomcat10), or there is no java"
fi

servers=$TOP/build/deps/servers/usr/share
if [ -e "$servers/java/jetty9-start.jar" ] && command -v javac >/dev/null; then
	port=$(free_port)
	mkdir -p jetty_home jetty/{start.d,logs,webapps/ROOT/WEB-INF/classes}
	ln -s "$servers/jetty9/lib" "$servers/jetty9/modules" jetty_home/
	ln -s "$TOP/build/deps/servers/etc/jetty9" jetty_home/etc
	cat >Wait.java <<-'END'
		import javax.servlet.http.*;
		public class Wait extends HttpServlet {
			@Override protected void doGet(HttpServletRequest in,
			                               HttpServletResponse out) {
				try {
					Thread.sleep(Integer.parseInt(in.getParameter("ms")));
					out.getWriter().println("done");
				} catch (Exception e) {
					out.setStatus(500);
				}
			}
		}
	END
	javac -cp "$servers/java/servlet-api.jar" -d jetty/webapps/ROOT/WEB-INF/classes Wait.java
	cat >jetty/webapps/ROOT/WEB-INF/web.xml <<-'END'
		<web-app xmlns="http://xmlns.jcp.org/xml/ns/javaee" version="3.1">
		<servlet><servlet-name>wait</servlet-name>
		<servlet-class>Wait</servlet-class></servlet>
		<servlet-mapping><servlet-name>wait</servlet-name>
		<url-pattern>/wait</url-pattern></servlet-mapping>
		</web-app>
	END
	sed -n 's,^#\t,,p' "$TOP/conf/requests/jetty.conf" >jetty/start.d/recorder.ini
	ln -s jetty/logs/recorder.log jetty.log
	(cd jetty && exec timeout 120 java \
		-cp "$servers/java/jetty9-start.jar:$servers/java/jetty9-util.jar" \
		org.eclipse.jetty.start.Main jetty.home="$OLDPWD/jetty_home" jetty.base="$PWD" \
		--module=http,deploy jetty.http.host=127.0.0.1 "jetty.http.port=$port") \
		>jetty.out 2>&1 & server=$!
	wait_for 30 curl -sf -o /dev/null "http://127.0.0.1:$port/wait?ms=0"
	serves jetty 'wait?ms=0&n=' 'wait?ms=900'
else
	echo "skip jetty: no jetty9 (by 'make deps'), or no JDK"
fi

# Kestrel tells of its requests by itself, so this rule needs no log. The slow one waits for the end
# of its body, while others come and go.
azmcp=$TOP/build/deps/npm/node_modules/@azure/mcp-linux-x64/dist/azmcp
if [ -f "$azmcp" ] && mkfifo body && cp "$azmcp" azmcp && chmod +x azmcp; then
	port=$(free_port)
	url=http://127.0.0.1:$port
	ASPNETCORE_URLS=$url timeout 120 ./azmcp server start --transport http \
		--dangerously-disable-http-incoming-auth >azmcp.out 2>&1 & server=$!
	check kestrel_answers wait_for 60 curl -s -o /dev/null "$url/fast"
	"$RECORDER" collect --config "$TOP/conf/requests/aspnetcore.conf" \
		--providers '*Microsoft.AspNetCore.Hosting' --max-cpu-percent 0 \
		--process azmcp --store kestrel.db --max-collect-sec 60 --collect-multiple 1 \
		--delay-after-trigger-sec 2 >out 2>kestrel.err & recorder=$!
	wait_for 10 grep -q 'recording ' kestrel.err
	wait_for 60 dotnet_tells "$(pgrep -P $server)"
	curl -s -o /dev/null "$url/fast[1-500]"
	curl -s -o /dev/null -X POST -T - -H 'Content-Type: application/json' \
		-H 'Accept: application/json, text/event-stream' "$url/" <body & slow=$!
	{
		printf '{"jsonrpc":"2.0",' >&3
		curl -s -o /dev/null "$url/fast[501-1000]"
		sleep 1
		printf '"id":1,"method":"ping"}' >&3
	} 3>body
	wait $slow $recorder
	kill $server
	wait $server 2>/dev/null
	server=
	check kestrel_one_slow_request_fires [ "$(grep -c 'fired: ' kestrel.err)" = 1 ]
	check kestrel_with_its_url grep -qE 'fired: request POST / of azmcp \(pid [0-9]+\)' \
		kestrel.err
	"$RECORDER" export --store kestrel.db --format jsonl -o kestrel.events 2>err
	# Requests that overlap are told apart: each activity starts once and stops once.
	check kestrel_requests_have_activities jq -n -e '[inputs | select(.provider? ==
		"Microsoft.AspNetCore.Hosting" and .name == "Request/Start") |
		.payload.ActivityID] | length > 100 and length == (unique | length)' kestrel.events
	check kestrel_lost_no_event_and_no_name grep -q ' 0 lost, ' kestrel.err
	check kestrel_methods_have_names jq -n -e '[inputs | select(.provider? ==
		"Microsoft.AspNetCore.Hosting") | .stack[]] |
		length > 1000 and all(. != "?!?")' kestrel.events
else
	echo "skip kestrel: no @azure/mcp-linux-x64 (npm, by 'make deps')"
fi

# A Go server of HTTP/1 and HTTP/2: probes at the start of a request and where net/http ends it.
if command -v go >/dev/null && [ -e /sys/bus/event_source/devices/uprobe/type ]; then
	port=$(free_port)
	tls=$(free_port)
	cat >shop.go <<-END
		package main
		import ("fmt"; "net/http"; "strconv"; "time")
		func main() {
			http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
				ms, _ := strconv.Atoi(r.URL.Query().Get("ms"))
				time.Sleep(time.Duration(ms) * time.Millisecond)
				fmt.Fprintln(w, "done")
			})
			go http.ListenAndServeTLS("127.0.0.1:$tls", "cert.pem", "key.pem", nil)
			http.ListenAndServe("127.0.0.1:$port", nil)
		}
	END
	openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 1 \
		-subj /CN=localhost >/dev/null 2>&1
	HOME=$PWD GOFLAGS=-mod=mod GO111MODULE=off go build -o shop shop.go >go.out 2>&1
	./shop >shop.out 2>&1 & server=$!
	check go_answers wait_for 20 curl -skf -o /dev/null "https://127.0.0.1:$tls/"
	sed "s,/usr/local/bin/server,$PWD/shop," "$TOP/conf/requests/go.conf" >go.rule
	"$RECORDER" collect --config go.rule --source perf --max-cpu-percent 0 --store go.db \
		--max-collect-sec 60 --collect-multiple 2 --delay-after-trigger-sec 2 \
		>out 2>go.err & recorder=$!
	wait_for 20 grep -q 'recording this' go.err
	for to in "http://127.0.0.1:$port" "https://127.0.0.1:$tls"; do
		curl -sk -o /dev/null "$to/?n=[1-100]"
		curl -sk -o /dev/null "$to/pay?ms=1500" & slow=$!
		curl -sk -o /dev/null "$to/?n=[101-300]"
		wait $slow
		sleep 3                      # the incident's window, in which no rule fires
	done
	wait $recorder
	kill $server
	wait $server 2>/dev/null
	server=
	check go_slow_requests_fire_with_their_urls [ "$(grep -c \
		'fired: .*ServeHTTP GET /pay[?]ms=1500 of shop (pid .* over its' go.err)" = 2 ]
	check go_no_other_request_fires [ "$(grep -c 'fired: ' go.err)" = 2 ]
	check a_probe_at_a_return_of_go_is_refused eval '! "$RECORDER" check --stop-on-etw-event \
		"uprobe:$PWD/shop:net/http.serverHandler.ServeHTTP;TriggerMSec=500" 2>err >&2 &&
		grep -q "shop is a Go program: a probe at a function.s return would crash it" err'

	# A Go program with C in it, linked by the system's linker, at any address.
	cat >mixed.go <<-'END'
		package main
		// int __attribute__((noinline)) in_c(int a, int b) { return a * 3 + b; }
		import "C"
		import "time"
		//go:noinline
		func inGo(a, b int) int { return a * 7 + b }
		func main() {
			for s := 0; ; time.Sleep(20 * time.Millisecond) {
				s += inGo(11, 22) + int(C.in_c(33, 44))
			}
		}
	END
	HOME=$PWD GO111MODULE=off go build -buildmode=pie -o mixed mixed.go >>go.out 2>&1
	refuses()
	{
		! "$RECORDER" check --stop-on-etw-event "uprobe:$PWD/mixed:$1" 2>err >&2 &&
			grep -q "$2" err
	}
	check returns_of_go_at_any_address_are_refused refuses main.inGo%return \
		"mixed is a Go program: a probe at a function.s return would crash it"
	check arguments_on_a_go_stack_are_not_guessed \
		refuses "main._Cfunc_*;FieldFilter=Arg1=33" "has no field .Arg1.; it has none"
	./mixed & server=$!
	timeout 30 "$RECORDER" collect --store mixed.db --max-cpu-percent 0 --collect-multiple 3 \
		--stop-on-etw-event "uprobe:$PWD/mixed:main.inGo;FieldFilter=Arg1=11" \
		--stop-on-etw-event "uprobe:$PWD/mixed:in_c;FieldFilter=Arg2=44" \
		--stop-on-etw-event "uprobe:$PWD/mixed:in_c%return;FieldFilter=Ret=143" \
		--delay-after-trigger-sec 0 --min-interval-sec 60 2>mixed.err
	check arguments_are_those_of_go_and_of_c [ "$(grep -oE \
		'fired: .*mixed:(main.inGo|in_c|in_c%return) ' mixed.err | sort -u | wc -l)" = 3 ]
	kill -0 $server && kill $server
	wait $server 2>/dev/null
	server=
else
	echo "skip go: no compiler (golang-go), or no probes in programs here"
fi
