package proof

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lockstep/hil_test/lab"
	"lockstep/hil_test/proof/unit"
	"lockstep/io/record"
)

// The bench is off the bus from offFirst to offLast in proof/faults.yaml.
const offFirst, offLast = 1600, 1609

// asked is what proof/faults.yaml does to the frames of the bench, as a receiver counts
// it, the time off the bus apart.
func asked(fd bool) map[string]unit.Seen {
	motion, chassis := "MotionC", "ChassisC"
	if fd {
		motion, chassis = "Motion", "Chassis"
	}
	return map[string]unit.Seen{
		"Shafts": {Lost: 7, Old: 6}, "Torque": {Repeated: 5 + 2*5}, "Gears": {Wrong: 6}, "Service": {Repeated: 3},
		"Engine": {Length: 4, Lost: 4}, motion: {Wrong: 8 + 6 + 9}, chassis: {Wrong: 5},
		"Wheels": {}, "Ignition": {}, "Ambient": {},
	}
}

// scenario is proof/faults.yaml for a bench.
func (r *proofRun) scenario() string {
	r.Helper()
	text, err := os.ReadFile("faults.yaml")
	if err != nil {
		r.Fatal(err)
	}
	if r.name == "classic" { // the checks are those of the frames that all cards know
		text = []byte(strings.NewReplacer("Motion", "MotionC", "Chassis", "ChassisC", "TCU_2", "TCU_2C").Replace(string(text)))
	}
	path := filepath.Join(r.TempDir(), "faults.yaml")
	if err := os.WriteFile(path, text, 0o666); err != nil {
		r.Fatal(err)
	}
	return path
}

// course is the probe at a grid point, bar.
func course(k int64) float64 {
	if k %= 4000; k <= 2000 {
		return -50 + 0.05*float64(k)
	}
	return 150 - 0.05*float64(k)
}

// distortion is what a fault makes of a course, value by value from its first tick on.
type distortion struct {
	name  string
	first int64
	value func(k, first int64) float64 // bar
}

// onProbe are the faults on the probe that can be computed; all last for 20 ticks. What
// is open is all ones; a rail is what the signal's range ends at, in the database.
func onProbe() []distortion {
	leak := func(k, first int64) float64 {
		v := course(first)
		for i := first + 1; i <= k; i++ {
			v += (0.7*course(i) - v) * (1 - math.Exp(-0.005/0.1))
		}
		return v
	}
	return []distortion{
		{"stuck", 2400, func(int64, int64) float64 { return 12.34 }},
		{"hold", 2500, func(_, first int64) float64 { return course(first) }},
		{"offset", 2600, func(k, _ int64) float64 { return course(k) + 3 }},
		{"gain", 2700, func(k, _ int64) float64 { return 2 * course(k) }},
		{"ramp", 2900, func(k, first int64) float64 { return course(first) + 4*0.005*float64(k-first) }},
		{"drift", 3000, func(k, first int64) float64 { return course(k) + 4*0.005*float64(k-first) }},
		{"floor", 3100, func(k, _ int64) float64 { return max(course(k), 3) }},
		{"ceiling", 3200, func(k, _ int64) float64 { return min(course(k), -20) }},
		{"leak", 3300, leak},
		{"delay", 3400, func(k, _ int64) float64 { return course(k - 10) }},
		{"open", 3500, func(int64, int64) float64 { return -0.01 }},
		{"ground", 3600, func(int64, int64) float64 { return -100 }},
		{"supply", 3700, func(int64, int64) float64 { return 100 }},
	}
}

// checkProbeFaults holds the probe, as the other side has seen it, against what the
// faults must make of it: at no other grid point it is off its course.
func (e *evidence) checkProbeFaults(t *testing.T) {
	t.Helper()
	const noise, last = 2800, 20
	saw, gone := map[int64]int64{}, map[int64]bool{}
	for _, k := range e.python.Gone {
		gone[k] = true
	}
	noisy := 0
	for _, p := range e.python.Probe {
		saw[p[0]] = p[1]
		if off := float64(p[1])/100 - course(p[0]); p[0] >= noise && p[0] < noise+last {
			noisy++
			delete(saw, p[0])
			if !(math.Abs(off) <= 6.01) {
				t.Errorf("noise: %g bar at grid point %d, more than six deviations", off, p[0])
			}
		}
	}
	served := func(first int64) (list []int64) {
		for k := first; k < first+last; k++ {
			if e.wire.motion[k] && !gone[k] {
				list = append(list, k)
			}
		}
		return list
	}
	if want := len(served(noise)); noisy != want {
		t.Errorf("noise: %d values off their course, want %d", noisy, want)
	}
	for _, d := range onProbe() {
		seen := 0
		for _, k := range served(d.first) {
			want, true := int64(math.RoundToEven(d.value(k, d.first)*100)), int64(math.Round(course(k)*100))
			got, off := saw[k]
			if !off {
				got = true
			}
			if seen++; got != want {
				t.Errorf("%s: raw %d at grid point %d, want %d of %d", d.name, got, k, want, true)
			}
			delete(saw, k)
		}
		t.Logf("%s: %d values as they should be", d.name, seen)
	}
	if len(saw) > 0 {
		t.Errorf("off their course where no fault is: %v", saw)
	}
}

// onInput are the faults on an input that always is 24 bar; all last for 10 ticks.
func onInput() []distortion {
	const bar = 24.0
	leak := func(k, first int64) float64 {
		v := bar
		for i := first + 1; i <= k; i++ {
			v += (0.5*bar - v) * (1 - math.Exp(-0.005/0.05))
		}
		return v
	}
	since := func(k, first int64) float64 { return 0.005 * float64(k-first) }
	constant := func(v float64) func(int64, int64) float64 { return func(int64, int64) float64 { return v } }
	return []distortion{
		{"stuck", 1800, constant(3)}, {"hold", 1820, constant(bar)}, {"offset", 1840, constant(bar + 1)}, {"gain", 1860, constant(bar / 2)},
		{"ramp", 1900, func(k, first int64) float64 { return bar - 20*since(k, first) }},
		{"drift", 1920, func(k, first int64) float64 { return bar - 10*since(k, first) }},
		{"floor", 1940, constant(30)}, {"ceiling", 1960, constant(20)}, {"leak", 1980, leak}, {"delay", 2000, constant(bar)},
		{"open", 2020, constant(0)}, {"ground", 2040, constant(0)}, {"supply", 2060, constant(40)},
	}
}

// checkInputs holds what the steps were given against the faults on the inputs.
func checkInputs(t *testing.T, u [][]float64) {
	t.Helper()
	const noise, last, pascal = 1880, 10, 1e5
	want := map[int64]float64{}
	for _, d := range onInput() {
		for k := d.first; k < d.first+last; k++ {
			want[k] = d.value(k, d.first)
		}
	}
	different := map[float64]bool{}
	for k := int64(1700); k < 2200; k++ {
		got := u[k][1] / pascal
		w, faulty := want[k]
		if !faulty {
			w = 24
		}
		if k >= noise && k < noise+last {
			different[got] = true
			if !(math.Abs(got-24) <= 3) {
				t.Errorf("noise: clutch2.pressure is %g bar at tick %d, more than six deviations off", got, k)
			}
			continue
		}
		if !(math.Abs(got-w) <= 1e-9) {
			t.Errorf("clutch2.pressure is %g bar at tick %d, want %g", got, k, w)
		}
	}
	if len(different) != last {
		t.Errorf("noise: %d different values in %d ticks", len(different), last)
	}
	for k := int64(4000); k < 4010; k++ {
		if u[k][6] != 0 {
			t.Errorf("clutch7 does not close: %g Pa at tick %d", u[k][6], k)
		}
		if got := u[k+100][7] / pascal; !(got >= 18) {
			t.Errorf("clutch8 does not open: %g bar at tick %d", got, k+100)
		}
	}
}

// checkFrameFaults holds what a side has seen of the bench's frames against what was
// asked: so many of each, and nothing else; where the bus or a card has lost frames, no
// more, and half of them at least.
func (e *evidence) checkFrameFaults(t *testing.T, who string, seen map[string]*unit.Seen, want map[string]unit.Seen) {
	t.Helper()
	for name, w := range want {
		s := seen[name]
		if s == nil {
			t.Errorf("%s has seen no %s", who, name)
			continue
		}
		for k := int64(offFirst); k <= offLast; k++ {
			if c := schedule[name]; k%c.cycle == c.phase && !e.wire.missed[k] {
				w.Lost++
			}
		}
		if w.Old > 0 { // fewer where the grid point between was lost
			w.Old = e.wire.old
		}
		w.Frames, w.Grids = e.wire.sent[name]+e.wire.copies[name], s.Grids
		gaps := e.wire.dropped[name] + w.Frames - s.Frames // not taken by the bus, or lost by a card
		most := func(got, want, more int) bool { return got <= want+more && got >= want-min(gaps, want/2) }
		near := most(s.Wrong, w.Wrong, 0) && most(s.Length, w.Length, 0) && most(s.Repeated, w.Repeated, gaps/14) && s.Lost <= w.Lost+gaps
		if gaps < 0 || gaps == 0 && *s != w || !near || s.Flags+s.Split != 0 {
			t.Errorf("%s: %s has seen %+v, want %+v", name, who, *s, w)
			continue
		}
		t.Logf("%s: %s has seen %+v", name, who, *s)
	}
}

// checkEvents holds that each fault was armed, active and over once, and how often it
// disturbed.
func (e *evidence) checkEvents(t *testing.T) {
	t.Helper()
	states, counts := map[string]string{}, map[string]uint64{}
	for _, v := range e.wire.events {
		if v.Kind != record.Fault {
			continue
		}
		state, rest, _ := strings.Cut(v.Text, ": ")
		name, _, _ := strings.Cut(rest, ": ")
		states[name] += state + " "
		counts[name] = v.Count
	}
	want := map[string]uint64{
		"drop": 7, "freeze": 5, "random": 6, "duplicate": 3, "length": 4, "value": 8, "frozen": 6, "offset sum": 9, "both groups": 5,
		"late": 6, "burst": 2, "off": 10, "deaf": 2, "slow": 3, "opens": 10, "sticks": 10,
	}
	for _, kind := range strings.Fields("stuck hold offset gain noise ramp drift floor ceiling leak delay open ground supply") {
		want["s "+kind], want["i "+kind] = 20, 10
	}
	for name, n := range want {
		if states[name] != "armed active over " || counts[name] != n {
			t.Errorf("fault %q: %q, %d times; want it armed, active and over, %d times", name, states[name], counts[name], n)
		}
	}
	if len(states) != len(want) {
		t.Errorf("%d faults in the record, want %d", len(states), len(want))
	}
}

// checkReceivedFaults holds what the bench has received against what the units sent and
// what the faults have kept from it.
func (e *evidence) checkReceivedFaults(t *testing.T, two string) {
	t.Helper()
	for i, c := range []struct {
		name     string
		sent     int
		withheld int // outside of the time off the bus
		copies   int
	}{{"TCU_1", e.brutella.Sent, 2, 0}, {two, e.python.Sent, 3, 3}} {
		w, copies, off := e.wire.withheld[c.name], e.wire.copies[c.name], e.wire.off[c.name]
		m := e.in[i]
		if w-off != c.withheld || copies != c.copies || int(m.Frames) > c.sent-w+copies || int(m.Frames) < c.sent-w+copies && e.here == 0 {
			t.Errorf("%s: of %d the bench has counted %d; %d were withheld, %d of them off the bus, %d came late", c.name, c.sent, m.Frames, w, off, copies)
		}
		if m.Errors != 0 || m.OK+m.SomeLost+m.Repeated+m.Sequence != m.Frames {
			t.Errorf("%s: the bench has counted %+v", c.name, m)
		}
	}
}

// replayed holds that the record runs again bit for bit.
func replayed(t *testing.T, path string) {
	t.Helper()
	p := lab.Start(t, lab.Command(t), "replay", path)
	code := p.WaitFor(5 * time.Minute)
	if said := strings.TrimSpace(p.Out.String()); code != 0 {
		t.Errorf("replay: exit %d, %q%s", code, said, &p.Err)
	} else {
		t.Log(said)
	}
}

// faults runs the scenario and returns the evidence, and the inputs by tick.
func (r *proofRun) faults() (e *evidence, u [][]float64) {
	r.Helper()
	r.d = 24 * time.Second
	r.args = append(r.args, "-scenario", r.scenario())
	u = [][]float64{nil}
	r.step = func(t *record.Tick) { u = append(u, append([]float64{}, t.U...)) }
	e = r.run()
	if len(u) != 4801 {
		r.Fatalf("%d ticks in the record", len(u)-1)
	}
	return e, u
}

// everyFaultOnCards is everyFault with classic frames, on cards that may lose some.
func everyFaultOnCards(t *testing.T) {
	before := lab.CardCounters(t)
	r := &proofRun{T: t, name: "classic", bus: "can0", units: "can1"}
	e, u := r.faults()
	e.here = lab.CardCounters(t)["can0 rx_over_errors"] - before["can0 rx_over_errors"]
	e.checkFrameFaults(t, "python-can", e.python.Frames, asked(false))
	e.checkFrameFaults(t, "brutella/can", e.brutella.Frames, asked(false))
	e.checkProbeFaults(t)
	e.checkReceivedFaults(t, "TCU_2C")
	checkInputs(t, u)
	replayed(t, r.record)
}

// everyFault: each fault is seen as often as it was asked for, and nothing else is.
func everyFault(t *testing.T) {
	r := &proofRun{T: t, name: "fd", bus: "vcan0", units: "vcan0", args: []string{"-besteffort"}}
	e, u := r.faults()
	e.checkLedger(t)
	want := asked(true)
	e.checkFrameFaults(t, "python-can", e.python.Frames, want)
	delete(want, "Motion")
	delete(want, "Chassis")
	e.checkFrameFaults(t, "brutella/can", e.brutella.Frames, want)
	e.checkProbeFaults(t)
	e.checkReceivedFaults(t, "TCU_2")
	e.checkEvents(t)
	checkInputs(t, u)
	replayed(t, r.record)
}
