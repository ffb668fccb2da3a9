#!/usr/bin/python3
"""checksums.py computes checksums with python3-crccheck, which knows nothing of
lockstep. It reads one JSON object per line and prints its checksum:

    {"crc": "Crc8Rohc", "data": HEX}
    {"profile": "e2e-1b", "ids": [291], "counter": 3, "offset": 0, "data": HEX}

The second form is a frame of an AUTOSAR profile. Its header begins at a byte offset; the bytes of
the checksum are ignored. With the argument "catalogue" the program lists the CRCs of 8, 16, 32 and
64 bits instead.
"""

import json
import sys

from crccheck import crc


class Profile1(crc.Crc8Base):
    """SAE J1850 as AUTOSAR profile 1 uses it: the XOR of the library at start and end cancel."""

    _width, _poly, _initvalue, _xor_output = 8, 0x1D, 0, 0


# Profiles with a length in the frame: place and class of the checksum.
WIDE = {
    "e2e-4": (8, crc.Crc32Autosar),
    "e2e-44": (8, crc.Crc32Autosar),
    "e2e-6": (0, crc.Crc16Ibm3740),
    "e2e-7": (0, crc.Crc64Xz),
    "e2e-8": (0, crc.Crc32Autosar),
}


def catalogue():
    for kind in crc.ALLCRCCLASSES:
        if kind._width in (8, 16, 32, 64) and kind._reflect_input == kind._reflect_output:
            yield {
                "name": kind.__name__,
                "width": kind._width,
                "poly": kind._poly,
                "init": kind._initvalue,
                "xor": kind._xor_output,
                "reflect": bool(kind._reflect_input),
            }


def protected(frame):
    data, at, profile = bytes.fromhex(frame["data"]), frame["offset"], frame["profile"]
    ids, counter = frame["ids"], frame["counter"]
    low, high = ids[0] & 255, ids[0] >> 8
    if profile in WIDE:
        place, kind = WIDE[profile]
        at += place
        tail = bytes((high, low)) if profile == "e2e-6" else b""
        return kind.calc(data[:at] + data[at + kind._width // 8 :] + tail)
    size = 2 if profile == "e2e-5" else 1
    data = data[:at] + data[at + size :]
    if profile == "e2e-5":
        return crc.Crc16Ibm3740.calc(data + bytes((low, high)))
    if profile in ("e2e-2", "e2e-22"):
        return crc.Crc8Autosar.calc(data + bytes((ids[counter],)))
    head = {
        "e2e-1a": (low, high),
        "e2e-11a": (low, high),
        "e2e-1b": (high,) if counter % 2 else (low,),
        "e2e-1low": (low,),
        "e2e-1c": (low, 0),
        "e2e-11c": (low, 0),
    }[profile]
    return Profile1.calc(bytes(head) + data)


def main():
    if sys.argv[1:] == ["catalogue"]:
        json.dump(list(catalogue()), sys.stdout)
        return
    for line in sys.stdin:
        frame = json.loads(line)
        if "crc" in frame:
            print(getattr(crc, frame["crc"]).calc(bytes.fromhex(frame["data"])))
        else:
            print(protected(frame))


main()
