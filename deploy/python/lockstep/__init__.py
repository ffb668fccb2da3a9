"""lockstep: the client of lockstep, a hardware-in-the-loop target. Standard library only.

bench          Bench: start, read, change, watch and stop a run
pytest_plugin  the fixtures bench and virtual_bench of pytest, on Bench
control_unit   ControlUnit: a program as the control unit of a bench
python_can     the interface "lockstep" of python-can, on ControlUnit
"""

from .bench import Bench, BenchEnded, BenchError, Capture, NotReached, Report
from .control_unit import ControlUnit, Frame, ProtocolError, RunEnded

__all__ = ["Bench", "BenchEnded", "BenchError", "Capture", "ControlUnit", "Frame", "NotReached", "ProtocolError",
           "Report", "RunEnded"]
