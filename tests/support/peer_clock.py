"""A recorder whose clock is SECONDS ahead: peer_clock.py URL SECONDS stands before the one at URL, on
a port that it prints. It adds them to what /clock says, and takes them off moments that are sent.
With ADDRESS PORT CERTIFICATE KEY behind them it answers there, over TLS.
"""
import http.server
import json
import socketserver
import ssl
import sys
import urllib.error
import urllib.request

url, ahead_s = sys.argv[1], float(sys.argv[2])


class Clock(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def log_message(self, *args):
        pass

    def pass_on(self, body):
        request = urllib.request.Request(url + self.path, body)
        request.add_header('Authorization', self.headers.get('Authorization', ''))
        try:
            with urllib.request.urlopen(request) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()

    def answer(self, status, body):
        self.send_response(status)
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        status, body = self.pass_on(None)
        if status == 200 and self.path == '/clock':
            clock = json.loads(body)
            clock['wall_ns'] += int(ahead_s * 1e9)
            body = json.dumps(clock).encode()
        self.answer(status, body)

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers['Content-Length'])))
        for key in 'from', 'at', 'to':
            asked[key] = '@%.6f' % (float(asked[key][1:]) - ahead_s)
        self.answer(*self.pass_on(json.dumps(asked).encode()))


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True


address, port, *tls = sys.argv[3:] or ('127.0.0.1', 0)
server = Server((address, int(port)), Clock)
if tls:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*tls)
    server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_port, flush=True)
server.serve_forever()
