"""One thread holds the lock of all threads, another one waits for it and says for how long.

python_gil.py computes|sleeps SECONDS: how it is held. Prints the tids and the seconds of waiting.
"""
import ctypes
import sys
import threading
import time

SYS_gettid = 186
seconds = float(sys.argv[2])
c = ctypes.PyDLL(None)                       # its functions are called with the lock
clock = getattr(time, "monotonic", time.time)
end = clock() + seconds
said = {}


def computes():
    said["holder"] = c.syscall(SYS_gettid)
    while clock() < end:
        for i in range(2000):
            hash(i)


def sleeps():
    said["holder"] = c.syscall(SYS_gettid)
    while clock() < end:
        c.usleep(300000)
        time.sleep(0.02)


def waits():
    said["waiter"] = c.syscall(SYS_gettid)
    waited = 0.0
    while clock() < end:
        at = clock()
        time.sleep(0.001)                    # gives the lock away, and takes it again
        waited += clock() - at - 0.001
    said["waited"] = waited


def main():
    threads = [threading.Thread(target=globals()[sys.argv[1]]), threading.Thread(target=waits)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print("%(holder)d %(waiter)d %(waited).3f" % said)


main()
