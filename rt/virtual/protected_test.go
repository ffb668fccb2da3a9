package virtual

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lockstep/io/can"
	"lockstep/rt"
	"lockstep/rt/bench/benchtest"
	"lockstep/rt/recorder"
	"lockstep/rt/report"
	"lockstep/rt/runtest"
)

func TestRecordOfAProtectedBenchReplays(t *testing.T) {
	r := runtest.Guarded(t, strings.Replace(benchtest.GuardedText(t), "on_error: safe", "on_error: {substitute: {clutch2.pressure: 1 bar}}", 1))
	say := r.Commands(t)
	file := filepath.Join(t.TempDir(), "record")
	rec, err := recorder.New(report.View{Handover: r.Handover, Status: r.Status}, recorder.Options{Path: file})
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Release()
	frames := make([]can.Frame, 64)
	r.Status.StartNs.Store(1)
	rec.Write(time.Now())
	for k := int64(1); k <= 900; k++ {
		for i := range say.Tx {
			var f can.Frame
			if !say.Due(i, k, nil, false) || i == 0 && k/100%2 == 1 { // away for half a second each second
				continue
			}
			say.Encode(&f, i, k, nil, false)
			if k%30 == 0 {
				f.Data[0] ^= 1
			}
			if k%50 == 0 {
				f.Data[7] ^= 0x40
			}
			r.Unit.Send(&f)
		}
		n := int64(1)
		if k%70 == 0 {
			n = 30 // lost points
		}
		r.Loop.Tick(n)
		r.Unit.Recv(frames)
		rec.Write(time.Now())
	}
	w := &r.Status.Rx[0]
	if w.Counts().Timeouts < 4 || w.Counts().Errors == 0 || r.Status.SafeReason.Load() != 0 {
		t.Errorf("%d timeouts, %d errors, %v: too few for this test", w.Counts().Timeouts, w.Counts().Errors, rt.Reason(r.Status.SafeReason.Load()))
	}
	rec.End()
	if why := rec.Incomplete(); why != "" {
		t.Fatal(why)
	}
	same, err := Replay{Record: file}.Run()
	if err != nil || same.Ticks == 0 {
		t.Errorf("%+v, %v", same, err)
	}
}
