#!/usr/bin/python3
"""faulty.py HOW is a control unit that fails after 0.2 s."""

import os
import random
import subprocess
import sys
import time

import lockstep

SECOND = 1_000_000_000


def main(how):
    print(f"{how} on CPUs {sorted(os.sched_getaffinity(0))}", flush=True)
    unit = lockstep.ControlUnit()
    unit.wait(SECOND // 5)
    if how == "exit":
        print("the pump is dry", file=sys.stderr, flush=True)
        sys.exit(3)
    if how == "crash":
        os.kill(os.getpid(), 11)
    if how == "exception":
        raise RuntimeError("no oil")
    if how == "hang":
        time.sleep(10_000)
    if how == "garbage":
        os.write(unit.fileno(), b"lorem ipsum")
    if how == "child":
        print("child", subprocess.Popen(["/bin/sleep", "1000"]).pid, flush=True)
    while True:  # 10 ms as every control unit
        due = unit.now + SECOND // 100
        unit.wait(due)
        if how == "sluggish":
            time.sleep(random.random() / 100)
        unit.send(lockstep.Frame(0x110, bytes(8)))


main(sys.argv[1])
