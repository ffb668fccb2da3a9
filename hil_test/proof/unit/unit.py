#!/usr/bin/python3
"""unit.py BUS fd|classic SECONDS | LOG is a control unit and a bus monitor on python3-can
with the checksums of python3-crccheck: it shares no code with lockstep.

It checks every frame of the bus with the description below, which repeats gearbox.dbc and
the bench file independently. Each frame of the bench carries its grid point, so that the
unit detects frames that are missing, out of phase, late or old. From the first frame of the
bench on the unit sends TCU_2, or TCU_2C on a bus without CAN FD, every 10 ms for SECONDS. It
prints one JSON object when the bus is silent, or at once for the frames of a LOG.
"""

import json
import os
import socket
import struct
import sys
import time

import can
from crccheck import crc

SO_RCVBUFFORCE = 33  # asm-generic/socket.h; python has no name for it
CYCLE = 0.01  # s
START = 300  # longest wait for the bench, which starts slowly on a loaded machine, s
IDS = (7, 42, 99, 1, 200, 17, 33, 64, 5, 91, 120, 250, 3, 77, 18, 155)


class Crc8Plain(crc.Crc8Base):  # AUTOSAR profile 1: 0x1D from 0, nothing added
    _poly, _initvalue, _xor_output = 0x1D, 0, 0


def le(data, at, size=2):
    return int.from_bytes(data[at : at + size], "little")


def p1(data_id, alternating=False):
    def calc(d):
        low, high = data_id & 255, data_id >> 8
        head = bytes((high if d[1] & 1 else low,)) if alternating else bytes((low, high))
        return d[0], Crc8Plain.calc(head + d[1:])

    return calc


def p2(first=0):
    return lambda d: (d[first], crc.Crc8Autosar.calc(d[first + 1 :] + bytes((IDS[d[first + 1] & 15],))))


def p5(data_id, end):
    return lambda d: (le(d, 0), crc.Crc16Ibm3740.calc(d[2:end] + data_id.to_bytes(2, "little")))


def j1850(first, end, at):
    return lambda d: (d[at], crc.Crc8SaeJ1850.calc(d[first:end]))


def nibble_sum(d):
    return d[6] >> 4, sum((b & 15) + (b >> 4) for b in d[:6] + bytes((d[6] & 15, d[7]))) & 15


def byte_sum(d):
    return d[1], (0x04 + 0x02 + sum(d[:1] + d[2:])) & 255


def xor(d):
    value = 0x5A
    for b in d[:7]:
        value ^= b
    return d[7], value


def nibble(at, shift=0):
    return lambda d: d[at] >> shift & 15


class Frame:
    """The description and the counts of a message. Cycle and phase are in grid points."""

    def __init__(self, name, length, cycle, phase, grid, groups, fd=False, brs=False):
        self.name, self.length, self.cycle, self.phase, self.grid = name, length, cycle, phase, grid
        self.groups, self.fd, self.brs = groups, fd, brs  # of (counter, modulus, checksum)
        self.counters, self.last, self.grids = None, None, set()
        self.gaps, self.out = [], dict.fromkeys(("frames", "wrong", "repeated", "lost", "length", "flags", "phase", "old", "split"), 0)

    def see(self, m, newest):
        """Checks and counts a frame. Returns its grid point, or None."""
        out, d = self.out, bytes(m.data)
        out["frames"] += 1
        if self.last is not None:
            self.gaps.append(m.timestamp - self.last)
        self.last = m.timestamp
        out["flags"] += (m.is_fd, m.bitrate_switch) != (self.fd, self.brs) or m.is_remote_frame
        if len(d) != self.length:
            out["length"] += 1
            return None
        out["wrong"] += any(a != b for a, b in (check(d) for _, _, check in self.groups if check))
        counters = [counter(d) for counter, _, _ in self.groups]
        if self.counters is not None:
            steps = [(new - old) % modulus for new, old, (_, modulus, _) in zip(counters, self.counters, self.groups)]
            out["repeated"] += steps[0] == 0
            out["lost"] += max(0, steps[0] - 1)
            out["split"] += any(step != steps[0] for step in steps)
        self.counters = counters
        if self.grid is None:
            return None
        grid = le(d, self.grid)
        out["phase"] += grid % self.cycle != self.phase
        out["old"] += grid < newest
        self.grids.add(grid)
        return grid

    def report(self):
        out, gaps = self.out, [g * 1e3 for g in self.gaps]
        if gaps:
            out["cycle_ms"] = {"min": min(gaps), "mean": sum(gaps) / len(gaps), "max": max(gaps)}
        out["grids"] = len(self.grids)
        return out


def network():
    ctr, tail = (nibble(1), 16), (nibble(6, 4), 16)
    return {
        0x110: Frame("TCU_1", 8, 2, 0, None, [ctr + (p2(),)]),
        0x200: Frame("Wheels", 8, 1, 0, 2, [ctr + (p2(),)]),
        0x201: Frame("Shafts", 8, 2, 0, 6, [(nibble(1), 15, p1(0x0201))]),
        0x202: Frame("Torque", 8, 2, 1, 4, [tail + (j1850(0, 7, 7),)]),
        0x203: Frame("Gears", 8, 4, 2, 4, [(nibble(6), 15, nibble_sum)]),
        0x204: Frame("Service", 8, 20, 3, 6, [(nibble(0, 4), 16, byte_sum)]),
        0x18FEF103: Frame("Engine", 8, 4, 0, 6, [ctr + (lambda d: (d[0], Crc8Plain.calc(d[1:]) ^ 0xA5),)]),
        0x300: Frame("Motion", 32, 1, 0, 4, [(lambda d: d[2], 256, p5(0x1234, 32))], True, True),
        0x301: Frame("Chassis", 64, 4, 1, 4, [(lambda d: d[2], 256, p5(0xF901, 32)), (nibble(33), 16, p2(32))], True, True),
        0x302: Frame("MotionC", 8, 1, 0, 4, [(nibble(2), 16, lambda d: (d[0] << 8 | d[1], crc.Crc16Ibm3740.calc(d[2:])))]),
        0x303: Frame("ChassisC", 8, 4, 1, 4, [tail + (xor,)]),
        0x3C0: Frame("Ignition", 4, 20, 7, 2, [ctr + (p2(),)]),
        0x3C1: Frame("Ambient", 8, 200, 11, 6, [(lambda d: d[4], 256, None)]),
    }


class Witness:
    def __init__(self):
        self.frames, self.unknown, self.errors, self.newest = network(), 0, 0, 0
        self.stamps = []  # grid point and time of each Wheels
        self.probe = []  # grid points and raw values that differ from the waveform

    def see(self, m):
        if m.is_error_frame:
            self.errors += 1
            return
        if m.arbitration_id in (0x111, 0x112):  # sent by this unit
            return
        f = self.frames.get(m.arbitration_id)
        if f is None or m.is_extended_id != (m.arbitration_id > 0x7FF):
            self.unknown += 1
            return
        grid = f.see(m, self.newest)
        if grid is None:
            return
        self.newest = max(self.newest, grid)
        if f.name == "Wheels":
            self.stamps.append((grid, m.timestamp))
        if f.name.startswith("Motion"):
            self.check_probe(grid, int.from_bytes(m.data[6:8], "big", signed=True))

    def check_probe(self, grid, raw):
        """Records values that differ from the waveform: from -50 to 50 bar and back in 20 s."""
        k = grid % 4000
        if raw != (-5000 + 5 * k if k <= 2000 else 15000 - 5 * k):
            self.probe.append((grid, raw))

    def gone(self):
        """Returns the grid points of Motion that were not received, from the first to the last."""
        grids = next((f.grids for f in self.frames.values() if f.name.startswith("Motion") and f.grids), {0})
        return sorted(set(range(min(grids), max(grids))) - grids)

    def late(self):
        """Returns grid points of Wheels and their delay, ms, if more than 2 ms over the smallest one."""
        if not self.stamps:
            return []
        delays = [(grid, stamp - grid * 0.005) for grid, stamp in self.stamps]
        least = min(d for _, d in delays)
        return [(grid, (d - least) * 1e3) for grid, d in delays if d - least > 0.002]


def frame(n, fd, clutch6=0.0):
    """Returns TCU_2 or TCU_2C with the n-th counter: clutch 2 has 24 bar, the others are open."""
    if fd:
        d = bytearray(24)
        d[2], d[13] = n & 255, n & 15
        d[4:6] = (2400).to_bytes(2, "big")  # 35|12@0: the lower nibble of byte 4, byte 5
        struct.pack_into("<f", d, 16, clutch6)
        d[0:2] = crc.Crc16Ibm3740.calc(d[2:12] + b"\x11\x01").to_bytes(2, "little")
        d[12] = crc.Crc8SaeJ1850.calc(d[13:24])
    else:
        d, counter = bytearray(8), n % 15
        d[1] = counter
        d[2:8] = (2400 << 12).to_bytes(6, "little")
        d[0] = Crc8Plain.calc(bytes((0x47 if counter & 1 else 0x11,)) + d[1:8])
    return can.Message(arbitration_id=0x111 if fd else 0x112, data=d, is_fd=fd, is_extended_id=False)


def send(bus, frames, count, begin):
    """Sends the frames in turn, count in all, one every 10 ms from begin on. Late frames follow at
    once, but none after the end of the time. Returns the number sent and the number refused."""
    refused = 0
    for n in range(count):
        time.sleep(max(0, begin + n * CYCLE - time.time()))
        while True:
            if time.time() > begin + count * CYCLE:
                return n, refused
            try:
                bus.send(frames[n % len(frames)])
                break
            except can.CanOperationError:
                refused += 1
                time.sleep(0.001)
    return count, refused


def sender(channel, fd, count):
    """Starts a separate process that sends, since the receiver may be slow. Returns the descriptor
    that takes the time to begin, and the one that gives the result of send as a line."""
    frames = [frame(n, fd) for n in range(256 if fd else 15)]  # the period of the counters
    go, told = os.pipe(), os.pipe()
    if os.fork() > 0:
        os.nice(10)
        return go[1], told[0]
    bus = can.Bus(channel, bustype="socketcan", fd=fd, receive_own_messages=False)
    os.write(told[1], b"ready")
    begin = float(os.read(go[0], 100))
    os.write(told[1], b"%d %d\n" % send(bus, frames, count, begin))
    os._exit(0)


def listen(bus, begin):
    """Returns all messages up to a silence of 4 s. Calls begin with the time of the bench's first message."""
    messages, m, begun = [], bus.recv(START), False
    while m is not None:
        messages.append(m)
        if not begun and m.arbitration_id != 0x110:  # the other unit may be first
            begun = True
            begin(m.timestamp)
        m = bus.recv(4 if begun else START)
    return messages


def report(messages, sent, refused):
    witness = Witness()
    for m in messages:
        witness.see(m)
    json.dump({
        "frames": {f.name: f.report() for f in witness.frames.values() if f.out["frames"]},
        "unknown": witness.unknown, "errors": witness.errors, "sent": sent, "refused": refused,
        "late": witness.late(), "probe": witness.probe, "gone": witness.gone(),
    }, sys.stdout)


def main():
    if len(sys.argv) == 2:
        report(can.LogReader(sys.argv[1]), 0, 0)
        return
    channel, fd, count = sys.argv[1], sys.argv[2] == "fd", int(float(sys.argv[3]) / CYCLE)
    go, told = sender(channel, fd, count)
    os.read(told, 5)  # "ready"
    bus = can.Bus(channel, bustype="socketcan", fd=fd)
    bus.socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 400 << 20)  # an emulator may be slower than the bus
    print("ready", flush=True)
    messages = listen(bus, lambda at: os.write(go, b"%.6f" % at))
    if not messages:
        sys.exit("no frame of the bench within %d s" % START)
    sent, refused = map(int, os.read(told, 100).split())
    report(messages, sent, refused)


if __name__ == "__main__":
    main()
