#!/usr/bin/python3
"""protected.py BUS is a control unit on python3-can with the checksums of
python3-crccheck: it shares no code with lockstep.

It sends TCU (0x110) in AUTOSAR profile 2 every 10 ms, 600 times, with faults in
known frames. It checks the frames of the bench: Wheels (0x200) in profile 2 and
Motion (0x300, CAN FD, 24 bytes) in profile 5. It prints its counts as one JSON object.
"""

import json
import socket
import sys
import time

import can
from crccheck import crc

SO_RCVBUFFORCE = 33  # asm-generic/socket.h; python has no name for it
IDS2 = [7, 42, 99, 1, 200, 17, 33, 64, 5, 91, 120, 250, 3, 77, 18, 155]
ID5 = 0x1234


def crc2(data, counter):
    return crc.Crc8Autosar.calc(data[1:] + bytes((IDS2[counter],)))


def crc5(data):
    return crc.Crc16Ibm3740.calc(data[2:] + bytes((ID5 & 255, ID5 >> 8)))


def main():
    bus = can.Bus(sys.argv[1], bustype="socketcan", fd=True)
    # A large buffer keeps frames while the lab stalls.
    bus.socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 8 << 20)
    print("ready", flush=True)
    seen = {"wheels": 0, "motion": 0, "wrong": 0, "jumps": 0, "flags": 0}
    last, sent = {}, {"wrong": 0, "repeated": 0, "lost": 0, "good": 0}

    def check(m):
        data = bytes(m.data)
        if m.arbitration_id == 0x200:
            seen["wheels"] += 1
            counter, modulus = data[1] & 15, 16
            good = len(data) == 8 and data[0] == crc2(data, counter)
        elif m.arbitration_id == 0x300:
            seen["motion"] += 1
            counter, modulus = data[2], 256
            good = len(data) == 24 and data[0] | data[1] << 8 == crc5(data)
            seen["flags"] += not m.is_fd
        else:
            return
        seen["wrong"] += not good
        if m.arbitration_id in last:
            seen["jumps"] += (counter - last[m.arbitration_id] - 1) % modulus
        last[m.arbitration_id] = counter

    while bus.recv(20) is None:  # until the bench starts
        pass
    counter, due = 0, time.monotonic()
    for i in range(600):
        fault = {50: "wrong", 51: "wrong", 200: "repeated", 300: "lost", 400: "wrong", 500: "repeated"}.get(i)
        if fault != "repeated":
            counter = (counter + (2 if fault == "lost" else 1)) % 16
        data = bytearray(8)
        data[1] = counter
        data[2] = 50  # 0.5 bar
        data[0] = crc2(bytes(data), counter) ^ (0x5A if fault == "wrong" else 0)
        bus.send(can.Message(arbitration_id=0x110, data=data, is_extended_id=False))
        sent[fault or "good"] += 1
        due += 0.01
        while True:
            m = bus.recv(max(0, due - time.monotonic()))
            if m is None:
                break
            check(m)
    print("sent", flush=True)
    end = time.monotonic() + 30
    while time.monotonic() < end:  # until the bench stops sending
        m = bus.recv(4)
        if m is None:
            break
        check(m)
    json.dump({"seen": seen, "sent": sent}, sys.stdout)


main()
