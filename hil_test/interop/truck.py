"""truck.py LOG CSV decodes the frames of the truck bench in a candump log and compares
every value with that of the plant at the same tick. It prints one JSON object with the number
of frames of each group and the differences.

The tables follow the published descriptions of SAE J1939-71, not the database of lockstep.
Columns: group, source, first bit, bits, scale, offset, signal of the plant, its unit in SI.
"""

import csv
import json
import math
import sys

RPM, KMH, SHARE = math.pi / 30, 1 / 3.6, 0.01
PLANT = [
    (61444, 0, 8, 8, 1, -125, "throttle_pedal", SHARE),
    (61444, 0, 16, 8, 1, -125, "engine_load", SHARE),
    (61444, 0, 24, 16, 0.125, 0, "w_engine", RPM),
    (65265, 0, 8, 16, 1 / 256, 0, "v", KMH),
    (61441, 11, 8, 8, 0.4, 0, "brake_pedal", SHARE),
    (65215, 11, 0, 16, 1 / 256, 0, "v", KMH),
    (65215, 11, 32, 8, 1 / 16, -7.8125, "road_left.v_rel", KMH),
    (65215, 11, 40, 8, 1 / 16, -7.8125, "road_right.v_rel", KMH),
    (65134, 11, 0, 16, 1 / 256, 0, "v", KMH),
    (65134, 11, 16, 16, 1 / 256, 0, "v", KMH),
    (65134, 11, 32, 16, 1 / 256, 0, "v_left", KMH),
    (65134, 11, 48, 16, 1 / 256, 0, "v_right", KMH),
    (65281, 128, 0, 16, 0.125, 0, "w_turbine", RPM),
    (65281, 128, 16, 16, 0.125, 0, "w_out", RPM),
    (65281, 128, 32, 16, 0.125, 0, "w_pinion", RPM),
]
# Measurements of the unit are values of the plant at the tick before. They may differ by two
# roundings and the change within a tick.
UNIT = [
    (61442, 3, 8, 16, 0.125, 0, "w_out", RPM),
    (61442, 3, 40, 16, 0.125, 0, "w_turbine", RPM),
]
# Commands to the bench are inputs of the plant from the tick that reads them.
TAKEN = [
    (0, 3, 0, 2, 1, 0, "torque_mode", 1),
    (0, 3, 24, 8, 1, -125, "torque_request", SHARE),
] + [(65280, 3, 8 * i, 8, 0.1, 0, name + ".pressure", 1e5) for i, name in enumerate(["C1", "C2", "C3", "C4", "C5", "RC"])]
CONSTANT = [  # group, source, first bit, bits, raw
    (256, 5, 8, 8, 0xFF), (256, 5, 16, 8, 125 + 4), (61444, 0, 0, 8, 0xFF), (61444, 0, 40, 24, 0xFFFFFF),
    (65265, 0, 2, 2, 0), (65265, 0, 0, 2, 3), (65265, 0, 24, 40, (1 << 40) - 1), (61441, 11, 4, 2, 0), (61441, 11, 0, 4, 15),
    (61441, 11, 40, 2, 1), (61441, 11, 48, 8, 11), (65215, 11, 16, 16, 0xFFFF), (65215, 11, 48, 16, 0xFFFF),
]


def bits(data, first, n):
    return int.from_bytes(data, "little") >> first & ((1 << n) - 1)


def tsc1(identifier, data):
    """Returns SPN 4207 of a frame: over bytes 1 to 7, the counter and the identifier."""
    s = sum(data[:7]) + (data[7] & 15) + sum(identifier.to_bytes(4, "big"))
    return ((s >> 6 & 3) + (s >> 3) + s) & 7


def main(log, table):
    with open(table, newline="") as f:
        rows = list(csv.reader(f))
    column = {name.split("[")[0]: i for i, name in enumerate(rows[0])}
    plant = [[float(x) for x in row] for row in rows[1:]]
    groups, wrong, worst, counter = {}, [], 0.0, None
    tick, compared, gears, limits = 0, 0, [], 0
    for line in open(log):
        identifier, text = line.split()[2].split("#")
        identifier, data = int(identifier, 16), bytes.fromhex(text)
        sent = line.split()[3] == "T"
        pf, ps, source = identifier >> 16 & 255, identifier >> 8 & 255, identifier & 255
        pgn = (identifier >> 24 & 3) << 16 | pf << 8 | (ps if pf >= 240 else 0)
        if (pgn, source) == (61444, 0):
            tick += 1  # the first frame of every tick
        key = "%d from %d" % (pgn, source)
        groups[key] = groups.get(key, 0) + 1
        if sent != (source != 3):
            wrong.append("%s on the wrong side" % key)
        if pgn == 0:
            if data[7] >> 4 != tsc1(identifier, data):
                wrong.append("%s: checksum of %s" % (key, text))
            if counter is not None and data[7] & 15 != (counter + 1) % 8:
                wrong.append("%s: counter %d after %d" % (key, data[7] & 15, counter))
            counter = data[7] & 15
        if pgn == 61445 and (not gears or gears[-1] != data[3] - 125):
            gears.append(data[3] - 125)  # SPN 523
        if pgn == 0 and data[0] & 3 == 3:
            limits += 1
        for group, of, first, n, raw in CONSTANT:
            if (group, of) == (pgn, source) and bits(data, first, n) != raw:
                wrong.append("%s: bits %d: %x" % (key, first, bits(data, first, n)))
        for what, signals in ("plant", PLANT), ("unit", UNIT), ("taken", TAKEN):
            for group, of, first, n, scale, offset, name, unit in signals:
                if (group, of) != (pgn, source):
                    continue
                # A received frame is logged before the frames of the tick that reads it.
                row = plant[tick if what != "taken" else tick + 1] if tick + (what == "taken") < len(plant) else None
                if row is None:
                    continue
                want = row[column[name]] / unit
                raw = bits(data, first, n)
                most = {8: 250, 16: 0xFAFF, 2: 3}[n]
                off = abs(min(max((want - offset) / scale, 0), most) - raw)
                if what == "unit":
                    before = abs(plant[tick - 1][column[name]] - row[column[name]]) / unit / scale
                    off = max(0, off - before - 1)
                compared += 1
                worst = max(worst, off)
                if not off <= 0.5 + 1e-6:
                    wrong.append("tick %d, %s: %s is %g, of the plant %g" % (tick, key, name, raw * scale + offset, want))
    for row in plant:
        if row[column["torque_mode"]] == 3 and row[column["engine_load"]] > row[column["torque_request"]]:
            wrong.append("%g s: the engine gives %g, TSC1 allows %g" % (row[0], row[column["engine_load"]], row[column["torque_request"]]))
    print(json.dumps({"groups": groups, "wrong": len(wrong), "first": wrong[:10], "compared": compared, "worst": worst, "ticks": tick,
                      "gears": gears, "limits": limits}))


main(*sys.argv[1:])
