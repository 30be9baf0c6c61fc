"""Make a long .nettrace file of a short one: nettrace_repeat.py FROM TO MEGABYTES

Its blocks of events and stacks come again and again, each time later by the file's length; what
describes the kinds of events stands there once. Layout: recorder/source/dotnet/nettrace.c.
"""
import struct
import sys


def skip_varint(data, at):
    while data[at] & 0x80:
        at += 1
    return at + 1


def read_varint(data, at):
    value, shift = 0, 0
    while True:
        value |= (data[at] & 0x7f) << shift
        shift += 7
        at += 1
        if not data[at - 1] & 0x80:
            return value, at


def varint(value):
    out = bytearray()
    while value > 0x7f:
        out.append(value & 0x7f | 0x80)
        value >>= 7
    return bytes(out) + bytes([value])


def objects(data):
    """(its head, name, body) of each; the first one begins behind "Nettrace" and a text."""
    at = 12 + struct.unpack_from("<i", data, 8)[0]
    while data[at] == 5:
        begin, length = at, struct.unpack_from("<i", data, at + 11)[0]
        name = data[at + 15:at + 15 + length]
        at += 16 + length
        head, size = data[begin:at], 48
        if name != b"Trace":
            size = struct.unpack_from("<i", data, at)[0]
            at = at + 4 + 3 & ~3
        yield head, name, data[at:at + size]
        at += size + 1


def later(body, ticks):
    """A block of events: its two times, and the first event's, from which the others count."""
    first, last = struct.unpack_from("<qq", body, 4)
    at = struct.unpack_from("<h", body, 0)[0]
    flags = body[at]
    at += 1
    for _ in range((flags & 1) + 3 * (flags >> 1 & 1) + (flags >> 2 & 1) + (flags >> 3 & 1)):
        at = skip_varint(body, at)
    time, end = read_varint(body, at)
    return (body[:4] + struct.pack("<qq", first + ticks, last + ticks) + body[20:at]
            + varint(time + ticks) + body[end:])


def main():
    with open(sys.argv[1], "rb") as file:
        data = file.read()
    parts = list(objects(data))
    times = [struct.unpack_from("<qq", body, 4) for _, name, body in parts if name == b"EventBlock"]
    span = max(last for _, last in times) - min(first for first, _ in times) + 1
    out = bytearray(data[:12 + struct.unpack_from("<i", data, 8)[0]])
    rounds = 0
    while len(out) < float(sys.argv[3]) * 1e6:
        for head, name, body in parts:
            if rounds and name not in (b"EventBlock", b"StackBlock"):
                continue
            out += head
            if name == b"EventBlock":
                body = later(body, rounds * span)
            if name != b"Trace":
                out += struct.pack("<i", len(body))
                out += bytes(-len(out) % 4)
            out += body + b"\6"
        rounds += 1
    with open(sys.argv[2], "wb") as file:
        file.write(out + b"\1")


if __name__ == "__main__":
    main()
