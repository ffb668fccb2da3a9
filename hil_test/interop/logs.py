"""Reads and writes logs with python-can, to compare with those of lockstep.

    logs.py read FILE          prints every message
    logs.py write FILE COUNT   writes messages of every kind and prints them

A line is: time in microseconds, channel, identifier, flags, data. Flags: x extended,
r remote, f CAN FD, b bit rate switch, e error passive, E error frame, t sent. The
extension of FILE selects its format: .log, .asc, .blf, .trc, .csv or .txt. A trace (.trc) of
python-can holds classic data frames only, and .csv neither CAN FD, nor channels, nor directions.
"""
import random
import sys

import can
from can.io import ASCReader, ASCWriter, BLFReader, BLFWriter, CanutilsLogReader, CanutilsLogWriter
from can.io import CSVWriter, Printer, TRCWriter

READERS = {"log": CanutilsLogReader, "asc": ASCReader, "blf": BLFReader}
WRITERS = {"log": CanutilsLogWriter, "asc": ASCWriter, "blf": BLFWriter, "trc": TRCWriter,
           "csv": CSVWriter, "txt": Printer}


def show(m):
    flags = [
        ("x", m.is_extended_id), ("r", m.is_remote_frame), ("f", m.is_fd),
        ("b", m.bitrate_switch), ("e", m.error_state_indicator), ("t", not m.is_rx),
    ]
    text = "".join(c for c, on in flags if on)
    ident, data = "%X" % m.arbitration_id, bytes(m.data).hex()
    if m.is_error_frame:
        text, ident, data = "E", "0", ""
    if m.is_remote_frame:
        data = "length %d" % m.dlc
    print("%.0f %s %s -%s %s" % (m.timestamp * 1e6, m.channel, ident, text, data))


def message(k, form):
    kind = 0 if form == "trc" else random.randrange(4)
    fd = kind == 1 and form != "csv"
    m = can.Message(
        timestamp=1_700_000_000 + k * 0.005 + random.randrange(4000) * 1e-6,
        channel=0 if form == "csv" else k % 2,
        is_extended_id=random.random() < 0.5,
        is_rx=form == "csv" or random.random() < 0.5,
        is_fd=fd,
        is_remote_frame=kind == 2,
        bitrate_switch=fd and random.random() < 0.5,
        error_state_indicator=fd and random.random() < 0.5,
    )
    m.arbitration_id = random.randrange(1 << 29 if m.is_extended_id else 1 << 11)
    if not m.is_remote_frame:
        length = random.choice([1, 2, 3, 7, 8, 12, 16, 20, 24, 32, 48, 64]) if fd else random.randrange(9)
        m.data = bytearray(random.randrange(256) for _ in range(length))
        m.dlc = length
    return m


def main(what, name, count=0):
    form = name.rsplit(".", 1)[1]
    if what == "read":
        for m in READERS[form](name):
            show(m)
        return
    random.seed(5)
    with WRITERS[form](name) as writer:
        for k in range(int(count)):
            m = message(k, form)
            writer.on_message_received(m)
            show(m)


main(*sys.argv[1:])
