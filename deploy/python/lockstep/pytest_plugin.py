"""Fixtures for pytest: bench and virtual_bench. A failed test reports the record and the signals around the
failure.

    pytest --lockstep-bench bench.yaml                     the bench runs in real time
    pytest --lockstep-bench bench.yaml --lockstep-virtual  in virtual time
    pytest --lockstep-attach NAME                          a run that goes on after the tests
"""

import collections
import http.client
import json
import threading
import time
import urllib.parse

import pytest

from .bench import _PATIENCE, Bench, BenchError, _Connection

_SHOWN = 10  # ticks in the report
_COLUMNS = 8  # outputs in the report of a test that has used no signal
_MOST = 1024  # signals of a stream


def pytest_addoption(parser):
    group = parser.getgroup("lockstep", "benches")
    group.addoption("--lockstep-bench", metavar="FILE", help="bench file of the fixtures bench and virtual_bench")
    group.addoption("--lockstep-virtual", action="store_true", help="the fixture bench runs in virtual time, too")
    group.addoption("--lockstep-attach", metavar="NAME", help="run that the fixture bench uses, and leaves running")
    group.addoption("--lockstep-flag", metavar="FLAG", action="append", default=[],
                    help="flag of lockstep run for the fixture bench, such as -besteffort; may be repeated")
    parser.addini("lockstep_bench", "bench file of the fixtures bench and virtual_bench, from the folder of this file")


@pytest.fixture
def bench(request, tmp_path):
    """A run of the bench for one test, started for it, or that of --lockstep-attach."""
    options = request.config.option
    if options.lockstep_attach:
        opened = Bench.attach(options.lockstep_attach)
    elif options.lockstep_virtual:
        opened = Bench.virtual(_file(request.config), record=tmp_path / "bench.rec")
    else:
        opened = Bench.start(_file(request.config), *options.lockstep_flag, record=tmp_path / "bench.rec")
    yield from _use(request, opened, tmp_path)


@pytest.fixture
def virtual_bench(request, tmp_path):
    """A run of the bench in virtual time for one test. It stands at tick 0."""
    yield from _use(request, Bench.virtual(_file(request.config), record=tmp_path / "virtual.rec"), tmp_path)


def _file(config):
    if config.option.lockstep_bench:
        return config.option.lockstep_bench
    if config.getini("lockstep_bench"):
        return config.rootpath / config.getini("lockstep_bench")
    raise pytest.UsageError("which bench? Use --lockstep-bench FILE, or lockstep_bench in pytest.ini")


def _use(request, opened, folder):
    with opened:
        history = _History(opened)
        request.node.stash.setdefault(_histories, []).append((opened, history, folder))
        try:
            yield opened
        finally:
            history.close()
        if opened._process is not None and opened._report is None and not (report := opened.stop()).clean:
            pytest.fail(f"the run was not clean: {report.ended}\nrecord: {report.record}", pytrace=False)


_histories = pytest.StashKey()


class _History(threading.Thread):
    """The last second of all signals, every tick."""

    def __init__(self, opened):
        super().__init__(daemon=True)
        self._bench, self._lines = opened, collections.deque(maxlen=max(2 * _SHOWN, round(1 / opened.period)))
        self._connection = _Connection(opened._path, None)
        self.names = list(opened.signals)[:_MOST]
        query = urllib.parse.urlencode([("signal", n) for n in self.names] + [("every", "tick")])
        self._stream = opened._send(self._connection, "GET", "/stream?" + query)
        self._stream.readline()
        self.start()

    def run(self):
        try:
            while line := self._stream.readline():
                self._lines.append(line)
        except (OSError, ValueError, AttributeError, http.client.HTTPException):
            pass  # closed, or the supervisor has died

    def samples(self):
        """Returns the samples up to now: dictionaries as the door sends them."""
        if not self._bench.is_virtual:
            time.sleep(0.2)  # what follows the failure belongs to it
        try:
            now, end = self._bench.tick, time.monotonic() + 2
            while self.is_alive() and time.monotonic() < end:
                lines = list(self._lines)
                if now == 0 or lines and json.loads(lines[-1]).get("tick", 0) >= now:
                    break
                time.sleep(0.01)
        except BenchError:
            self.join(_PATIENCE)  # the run has ended
        return [s for s in map(json.loads, list(self._lines)) if "last" in s]

    def close(self):
        sock = self._connection.sock
        if sock is not None:
            try:
                sock.shutdown(2)
            except OSError:
                pass
        self.join()
        self._connection.close()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    if report.when == "call" and report.failed:
        for opened, history, folder in item.stash.get(_histories, []):
            report.sections.append((f"lockstep {opened.name}", _around(opened, history, folder)))


def _around(opened, history, folder):
    samples = history.samples()
    file = folder / f"{opened.name.replace('/', '_')}-signals.csv"
    units = [opened.signals[n]["unit"] for n in history.names]
    with open(file, "w", encoding="utf-8") as f:
        f.write(",".join(["time[s]"] + [f"{n}[{u}]" for n, u in zip(history.names, units)]) + "\n")
        for s in samples:
            f.write(",".join([repr(s["time_s"])] + ["" if v is None else repr(v) for v in s["last"]]) + "\n")
    outputs = [n for n, s in opened.signals.items() if s["kind"] == "output"]
    shown = {n.split("[")[0] for n in opened.used} or set(outputs[:_COLUMNS])
    columns = [(i, n) for i, n in enumerate(history.names) if n in shown]
    lines = [f"record: {opened.record or 'none'}", f"signals: {file}", "",
             "  ".join(["tick", "time[s]"] + [f"{n}[{units[i]}]" for i, n in columns])]
    for s in samples[-_SHOWN:]:
        values = [s["last"][i] for i, _ in columns]
        texts = ["-" if v is None else f"{v:.6g}" for v in values]
        lines.append("  ".join([str(s["tick"]), f"{s['time_s']:.6g}"] + texts))
    return "\n".join(lines)
