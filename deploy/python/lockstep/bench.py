"""A bench from the outside: start or find a run, read and change it at a tick, wait, capture, stop it.

    with lockstep.Bench.virtual("bench.yaml", record="a.rec") as bench:
        bench.write("throttle", 40, "%")
        bench.wait_until("w_engine > 3000 rpm", timeout="5 s")
        bench.expect("gear == 2", within="500 ms")

Numbers are in the units that the plant file or the database declares. `lockstep help python` is the guide.
"""

import http.client
import json
import math
import operator
import os
import re
import shutil
import socket
import struct
import subprocess
import tempfile
import time
import urllib.parse
from collections import namedtuple

try:
    import numpy
except ImportError:
    numpy = None

__tracebackhide__ = True  # pytest shows the line of the test

_PIECE = 64  # ticks that the queue of a stream holds for any number of signals
_IDLE = 30  # s; the door closes a connection that is idle for 60 s
_PATIENCE = 40  # s, longest wait for an answer, and for a line of a stream in real time

_OPERATORS = {"<=": operator.le, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
              "<": operator.lt, ">": operator.gt}
_CONDITION = re.compile(r"\s*(.+?)\s*(<=|>=|==|!=|<|>)\s*(\S+)\s*(.*?)\s*$")


class BenchError(Exception):
    """The bench refuses a request, cannot be started or found, or does not answer."""


class BenchEnded(BenchError):
    """The run has ended."""


class NotReached(BenchError, AssertionError):
    """A condition did not hold in its time, or an expectation is broken."""


Report = namedtuple("Report", "clean ended record details")
Report.__doc__ = """The end of a run.

clean    the run broke no policy and no expectation of its scenario
ended    why it ended
record   file of its record, or None
details  the report as lockstep wrote it (-report); of a run that another program started, the answer to stop
"""


class Capture(dict):
    """Captured signals by name, as in the request, at time, s, and tick; lost is the number of ticks that
    are missing. The columns are numpy arrays if numpy is installed, otherwise lists."""

    def __init__(self, names, units, rows, lost):
        array = list if numpy is None else numpy.array
        super().__init__((name, array([row[2][i] for row in rows])) for i, name in enumerate(names))
        self.tick, self.time = array([row[0] for row in rows]), array([row[1] for row in rows])
        self.units, self.lost = dict(zip(names, units)), lost


class Bench:
    """A run. Use start, virtual or attach; a context manager.

    At the end of a with block, a run that start or virtual started is stopped; one that attach found goes
    on. A program that dies leaves the run as it is.

    name        of the bench
    is_virtual  the run is in virtual time: it stands whenever no client advances it
    record      file of the record, or None
    period      of the grid, s
    signals     descriptions of all signals by name, as GET /description of the door has them
    used        signals that were read or watched so far, in their order
    """

    def __init__(self, path, process=None, folder=None, record=None, virtual=False):
        self._path, self._process, self._folder = path, process, folder
        self._connection, self._asked, self._report = None, 0, None
        self.is_virtual, self.record, self.used = virtual, record, {}
        description = self._ask("GET", "/description")
        self.name, self.period = description["bench"], description["period_s"]
        self.signals = {s["name"]: s for s in description["signals"]}

    @classmethod
    def start(cls, file, *flags, record=None, timeout=60):
        """Starts `lockstep run FILE` with further flags, such as "-besteffort". timeout is the longest time
        until the run can be asked, s. The program LOCKSTEP names in the environment is used, or lockstep."""
        return cls._launch("run", file, flags, record, timeout)

    @classmethod
    def virtual(cls, file, *flags, record=None, timeout=60):
        """Starts `lockstep sim FILE -door`: the run stands at tick 0."""
        return cls._launch("sim", file, ("-door", *flags), record, timeout)

    @classmethod
    def attach(cls, which):
        """Finds a run by the name of its bench, the process id of its supervisor, or its socket."""
        if os.path.exists(str(which)) and "/" in str(which):
            paths = [str(which)]
        else:
            name = re.sub(r"[^A-Za-z0-9._-]", "_", str(which)).lstrip(".")
            paths = [p for p in _sockets()
                     if os.path.basename(p) == name + ".sock" or str(_listener(p)) == str(which)]
        if not paths:
            raise BenchError(f"no bench {which} runs: lockstep ps lists the runs")
        bench = cls(paths[0])
        bench.is_virtual = bench._ask("GET", "/status")["run"].get("target", 0) == 0
        return bench

    @classmethod
    def _launch(cls, command, file, flags, record, timeout):
        folder = tempfile.mkdtemp(prefix="lockstep-")
        words = [os.environ.get("LOCKSTEP", "lockstep"), command, str(file), *flags,
                 "-report", os.path.join(folder, "report.json")]
        if record is not None:
            words += ["-record", str(record)]
        with open(os.path.join(folder, "output"), "wb") as output:
            # Of a group of its own: Ctrl-C in this program does not end the run.
            process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                                       start_new_session=True)
        try:
            end = time.monotonic() + timeout
            while True:
                code = process.poll()
                path = next((p for p in _sockets() if _listener(p) == process.pid), None)
                if path is not None:
                    bench = cls(path, process, folder, record, command == "sim")
                    while not bench.is_virtual and bench.tick == 0 and time.monotonic() < end:
                        time.sleep(0.01)
                    return bench
                if code is not None or time.monotonic() > end:
                    why = f"exit code {code}" if code is not None else f"not ready after {timeout} s"
                    raise BenchError(f"{' '.join(words[:3])}: {why}: {_text(folder, 'output').strip()}")
                time.sleep(0.02)
        except BaseException:
            process.terminate()
            process.wait()
            shutil.rmtree(folder)
            raise

    # Reading.

    def info(self, name):
        """Returns the description of a signal: kind, direction, unit, range, texts, settable."""
        if name not in self.signals:
            self._ask("GET", "/values", signals=[name])  # refused, with the nearest name
        return self.signals[name]

    def is_readable(self, name):
        return name in self.signals

    def is_writable(self, name):
        """Reports whether write takes a signal."""
        return name in self.signals and self.signals[name]["settable"]

    def read(self, names, unit=None):
        """Returns the value of a signal at the present tick, or those of a list of signals at one tick. The
        unit is the declared one, another one by unit or by the name "w1[rad/s]". None: not known yet."""
        values = self._values([names] if isinstance(names, str) else names, unit)[1]
        return values[0] if isinstance(names, str) else values

    def _values(self, names, unit=None):
        names = [_in_unit(name, unit) for name in names]
        self._use(names)
        answer = self._ask("GET", "/values", signals=names)
        return answer["time_s"], [v["value"] for v in answer["values"]]

    def text(self, name):
        """Returns the text of a signal's value, such as "stuck"; "" without one."""
        self._use([name])
        return self._ask("GET", "/values", signals=[name])["values"][0].get("text", "")

    @property
    def time(self):
        """The simulated time, s."""
        return self._ask("GET", "/faults")["time_s"]  # the shortest answer with the tick

    @property
    def tick(self):
        """The present tick."""
        return self._ask("GET", "/faults")["tick"]

    def faults(self):
        """Returns the faults of the run: dictionaries with slot, name, spec, state and count."""
        return self._ask("GET", "/faults").get("faults", [])

    def status(self):
        """Returns the state of the run, as GET /status of the door has it."""
        return self._ask("GET", "/status")

    # Changes. All return the first tick with the change.

    def write(self, name, value=None, unit=None):
        """Sets a signal, or with a dictionary several signals at one tick. A number is in the declared unit or
        in unit; a text has its unit: "40 %"."""
        values = name if isinstance(name, dict) else {name: value}
        return self._change("/set", {"values": {
            n: v if unit is None else f"{float(v)!r} {unit}" for n, v in values.items()}})

    def release(self, *names):
        """Ends the effect of write on signals; "all": on all."""
        return self._change("/release", {"names": list(names)})

    def param(self, values=None, /, **more):
        """Changes parameters of the plant, all at one tick: param(m_car="2000 kg", mu=0.09). A number is in the
        declared unit."""
        return self._change("/param", {"values": {**(values or {}), **more}})

    def fault(self, **keys):
        """Starts a fault with the keys of a scenario: fault(name="ice", input="mu_left", stuck=0.1, for_="2 s").
        A key that Python reserves ends in "_"."""
        return self._change("/fault", {"arguments": [_argument(k.rstrip("_"), v) for k, v in keys.items()]})

    def clear(self, *names):
        """Ends faults; "all": all."""
        return self._change("/clear", {"names": list(names)})

    def snapshot(self, name):
        """Stores the state of the plant. A snapshot of the same name is replaced. Returns the first tick after
        the state."""
        return self._change("/snapshot", {"name": name})

    def delete_snapshot(self, name):
        """Deletes the snapshot called name, and returns the first tick without it."""
        return self._change("/snapshot", {"name": name, "delete": True})

    def reset(self, name=None):
        """Returns the plant to its start, or to the snapshot called name, and returns the first tick from there."""
        return self._change("/reset", {"name": name} if name else {})

    def ignition(self, state):
        """Enters a state of the ignition: off, standby, ignition, crank, run, or on for run. Returns the first tick in it."""
        return self._change("/ignition", {"state": state})

    def power(self, state):
        """Switches the supply of the unit under test: on, off or a voltage such as "9 V". Returns the tick."""
        return self._change("/power", {"state": state})

    def record_on(self, file):
        """Starts a record in a new file, and returns its first tick."""
        tick = self._change("/record", {"on": True, "file": os.path.abspath(file)})
        self.record = os.path.abspath(file)
        return tick

    def record_off(self):
        """Ends the record, and returns the first tick that it lacks."""
        return self._change("/record", {"on": False})

    def mark(self, text):
        """Puts a text into the record."""
        return self._change("/mark", {"text": text})

    def uds(self, *words, bus=""):
        """Diagnoses the control unit: uds("read", "oil_temperature"). Returns the lines of the answer.
        BenchError: the unit has refused it, has not answered, or has answered wrongly."""
        body = {"words": [str(w) for w in words]} | ({"bus": bus} if bus else {})
        if len(words) == 2 and words[0] == "flash":
            body["words"][1] = os.path.abspath(words[1])
        answer = self._ask("POST", "/uds", body, patience=None)
        if answer.get("error"):
            raise BenchError(answer["error"])
        return answer["lines"]

    def _change(self, path, body):
        return self._ask("POST", path, body)["tick"]

    # Time.

    def advance(self, duration):
        """Advances a run in virtual time by a time, such as "100 ms" or 0.1 s. In real time it waits as long.
        Returns the simulated time, s. BenchEnded: the run has ended before."""
        seconds = _seconds(duration)
        if self.is_virtual:
            return self._advance(_duration(duration))["time_s"]
        end = self.time + seconds
        while (now := self.time) < end:
            time.sleep(min(max(end - now, 0.001), 1))
        return now

    def _advance(self, duration):
        answer = self._ask("POST", "/advance", {"time": duration}, patience=None)
        if answer.get("ended"):
            raise BenchEnded(f"{self.name}: the run has ended at {answer['time_s']:g} s: {answer['ended']}")
        return answer

    def capture(self, signals, duration, every="tick"):
        """Returns the signals over a time from now on as a Capture, at every tick or at intervals such as
        "100 ms". A run in virtual time advances by that time."""
        names = [signals] if isinstance(signals, str) else list(signals)
        ticks, rows, lost, start = max(1, math.ceil(_seconds(duration) / self.period - 1e-6)), [], 0, {"signals": []}
        for start, line in self._lines(names, every, ticks):
            rows.append((line["tick"], line["time_s"], [math.nan if v is None else v for v in line["last"]]))
            lost += line.get("lost", 0)
        return Capture(names, [s["unit"] for s in start["signals"]], rows, lost)

    def wait_until(self, condition, timeout):
        """Waits for the first tick at which a condition holds, such as "w1 > 3000 rpm and gear == 2", and returns
        its time, s. A run in virtual time advances and then stands at that tick. NotReached: the condition did
        not hold within timeout, in simulated time."""
        parts = self._parse(condition)
        now, values = self._values([p.name for p in parts])
        end = now + _seconds(timeout) - 1e-9
        if _holds(parts, values):
            return now
        for _, line in self._lines([p.name for p in parts], "tick"):
            now, values = line["time_s"], line["last"]
            if _holds(parts, values):
                return now
            if now >= end:
                raise NotReached(f"{condition} did not hold within {timeout}; at {now:g} s {_state(parts, values)}")

    def expect(self, condition, within=None, during=None):
        """Raises NotReached, an AssertionError, unless a condition holds: at the present tick, at a tick within
        a time, or at every tick during a time."""
        if within is not None:
            return self.wait_until(condition, within)
        parts = self._parse(condition)
        now, values = self._values([p.name for p in parts])
        samples = [(now, values)]
        if during is not None:
            c = self.capture([p.name for p in parts], during)
            samples += zip(c.time, zip(*(c[p.name] for p in parts)))
        for now, values in samples:
            if not _holds(parts, values):
                raise NotReached(f"expected {condition}; at {now:g} s {_state(parts, values)}")
        return now

    def _parse(self, condition):
        parts = []
        for text in condition.split(" and "):
            m = _CONDITION.match(text)
            if m is None:
                raise ValueError(f"{text!r} is no condition like w1 > 3000 rpm")
            name, sign, value, unit = m.groups()
            try:
                number = float(value)
            except ValueError:
                texts = {t["text"]: t["value"] for t in self.info(name).get("texts", [])}
                if value not in texts or unit:
                    raise ValueError(f"{text!r}: {value} is neither a number nor a text of {name}: "
                                     f"{', '.join(texts) or 'it has none'}") from None
                number = texts[value]
            parts.append(_Part(_in_unit(name, unit or None), _OPERATORS[sign], number))
        return parts

    def _lines(self, names, every, ticks=None):
        """Yields the start of a stream and each of its samples, over a number of ticks or for ever. In virtual
        time the run advances as the samples are read: for ever tick by tick."""
        self._use(names)
        connection = _Connection(self._path, _PATIENCE)
        try:
            query = urllib.parse.urlencode([("signal", n) for n in names] + [("every", _duration(every))])
            stream = self._send(connection, "GET", "/stream?" + query)
            start = json.loads(stream.readline())
            step, done, read = start["every"], 0, self.tick
            first = None
            while ticks is None or done < ticks:
                if self.is_virtual:
                    piece = 1 if ticks is None else min(_PIECE, ticks - done)
                    done, reached = done + piece, self._advance(f"{piece * self.period!r} s")["tick"]
                while not self.is_virtual or read < reached - reached % step:
                    line = self._sample(stream)
                    read = line["tick"]
                    yield start, line
                    if not self.is_virtual:
                        first = first or read
                        done = read - first + step
                        break
        finally:
            connection.close()

    def _sample(self, stream):
        try:
            line = json.loads(stream.readline() or b"null")
        except OSError as e:
            raise BenchError(f"{self.name}: the loop stands still: {e}") from e
        except (http.client.HTTPException, ValueError):  # the supervisor has died within a line
            line = None
        if line is None or "ended" in line:
            raise BenchEnded(f"{self.name}: the run has ended" + (f": {line['ended']}" if line else ""))
        return line

    # The end.

    def stop(self, now=False):
        """Ends the run, waits for its end, and returns its Report. now kills the target."""
        if self._report is not None:
            return self._report
        try:
            answer = self._ask("POST", "/stop", {"now": now, "wait": True}, patience=None)
        except BenchEnded:
            answer = {"clean": False, "ended": "the run had ended before"}
        self.close()
        if self._process is not None:
            code = self._process.wait()
            text = _text(self._folder, "report.json")
            if text:
                answer = json.loads(text)
            answer["clean"] = code == 0
            answer["output"] = _text(self._folder, "output")
            shutil.rmtree(self._folder)
        self._report = Report(answer.get("clean", False), answer.get("ended", ""), self.record, answer)
        return self._report

    def close(self):
        """Leaves the run as it is."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self._process is not None:
            self.stop()
        self.close()

    # Requests.

    def _use(self, names):
        self.used.update(dict.fromkeys(names))

    def _ask(self, method, path, body=None, signals=None, patience=_PATIENCE):
        if self._connection is not None and time.monotonic() - self._asked > _IDLE:
            self.close()
        if self._connection is None:
            self._connection = _Connection(self._path, patience)
        if self._connection.sock is not None:
            self._connection.sock.settimeout(patience)
        self._connection.timeout = patience
        if signals is not None:
            path += "?" + urllib.parse.urlencode([("signal", s) for s in signals])
        try:
            answer = json.loads(self._send(self._connection, method, path, body).read())
        except http.client.HTTPException as e:
            self.close()
            raise BenchEnded(f"{getattr(self, 'name', self._path)}: the run has ended: {e!r}") from e
        except BaseException:
            self.close()  # the answer may still be on its way
            raise
        self._asked = time.monotonic()
        return answer

    def _send(self, connection, method, path, body=None):
        name = getattr(self, "name", self._path)
        try:
            connection.request(method, path, None if body is None else json.dumps(body))
            response = connection.getresponse()
        except (FileNotFoundError, ConnectionError, http.client.HTTPException) as e:
            raise BenchEnded(f"{name}: the run has ended, or is another user's: {e}") from e
        except OSError as e:
            raise BenchError(f"{name}: {e}") from e
        if response.status != 200:
            try:
                why = json.loads(response.read())["error"]
            except ValueError:
                why = f"status {response.status}"
            raise BenchError(f"{name}: {why}")
        return response


_Part = namedtuple("_Part", "name holds value")  # of a condition


class _Connection(http.client.HTTPConnection):
    """HTTP on the socket of a run."""

    def __init__(self, path, timeout):
        super().__init__("lockstep", timeout=timeout)
        self._path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def _sockets():
    """Returns the sockets of the runs of this user, then those of services."""
    if os.getuid() == 0:
        folders = ["/run/lockstep", "/run/lockstep-0"]
    else:
        runtime = os.environ.get("XDG_RUNTIME_DIR", "")
        own = os.path.join(runtime, "lockstep") if os.path.isabs(runtime) else f"/tmp/lockstep-{os.getuid()}"
        folders = [own, "/run/lockstep"]
    found = []
    for folder in folders:
        try:
            found += sorted(os.path.join(folder, f) for f in os.listdir(folder) if f.endswith(".sock"))
        except OSError:
            pass
    return found


def _listener(path):
    """Returns the process that listens at a socket, 0 if none does."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
        try:
            s.connect(path)
            return struct.unpack("3i", s.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]
        except OSError:
            return 0


def _text(folder, name):
    try:
        with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as f:
            return f.read()
    except OSError:
        return ""


def _in_unit(name, unit):
    return name if unit is None else f"{name}[{unit}]"


def _argument(key, value):
    if value is True:
        return key
    if isinstance(value, dict):
        value = "{" + ", ".join(f"{k}: {v}" for k, v in value.items()) + "}"
    return f"{key}={value}"


def _duration(d):
    """Returns a time as text: a number is in s."""
    return d if isinstance(d, str) else f"{d!r} s"


def _seconds(d):
    seconds = d
    if isinstance(d, str):
        m = re.fullmatch(r"\s*([0-9.eE+-]+)\s*(ns|us|ms|s|min|h)\s*", d)
        if m is None:
            raise ValueError(f"{d!r} is no time like 100 ms")
        seconds = float(m[1]) * {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1, "min": 60, "h": 3600}[m[2]]
    if not 0 <= seconds < math.inf:
        raise ValueError(f"{d!r} is no time: it is not a number, negative or infinite")
    return float(seconds)


def _holds(parts, values):
    return all(v is not None and p.holds(v, p.value) for p, v in zip(parts, values))


def _state(parts, values):
    return ", ".join(f"{p.name} is {'not known' if v is None else format(v, '.6g')}" for p, v in zip(parts, values))
