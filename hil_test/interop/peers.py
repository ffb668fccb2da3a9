"""Reads and writes the files of lockstep with cantools, canmatrix, python-can and asammdf.

    peers.py decode          reads one JSON object per line, {"File", "Encoding", "Frames": [[NAME, ID, HEX], ...]},
                             and prints for each program the decoded frames, or why it refuses the file
    peers.py logs FILE...    prints "= FILE", and every frame or why python-can refuses it, of each log
    peers.py mdf FILE        prints every frame and every signal of an MDF4 file that asammdf reads
    peers.py write FILE N    writes N frames with python-can as MDF4 and prints them

The programs are found by PYTHONPATH. A frame is printed as logs.py does.
"""
import importlib.util
import json
import logging
import os
import subprocess
import sys
import sysconfig
import tempfile
import types

logging.disable(logging.CRITICAL)


def cantools_frames(file, encoding, frames):
    sys.modules.setdefault("textparser.version", types.ModuleType("version")).__version__ = "0"
    import cantools

    db = cantools.database.load_file(file, database_format="dbc", encoding=encoding, strict=False)
    decoded = []
    named = {(m.name, m.frame_id): m for m in db.messages}
    for name, ident, data in frames:
        m = named.get((name, int(ident)))
        try:
            values = m.decode(bytes.fromhex(data), decode_choices=False, scaling=False)
            physical = m.decode(bytes.fromhex(data), decode_choices=False)
        except AttributeError:  # no such message
            decoded.append(None)
            continue
        except cantools.database.errors.DecodeError:  # a value of a multiplexor that selects nothing
            decoded.append(None)
            continue
        of = {s.name: s for s in m.signals}
        decoded.append({k: [None if of[k].conversion.is_float else str(v & (1 << of[k].length) - 1), repr(float(physical[k]))]
                        for k, v in values.items()})
    return decoded


def canmatrix_frames(file, encoding, frames):
    import canmatrix.formats

    db = list(canmatrix.formats.loadp(file, dbcImportEncoding=encoding).values())[0]
    decoded = []
    named = {(f.name, f.arbitration_id.id): f for f in db.frames}
    for name, ident, data in frames:
        f, data = named.get((name, int(ident))), bytearray.fromhex(data)
        if f is None or f.is_complex_multiplexed or f.size != len(data):
            decoded.append(None)
            continue
        try:
            there = set(f.decode(data))
        except (ValueError, KeyError):  # a signal beyond the end of the frame, or no such multiplexor
            decoded.append(None)
            continue
        decoded.append({k: [None if d.signal.is_float else str(d.raw_value & (1 << d.signal.size) - 1),
                            repr(float(d.signal.raw2phys(d.raw_value)))]
                        for k, d in f.unpack(data).items() if k in there})
    return decoded


def decode():
    answers, sys.stdout = sys.stdout, open(os.devnull, "w")  # some programs print what they do not understand
    for line in sys.stdin:
        job, answer = json.loads(line), {}
        for name, program in {"cantools": cantools_frames, "canmatrix": canmatrix_frames}.items():
            try:
                answer[name] = {"Frames": program(job["File"], job["Encoding"], job["Frames"])}
            except Exception as e:  # whatever a foreign file does to a foreign program
                answer[name] = {"Refused": "%s: %.200s" % (type(e).__name__, e)}
        print(json.dumps(answer), file=answers, flush=True)


def show(m):
    """Prints a message of python-can."""
    flags = [("x", m.is_extended_id), ("r", m.is_remote_frame), ("f", m.is_fd), ("b", m.bitrate_switch),
             ("e", m.error_state_indicator), ("t", not m.is_rx)]
    text, ident, data = "".join(c for c, on in flags if on), "%X" % m.arbitration_id, bytes(m.data).hex()
    if m.is_error_frame:
        text, ident, data = "E", "0", ""
    if m.is_remote_frame:  # remote frames are classic
        text, data = "".join(c for c in text if c not in "fbe"), "length %d" % m.dlc
    print("%.0f %s %s -%s %s" % (m.timestamp * 1e6, m.channel, ident, text, data))


def logs(*files):
    import can

    for file in files:
        print("=", file)
        try:
            with can.LogReader(file) as reader:
                for m in reader:
                    show(m)
        except Exception as e:  # whatever a foreign file does to a foreign program
            print("! %s: %.200s" % (type(e).__name__, e))


def load_asammdf():
    """Imports asammdf from its sources. Its part in C is compiled if the sources have no binary."""
    found = importlib.util.find_spec("asammdf")
    folder = os.path.join(os.path.dirname(found.origin), "blocks")
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    binary = os.path.join(folder, "cutils" + suffix)
    if not os.path.exists(binary):
        import numpy

        binary = os.path.join(tempfile.mkdtemp(), "cutils" + suffix)
        subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-w", "-I" + sysconfig.get_path("include"), "-I" + numpy.get_include(),
                        os.path.join(folder, "cutils.c"), "-o", binary], check=True)
        name = "asammdf.blocks.cutils"
        spec = importlib.util.spec_from_file_location(name, binary)
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    with open(os.devnull, "w") as null:  # the import prints what it misses
        out, sys.stdout = sys.stdout, null
        import asammdf

        sys.stdout = out
    return asammdf


def mdf(file):
    file = load_asammdf().MDF(file)
    for at, group in enumerate(file.groups):
        names = {c.name for c in group.channels}
        kind = next((k for k in ("DataFrame", "RemoteFrame", "ErrorFrame") if "CAN_" + k in names), None)
        if kind is None:
            signals(file, at, group)
            continue
        part = {n: file.get("CAN_%s.%s" % (kind, n), group=at).samples for n in
                ("BusChannel", "ID", "IDE", "DLC", "DataLength", "DataBytes", "Dir", "EDL", "BRS", "ESI")
                if "CAN_%s.%s" % (kind, n) in names}
        times = file.get("CAN_" + kind, group=at).timestamps
        for i, time in enumerate(times):
            def of(name):
                return int(part[name][i]) if name in part else 0

            extended = of("IDE") or of("ID") >> 31
            text = "".join(c for c, on in (("x", extended), ("r", kind == "RemoteFrame"), ("f", of("EDL")), ("b", of("BRS")),
                                           ("e", of("ESI")), ("t", of("Dir"))) if on)
            ident, n = "%X" % (of("ID") & 0x1FFFFFFF), of("DataLength")
            data = "length %d" % of("DLC")
            if kind == "DataFrame":
                data = bytes(part["DataBytes"][i][:n]).hex()
            if kind == "ErrorFrame":
                text, ident, data = "E", "0", ""
            print("%.0f %d %s -%s %s" % (time * 1e6, of("BusChannel"), ident, text, data))


def signals(file, at, group):
    """Prints every value of the signals of a message: group, channel, unit, type, raw value, value or 'TEXT."""
    source = group.channel_group.acq_name
    for c in group.channels[1:]:
        raw = file.get(c.name, group=at, raw=True, ignore_invalidation_bits=False)
        value = file.get(c.name, group=at, raw=False, ignore_invalidation_bits=False)
        for r, v in zip(raw.samples.tolist(), value.samples.tolist()):
            text = "'" + v.decode() if isinstance(v, bytes) else "NaN" if v != v else repr(v)
            print("signal", source, c.name, value.unit or "-", raw.samples.dtype.kind, repr(r) if r == r else "NaN", text)


def write(file, count):
    import random

    load_asammdf()
    import can
    from can.io.mf4 import MF4Writer

    random.seed(7)
    with MF4Writer(file) as writer:
        for k in range(int(count)):
            fd, remote = k % 4 == 1, k % 4 == 2
            m = can.Message(timestamp=1_700_000_000 + k * 0.005, channel=k % 2, is_extended_id=k % 3 == 0, is_rx=k % 5 != 0,
                            is_fd=fd, is_remote_frame=remote, bitrate_switch=fd and k % 8 == 1,
                            error_state_indicator=fd and k % 16 == 1)
            m.arbitration_id = random.randrange(1 << 29 if m.is_extended_id else 1 << 11)
            if not remote:
                m.data = bytearray(random.randrange(256) for _ in range(random.choice([12, 16, 64]) if fd else random.randrange(9)))
                m.dlc = len(m.data)
            writer.on_message_received(m)
            show(m)


{"decode": decode, "logs": logs, "mdf": mdf, "write": write}[sys.argv[1]](*sys.argv[2:])
