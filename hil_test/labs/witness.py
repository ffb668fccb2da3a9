#!/usr/bin/python3
"""witness.py BUS listens to a bus with python3-can until SIGTERM and then prints its
results as one JSON object.

It shares no code with lockstep; the frames of the powershift bench are described here
a second time. Results: counts and lengths by identifier, gaps of the rolling counters,
the sequence of gears in Status, and whether the speeds satisfy the ratio of every clutch
that Status reports locked.
"""

import json
import signal
import socket
import sys

import can

SO_RCVBUFFORCE = 33  # asm-generic/socket.h; python has no name for it
PRESSURES = (0x110, 0x111)
SPEEDS, TORQUE, STATUS = 0x200, 0x201, 0x202
COUNTER_BIT = {0x110: 52, 0x111: 52, SPEEDS: 60, STATUS: 60}  # Intel: first bit
# Left shaft (from 0) and ratio of the clutches 1 to 8.
CLUTCH = ((0, 3), (0, 2), (1, 4), (1, 3), (1, 2), (2, 4), (2, 2), (2, 1))
BIT = (0.02, 0.01, 0.005, 0.001)  # rad/s, of w1 to w4


def field(word, start, length):
    return word >> start & (1 << length) - 1


def signed(word, start, length):
    raw = field(word, start, length)
    return raw - (1 << length) if raw >> length - 1 else raw


class Witness:
    def __init__(self):
        self.count, self.length, self.jumps, self.counter = {}, {}, {}, {}
        self.gears, self.speeds = [], None
        self.judged, self.violations = 0, []
        self.pressure = {}
        self.pressed, self.contradictions = 0, []

    def see(self, message):
        ident, data = message.arbitration_id, bytes(message.data)
        key = f"{ident:08X}" if message.is_extended_id else f"{ident:03X}"
        self.count[key] = self.count.get(key, 0) + 1
        self.length.setdefault(key, {})
        self.length[key][len(data)] = self.length[key].get(len(data), 0) + 1
        if len(data) != 8 or message.is_extended_id:
            return
        word = int.from_bytes(data, "little")
        if ident in COUNTER_BIT or ident == TORQUE:
            # counter_T is Motorola, 51|4: bits 3 to 0 of byte 6.
            counter = data[6] & 15 if ident == TORQUE else field(word, COUNTER_BIT[ident], 4)
            if key in self.counter:
                jump = (counter - self.counter[key] - 1) % 16
                self.jumps[key] = self.jumps.get(key, 0) + jump
            self.counter[key] = counter
        if ident == SPEEDS:
            self.speeds = [signed(word, 15 * i, 15) * BIT[i] for i in range(4)]
        elif ident == STATUS:
            self.status([signed(word, 3 * i, 3) for i in range(8)])
        elif ident in PRESSURES:
            for i in range(4):
                self.pressure[4 * (ident - 0x110) + i + 1] = field(word, 12 * i, 12) * 0.01

    def status(self, states):
        locked = tuple(i + 1 for i, state in enumerate(states) if state == 0)
        if self.speeds:  # those of the same tick: Speeds comes in every tick, and before Status
            self.judge(locked, self.speeds)
        self.speeds = None
        if len(locked) == 3 and (not self.gears or self.gears[-1] != locked):
            self.gears.append(locked)
        # Three clutches pressed for more than 0.1 s, as the unit does in a gear.
        pressed = tuple(k for k, bar in sorted(self.pressure.items()) if bar > 15)
        self.pressed = self.pressed + 1 if len(pressed) == 3 else 0
        if self.pressed > 10 and locked != pressed:
            self.contradictions.append([pressed, locked])

    def judge(self, locked, speeds):
        self.judged += 1
        for clutch in locked:
            left, ratio = CLUTCH[clutch - 1]
            slip = speeds[left] + ratio * speeds[left + 1]
            rounding = (BIT[left] + ratio * BIT[left + 1]) / 2
            if not abs(slip) <= rounding * 1.0001:
                self.violations.append([clutch, speeds])


def main():
    running = True

    def stop(*_):
        nonlocal running
        running = False

    signal.signal(signal.SIGTERM, stop)
    witness = Witness()
    messages = []
    with can.Bus(interface="socketcan", channel=sys.argv[1]) as bus:
        bus.socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 16 << 20)
        print("listening", flush=True)
        while running:
            message = bus.recv(0.2)
            if message is not None:
                messages.append(message)
        while (message := bus.recv(0)) is not None:
            messages.append(message)
    for message in messages:
        witness.see(message)
    for name in ("violations", "contradictions"):
        setattr(witness, name, [len(getattr(witness, name))] + getattr(witness, name)[:5])
    for name in ("speeds", "counter", "pressure", "pressed"):
        delattr(witness, name)
    json.dump(vars(witness), sys.stdout)
    print()


if __name__ == "__main__":
    main()
