package virtual

import (
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"lockstep/rt/scenario"
	"lockstep/rt/supervisor"
)

// Clients, the recorder with its judge and the loop meet at the page; the race detector
// looks on.
func TestManyWhoChangeARecordedRunAtOnceReplay(t *testing.T) {
	file := filepath.Join(t.TempDir(), "changed.rec")
	c := newControlled(t, func(r *supervisor.Session) {
		r.Handover.Loop.Virtual, r.Options.Record = true, file
		var err error
		if r.Scenario.Scenario, err = scenario.Parse("s.yaml", []byte("scenario: s\nexpect: [{count: {message: Speeds, of: frames}, at_least: 1}, {value: w1, below: 9000 rpm}]\n"), r.Handover); err != nil {
			t.Fatal(err)
		}
		startRecord(t, r)
	})
	c.r.record.Record(false)
	var clients sync.WaitGroup
	for i := range 4 {
		clients.Add(1)
		go func() {
			defer clients.Done()
			for n := range 15 {
				name := fmt.Sprintf("f%d", i)
				for _, words := range [][]string{
					{"fault", "name=" + name, "frame=Speeds", "drop", "for=2 frames"},
					{"fault", "name=" + name, "signal=Speeds.w1", "noise=3", fmt.Sprintf("seed=%d", n)},
					{"set", fmt.Sprintf("clutch7.pressure=%d bar", n), fmt.Sprintf("Status.lag=0.00%d", i)}, {"faults"}, {"status"}, {"clear", name},
				} {
					if _, err := c.ask(words...); err != nil {
						t.Errorf("%q: %v", words, err)
						return
					}
				}
			}
		}()
	}
	clients.Wait()
	c.end()
	if why := c.r.record.Finish(); why != "" {
		t.Error(why)
	}
	for _, f := range c.r.record.Findings() {
		if !f.Held {
			t.Errorf("%+v", f)
		}
	}
	if same, err := (Replay{Record: file}).Run(); err != nil || same.Ticks == 0 {
		t.Errorf("%+v (%v)", same, err)
	}
}
