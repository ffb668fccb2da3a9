package virtual

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/gonum/floats/scalar"

	"lockstep/io/record"
	"lockstep/io/record/recordtest"
	"lockstep/model"
	"lockstep/model/kernel"
	"lockstep/rt/bench"
	"lockstep/rt/bench/benchtest"
)

// arrivalRun runs the demo bench on a grid of 7 ms: the frames of its unit come every 10 ms, most of
// them between two ticks. It replays the record and returns its bench and its entries.
func arrivalRun(t *testing.T, replace ...string) (*bench.Handover, []record.Entry) {
	t.Helper()
	file := benchtest.DemoFile(t, append([]string{
		"period: 5 ms", "period: 7 ms", "scheme: papers", "scheme: complete", "cycle: 5 ms", "cycle: 7 ms",
		"cycle: 10 ms, counter", "cycle: 14 ms, counter", "phase: 5 ms", "phase: 7 ms", "cycle: 10 ms, phase", "cycle: 14 ms, phase",
	}, replace...)...)
	rec := filepath.Join(t.TempDir(), "r.rec")
	r, err := Simulation{Plant: file, For: 4 * time.Second, Every: 1, Record: rec}.Run()
	if err != nil {
		t.Fatal(err)
	}
	if same, err := (Replay{Record: rec}).Run(); err != nil || same.Ticks != int64(r.Ticks) || r.Transitions < 12 {
		t.Fatalf("replay: %+v, %v; %d ticks, %d transitions", same, err, r.Ticks, r.Transitions)
	}
	b, err := bench.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	h, err := bench.Prepare(b)
	if err != nil {
		t.Fatal(err)
	}
	return h, recordtest.Entries(t, rec)
}

// pressures decodes the frames received and calls each for every instant with new inputs, ns.
func pressures(h *bench.Handover, entries []record.Entry, each func(at int64, u []float64)) {
	u := make([]float64, len(h.Tables.Inputs))
	copy(u, h.Tables.Start)
	for i := range entries {
		if f := &entries[i].Frame; entries[i].Kind == record.FrameEntry && !f.Sent {
			h.Maps[0].Decode(u, &f.Frame)
			each(f.Acts, u)
		}
	}
}

// largestDifference returns the largest difference of an output of the plant file between the record
// and a plant that follow steps to the grid points.
func largestDifference(entries []record.Entry, follow func(tick int64) (y []float64)) (worst float64) {
	for i := range entries {
		if tick := &entries[i].Tick; entries[i].Kind == record.TickEntry {
			for j, v := range follow(tick.Index)[:4] { // w1 to w4, rad/s
				if d := v - tick.Y[j]; !scalar.EqualWithinAbs(d, 0, worst) {
					worst = max(d, -d)
				}
			}
		}
	}
	return worst
}

// fine returns the plant of the bench on a grid of 1 ms, on which all frames of the unit lie. driven
// says whether it follows u.
func fine(t *testing.T, h *bench.Handover, driven bool, set func(sys *model.System)) *kernel.Kernel {
	t.Helper()
	sys, err := bench.Assemble(h.Bench)
	if err != nil {
		t.Fatal(err)
	}
	set(sys)
	opt := kernel.Options{Period: time.Millisecond, Driven: make([]bool, len(sys.Inputs)), Scheme: kernel.Complete}
	for i := range opt.Driven {
		opt.Driven[i] = driven && strings.HasSuffix(sys.Inputs[i].Name, ".pressure")
	}
	tables, err := kernel.Prepare(sys, opt)
	if err != nil {
		t.Fatal(err)
	}
	return kernel.New(tables)
}

// followFine steps a plant on a grid of 1 ms to the grid points of 7 ms, with the inputs of each ms.
func followFine(k *kernel.Kernel, inputs map[int64][]float64, start []float64) func(tick int64) []float64 {
	_, p := k.Dims()
	y, u, ms := make([]float64, p), append([]float64(nil), start...), int64(0)
	return func(tick int64) []float64 {
		for ; ms < 7*tick; ms++ {
			if now, ok := inputs[ms]; ok {
				copy(u, now)
			}
			k.Step(y, u)
		}
		return y
	}
}

// With inputs_at: arrival a pressure acts from the arrival of its frame inside of the step. The plant
// moves as on a grid of 1 ms, which has a point at every arrival; with inputs_at: grid it does not.
func TestAFrameBetweenTicksActsFromItsArrival(t *testing.T) {
	for mode, limit := range map[string][2]float64{"arrival": {0, 1e-9}, "grid": {1e-3, 100}} {
		h, entries := arrivalRun(t, "scheduler: fifo ", "inputs_at: "+mode+"\nscheduler: fifo ")
		inputs, between := map[int64][]float64{}, 0
		frames := int64(0)
		pressures(h, entries, func(at int64, u []float64) {
			if frames++; mode == "grid" {
				at = ((frames-1)/2 + firstFrame(entries)) * 10e6
			}
			if at%1e6 != 0 {
				t.Fatalf("a frame at %d ns", at)
			}
			if at%7e6 != 0 {
				between++
			}
			inputs[at/1e6] = append([]float64(nil), u...)
		})
		follow := followFine(fine(t, h, true, func(*model.System) {}), inputs, h.Tables.Start)
		if d := largestDifference(entries, follow); between < 500 || !(d >= limit[0] && d <= limit[1]) {
			t.Errorf("inputs_at: %s: %d frames between ticks; largest difference %g rad/s, want %g to %g", mode, between, d, limit[0], limit[1])
		}
	}
}

// firstFrame returns the number of the unit's cycle of 10 ms in which its first frame came. Without
// Acts it follows from the tick.
func firstFrame(entries []record.Entry) int64 {
	for i := range entries {
		if f := &entries[i].Frame; entries[i].Kind == record.FrameEntry && !f.Sent {
			return f.Tick * 7 / 10
		}
	}
	return 0
}

// A ramp is the straight line to the value of the last frame over the cycle of its message. The plant
// moves as one whose own tables are these lines.
func TestARampIsTheLineBetweenTwoFrames(t *testing.T) {
	h, entries := arrivalRun(t, "scheduler: fifo ", "inputs_at: arrival\nscheduler: fifo ", "    receive:",
		"    messages: {TCU_Pressure_1: {cycle: 10 ms, ramp: all}, TCU_Pressure_2: {cycle: 10 ms, ramp: [clutch5.pressure, clutch6.pressure]}}\n    receive:")
	lines := make([]model.Source, len(h.Tables.Inputs))
	last := append([]float64(nil), h.Tables.Start...)
	pressures(h, entries, func(at int64, u []float64) {
		t := float64(at) * 1e-9
		for i, v := range u {
			if v == last[i] {
				continue
			}
			s := &lines[i]
			if i < 6 { // clutches 1 to 6
				s.T, s.V = append(s.T, t, t+0.01), append(s.V, last[i], v)
			} else {
				s.T, s.V = append(s.T, t, t), append(s.V, last[i], v)
			}
			last[i] = v
		}
	})
	k := fine(t, h, false, func(sys *model.System) {
		for i, s := range lines {
			if len(s.T) == 0 && strings.HasSuffix(sys.Inputs[i].Name, ".pressure") { // driven, but constant
				s = model.Source{T: []float64{0}, V: h.Tables.Start[i : i+1]}
			}
			if len(s.T) > 0 {
				sys.Signals[sys.Inputs[i].Signal].Source = s
			}
		}
	})
	if d := largestDifference(entries, followFine(k, nil, h.Tables.Start)); !(d <= 1e-9) {
		t.Errorf("largest difference %g rad/s", d)
	}
}

// Faults on inputs, on received frames and on their signals, frames between ticks, ramps and changes of
// parameters: the replay repeats the run bit for bit.
func TestARunWithArrivalsRampsFaultsAndChangedParametersReplays(t *testing.T) {
	dir := t.TempDir()
	scenario := filepath.Join(dir, "s.yaml")
	text := "scenario: s\nfor: 4 s\nfaults:\n  - {input: clutch2.pressure, noise: 0.5 bar, at: 500 ms, for: 1 s, seed: 3}\n" +
		"  - {input: clutch1.pressure, delay: 21 ms, at: 1 s, for: 2 s}\n  - {frame: TCU_Pressure_1, delay: 14 ms, at: 2 s, for: 300 ms}\n" +
		"  - {bus: drive, bus_off: true, at: 3 s, for: 105 ms}\n" +
		"parameters:\n  - {at: 504 ms, mu_oil: 0.08}\n  - {at: 1001 ms, mu_oil: 0.1}\n  - {at: 2002 ms, mu_oil: 0.12}\n"
	if err := os.WriteFile(scenario, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	file := benchtest.DemoFile(t, "period: 5 ms", "period: 7 ms", "scheduler: fifo ", "inputs_at: arrival\nscheduler: fifo ",
		"cycle: 5 ms", "cycle: 7 ms", "cycle: 10 ms, counter", "cycle: 14 ms, counter", "phase: 5 ms", "phase: 7 ms", "cycle: 10 ms, phase", "cycle: 14 ms, phase",
		"    receive:", "    messages: {TCU_Pressure_1: {cycle: 10 ms, timeout: 50 ms, on_timeout: {substitute: {clutch1.pressure: 3 bar}}, ramp: [clutch1.pressure]}}\n    receive:")
	rec := filepath.Join(dir, "r.rec")
	r, err := Simulation{Plant: file, Scenario: scenario, Every: 1, Record: rec}.Run()
	if err != nil {
		t.Fatal(err)
	}
	if same, err := (Replay{Record: rec}).Run(); err != nil || same.Ticks != int64(r.Ticks) || r.Transitions < 12 {
		t.Errorf("replay: %+v, %v; %d ticks, %d transitions", same, err, r.Ticks, r.Transitions)
	}
}
