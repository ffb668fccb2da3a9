"""A program as the control unit of a bench: `control_unit: {exec: ./tcu.py}` in the bench file.

The same program runs in virtual time and on the pair, where lockstep gives it a socket, and on CAN
interfaces, a virtual one or a card. `lockstep help exec` describes the protocol of the socket.
"""

import os
import select
import socket
import struct
import time
from dataclasses import dataclass

VERSION = 1

_HELLO, _BUS, _START, _FRAME, _GO, _DONE = range(1, 7)
_MESSAGE = struct.Struct("<BBBBIq64s")  # kind, bus, flags, length, identifier, time, data

# Bits of an identifier and flags of a frame, as in linux/can.h.
_EXTENDED, _REMOTE, _ERROR = 0x80000000, 0x40000000, 0x20000000
_BRS, _ESI, _FDF = 1, 2, 4


class RunEnded(SystemExit):
    """The run has ended. A program that does not catch it ends with exit status 0."""

    def __init__(self):
        super().__init__(0)


class ProtocolError(Exception):
    """The other end of the socket is no bench of a version that this module knows."""


@dataclass(slots=True)
class Frame:
    """A CAN frame. time is in ns since the start of the run; send uses its own present instant."""

    id: int
    data: bytes = b""
    bus: str = ""  # name of the bus; "": the first one
    extended: bool = False
    fd: bool = False
    bit_rate_switch: bool = False
    error_state: bool = False
    remote: bool = False
    length: int = 0  # of a remote frame; others have that of data
    time: int = 0

    def _wire(self):
        """Returns identifier, flags and length as in linux/can.h."""
        length = self.length if self.remote else len(self.data)
        if length > (64 if self.fd else 8):
            raise ValueError(f"frame 0x{self.id:X}: {length} bytes of data; at most {64 if self.fd else 8} fit")
        if not 0 <= self.id <= (0x1FFFFFFF if self.extended else 0x7FF):
            raise ValueError(f"frame 0x{self.id:X}: the identifier does not fit; above 0x7FF it is extended")
        flags = _FDF | _BRS * self.bit_rate_switch | _ESI * self.error_state if self.fd else 0
        return self.id | _EXTENDED * self.extended | _REMOTE * self.remote, flags, length

    @classmethod
    def _of_wire(cls, identifier, flags, length, data, bus, at):
        extended, remote = bool(identifier & _EXTENDED), bool(identifier & _REMOTE)
        return cls(identifier & (0x1FFFFFFF if extended else 0x7FF), b"" if remote else data[:length], bus,
                   extended, bool(flags & _FDF), bool(flags & _BRS), bool(flags & _ESI), remote, length, at)


class ControlUnit:
    """The buses of a control unit.

    buses     names of the buses, in the order of the bench file
    virtual   the run is in virtual time
    period    of the grid, ns; 0 on CAN interfaces

    On CAN interfaces, lockstep or the caller names them: interfaces={"drive": "can0"}.
    """

    def __init__(self, interfaces=None):
        self.virtual, self.period = False, 0
        self._now, self._start, self._go = 0, time.monotonic_ns(), None
        descriptor = os.environ.get("LOCKSTEP_FD")
        if interfaces is None and descriptor is not None:
            self._end = _Socket(int(descriptor))
            self._greet()
        else:
            self._end = _Interfaces(interfaces or _interfaces_of_environment())
        self.buses = self._end.buses

    def _greet(self):
        self._end.write(_HELLO, identifier=VERSION)
        while True:
            kind, bus, flags, length, identifier, at, data = self._end.read()
            if kind == _HELLO:
                if identifier != VERSION:
                    raise ProtocolError(f"this lockstep speaks version {identifier} of the protocol, not {VERSION}")
                self.virtual, self.period = bool(flags & 1), at
            elif kind == _BUS:
                self._end.name(bus, data.rstrip(b"\0").decode())
            elif kind == _START:
                self._start = at
                return

    @property
    def now(self):
        """The time since the start of the run, ns. In virtual time, only receive advances it."""
        if not self.virtual:
            self._now = max(self._now, time.monotonic_ns() - self._start)
        return self._now

    def send(self, frame):
        """Sends a frame at the present instant. RunEnded: the run has ended."""
        self._end.send(frame, self.now)

    def receive(self, until=None):
        """Returns the next frame, or None at the instant until, ns; without until, it waits for a frame.

        In virtual time the bench waits for the program whenever the program is not in receive.
        RunEnded: the run has ended.
        """
        while True:
            if self._go is not None:  # the bench waits for all that is due before this grid point
                if until is not None and until < self._go:
                    self._now = max(self._now, until)
                    return None
                go, self._go = self._go, None
                self._now = max(self._now, go)
                self._end.write(_DONE, at=go)
            if not self.virtual and not self._end.wait(None if until is None else max(0, until - self.now)):
                return None
            message = self._end.read()
            if message is None:
                continue
            kind, bus, flags, length, identifier, at, data = message
            if kind == _FRAME:
                self._now = max(self._now, at)
                return Frame._of_wire(identifier, flags, length, data, self._end.bus_name(bus), at or self.now)
            if kind == _GO:
                self._go = at

    def wait(self, until):
        """Waits for the instant until, ns, and drops the frames that come."""
        while self.receive(until) is not None:
            pass

    def fileno(self):
        """The descriptor of the socket, for select."""
        return self._end.fileno()

    def close(self):
        self._end.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class _Socket:
    """The socket that lockstep gives to a program."""

    def __init__(self, descriptor):
        self._socket = socket.socket(fileno=descriptor)
        os.set_inheritable(descriptor, False)
        self.buses, self._names = [], {}

    def name(self, index, name):
        self._names[index] = name
        self.buses.append(name)

    def bus_name(self, index):
        return self._names[index]

    def write(self, kind, bus=0, flags=0, length=0, identifier=0, at=0, data=b""):
        try:
            self._socket.send(_MESSAGE.pack(kind, bus, flags, length, identifier, at, data))
        except (BrokenPipeError, ConnectionResetError):
            raise RunEnded() from None

    def read(self):
        try:
            data = self._socket.recv(_MESSAGE.size + 1)
        except ConnectionResetError:
            data = b""
        if not data:
            raise RunEnded()
        if len(data) != _MESSAGE.size:
            raise ProtocolError(f"a message of {len(data)} bytes; a message has {_MESSAGE.size}")
        return _MESSAGE.unpack(data)

    def send(self, frame, now):
        identifier, flags, length = frame._wire()
        name = frame.bus or self.buses[0]
        for index, known in self._names.items():
            if known == name:
                self.write(_FRAME, index, flags, length, identifier, now, bytes(frame.data))
                return
        raise ValueError(f"no bus {name}; there are {', '.join(self.buses)}")

    def wait(self, left):
        return select.select([self._socket], [], [], None if left is None else left / 1e9)[0]

    def fileno(self):
        return self._socket.fileno()

    def close(self):
        self._socket.close()


class _Interfaces:
    """Raw sockets on CAN interfaces."""

    _CLASSIC, _FD = struct.Struct("=IBBBB8s"), struct.Struct("=IBBBB64s")

    def __init__(self, interfaces):
        self.buses, self._sockets = list(interfaces), []
        for interface in interfaces.values():
            s = socket.socket(socket.AF_CAN, socket.SOCK_RAW, socket.CAN_RAW)
            self._sockets.append(s)
            s.setsockopt(socket.SOL_CAN_RAW, socket.CAN_RAW_FD_FRAMES, 1)
            s.bind((interface,))
        self._ready = []

    def bus_name(self, index):
        return self.buses[index]

    def send(self, frame, now):
        identifier, flags, length = frame._wire()
        name = frame.bus or self.buses[0]
        if name not in self.buses:
            raise ValueError(f"no bus {name}; there are {', '.join(self.buses)}")
        form = self._FD if frame.fd else self._CLASSIC
        self._sockets[self.buses.index(name)].send(form.pack(identifier, length, flags, 0, 0, bytes(frame.data)))

    def wait(self, left):
        if not self._ready:
            self._ready = select.select(self._sockets, [], [], None if left is None else left / 1e9)[0]
        return self._ready

    def read(self):
        s = self._ready.pop(0)
        data = s.recv(self._FD.size)
        form = self._FD if len(data) == self._FD.size else self._CLASSIC
        identifier, length, flags, _, _, data = form.unpack(data)
        if identifier & _ERROR:
            return None
        flags = flags | _FDF if form is self._FD else 0
        return _FRAME, self._sockets.index(s), flags, length, identifier, 0, data

    def fileno(self):
        if len(self._sockets) > 1:
            raise ValueError("several buses have several descriptors")
        return self._sockets[0].fileno()

    def close(self):
        for s in self._sockets:
            s.close()


def _interfaces_of_environment():
    """Reads LOCKSTEP_BUSES: drive=vcan0,body=vcan1."""
    text = os.environ.get("LOCKSTEP_BUSES", "")
    interfaces = dict(item.split("=", 1) for item in text.split(",") if "=" in item)
    if not interfaces:
        raise ProtocolError("no bus: lockstep starts this program (control_unit: {exec: ./PROGRAM}), "
                            "or LOCKSTEP_BUSES names CAN interfaces: LOCKSTEP_BUSES=drive=can0")
    return interfaces
