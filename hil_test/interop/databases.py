"""Reads databases with canmatrix, for hil_test.

    databases.py ENCODING FILE FRAMES   prints the messages and signals of a DBC file
                                        and the decoded frames, as JSON
    databases.py write ENCODING FILE OUT
                                        writes what canmatrix reads as another DBC file, with
                                        the names of the nodes made longer than 32 letters

A line of FRAMES is the name of a message and its data in hexadecimal digits.
"""
import json
import logging
import struct
import sys

logging.disable(logging.CRITICAL)
import canmatrix.formats  # noqa: E402: the import logs unsupported formats


def signal(s):
    ranges = s.mux_val_grp or ([] if s.mux_val is None else [[int(s.mux_val)] * 2])
    return {
        "Name": s.name, "Start": s.get_startbit(bit_numbering=1), "Len": s.size,
        "BigEndian": not s.is_little_endian, "Signed": s.is_signed, "Float": bool(s.is_float),
        "Factor": float(s.factor), "Offset": float(s.offset), "Min": float(s.min), "Max": float(s.max),
        "Unit": s.unit or "", "Multiplexor": bool(s.is_multiplexer), "Under": s.muxer_for_signal or "",
        "Ranges": ranges, "Values": [{"Raw": (int(k) + 2**63) % 2**64 - 2**63, "Text": v} for k, v in sorted(s.values.items())],
        "Receivers": [r for r in s.receivers if r != "Vector__XXX"], "Initial": float(s.initial_value),
    }


def message(f):
    return {
        "Name": f.name, "ID": f.arbitration_id.to_compound_integer(), "Len": f.size,
        "Sender": ([t for t in f.transmitters if t != "Vector__XXX"] or [""])[0],
        "CycleNs": int(f.cycle_time) * 1000000, "FD": bool(f.is_fd), "J1939": bool(f.is_j1939),
        "Signals": [signal(s) for s in f.signals],
    }


def value(d):
    """Returns the raw value (of a float its bits) and the physical value, as text."""
    s, raw = d.signal, d.raw_value
    if s.is_float:
        raw = int.from_bytes(struct.pack(">d" if s.size == 64 else ">f", raw), "big")
    else:
        raw &= (1 << s.size) - 1
    return [str(raw), repr(float(s.raw2phys(d.raw_value)))]


def write(encoding, file, out):
    db = list(canmatrix.formats.loadp(file, dbcImportEncoding=encoding).values())[0]
    for ecu in list(db.ecus):
        db.rename_ecu(ecu.name, ecu.name + "_of_a_bench_with_long_node_names")
    canmatrix.formats.dumpp({"": db}, out, dbcExportEncoding="utf-8")


def main(encoding, file, frames):
    db = list(canmatrix.formats.loadp(file, dbcImportEncoding=encoding).values())[0]
    decoded = []
    for line in open(frames):
        name, data = (line.split() + [""])[:2]
        f = db.frame_by_name(name)
        data = bytearray.fromhex(data)
        there = set(f.decode(data))
        decoded.append({k: value(v) for k, v in f.unpack(data).items() if k in there})
    json.dump({"Messages": [message(f) for f in db.frames if f.name != "VECTOR__INDEPENDENT_SIG_MSG"], "Frames": decoded}, sys.stdout)


if sys.argv[1] == "write":
    write(*sys.argv[2:])
else:
    main(*sys.argv[1:])
