#!/usr/bin/python3
"""powershift.py is the transmission control unit of the powershift gearbox, as `lockstep ecu powershift`:
in virtual time it shifts at the same ticks. In the bench file: control_unit: {exec: ./powershift.py}
"""

import struct

import lockstep

CYCLE = 10_000_000  # ns
SLEEP = 1_000_000_000  # time without Speeds after which the unit sleeps, ns

PRESSURE_1, PRESSURE_2, SPEEDS = 0x110, 0x111, 0x200

# Clutches 1 and 2 couple shafts 1-2, clutches 3 to 5 shafts 2-3, clutches 6 to 8 shafts 3-4.
RATIO = {1: 3, 2: 2, 3: 4, 4: 3, 5: 2, 6: 4, 7: 2, 8: 1}
FULL = {1: 18, 2: 24, 3: 17.5, 4: 17.5, 5: 17.5, 6: 18, 7: 18, 8: 18}  # bar
RESOLUTION = (0.02, 0.01, 0.005, 0.001)  # of the speeds, rad/s

RELEASE, FILL, APPLY = 0.06, 0.2, 0.1  # s
READINGS = 2  # consecutive readings without slip before the pressure rises
SLOW, FAST = 9.5, 11  # range of the wheel speed, rad/s

FIRST = (1, 3, 6)

# Gear, slip pressure of the on-coming clutch of each stage in bar, condition of time and wheel speed.
OPENING = [
    ((2, 3, 6), (12.4, 0, 0), lambda t, wheel: t >= 0.5),
    ((1, 5, 6), (9, 8.5, 0), lambda t, wheel: t >= 1.7),
    ((2, 4, 7), (13, 9, 9), lambda t, wheel: t >= 2.5),
]
DRIVING = [
    ((2, 4, 7), (13, 4.5, 7), lambda t, wheel: wheel <= SLOW),
    ((2, 5, 7), (0, 4.5, 0), lambda t, wheel: wheel >= 10.5),
    ((2, 5, 8), (13, 9, 3.6), lambda t, wheel: wheel >= FAST),
]


def name(gear):
    return "neutral" if gear == (0, 0, 0) else "-".join(map(str, gear))


def vanished(stage, clutch, w):
    """Reports whether the slip of a clutch is within the resolution of the two speeds."""
    slip = w[stage] + RATIO[clutch] * w[stage + 1]
    return abs(slip) <= RESOLUTION[stage] + RATIO[clutch] * RESOLUTION[stage + 1]


class Law:
    """The control law: speeds in, pressures out. Times are in s since the unit woke up."""

    def __init__(self, w):
        self.gear, self.old, self.slip = (0, 0, 0), (0, 0, 0), (0, 0, 0)
        self.busy, self.began, self.next = False, 0.0, 0
        if all(vanished(stage, clutch, w) for stage, clutch in enumerate(FIRST)):
            self.gear = FIRST
            return
        at = len(DRIVING) - 1 if abs(w[3]) >= FAST else 0
        self.next = len(OPENING) + at
        self.shift(0.0, DRIVING[at])

    def shift(self, t, order):
        print(f"powershift: {t:.2f} s: shift {name(self.gear)} -> {name(order[0])}", flush=True)
        self.old, self.gear, self.slip = self.gear, order[0], order[1]
        self.busy, self.began = True, t
        self.seen, self.raised, self.base = [0] * 3, [None] * 3, [0.0] * 3

    def decide(self, t, w):
        if self.next < len(OPENING):
            order = OPENING[self.next]
        else:
            order = DRIVING[(self.next - len(OPENING) + 1) % len(DRIVING)]
        if order[2](t, abs(w[3])):
            self.next += 1
            self.shift(t, order)

    def watch(self, t, w):
        for stage, clutch in enumerate(self.gear):
            if clutch == self.old[stage] or self.raised[stage] is not None:
                continue
            if not vanished(stage, clutch, w):
                self.seen[stage] = 0
                continue
            self.seen[stage] += 1
            if self.seen[stage] >= READINGS:
                self.base[stage], self.raised[stage] = self.oncoming(stage, t), t

    def oncoming(self, stage, t):
        since = self.raised[stage]
        if since is None:
            return self.slip[stage] * min(1, (t - self.began) / FILL)
        full = FULL[self.gear[stage]]
        if t >= since + APPLY:
            return full
        return self.base[stage] + (full - self.base[stage]) * (t - since) / APPLY

    def step(self, t, w, fresh):
        """Returns the pressures of clutches 1 to 8, bar."""
        if fresh:
            if not self.busy:
                self.decide(t, w)
            if self.busy:
                self.watch(t, w)
        bar, done = [0.0] * 8, True
        for stage, on in enumerate(self.gear):
            off = self.old[stage]
            if not self.busy or on == off:
                bar[on - 1] = FULL[on]
                continue
            if off != 0:
                bar[off - 1] = FULL[off] * max(0, 1 - (t - self.began) / RELEASE)
            bar[on - 1] = self.oncoming(stage, t)
            done = done and bar[on - 1] == FULL[on]
        if self.busy and done:
            self.busy = False
            print(f"powershift: {t:.2f} s: gear {name(self.gear)} engaged", flush=True)
        return bar


def speeds(data):
    """Reads w1 to w4 of Speeds, rad/s: 15 bits each, signed."""
    word, = struct.unpack("<Q", data)
    raw = [word >> 15 * i & 0x7FFF for i in range(4)]
    return [(r - 0x8000 if r & 0x4000 else r) * RESOLUTION[i] for i, r in enumerate(raw)]


def pressures(bar, counter):
    """Packs four pressures, 12 bits each, and the counter."""
    word = counter << 52
    for i, p in enumerate(bar):
        word |= round(min(max(p, 0), 40) / 0.01) << 12 * i
    return struct.pack("<Q", word)


def seconds(ns):
    return ns // 1_000_000_000 + ns % 1_000_000_000 / 1e9


def main():
    unit = lockstep.ControlUnit()
    law, start, last, fresh, w, cycles = None, 0, 0, False, [0.0] * 4, 0
    due = CYCLE
    while True:
        frame = unit.receive(until=due)
        if frame is not None:
            if frame.id == SPEEDS and len(frame.data) == 8:
                w, fresh, last = speeds(frame.data), True, frame.time
                if law is None:
                    law, start = Law(w), frame.time
            continue
        if law is not None and due - last > SLEEP:
            print("powershift: no Speeds for 1 s, nothing is sent", flush=True)
            law = None
        if law is not None:
            bar = law.step(seconds(due - start), w, fresh)
            fresh = False
            unit.send(lockstep.Frame(PRESSURE_1, pressures(bar[:4], cycles % 16)))
            unit.send(lockstep.Frame(PRESSURE_2, pressures(bar[4:], cycles % 16)))
            cycles += 1
        due += CYCLE


if __name__ == "__main__":
    main()
