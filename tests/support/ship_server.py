"""A server that incidents are sent to: ship_server.py FOLDER; prints its port. It listens to the
Unix socket FOLDER/socket as well.

What comes whole is a file of FOLDER; a name that comes again must have the same uuid. By the path:
/ok/ takes everything; /half/ says 503 to each second request; /chaos/ cuts, refuses for now, hangs, or takes it without an answer, as FATE
says, one letter a request, and then everything; /no/ refuses for good; /later/ is down while
FOLDER/down exists; /signed/ looks at signatures of S3. log has a line for each request.
"""
import hashlib
import hmac
import http.server
import os
import random
import re
import socketserver
import sys
import threading
import time

folder = sys.argv[1]
fate = list(os.environ.get('FATE', ''))
chance = random.Random(int(os.environ.get('SEED', '25')))
lock = threading.Lock()


class Server(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    profiles = 0
    asked = 0

    def log(self, what):
        with lock, open(folder + '/log', 'a') as log:
            log.write('%s %s %s\n' % (what, self.command, self.path))

    def answer(self, status, text='', **headers):
        self.log(status)
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace('_', '-'), value)
        self.send_header('Content-Length', str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def cut(self, length):
        self.rfile.read(chance.randrange(length + 1))
        self.close_connection = True

    def keep(self, body):
        if hashlib.sha256(body).hexdigest() != self.headers['X-Content-SHA256']:
            self.log('broken')
        name = self.headers['X-Recorder-Name'].replace('/', '+')
        with lock:
            path = folder + '/' + name
            if os.path.exists(path):
                with open(folder + '/again', 'a') as again:
                    again.write(name + '\n')
            with open(path + '.tmp', 'wb') as file:
                file.write(body)
            os.rename(path + '.tmp', path)
            with open(folder + '/order', 'a') as order:
                order.write(name + '\n')

    # A profile has no name: what follows the path's first part, and a number.
    def keep_profile(self, body):
        with lock:
            Server.profiles += 1
            name = self.path.split('/', 2)[2].partition('?')[0].replace('/', '+')
            path = '%s/profile-%03d-%s' % (folder, Server.profiles, name)
        with open(path, 'wb') as file:
            file.write(body)
        with open(path + '.head', 'w') as file:
            file.write('%s\n%s' % (self.path, self.headers))

    # Signature Version 4, with the secret s3cr3t.
    def sign(self, body):
        credential, names = re.search('Credential=([^,]*), SignedHeaders=([^,]*)',
                                      self.headers['Authorization']).groups()
        scope = credential.split('/', 1)[1]
        path, _, query = self.path.partition('?')
        text = '\n'.join([self.command, path, query] +
                         ['%s:%s' % (name, self.headers[name]) for name in names.split(';')] +
                         ['', names, hashlib.sha256(body).hexdigest()])
        text = '\n'.join(['AWS4-HMAC-SHA256', self.headers['x-amz-date'], scope,
                          hashlib.sha256(text.encode()).hexdigest()])
        key = b'AWS4s3cr3t'
        for part in scope.split('/') + [text]:
            key = hmac.new(key, part.encode(), hashlib.sha256).digest()
        return 'Signature=' + key.hex()

    def do_PUT(self):
        length = int(self.headers['Content-Length'])
        where = self.path.split('/')[1]
        do = ''
        with lock:
            if where == 'chaos' and fate:
                do = fate.pop(0)
        with open(folder + '/auth-' + where, 'w') as seen:
            seen.write(self.headers.get('Authorization', 'none') + '\n')
        if do == 'c':
            self.log('cut')
            return self.cut(length)
        if do == 'h':
            self.log('hang')
            time.sleep(4)
            return self.cut(length)
        body = self.rfile.read(length)
        if len(body) < length:
            return self.log('short')
        if do == 'r':
            return self.answer(429, 'slow down\n', Retry_After='1')
        if do == '5':
            return self.answer(503, 'not now\n')
        if where == 'signed':
            ours = self.sign(body)
            return self.answer(200) if ours in self.headers['Authorization'] else self.answer(
                403, '<Error><Code>SignatureDoesNotMatch</Code></Error>')
        if where == 'no':
            return self.answer(400, 'these bytes are of no use\nsecond line\n')
        if where == 'later' and os.path.exists(folder + '/down'):
            return self.answer(503, 'down\n')
        if where == 'partial':
            return self.answer(200, '\x0a\x0b\x08\x02\x12\x07too old')
        if where == 'secret' and self.headers.get('Authorization') != 'Bearer t0ps3cret':
            return self.answer(401, 'who are you?\n')
        if where == 'half':
            Server.asked += 1
            if Server.asked % 2:
                return self.answer(503, 'every second time\n')
        if 'X-Recorder-Name' in self.headers:
            self.keep(body)
        else:
            self.keep_profile(body)
        if do == 't':
            self.log('taken')
            self.close_connection = True
            return
        self.answer(200)

    do_POST = do_PUT

    def log_message(self, *words):
        pass


class Threads(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True


class Socket(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True


threading.Thread(target=Socket(folder + '/socket', Server).serve_forever, daemon=True).start()
server = Threads(('127.0.0.1', 0), Server)
print(server.server_address[1], flush=True)
server.serve_forever()
