package virtual

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/gonum/floats/scalar"

	"lockstep/io/record"
	"lockstep/io/record/recordtest"
	"lockstep/rt/bench"
)

// trace is a recorded run of the truck bench.
type trace struct {
	y      [][]float64 // outputs by tick
	frames []record.Frame
	index  map[string]int // of the outputs by name
}

// truckTrace runs the truck bench with a scenario and commands at the first tick, replays the record
// and reads it.
func truckTrace(t *testing.T, text string, commands ...string) (got trace) {
	t.Helper()
	file := virtualRun{bench: "truck-bench", scenario: text, commands: commands, length: 8 * time.Second}.run(t)
	same, err := Replay{Record: file}.Run()
	if err != nil || same.Ticks != 800 {
		t.Fatalf("%+v, %v", same, err)
	}
	b, err := bench.Load("truck-bench")
	if err != nil {
		t.Fatal(err)
	}
	h, err := bench.Prepare(b)
	if err != nil {
		t.Fatal(err)
	}
	got.index = map[string]int{}
	for i, o := range h.Tables.Outputs {
		got.index[o.Name] = i
	}
	for _, e := range recordtest.Entries(t, file) {
		switch e.Kind {
		case record.TickEntry:
			got.y = append(got.y, slices.Clone(e.Tick.Y))
		case record.FrameEntry:
			got.frames = append(got.frames, e.Frame)
		}
	}
	return got
}

// at returns an output at a tick.
func (g *trace) at(tick int, name string) float64 { return g.y[tick-1][g.index[name]] }

// firstDifference returns the first tick at which an output differs in a bit; 0: none.
func (g *trace) firstDifference(other trace) int {
	for k := range g.y {
		for i, v := range g.y[k] {
			if math.Float64bits(v) != math.Float64bits(other.y[k][i]) {
				return k + 1
			}
		}
	}
	return 0
}

const fullThrottle = "scenario: s\nstimuli:\n  throttle: 100 %\n"

// The shift console allows the first gear only for 6 s. The virtual control unit decodes its frames by
// code of its own, and shifts when it is allowed to: the gearbox has the ratio of the first gear until
// then.
func TestUnitAnswersToAStimulusOfTheRestbus(t *testing.T) {
	const first = 2.86 // input over output speed of the first gear
	run := truckTrace(t, fullThrottle+"  TransRqestedGear: {table: [[0, 1], [6, 1], [6, 4]], units: [s, \"1\"]}\n")
	free := truckTrace(t, fullThrottle)
	ratio := func(g *trace, tick int) float64 { return g.at(tick, "w_turbine") / g.at(tick, "w_out") }
	if got := ratio(&run, 600); !scalar.EqualWithinRel(got, first, 1e-3) {
		t.Errorf("ratio %g in the first gear, want %g", got, first)
	}
	if got := ratio(&run, 800); !(got < 0.8*first) {
		t.Errorf("ratio %g 2 s after the console allows all gears, want that of a higher gear", got)
	}
	if got := ratio(&free, 600); !(got < 0.8*first) {
		t.Errorf("ratio %g at 6 s without the stimulus, want that of a higher gear", got)
	}
	set := truckTrace(t, fullThrottle, "set TC1.TransRqestedGear=1")
	stimulus := truckTrace(t, fullThrottle+"  TC1.TransRqestedGear: 1\n")
	if k := set.firstDifference(stimulus); k != 0 {
		t.Errorf("set and stimulus differ at tick %d", k)
	}
	if k := stimulus.firstDifference(free); k == 0 {
		t.Error("the stimulus changes nothing: this proves little")
	}
}

// The control unit sends the pressures at each tick. A pressure replaced in its frames therefore drives
// the truck, bit for bit, as the same fault of the input does.
func TestReplacedSignalDrivesThePlantAsTheInputDoes(t *testing.T) {
	const faults = fullThrottle + "faults:\n  - {name: f, #, at: 5 s, for: 40 ticks}\n"
	by := func(target string) trace { return truckTrace(t, strings.Replace(faults, "#", target, 1)) }
	input, signal, free := by("input: C4.pressure, stuck: 0 bar"), by("signal: ClutchPressures.pressure_C4, stuck: 0 bar"), truckTrace(t, fullThrottle)
	if k := signal.firstDifference(input); k != 0 {
		t.Errorf("the trajectories differ at tick %d", k)
	}
	if k := signal.firstDifference(free); k < 500 || k > 502 {
		t.Errorf("the fault changes the truck from tick %d on, want from 500", k)
	}
	copies := 0
	for _, f := range signal.frames {
		if f.Sent || !f.Copy {
			continue
		}
		if copies++; f.Data[3] != 0 || f.Tick < 500 || f.Tick >= 540 { // pressure_C4 is byte 3
			t.Errorf("tick %d: % X passed on", f.Tick, f.Data[:f.Len])
		}
	}
	if copies != 40 {
		t.Errorf("%d frames were changed, want 40", copies)
	}
}

// Of TSC1, which limits the engine torque, the bench checks counter and checksum. Each broken frame
// counts as the bench file says, and 3 wrong ones do not pass to the engine.
func TestVerdictCountsFaultsOfReceivedFrames(t *testing.T) {
	text := fullThrottle + `faults:
  - {name: stands, frame: TSC1, freeze_counter: true, at: 2 s, for: 3 frames}
  - {name: wrong, frame: TSC1, checksum: {offset: 1}, at: 3 s, for: 2 frames}
  - {name: cut, frame: TSC1, length: 5, at: 4 s, for: 4 frames}
  - {name: late, frame: TSC1, delay: 30 ms, at: 5 s, for: 5 frames}
  - {name: again, frame: ClutchPressures, burst: 2, at: 6 s, for: 2 frames}
expect:
  - {count: {message: TSC1, of: errors}, is: 6}
  - {count: {message: TSC1, of: length}, is: 4}
  - {count: {message: TSC1, of: repeated}, is: 3}
  - {count: {message: ClutchPressures, of: repeated}, is: 4}
`
	file := virtualRun{bench: "truck-bench", scenario: text, length: 8 * time.Second}.run(t) // fails with a broken expectation
	copies := map[int64]int{}
	for _, e := range recordtest.Entries(t, file) {
		if e.Kind == record.FrameEntry && !e.Frame.Sent && e.Frame.Copy {
			copies[e.Frame.Tick/100]++
		}
	}
	for second, want := range map[int64]int{2: 3, 3: 2, 4: 4, 5: 5, 6: 4} {
		if copies[second] != want {
			t.Errorf("from %d s on %d frames reach the plant in another form, want %d", second, copies[second], want)
		}
	}
	if same, err := (Replay{Record: file}).Run(); err != nil || same.Ticks != 800 {
		t.Errorf("%+v, %v", same, err)
	}
}
