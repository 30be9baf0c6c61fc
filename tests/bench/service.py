"""make bench-service: what a service pays while the machine is recorded at 99 Hz.

    service.py RECORDER [ROUNDS [REQUESTS]]        (40 rounds, 1000 requests)

CPU time of the server's process for so many requests, without and with a recorder, by turns: other
load adds 4 to 12 % to wall time, and hides what is asked. The server has the first CPU, its client
the last one. Of each round the difference in per cent; printed are the median of the differences
and its 95 % interval (ranks of the binomial distribution; no shape is assumed). Goal: 0.5 %.

Servers: Flask and Django (of /usr/bin/python3 where it has them), node. Skipped aloud otherwise.
"""
import http.client
import math
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

PYTHON = """
import sys
from werkzeug.serving import WSGIRequestHandler, make_server
rows = [{"name": "item-%d" % i, "price": i * 7919 % 997} for i in range(40)]
PAGE = "{% for row in rows %}<li>{{ row.name|upper }} {{ row.price }}</li>{% endfor %}"
if sys.argv[1] == "Flask":
    from flask import Flask, render_template_string
    app = Flask("service")
    app.route("/")(lambda: render_template_string(PAGE, rows=rows))
else:
    from django import conf, http, template, urls
    from django.core import wsgi
    conf.settings.configure(ROOT_URLCONF="__main__", ALLOWED_HOSTS=["*"], SECRET_KEY="of a bench",
                            TEMPLATES=[{"BACKEND":
                                        "django.template.backends.django.DjangoTemplates"}])
    def page(request):
        return http.HttpResponse(template.Template(PAGE).render(template.Context({"rows": rows})))
    urlpatterns = [urls.path("", page)]
    app = wsgi.get_wsgi_application()
WSGIRequestHandler.protocol_version = "HTTP/1.1"
WSGIRequestHandler.log = lambda *_: None
server = make_server("127.0.0.1", 0, app, threaded=True)
print(server.server_port, flush=True)
server.serve_forever()
"""
NODE = """
const rows = Array.from({ length: 400 }, (_, i) => ({ name: 'item-' + i, price: i * 7919 % 997 }));
const page = () => JSON.stringify(rows.filter((r) => r.price % 3).sort((a, b) => a.price - b.price)
	.map((r) => `<li>${r.name.toUpperCase()} ${r.price}</li>`));
const server = require('http').createServer((_, response) => response.end(page()));
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
"""


def cpu_s(pid):
    """Of all threads, those that have ended too: clock_getcpuclockid(3)."""
    return time.clock_gettime((~pid << 3) | 2)


def start_recorder(recorder, folder):
    log = open(os.path.join(folder, "log"), "wb")
    every = range(os.cpu_count())            # not only the client's
    process = subprocess.Popen([recorder, "collect", "--store", os.path.join(folder, "s.db"),
                                "--history-mb", "0", "--freq", "99", "--max-cpu-percent", "0"],
                               stdout=log, stderr=log,
                               preexec_fn=lambda: os.sched_setaffinity(0, every))
    while b"recording" not in open(log.name, "rb").read():
        if process.poll() is not None:
            sys.exit("service: the recorder ended: " + open(log.name).read()[-400:])
        time.sleep(0.05)
    time.sleep(1)                            # what it reads at the start
    return process


class Service:
    def __init__(self, name, command):
        first = min(os.sched_getaffinity(0))
        self.name = name
        self.server = subprocess.Popen(command, stdout=subprocess.PIPE,
                                       preexec_fn=lambda: os.sched_setaffinity(0, {first}))
        self.port = int(self.server.stdout.readline())
        self.connection = http.client.HTTPConnection("127.0.0.1", self.port)

    def takes(self, requests):
        before = cpu_s(self.server.pid)
        for _ in range(requests):
            self.connection.request("GET", "/")
            self.connection.getresponse().read()
        return (cpu_s(self.server.pid) - before) / requests

    def end(self):
        self.server.terminate()
        self.server.wait()


def measure(service, recorder, folder, rounds, requests):
    """Both in either order: what drifts goes out."""
    plain, added = [], []
    service.takes(3 * requests)              # it compiles, and fills its caches
    for i in range(rounds):
        took = {}
        for recorded in (False, True) if i % 2 else (True, False):
            process = start_recorder(recorder, folder) if recorded else None
            took[recorded] = service.takes(requests)
            if process:
                process.send_signal(signal.SIGKILL)
                process.wait()
        plain.append(took[False])
        added.append(100 * (took[True] / took[False] - 1))
    added.sort()
    rank = max(0, math.floor(rounds / 2 - 0.98 * math.sqrt(rounds)))
    low, high = added[rank], added[-1 - rank]
    middle = (added[(rounds - 1) // 2] + added[rounds // 2]) / 2
    print("%-8s %7.1f us of CPU a request, recorded %+.2f %% (95 %%: %+.2f to %+.2f; %d rounds of "
          "%d requests; goal 0.5: %s)" %
          (service.name, 1e6 * sorted(plain)[rounds // 2], middle, low, high, rounds, requests,
           "holds" if high <= 0.5 else "MISSED" if low > 0.5 else "not decided"), flush=True)


def services():
    python = "/usr/bin/python3"
    for name in "Flask", "Django":
        if subprocess.call([python, "-c", "import werkzeug, %s" % name.lower()],
                           stderr=subprocess.DEVNULL) == 0:
            yield name, [python, "-c", PYTHON, name]
        else:
            print("skip %s: not here (apt-get install python3-%s)" % (name, name.lower()))
    if shutil.which("node"):
        yield "node", ["node", "-e", NODE]
    else:
        print("skip node: not here")


def main(recorder, rounds=40, requests=1000):
    every = os.sched_getaffinity(0)
    with tempfile.TemporaryDirectory() as folder:
        for name, command in services():
            os.sched_setaffinity(0, every)
            service = Service(name, command)
            os.sched_setaffinity(0, {max(every)})
            try:
                measure(service, recorder, folder, rounds, requests)
            finally:
                service.end()


main(sys.argv[1], *map(int, sys.argv[2:4]))
