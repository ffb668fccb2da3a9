"""The ignition of automatic-bench: changes have effect at the ticks that are answered; a wrong state is refused."""

import lockstep
import pytest


def test_ignition_changes_at_the_tick_that_is_answered(bench):
    bench.advance("100 ms")
    before = bench.tick
    off = bench.ignition("off")
    assert before < off
    bench.advance("100 ms")
    assert bench.ignition("on") > off
    with pytest.raises(lockstep.BenchError, match="ofd"):
        bench.ignition("ofd")
