package supervisor

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"lockstep/rt"
	"lockstep/rt/bench"
	"lockstep/rt/host"
	"lockstep/rt/recorder"
	"lockstep/rt/report"
	"lockstep/sched"
)

func TestLinesAreKeptForWhoRecordsAlone(t *testing.T) {
	h := openControlled(t)
	h.Bench.Name = fmt.Sprintf("lines %d", os.Getpid())                      // other tests run on this host
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())                                 // root's sockets have a folder of their own
	for path, keeps := range map[string]bool{"": false, "drive.rec": true} { // "": a judge reads the ring
		r := &Session{View: report.View{Handover: h, Page: new(rt.Page)}, Bench: h.Bench, Target: &host.Process{PID: os.Getpid()}, record: &recorder.Recorder{Path: path, Names: recorder.NewEventLog(h)}}
		if r.openControl(nil); r.Control == nil {
			t.Fatal(r.head)
		}
		if got := r.Control.record != nil; got != keeps {
			t.Errorf("record %q: lines are kept: %t", path, got)
		}
		r.Control.Close()
	}
}

func TestAnInterfaceIsRefusedEvenAtBestEffort(t *testing.T) {
	iface := strings.TrimPrefix(unheld(t), host.BusPrefix)
	begin := func(o Options) (*Session, error) {
		b := openHeld(t).Bench
		b.CPU, b.Buses[0].Interface.Text = 1000+os.Getpid()%1000, iface // no CPU that another test takes
		r := &Session{View: report.View{Handover: &bench.Handover{Bench: b}}, Bench: b, Options: o}
		return r, r.hold()
	}
	first, err := begin(Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer first.Holds.Close()
	second, err := begin(Options{BestEffort: true})
	defer second.Holds.Close()
	if want := fmt.Sprintf("run: interface %s is held by open_bench, process %d: end that one (lockstep stop %[2]d), or name another interface (-bus drive=NAME)", iface, os.Getpid()); err == nil || err.Error() != want {
		t.Errorf("%v; want %s", err, want)
	}
	var by *host.ReservedError
	if !errors.As(err, &by) || by.What != host.BusPrefix+iface || by.Owner != "open_bench" || by.Supervisor != os.Getpid() || by.Target != 0 {
		t.Errorf("%+v", by)
	}
}

func TestWhereEveryCPUIsHeldARealBusIsRefusedAndAPairShares(t *testing.T) {
	h, iface := openHeld(t), strings.TrimPrefix(unheld(t), host.BusPrefix)
	other := &host.Reservations{Owner: "other"}
	defer other.Close()
	cpus := sched.CPUs()
	for _, cpu := range cpus { // some may be another test's: they are held, too
		if _, err := other.take(fmt.Sprintf("%s%d", host.CPUPrefix, cpu)); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		iface  string
		best   bool
		shares bool
	}{{bench.PairInterface, false, true}, {bench.PairInterface, true, true}, {iface, false, false}, {iface, true, true}} {
		b := *h.Bench
		b.CPU = -1
		b.Buses = slices.Clone(b.Buses)
		b.Buses[0].Interface.Text = c.iface
		r := &Session{View: report.View{Handover: &bench.Handover{Bench: &b}}, Bench: &b, Options: Options{BestEffort: c.best}, Holds: &host.Reservations{Owner: "mine"}}
		err := r.hold()
		r.Holds.Close()
		var by *host.ReservedError
		switch {
		case c.shares && (err != nil || r.shared == nil || !strings.HasPrefix(r.shared.What, fmt.Sprintf("there are more loops than CPUs, %d: ", len(cpus)))):
			t.Errorf("%+v: %v, %+v", c, err, r.shared)
		case !c.shares && (!errors.As(err, &by) || by.What != host.CPUPrefix+strconv.Itoa(cpus[0]) || r.shared != nil):
			t.Errorf("%+v: %v, %+v", c, err, r.shared)
		}
	}
}
