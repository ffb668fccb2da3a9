package soak

import (
	"os"
	"slices"
	"strings"
	"testing"

	"lockstep/rt/bench"
	"lockstep/rt/host"
	"lockstep/rt/report"
	"lockstep/rt/supervisor"
)

// Between two legs of a soak nobody takes what they have, and the next target holds it, too.
func TestALegHoldsWhatTheOneBeforeItHad(t *testing.T) {
	b := openHeld(t).Bench
	b.CPU, b.Buses[0].Interface.Text = 1000+os.Getpid()%1000, strings.TrimPrefix(unheld(t), host.BusPrefix)
	var h *host.Reservations
	for i := range 3 {
		r := &supervisor.Session{View: report.View{Handover: &bench.Handover{Bench: b}}, Bench: b, Holds: h, restore: func() {}}
		if err := r.hold(); err != nil || r.Handover.Thread.CPU != b.CPU || len(r.Holds.What) != 2 || len(r.Holds.fds) != 2 || len(r.Holds.tags) != 2 {
			t.Fatalf("leg %d: %v, CPU %d, %+v", i, err, r.Handover.Thread.CPU, r.Holds)
		}
		k := &legs{store: &store{}}
		r.Holds.Inherited(1_000_000 + i)
		h = r.Holds
		k.after(r)
		if k.holds != h || r.Holds != nil {
			t.Fatalf("leg %d: kept %v", i, k.holds)
		}
		var other host.Reservations
		if by, err := other.take(h.What[0]); err != nil || by == nil || by.Supervisor != os.Getpid() {
			t.Errorf("leg %d: held by %v, %v", i, by, err)
		}
		other.Close()
	}
	h.Close()
}

func TestTheLoadLeavesOtherLoopsTheirCPUs(t *testing.T) {
	all := besides(-1, nil)
	mine, other := &host.Reservations{Owner: "mine"}, &host.Reservations{Owner: "other"}
	defer other.Close()
	const cpu = "999"
	if by, err := other.take(host.CPUPrefix + cpu); by != nil || err != nil {
		t.Fatal(by, err)
	}
	if loops := mine.OtherLoops(); !slices.Contains(loops, 999) {
		t.Errorf("loops of others on %v", loops)
	}
	mine.What = []string{host.CPUPrefix + cpu}
	if loops := mine.OtherLoops(); slices.Contains(loops, 999) {
		t.Errorf("the own one is another's: %v", loops)
	}
	if got := besides(-1, all[:1]); len(all) > 1 && !slices.Equal(got, all[1:]) {
		t.Errorf("%v of %v without %d", got, all, all[0])
	}
	if got := besides(7, all); !slices.Equal(got, []int{7}) {
		t.Errorf("%v where every other CPU has a loop, want the own one", got)
	}
}
