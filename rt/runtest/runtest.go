// Package runtest owns benches that tick in the process of a test: their loop in virtual time, and
// the control unit's end of their bus. It serves tests of the packages above rt/bench. It does not
// supervise, record or judge.
//
// It is separate from benchtest, because tests of rt/bench use benchtest and cannot import a
// package that imports rt/bench.
package runtest

import (
	"os"
	"testing"
	"time"

	"lockstep/io/can"
	"lockstep/io/dbc"
	"lockstep/io/sigmap"
	"lockstep/rt"
	"lockstep/rt/bench"
	"lockstep/rt/bench/benchtest"
	"lockstep/sched"
)

// Run is a prepared bench with its loop.
type Run struct {
	Handover *bench.Handover
	Status   *rt.StatusBlock
	Loop     *rt.Loop
	Unit     *can.Bus // the control unit's end of the bus
}

// Demo prepares the embedded demo bench.
func Demo(t testing.TB) *Run {
	t.Helper()
	b, err := bench.Load("powershift-bench")
	if err != nil {
		t.Fatal(err)
	}
	return start(t, b)
}

// Guarded prepares the bench in text, with the database of benchtest.GuardedFolder.
func Guarded(t testing.TB, text string) *Run {
	t.Helper()
	return Text(t, benchtest.GuardedFolder(t), text)
}

// Text prepares the bench in text, with the files of a folder and the embedded ones.
func Text(t testing.TB, folder, text string) *Run {
	t.Helper()
	b, err := bench.Parse("b.yaml", folder, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return start(t, b)
}

// start creates the loop of a bench with one bus.
func start(t testing.TB, b *bench.Bench) *Run {
	t.Helper()
	h, err := bench.Prepare(b)
	if err != nil {
		t.Fatal(err)
	}
	r := &Run{Handover: h, Status: new(rt.StatusBlock)}
	var ends [2]*can.Bus
	unit, target, err := can.Pair()
	for i, f := range []*os.File{unit, target} {
		if err == nil {
			ends[i], err = can.Inherit(f)
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { ends[i].Close() })
	}

	period := time.Duration(h.Tables.PeriodNs)
	if r.Loop, err = rt.New(h.Loop, h.Plant(), ends[1:], h.Maps, sched.NewVirtual(period), r.Status); err != nil {
		t.Fatal(err)
	}
	r.Unit = ends[0]
	r.Status.State.Store(uint64(rt.Running))
	return r
}

// Commands returns the signal map of a control unit for the guarded bench, which sends two
// pressures.
func (r *Run) Commands(t testing.TB) *sigmap.Map {
	t.Helper()
	bus := r.Handover.Bench.Buses[0]
	_, data, err := r.Handover.Bench.Read(bus.Database, "database")
	if err != nil {
		t.Fatal(err)
	}
	db, err := dbc.Parse("guarded.dbc", data)
	if err != nil {
		t.Fatal(err)
	}
	first := sigmap.Sending{Message: "TCU_Pressure_1", CycleNs: 10e6, Values: []sigmap.Constant{{Signal: "pressure_C1", Text: "20 bar"}}}
	first.Protect = bus.Messages[0].Protect
	second := sigmap.Sending{Message: "TCU_Pressure_2", CycleNs: 10e6, Values: []sigmap.Constant{{Signal: "pressure_C5", Text: "10 bar"}}}
	m, err := sigmap.Bind(db, sigmap.Spec{PeriodNs: 5e6, Sendings: []sigmap.Sending{first, second}}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return m
}
