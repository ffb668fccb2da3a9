"""lockstep: control units for lockstep, a hardware-in-the-loop target. Standard library only.

control_unit  ControlUnit: a program as the control unit of a bench
python_can    the interface "lockstep" of python-can, on ControlUnit
"""

from .control_unit import ControlUnit, Frame, ProtocolError, RunEnded

__all__ = ["ControlUnit", "Frame", "ProtocolError", "RunEnded"]
