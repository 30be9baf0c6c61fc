"""Threads that stand still in many ways; on SIGUSR1 says where each is, innermost first."""
import functools
import os
import sys
import threading
import time

event = threading.Event()
lock = threading.Lock()


def rests():
    time.sleep(600)


def waits():
    event.wait(600)


def locks():
    with lock:
        pass


def down(depth):
    return down(depth - 1) if depth else rests()


class Shop(object):
    def order(self):
        self.pay()

    @classmethod
    def checkout(cls):
        cls().order()

    def pay(self):
        rests()

    def __lt__(self, other):
        rests()
        return True

    def __call__(self):
        rests()


def yields():
    yield 1
    rests()
    yield 2


def generator():
    for _ in yields():
        pass


def outer():
    def inner():
        return [rests() for _ in range(2)]
    return inner()


def compares():
    sorted([Shop(), Shop()])


def reduces():
    functools.reduce(lambda a, b: rests(), [1, 2, 3])


def evaluates():
    eval("rests()")


def raises():
    try:
        raise ValueError("no stock")
    except ValueError:
        rests()


kinds = [rests, waits, locks, lambda: down(3), lambda: down(40), Shop.checkout, Shop(), generator,
         outer, compares, reduces, evaluates, raises, lambda: list(map(lambda x: waits(), [1]))]


def by_itself(number, frame):
    """As faulthandler, which Python 2 lacks."""
    for one in sys._current_frames().values():
        sys.stderr.write("\nThread\n")
        one = frame if one.f_code is by_itself.__code__ else one
        while one:
            code = one.f_code
            sys.stderr.write('  File "%s", line %d in %s\n'
                             % (code.co_filename, one.f_lineno, code.co_name))
            one = one.f_back
    sys.stderr.flush()


def main():
    import signal
    lock.acquire()
    try:
        import faulthandler
        faulthandler.register(signal.SIGUSR1, all_threads=True)
    except ImportError:
        signal.signal(signal.SIGUSR1, by_itself)
    for kind in kinds:
        thread = threading.Thread(target=kind)
        thread.daemon = True
        thread.start()
    time.sleep(0.5)
    sys.stdout.write("ready %d\n" % os.getpid())
    sys.stdout.flush()
    for _ in range(600):
        time.sleep(1)


main()
