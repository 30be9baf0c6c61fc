"""A Flask server under load, with worker processes and coroutines, as they run in production.

python_server.py SECONDS [alone|django]: prints how many requests were answered, and the CPU time of
the server in microseconds for each. Clients are a process of their own. alone: without workers and
coroutines. django: the same by Django.
"""
import asyncio
import concurrent.futures
import http.client
import json
import multiprocessing
import re
import sys
import threading
import time

if sys.argv[2:] != ["django"]:
    from flask import Flask, jsonify, render_template_string, request
    app = Flask(__name__)
PAGE = "{% for row in rows %}<li>{{ row.name|upper }} {{ row.price }}</li>{% endfor %}"
WORD = re.compile(r"(\w+)-(\d+)")


def price(name):
    return sum(ord(c) * i for i, c in enumerate(name)) % 997


def rows(n):
    return [{"name": "item-%d" % i, "price": price("item-%d" % i)} for i in range(n)]


def page():
    return render_template_string(PAGE, rows=rows(40))


def find():
    found = [WORD.sub(lambda m: m.group(2), row["name"]) for row in rows(60)]
    return sorted(found, key=lambda name: price(name))


def search():
    return jsonify(found=find(), q=request.args.get("q"))


def django_page(request):
    from django import http, template
    return http.HttpResponse(template.Template(PAGE).render(template.Context({"rows": rows(40)})))


def django_search(request):
    from django import http
    return http.JsonResponse({"found": find(), "q": request.GET.get("q")})


def application(django):
    if not django:
        app.route("/page")(page)
        app.route("/search")(search)
        return app
    from django import conf, urls
    from django.core import wsgi
    conf.settings.configure(ROOT_URLCONF=__name__, ALLOWED_HOSTS=["*"], SECRET_KEY="of a test",
                            TEMPLATES=[{"BACKEND": "django.template.backends.django."
                                                   "DjangoTemplates"}])
    globals()["urlpatterns"] = [urls.path("page", django_page), urls.path("search", django_search)]
    return wsgi.get_wsgi_application()


def task(n):
    """Of a pool of workers."""
    return len(json.dumps(json.loads(json.dumps(rows(n)))))


async def step(n):
    await asyncio.sleep(0)
    return price("step-%d" % n)


async def gather(until):
    while time.time() < until:
        await asyncio.gather(*(step(n) for n in range(50)))


def client(port, until, answered):
    connection = http.client.HTTPConnection("127.0.0.1", port)
    while time.time() < until:
        for path in "/page", "/search?q=1":
            connection.request("GET", path)
            connection.getresponse().read()
            with answered.get_lock():
                answered.value += 1


def clients(port, until, answered):
    threads = [threading.Thread(target=client, args=(port, until, answered)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def main(seconds, how):
    from werkzeug.serving import WSGIRequestHandler, make_server
    WSGIRequestHandler.protocol_version = "HTTP/1.1"
    WSGIRequestHandler.log = lambda *_: None
    context = multiprocessing.get_context("fork")
    answered = context.Value("i", 0)
    server = make_server("127.0.0.1", 0, application(how == "django"), threaded=True)
    begun = time.process_time()
    until = time.time() + seconds
    load = context.Process(target=clients, args=(server.server_port, until, answered))
    load.start()
    serving = threading.Thread(target=server.serve_forever, daemon=True)
    if not how:
        # Before there are threads: a child inherits the locks that they hold.
        pool = concurrent.futures.ProcessPoolExecutor(2, mp_context=context)
        list(pool.map(task, [1] * 4))
        loop = threading.Thread(target=lambda: asyncio.run(gather(until)))
        loop.start()
        serving.start()
        while time.time() < until:
            list(pool.map(task, [60] * 8))
        loop.join()
        pool.shutdown()
    else:
        serving.start()
    load.join()
    print("%d requests, %.0f us each" % (answered.value,
                                         1e6 * (time.process_time() - begun) /
                                         max(answered.value, 1)))
    sys.stdout.flush()


main(float(sys.argv[1]), "".join(sys.argv[2:3]))
