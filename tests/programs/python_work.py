# Python 2.7 and 3: functions that burn CPU, called in many ways. Each one notes once by which
# functions it is called, as the interpreter says (sys._getframe), and always how much CPU it used.
# At the end each leaf is a line: its share of the CPU time, its callers, root first.
#
#	python python_work.py SECONDS         of CPU time
import functools
import json
import random
import re
import sys
import threading
import time

cpu = getattr(time, "process_time", None) or time.clock
used, chains = {}, {}


def module_of(frame):
    name = frame.f_globals["__name__"]
    return "python_work" if name == "__main__" else name


def function_of(code):
    return getattr(code, "co_qualname", code.co_name)


def note(frame, name, seconds):
    used[name] = used.get(name, 0) + seconds
    if name in chains:
        return
    chain = []
    while frame:
        chain.append(module_of(frame) + "." + function_of(frame.f_code))
        frame = frame.f_back
    chains[name] = ";".join(reversed(chain))


def leaf(name, n):
    exec(compile("""def %s(n):
    begin = cpu()
    total = 0
    for i in range(n):
        total += i * i %% 7
    note(sys._getframe(), "%s", cpu() - begin)
    return total
""" % (name, name), __file__, "exec"), globals())
    # Never in step with the sampling.
    return lambda: globals()[name](int(n * (0.5 + random.random())))


plain, key, sub, gen, comp, body, late, thread, decoded, native, method = [
    leaf("leaf_" + name, n)
    for name, n in [("plain", 20000), ("key", 2000), ("sub", 3000), ("gen", 4000),
                    ("comp", 2500), ("body", 9000), ("late", 12000), ("thread", 15000),
                    ("json", 5000), ("native", 3000), ("method", 8000)]]


class Deep(object):
    def down(self, depth):
        return self.down(depth - 1) if depth else method()

    def __del__(self):
        pass


def numbers(n):
    for i in range(n):
        yield gen() + i


def raised():
    try:
        raise ValueError("as it should be")
    except ValueError:
        late()


def in_thread():
    thread()


def in_body():
    class Made(object):
        value = body()
    return Made


def all_ways():
    plain()
    sorted([3, 1, 2], key=lambda v: key() and v)
    re.sub("a", lambda m: str(sub()), "banana")
    sum(numbers(3))
    [comp() for _ in range(4)]
    in_body()
    raised()
    json.loads('{"a": 1, "b": {"c": 2}}', object_hook=lambda d: decoded())
    functools.reduce(lambda a, b: a + native(), range(4))
    Deep().down(30)
    t = threading.Thread(target=in_thread)
    t.start()
    t.join()


def main(seconds):
    while cpu() < seconds:
        all_ways()
    total = sum(used.values())
    for name in sorted(used):
        print("%s %.3f %s" % (name, 100 * used[name] / total, chains[name]))


main(float(sys.argv[1]))
