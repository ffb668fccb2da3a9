#!/usr/bin/python3
"""unit_can.py is a control unit on python-can. It names no interface: the environment does. The same
script runs in virtual time, on the pair and on a CAN interface.
"""

import can
import lockstep


def main():
    bus = can.Bus()
    virtual = hasattr(bus, "now")
    if virtual:  # a timeout is as long as it says
        bus.set_filters([{"can_id": 0x7FE, "can_mask": 0x7FF, "extended": False}])
        begun = bus.now
        assert bus.recv(0.052) is None
        print(f"waited {bus.now - begun:.3f} s until {bus.now:.3f} s", flush=True)
        bus.set_filters(None)
    message = can.Message(arbitration_id=0x110, data=bytes([8, 7, 6, 5, 4, 3, 2, 1]), is_extended_id=False)
    task = bus.send_periodic(message, 0.01)
    counts, last = {}, 0
    try:
        while True:
            m = bus.recv(timeout=0.5)
            if m is None:
                print("silence", flush=True)
                continue
            assert m.timestamp >= last and m.dlc == len(m.data) == 8 and not m.is_extended_id
            counts[m.arbitration_id] = counts.get(m.arbitration_id, 0) + 1
            last = m.timestamp
            if m.arbitration_id == 0x202:
                bus.send(can.Message(arbitration_id=0x111, data=m.data, is_extended_id=False))
    except lockstep.RunEnded:
        task.stop()
        bus.shutdown()
    print(sorted(counts), f"the last at {last:.3f} s", flush=True)


if __name__ == "__main__":
    main()
