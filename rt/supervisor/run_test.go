package supervisor

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"lockstep/rt/bench"
	"lockstep/rt/bench/benchtest"
	"lockstep/rt/host"
	"lockstep/rt/report"
	"lockstep/sched"
)

// openBench returns the bench of benchtest.OpenFile.
func openBench(t *testing.T) *bench.Bench {
	t.Helper()
	b, err := bench.Load(benchtest.OpenFile(t))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// unreserved returns the name of an interface that no other test reserves.
func unreserved(t *testing.T) string {
	t.Helper()
	return fmt.Sprintf("%d-%s", os.Getpid(), t.Name()[len("Test"):][:6])
}

func TestSessionKeepsTheReservationsOfAnEarlierSession(t *testing.T) {
	b := openBench(t)
	b.CPU, b.Buses[0].Interface.Text = 1000+os.Getpid()%1000, unreserved(t)
	var held *host.Reservations
	for i := range 3 {
		r := &Session{View: report.View{Handover: &bench.Handover{ForSupervisors: bench.ForSupervisors{Bench: b}}}, Bench: b, Reservations: held}
		if err := r.reserve(); err != nil || r.Handover.Thread.CPU != b.CPU || len(r.Reservations.Names()) != 2 || held != nil && r.Reservations != held {
			t.Fatalf("session %d: %v, CPU %d, %+v", i, err, r.Handover.Thread.CPU, r.Reservations)
		}
		held = r.Reservations
	}
	held.Close()
}

func TestReservedInterfaceIsRefusedEvenAtBestEffort(t *testing.T) {
	iface := unreserved(t)
	begin := func(o Options) (*Session, error) {
		b := openBench(t)
		b.CPU, b.Buses[0].Interface.Text = 1000+os.Getpid()%1000, iface // a CPU that no other test reserves
		r := &Session{View: report.View{Handover: &bench.Handover{ForSupervisors: bench.ForSupervisors{Bench: b}}}, Bench: b, Options: o}
		return r, r.reserve()
	}
	first, err := begin(Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer first.Reservations.Close()
	second, err := begin(Options{BestEffort: true})
	defer func() { second.Reservations.Close() }()
	if want := fmt.Sprintf("run: interface %s is held by open_bench, process %d: end that one (lockstep stop %[2]d), or name another interface (-bus drive=NAME)", iface, os.Getpid()); err == nil || err.Error() != want {
		t.Errorf("%v; want %s", err, want)
	}
}

func TestWithAllCPUsReservedARealBusIsRefusedAndAPairShares(t *testing.T) {
	open, iface := openBench(t), unreserved(t)
	cpus := sched.LoopCPUs()
	for _, cpu := range cpus { // other tests may hold some of them already
		other := &host.Reservations{Owner: "other"}
		defer other.Close()
		if _, _, err := other.Reserve(host.Request{CPU: cpu, Share: true}); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		iface  string
		best   bool
		shares bool
	}{{bench.PairInterface, false, true}, {bench.PairInterface, true, true}, {iface, false, false}, {iface, true, true}} {
		b := *open
		b.CPU = -1
		b.Buses = slices.Clone(b.Buses)
		b.Buses[0].Interface.Text = c.iface
		r := &Session{View: report.View{Handover: &bench.Handover{ForSupervisors: bench.ForSupervisors{Bench: &b}}}, Bench: &b, Options: Options{BestEffort: c.best}, Reservations: &host.Reservations{Owner: "mine"}}
		err := r.reserve()
		r.Reservations.Close()
		wanted := fmt.Sprintf("is held by a loop; CPU %d by ", cpus[0])
		switch {
		case c.shares && (err != nil || r.shared == nil || !strings.HasPrefix(r.shared.What, fmt.Sprintf("there are more loops than CPUs, %d: ", len(cpus)))):
			t.Errorf("%+v: %v, %+v", c, err, r.shared)
		case !c.shares && (err == nil || !strings.Contains(err.Error(), wanted) || r.shared != nil):
			t.Errorf("%+v: %v, %+v", c, err, r.shared)
		}
	}
}

func TestControlUnitThatCannotBeStartedIsNamedOnce(t *testing.T) {
	b := openBench(t)
	b.Unit.Text = "no\x00unit" // not valid as an argument
	err := New(b, Options{}).StartNamedUnit("vcan0", nil)
	if text := fmt.Sprint(err); !errors.Is(err, syscall.EINVAL) || !strings.HasPrefix(text, "control unit "+b.Unit.Text+": ") {
		t.Errorf("%q, want the name of the control unit once", text)
	}
}
