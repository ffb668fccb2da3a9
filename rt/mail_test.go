package rt

import (
	"slices"
	"sync"
	"testing"
	"time"

	"lockstep/rt/fault"
	"lockstep/sched"
)

func TestRingHasFaultsBeforeTheFramesAndTheStepOfTheirTick(t *testing.T) {
	b := newGuarded(t, Overrun{}, []fault.Fault{{Kind: fault.Duplicate, Where: fault.SentFrame, Start: fault.Trigger{Tick: 3}, Duration: 1}})
	b.page.OpenRing()
	b.turn(1)
	if !b.page.Post(7, []fault.Command{{Op: fault.Put, Slot: 1, Fault: fault.Fault{Kind: fault.Drop, Where: fault.ReceivedFrame, Duration: 1}}}) {
		t.Fatal("the page takes no commands")
	}
	if b.page.Post(8, nil) {
		t.Error("the page takes a batch before the last one is taken")
	}
	b.command(t, 5)
	b.turn(2)
	if batch, tick := b.page.Taken(); batch != 7 || tick != 2 {
		t.Errorf("batch %d was taken at tick %d, want 7 at 2", batch, tick)
	}
	type told struct {
		kind           Kind
		tick           int64
		a, b           int // slot and state, or batch, or fate
		withheld, copy bool
	}
	want := []told{
		{KindFault, 1, 0, int(fault.Armed), false, false}, {KindStep, 1, 0, 0, false, false}, {KindFrame, 1, int(Sent), 0, false, false},
		{KindCommand, 2, 7, 0, false, false}, {KindFault, 2, 1, int(fault.Armed), false, false}, {KindFault, 2, 1, int(fault.Active), false, false},
		{KindFrame, 2, int(Received), 0, true, false}, {KindStep, 2, 0, 0, false, false}, {KindFrame, 2, int(Sent), 0, false, false},
		{KindFault, 3, 0, int(fault.Active), false, false}, {KindFault, 3, 1, int(fault.Over), false, false}, {KindStep, 3, 0, 0, false, false},
		{KindFrame, 3, int(Sent), 0, false, false}, {KindFrame, 3, int(Sent), 0, false, true},
	}
	var got []told
	for e := (Entry{}); b.page.NextEntry(&e); {
		switch e.Kind {
		case KindStep:
			got = append(got, told{kind: e.Kind, tick: e.Tick})
		case KindFrame:
			got = append(got, told{e.Kind, e.Tick, int(e.Fate), 0, e.Withheld, e.Copy})
		case KindFault:
			got = append(got, told{kind: e.Kind, tick: e.Tick, a: e.Slot, b: int(e.State)})
			if e.State == fault.Over && e.Count != 1 {
				t.Errorf("it is over after %d frames, want 1", e.Count)
			}
		case KindCommand:
			got = append(got, told{kind: e.Kind, tick: e.Tick, a: int(e.Batch)})
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

// Each batch makes two faults on one input that cancel each other: a step that saw one
// of them alone would be seen. For the race detector, too.
func TestBatchOfCommandsTakesEffectAtOneTick(t *testing.T) {
	b := newGuarded(t, Overrun{Skip, 50}, nil)
	b.page.OpenRing()
	timer, err := sched.NewTimer(sched.Timerfd, time.Millisecond, 0)
	if err != nil {
		t.Fatal(err)
	}
	b.cfg.Period, b.Loop.ticker, b.grid = time.Millisecond, timer, timer.Grid()
	const batches = 200
	var wg sync.WaitGroup
	wg.Go(func() {
		defer b.page.Stop.Store(StopPlanned)
		for n := uint64(1); n <= batches; n++ {
			a := float64(n)
			list := []fault.Command{{Slot: 0, Fault: fault.Fault{Kind: fault.Offset, A: a}}, {Slot: 40, Fault: fault.Fault{Kind: fault.Offset, A: -a}}}
			for end := time.Now().Add(time.Minute); !b.page.Post(n, list); time.Sleep(100 * time.Microsecond) {
				if time.Now().After(end) {
					t.Errorf("batch %d is not taken", n-1)
					return
				}
			}
			b.page.FaultState(40)
		}
	})
	taken, steps := map[uint64]bool{}, 0
	over := make(chan error)
	go func() { over <- b.Run() }()
	read := func() {
		for e := (Entry{}); b.page.NextEntry(&e); {
			switch e.Kind {
			case KindCommand:
				taken[e.Batch] = true
			case KindStep:
				if steps++; e.U[0] != 0 {
					t.Errorf("tick %d: the input is %v, want 0", e.Tick, e.U[0])
				}
			}
		}
	}
	for running := true; running; {
		select {
		case err := <-over:
			if running = false; err != nil {
				t.Fatal(err)
			}
		case <-time.After(time.Millisecond):
		}
		read()
	}
	wg.Wait()
	if batch, tick := b.page.Taken(); len(taken) < batches-1 || batch < batches-1 || tick == 0 || steps == 0 {
		t.Errorf("%d batches, the last %d at tick %d, in %d steps", len(taken), batch, tick, steps)
	}
}
