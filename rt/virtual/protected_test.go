package virtual

import (
	"path/filepath"
	"strings"
	"testing"

	"lockstep/io/can"
	"lockstep/rt"
	"lockstep/rt/bench/benchtest"
)

func TestRecordOfAProtectedBenchRunsAgainBitForBit(t *testing.T) {
	r, loop, unit := guardedRun(t, strings.Replace(benchtest.GuardedText(t), "on_error: safe", "on_error: {substitute: {clutch2.pressure: 1 bar}}", 1))
	say := unitMap(t, r)
	r.Options.Record = filepath.Join(t.TempDir(), "record")
	startRecord(t, r)
	frames := make([]can.Frame, 64)
	r.Page.StartNs.Store(1)
	if !r.record.begin() {
		t.Fatal(r.record.err)
	}
	for k := int64(1); k <= 900; k++ {
		for i := range say.Tx {
			var f can.Frame
			if !say.Due(i, k, nil) || i == 0 && k/100%2 == 1 { // away for half a second each second
				continue
			}
			say.Encode(&f, i, nil)
			if k%30 == 0 {
				f.Data[0] ^= 1
			}
			if k%50 == 0 {
				f.Data[7] ^= 0x40
			}
			unit.Send(&f)
		}
		n := int64(1)
		if k%70 == 0 {
			n = 30 // lost points
		}
		loop.Tick(n)
		unit.Recv(frames)
		r.record.drain()
	}
	w := &r.Page.Rx[0]
	if w.Timeouts.Load() < 4 || w.Errors.Load() == 0 || r.Page.SafeReason.Load() != 0 {
		t.Errorf("%d timeouts, %d errors, %v: this proves little", w.Timeouts.Load(), w.Errors.Load(), rt.Reason(r.Page.SafeReason.Load()))
	}
	r.record.wakeUp(&rt.Entry{})
	if err := r.record.w.Close(); err != nil {
		t.Fatal(err)
	}
	same, err := Replay{Record: r.Options.Record}.Run()
	if err != nil || same.Ticks == 0 {
		t.Errorf("%+v, %v", same, err)
	}
}
