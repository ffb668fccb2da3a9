"""The interface "lockstep" of python-can: one script is a control unit in virtual time, on the pair and
on a CAN interface.

    bus = can.Bus(interface="lockstep", channel="drive")

channel is the name of a bus of the bench; without one it is the first. In virtual time, time passes
only in recv, and messages of send_periodic are sent in recv; a script uses bus.now in place of
time.time, and one thread.
"""

import can

from .control_unit import ControlUnit, Frame, RunEnded

_unit = None  # the only user of the program's socket
_queues = {}  # frames received for each open bus, by name


class LockstepBus(can.BusABC):
    """A bus of the bench. RunEnded ends a script that does not catch it when the run has ended."""

    def __init__(self, channel=None, can_filters=None, **kwargs):
        global _unit
        if _unit is None:
            _unit = ControlUnit()
        self._unit = _unit
        self.channel = channel or self._unit.buses[0]
        if self.channel not in self._unit.buses:
            raise can.CanInitializationError(
                f"no bus {self.channel}; the bench has {', '.join(self._unit.buses)}")
        if self.channel in _queues:
            raise can.CanInitializationError(f"bus {self.channel} is open")
        _queues[self.channel] = []
        self._tasks = []
        self.channel_info = f"lockstep bus {self.channel}"
        super().__init__(channel=self.channel, can_filters=can_filters, **kwargs)

    @property
    def now(self):
        """The time since the start of the run, s."""
        return self._unit.now / 1e9

    def sleep(self, seconds):
        """Waits; frames that come are kept for recv."""
        self._wait(self._unit.now + round(seconds * 1e9), lambda: False)

    def send(self, msg, timeout=None):
        self._unit.send(Frame(msg.arbitration_id, bytes(msg.data), self.channel, msg.is_extended_id, msg.is_fd,
                              msg.bitrate_switch, msg.error_state_indicator, msg.is_remote_frame, msg.dlc))

    def recv(self, timeout=None):
        # BusABC.recv measures the timeout by the clock of the host.
        until = None if timeout is None else self._unit.now + round(timeout * 1e9)
        own = _queues[self.channel]
        while True:
            self._wait(until, lambda: own)
            if not own:
                return None
            message = own.pop(0)
            if self._matches_filters(message):
                return message

    def _recv_internal(self, timeout):
        return self.recv(timeout), True

    def _wait(self, until, enough):
        """Waits for an instant, or until enough holds; sends the periodic messages that are due."""
        while not enough():
            due = min((task.due for task in self._tasks), default=None)
            first = min((t for t in (due, until) if t is not None), default=None)
            frame = self._unit.receive(first)
            if frame is not None:
                if frame.bus in _queues:
                    _queues[frame.bus].append(_message(frame))
            elif due is not None and first == due:
                for task in [t for t in self._tasks if t.due == due]:
                    task.step()
            else:
                return

    def _send_periodic_internal(self, msgs, period, duration=None, *more):
        if not self._unit.virtual:
            return super()._send_periodic_internal(msgs, period, duration, *more)
        return _VirtualTask(self, msgs, period, duration, *more)

    def fileno(self):
        return self._unit.fileno()

    def shutdown(self):
        super().shutdown()
        _queues.pop(self.channel, None)


class _VirtualTask(can.broadcastmanager.LimitedDurationCyclicSendTaskABC,
                   can.broadcastmanager.ModifiableCyclicTaskABC,
                   can.broadcastmanager.RestartableCyclicTaskABC):
    """Periodic messages in virtual time, sent by LockstepBus._wait."""

    def __init__(self, bus, messages, period, duration, autostart=True, modifier_callback=None):
        super().__init__(messages, period, duration)
        self.bus, self.index, self.modify = bus, 0, modifier_callback
        if autostart:
            self.start()

    def start(self):
        now = self.bus._unit.now
        self.due = now
        self.end = None if self.duration is None else now + round(self.duration * 1e9)
        if self not in self.bus._tasks:
            self.bus._tasks.append(self)

    def stop(self):
        if self in self.bus._tasks:
            self.bus._tasks.remove(self)

    def step(self):
        if self.end is not None and self.due >= self.end:
            self.stop()
            return
        if self.modify is not None:
            self.modify(self.messages[self.index])
        self.bus.send(self.messages[self.index])
        self.index = (self.index + 1) % len(self.messages)
        self.due += round(self.period * 1e9)


def _message(f):
    return can.Message(
        timestamp=f.time / 1e9, arbitration_id=f.id, is_extended_id=f.extended, is_remote_frame=f.remote,
        is_fd=f.fd, bitrate_switch=f.bit_rate_switch, error_state_indicator=f.error_state,
        dlc=f.length, data=f.data, channel=f.bus, is_rx=True)


__all__ = ["LockstepBus", "RunEnded"]
