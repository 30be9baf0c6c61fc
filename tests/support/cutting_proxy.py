"""A line between a client and a server that breaks: cutting_proxy.py PORT MOST; prints its own port.

Each connection to 127.0.0.1:PORT lasts for a random number of bytes, up to MOST, of both directions
together; then both ends are reset, in the middle of whatever it was. Its standard error has a line
for each cut.
"""
import random
import socket
import struct
import sys
import threading

port, most = int(sys.argv[1]), int(sys.argv[2])
chance = random.Random(25)


def reset(*ends):
    for end in ends:
        try:
            end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
            end.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        end.close()


def carry(left, source, to, other):
    try:
        while True:
            data = source.recv(65536)
            if not data:
                break
            left[0] -= len(data)
            if left[0] < 0:
                to.sendall(data[:left[0]])
                print('cut', file=sys.stderr, flush=True)
                break
            to.sendall(data)
    except OSError:
        pass
    reset(*other)


listener = socket.create_server(('127.0.0.1', 0), backlog=128)
print(listener.getsockname()[1], flush=True)
while True:
    client = listener.accept()[0]
    try:
        server = socket.create_connection(('127.0.0.1', port))
    except OSError:
        reset(client)
        continue
    budget = [chance.randrange(most)]
    for source, to in ((client, server), (server, client)):
        threading.Thread(target=carry, args=(budget, source, to, (client, server)),
                         daemon=True).start()
