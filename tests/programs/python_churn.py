# Python 2.7 and 3: makes and drops functions all the time, for SECONDS of CPU time. All names of
# a generation, of the file, the class and both functions, have its number. So a stack in which two
# numbers are seen has a wrong name. Every other generation lives for some 100 ms, so that there is
# time to read its names; the places of the others are used again at once.
import sys
import time

cpu = getattr(time, "process_time", None) or time.clock
text = """
class Made_%(k)d(object):
    def inner_%(k)d(self, n):
        total = 0
        for i in range(n):
            total += i * i
        return total
def outer_%(k)d(n):
    made = Made_%(k)d()
    return sum(made.inner_%(k)d(n) for _ in range(3))
"""


def main(seconds):
    k = 0
    kept = []
    while cpu() < seconds:
        k += 1
        names = {}
        exec(compile(text % {"k": k}, "<file_%d>" % k, "exec"), names)
        names["outer_%d" % k](200 + k % 7 * 100)
        if k % 2:
            kept.append(names)
        if len(kept) > 400:
            del kept[:200]


main(float(sys.argv[1]))
