package soak

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"lockstep/rt/host"
	"lockstep/rt/supervisor"
)

// No other process can reserve the CPU or the interface of a soak between two segments.
func TestSegmentsPreserveTheReservationsOfTheirPredecessor(t *testing.T) {
	h, by := &host.Reservations{Owner: "soaked"}, fmt.Sprintf("held by soaked, process %d: end that one", os.Getpid())
	want := host.Request{CPU: 1000 + os.Getpid()%1000, Buses: []host.Interface{{Bus: "drive", Name: fmt.Sprintf("%d-legs", os.Getpid())}}}
	for i := range 3 {
		r := supervisor.New(nil, supervisor.Options{})
		r.Reservations = h
		if cpu, shared, err := r.Reservations.Reserve(want); err != nil || cpu != want.CPU || shared != nil || len(r.Reservations.Names()) != 2 {
			t.Fatalf("leg %d: %v, CPU %d, %+v, %+v", i, err, cpu, shared, r.Reservations)
		}
		files, err := r.Reservations.Files() // what a target inherits: each name, and each socket that will say that it has it
		if err != nil || len(files) != 4 {
			t.Fatalf("leg %d: %d files, %v", i, len(files), err)
		}
		for _, f := range files {
			f.Close()
		}
		k := &series{Soak: &Soak{}, store: &store{busy: make(chan struct{}, 1)}, state: &soakState{}}
		r.Reservations.NameTarget(1_000_000 + i)
		h = r.Reservations
		k.endSegment(r)
		if k.reservations != h || r.Reservations != nil {
			t.Fatalf("leg %d: kept %v", i, k.reservations)
		}
		for _, refused := range []host.Request{{CPU: want.CPU}, {CPU: want.CPU + 1000, Buses: want.Buses}} {
			var other host.Reservations
			if _, _, err := other.Reserve(refused); err == nil || !strings.Contains(err.Error(), by) {
				t.Errorf("leg %d: %+v: %v, want %q", i, refused, err, by)
			}
			other.Close()
		}
	}
	h.Close()
}

func TestLoadAvoidsTheCPUsOfOtherLoops(t *testing.T) {
	all := loadCPUs(-1, nil)
	mine, other := &host.Reservations{Owner: "mine"}, &host.Reservations{Owner: "other"}
	defer other.Close()
	const cpu = 999
	if _, _, err := other.Reserve(host.Request{CPU: cpu}); err != nil {
		t.Fatal(err)
	}
	if loops := mine.OtherLoops(); !slices.Contains(loops, cpu) {
		t.Errorf("other loops on %v, want CPU 999 among them", loops)
	}
	if loops := other.OtherLoops(); slices.Contains(loops, cpu) {
		t.Errorf("own loop listed among other loops: %v", loops)
	}
	if got := loadCPUs(-1, all[:1]); len(all) > 1 && !slices.Equal(got, all[1:]) {
		t.Errorf("%v of %v without %d", got, all, all[0])
	}
	if got := loadCPUs(7, all); !slices.Equal(got, []int{7}) {
		t.Errorf("load on CPUs %v where all have loops, want the loop's own CPU 7", got)
	}
}
