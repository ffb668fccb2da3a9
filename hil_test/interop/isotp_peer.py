"""The other end of io/isotp: can-isotp exchanges messages with the test.

    isotp_peer.py    reads one JSON object per line:
                     {"case": {...}}           begins a case with an address and parameters
                     {"send": HEX}             sends a message
                     {"frame": [ID, HEX, FD]}  a frame of the test
                     and prints {"frame": [...]}, {"received": HEX}, {"error": NAME}, {"sent": true}

can-isotp is found by PYTHONPATH. Identifiers have bit 31 set if they have 29 bits.
"""
import json
import logging
import queue
import sys
import threading
import time

import isotp

logging.disable(logging.CRITICAL)
lines = queue.Queue()
frames = queue.Queue()


def read():
    for line in sys.stdin:
        lines.put(json.loads(line))
    lines.put(None)


def show(**what):
    print(json.dumps(what), flush=True)


def receive(timeout):
    try:
        ident, data, fd = frames.get_nowait()
    except queue.Empty:
        return None
    return isotp.CanMessage(arbitration_id=ident & 0x1FFFFFFF, extended_id=bool(ident >> 31), data=bytearray.fromhex(data), is_fd=fd)


def send(m):
    show(frame=[m.arbitration_id | (0x80000000 if m.is_extended_id else 0), m.data.hex(), m.is_fd])


threading.Thread(target=read, daemon=True).start()
layer = None
waiting = False
while True:
    try:
        what = lines.get(timeout=0.0005)
    except queue.Empty:
        what = {}
    if what is None:
        break
    if "case" in what:
        c = what["case"]
        mode = getattr(isotp.AddressingMode, c["mode"])
        address = isotp.Address(mode, **{k: v for k, v in c["address"].items()})
        layer = isotp.TransportLayerLogic(rxfn=receive, txfn=send, address=address, params=c["params"],
                                          error_handler=lambda e: show(error=type(e).__name__))
        waiting = False
    elif "send" in what:
        layer.send(bytearray.fromhex(what["send"]))
        waiting = True
    elif "frame" in what:
        frames.put(what["frame"])
    if layer is None:
        continue
    layer.process()
    if waiting and not layer.transmitting():
        waiting = False
        show(sent=True)
    while layer.available():
        show(received=bytes(layer.recv()).hex())
