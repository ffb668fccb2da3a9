package unit

import (
	"io"
	"testing"
	"time"

	"github.com/brutella/can"

	"lockstep/rt/ecu/diagnosis"
)

// faultyLaw reports a fault in every cycle.
type faultyLaw struct {
	clockedLaw
	operation Operation
	dt        float64 // of the last cycle, s
}

func (l *faultyLaw) Step(_, dt float64) []can.Frame {
	l.dt = dt
	l.operation.Memory.Report(1, true, Seconds(dt))
	return nil
}

// A unit that did not run for a second has not seen its fault in the meantime: only the cycles that ran count for the
// trouble code, one of them for two at most. The control law gets the whole time.
func TestTimeInWhichAUnitDidNotRunCountsForNoTroubleCode(t *testing.T) {
	const cycle = 10 * time.Millisecond
	law := &faultyLaw{}
	kind := Type{Name: "faulty", Period: cycle, New: func(b *Base) Law {
		law.base = b
		law.operation = NewOperation(b, []diagnosis.Code{{Number: 1, Text: "P0001", Fail: 200 * time.Millisecond, Pass: time.Second, Trips: 1}}, "")
		return law
	}}
	u, err := NewStepped(kind, io.Discard, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Duration(0)
	run := func(after time.Duration) byte {
		now += after
		law.base.KeepAwake(instant(now))
		if err := u.tick(now); err != nil {
			t.Fatal(err)
		}
		return law.operation.Memory.Status(1)
	}
	law.base.Wake(instant(now))
	run(cycle)
	if status := run(time.Second); status&diagnosis.TestFailed != 0 || law.dt != 1 {
		t.Errorf("after a gap of 1 s the status is %08b, and the law gets %g s", status, law.dt)
	}
	for k := 3; k <= 19; k++ { // 17 cycles more: 200 ms with the first two, which count for one and two
		if status := run(cycle); status&diagnosis.TestFailed != 0 != (k == 19) {
			t.Fatalf("after %d cycles the status is %08b", k, status)
		}
	}
}
