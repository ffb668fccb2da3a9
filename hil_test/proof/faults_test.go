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

// requested returns the faults of faults.yaml in the frames of the bench, as a receiver counts
// them, without the time off the bus.
func requested(fd bool) map[string]unit.Seen {
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

// scenario writes faults.yaml for a bench and returns its path.
func (r *proofRun) scenario() string {
	r.Helper()
	text, err := os.ReadFile("faults.yaml")
	if err != nil {
		r.Fatal(err)
	}
	if r.name == "classic" { // classic frames have other names
		text = []byte(strings.NewReplacer("Motion", "MotionC", "Chassis", "ChassisC", "TCU_2", "TCU_2C").Replace(string(text)))
	}
	path := filepath.Join(r.TempDir(), "faults.yaml")
	if err := os.WriteFile(path, text, 0o666); err != nil {
		r.Fatal(err)
	}
	return path
}

// waveform returns the probe at a grid point, bar.
func waveform(k int64) float64 {
	if k %= 4000; k <= 2000 {
		return -50 + 0.05*float64(k)
	}
	return 150 - 0.05*float64(k)
}

// distortion is the effect of a fault on a waveform.
type distortion struct {
	name  string
	first int64                        // first tick
	value func(k, first int64) float64 // value at tick k, bar
}

// onProbe returns the faults on the probe with a known effect; each lasts 20 ticks. An open signal
// has all bits set. ground and supply are the ends of the range in the database.
func onProbe() []distortion {
	leak := func(k, first int64) float64 {
		v := waveform(first)
		for i := first + 1; i <= k; i++ {
			v += (0.7*waveform(i) - v) * (1 - math.Exp(-0.005/0.1))
		}
		return v
	}
	return []distortion{
		{"stuck", 2400, func(int64, int64) float64 { return 12.34 }},
		{"hold", 2500, func(_, first int64) float64 { return waveform(first) }},
		{"offset", 2600, func(k, _ int64) float64 { return waveform(k) + 3 }},
		{"gain", 2700, func(k, _ int64) float64 { return 2 * waveform(k) }},
		{"ramp", 2900, func(k, first int64) float64 { return waveform(first) + 4*0.005*float64(k-first) }},
		{"drift", 3000, func(k, first int64) float64 { return waveform(k) + 4*0.005*float64(k-first) }},
		{"floor", 3100, func(k, _ int64) float64 { return max(waveform(k), 3) }},
		{"ceiling", 3200, func(k, _ int64) float64 { return min(waveform(k), -20) }},
		{"leak", 3300, leak},
		{"delay", 3400, func(k, _ int64) float64 { return waveform(k - 10) }},
		{"open", 3500, func(int64, int64) float64 { return -0.01 }},
		{"ground", 3600, func(int64, int64) float64 { return -100 }},
		{"supply", 3700, func(int64, int64) float64 { return 100 }},
	}
}

// checkProbeFaults compares the probe, as received by unit.py, with the effects of the faults. At
// all other grid points the probe must follow its waveform.
func (e *evidence) checkProbeFaults(t *testing.T) {
	t.Helper()
	const noise, last = 2800, 20
	received, gone := map[int64]int64{}, map[int64]bool{} // values that differ from the waveform; frames not received
	for _, k := range e.python.Gone {
		gone[k] = true
	}
	noisy := 0
	for _, p := range e.python.Probe {
		received[p[0]] = p[1]
		if off := float64(p[1])/100 - waveform(p[0]); p[0] >= noise && p[0] < noise+last {
			noisy++
			delete(received, p[0])
			if !(math.Abs(off) <= 6.01) {
				t.Errorf("noise: %g bar at grid point %d, more than six standard deviations", off, p[0])
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
		t.Errorf("noise: %d values differ from the waveform, want %d", noisy, want)
	}
	for _, d := range onProbe() {
		seen := 0
		for _, k := range served(d.first) {
			want, true := int64(math.RoundToEven(d.value(k, d.first)*100)), int64(math.Round(waveform(k)*100))
			got, off := received[k]
			if !off {
				got = true
			}
			if seen++; got != want {
				t.Errorf("%s: raw %d at grid point %d, want %d instead of %d", d.name, got, k, want, true)
			}
			delete(received, k)
		}
		t.Logf("%s: %d values compared", d.name, seen)
	}
	if len(received) > 0 {
		t.Errorf("values that differ from the waveform without a fault, by grid point: %v", received)
	}
}

// onInput returns the faults on an input of constant 24 bar; each lasts 10 ticks.
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

// checkInputs compares the inputs u of the plant by tick with the faults on the inputs.
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
				t.Errorf("noise: clutch2.pressure is %g bar at tick %d, more than six standard deviations from 24 bar", got, k)
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
			t.Errorf("clutch7.pressure is %g Pa at tick %d, want 0", u[k][6], k)
		}
		if got := u[k+100][7] / pascal; !(got >= 18) {
			t.Errorf("clutch8.pressure is %g bar at tick %d, want at least 18", got, k+100)
		}
	}
}

// checkFrameFaults compares the frames of the bench, as received by a unit, with the requested
// faults: exactly that many of each. If the bus or a card has lost frames, it allows fewer, but at
// least half.
func (e *evidence) checkFrameFaults(t *testing.T, who string, seen map[string]*unit.Seen, want map[string]unit.Seen) {
	t.Helper()
	for name, w := range want {
		s := seen[name]
		if s == nil {
			t.Errorf("%s has received no %s", who, name)
			continue
		}
		for k := int64(offFirst); k <= offLast; k++ {
			if c := schedule[name]; k%c.cycle == c.phase && !e.wire.missed[k] {
				w.Lost++
			}
		}
		if w.Old > 0 { // fewer if the grid point between was lost
			w.Old = e.wire.old
		}
		w.Frames, w.Grids = e.wire.sent[name]+e.wire.copies[name], s.Grids
		gaps := e.wire.dropped[name] + w.Frames - s.Frames // dropped by the bus or lost by a card
		most := func(got, want, more int) bool { return got <= want+more && got >= want-min(gaps, want/2) }
		near := most(s.Wrong, w.Wrong, 0) && most(s.Length, w.Length, 0) && most(s.Repeated, w.Repeated, gaps/14) && s.Lost <= w.Lost+gaps
		if gaps < 0 || gaps == 0 && *s != w || !near || s.Flags+s.Split != 0 {
			t.Errorf("%s: %s has received %+v, want %+v", name, who, *s, w)
			continue
		}
		t.Logf("%s: %s has received %+v", name, who, *s)
	}
}

// checkEvents checks that each fault was armed, active and over once, and how often it took effect.
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

// checkReceivedFaults compares the frames that the bench has received with those that the units
// sent and the faults withheld. two is the message of the second unit.
func (e *evidence) checkReceivedFaults(t *testing.T, two string) {
	t.Helper()
	for i, c := range []struct {
		name     string
		sent     int
		withheld int // withheld frames, without those of the time off the bus
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

// checkReplay checks that the replay of a record is identical bit for bit.
func checkReplay(t *testing.T, path string) {
	t.Helper()
	p := lab.Start(t, lab.Command(t), "replay", path)
	code := p.WaitFor(5 * time.Minute)
	if out := strings.TrimSpace(p.Out.String()); code != 0 {
		t.Errorf("replay: exit %d, %q%s", code, out, &p.Err)
	} else {
		t.Log(out)
	}
}

// faults runs the scenario and returns the evidence and the inputs by tick.
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

// everyFaultOnCards is everyFault with classic frames, on cards that may lose frames.
func everyFaultOnCards(t *testing.T) {
	before := lab.CardCounters(t)
	r := &proofRun{T: t, name: "classic", bus: "can0", units: "can1"}
	e, u := r.faults()
	e.here = lab.CardCounters(t)["can0 rx_over_errors"] - before["can0 rx_over_errors"]
	e.checkFrameFaults(t, "python-can", e.python.Frames, requested(false))
	e.checkFrameFaults(t, "brutella/can", e.brutella.Frames, requested(false))
	e.checkProbeFaults(t)
	e.checkReceivedFaults(t, "TCU_2C")
	checkInputs(t, u)
	checkReplay(t, r.record)
}

// everyFault checks that each fault appears exactly as often as requested, and no other.
func everyFault(t *testing.T) {
	r := &proofRun{T: t, name: "fd", bus: "vcan0", units: "vcan0", args: []string{"-besteffort"}}
	e, u := r.faults()
	e.checkLedger(t)
	want := requested(true)
	e.checkFrameFaults(t, "python-can", e.python.Frames, want)
	delete(want, "Motion")
	delete(want, "Chassis")
	e.checkFrameFaults(t, "brutella/can", e.brutella.Frames, want)
	e.checkProbeFaults(t)
	e.checkReceivedFaults(t, "TCU_2")
	e.checkEvents(t)
	checkInputs(t, u)
	checkReplay(t, r.record)
}
