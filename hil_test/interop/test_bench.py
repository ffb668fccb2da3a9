"""The suite of the demo gearbox: the same text in virtual time, on the pair and on a CAN interface.

    pytest --lockstep-bench powershift-bench [--lockstep-virtual] test_bench.py
"""

import lockstep
import pytest


def test_gearbox_shifts_up(bench):
    at = bench.wait_until("clutch2.mode == stuck and clutch1.mode == free", timeout="4 s")
    assert 0.7 < at <= bench.time
    bench.expect("w1 > 900 rpm", during="50 ms")
    for wrong in float("nan"), float("inf"), -1, "-1 s":  # with NaN it would wait for ever
        for wait in lambda: bench.wait_until("w1 > 1e6 rpm", wrong), lambda: bench.advance(wrong), lambda: bench.capture("w1", wrong):
            with pytest.raises(ValueError, match="is no time"):
                wait()


def test_fault_and_mark_take_effect_at_their_ticks(bench):
    bench.advance("100 ms")
    before = bench.tick
    started = bench.fault(name="lost", frame="Speeds", drop=True, for_="10 s")
    marked = bench.mark("lost speeds")
    assert before < started <= marked <= bench.tick + 1
    bench.advance("50 ms")
    fault, = bench.faults()
    assert fault["state"] == "active" and fault["count"] >= 9
    assert bench.clear("lost") > marked
    assert bench.faults() == []


def test_values_have_units_and_a_capture_has_every_tick(bench):
    assert bench.signals["w1"]["unit"] == "rpm"
    rpm, rad = bench.read(["w1", "w1[rad/s]"])
    assert rpm == pytest.approx(rad * 9.549296585513721)
    with pytest.raises(lockstep.BenchError, match="does not fit"):
        bench.read("w1", unit="bar")
    with pytest.raises(lockstep.BenchError, match="did you mean"):
        bench.read("w9")
    c = bench.capture(["w1", "w4[rad/s]", "TCU_Pressure_1.pressure_C1"], "200 ms")
    assert len(c["w1"]) == len(c.time) == 40 and c.lost == 0
    assert [int(t) for t in c.tick] == list(range(c.tick[0], c.tick[0] + 40))
    assert c.units["w4[rad/s]"] == "rad/s" and max(c["w1"]) > 900
    report = bench.stop()
    assert report.clean and report.details["ticks"] >= 40


def test_plant_returns_to_its_start_and_to_a_snapshot(bench, tmp_path):
    warm = bench.snapshot("warm")
    assert [s["name"] for s in bench.status()["snapshots"]] == ["warm"]
    assert 0 < warm <= bench.reset("warm") <= bench.reset()
    with pytest.raises(lockstep.BenchError, match="did you mean warm"):
        bench.reset("wram")
    off = bench.record_off()
    bench.advance("50 ms")
    assert warm <= off < bench.record_on(tmp_path / "second.rec")
    assert bench.delete_snapshot("warm") > off
    bench.advance("50 ms")
    assert bench.status().get("snapshots", []) == [] and bench.status()["record"] == str(tmp_path / "second.rec")


def test_parameter_changes_at_the_tick_that_is_answered(bench):
    at = bench.param(mu_oil=0.12)
    bench.advance("5 ms")
    assert 0 < at <= bench.tick and bench.read("mu_oil") == 0.12
    with pytest.raises(lockstep.BenchError, match="0.2"):
        bench.param(mu_oil=0.3)
