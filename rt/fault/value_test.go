package fault

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/floats/scalar"

	"lockstep/io/can"
	"lockstep/io/messages"
	"lockstep/io/sigmap"
	"lockstep/model/units"
)

const (
	h      = 0.005 // period, s
	hNs    = 5_000_000
	driven = 0 // input that a bus drives, rad/s
	source = 1 // input that nothing drives, 0 to 10 bar
)

// plant records switches of its inputs; the own waveform of input i is 100·i + tick.
type plant struct {
	on   []bool
	tick int64
	log  []int64 // ticks of switches to u; negative: back to the own waveform
}

func (p *plant) Drive(i int, on bool) {
	p.on[i] = on
	if !on {
		p.log = append(p.log, -p.tick)
		return
	}
	p.log = append(p.log, p.tick)
}

func (p *plant) Own(i int) float64 { return float64(100*i) + float64(p.tick) }

// testMap receives input 0 in Command and sends output 0 as a float64 in Exact, as 8 bits
// of -10 to 10 rad/s in Coarse, which also has a constant of 21 degrees in 8 bits.
func testMap(t testing.TB) *sigmap.Map {
	t.Helper()
	db := &messages.Database{File: "fault_test.dbc", Messages: []messages.Message{
		{Name: "Command", ID: 0x100, Len: 8, Signals: []messages.Signal{{Name: "u", Len: 64, Float: true, Factor: 1, Unit: "rad/s"}}},
		{Name: "Exact", ID: 0x200, Len: 8, Signals: []messages.Signal{{Name: "y", Len: 64, Float: true, Factor: 1, Unit: "rad/s"}}},
		{Name: "Coarse", ID: 0x201, Len: 2, Signals: []messages.Signal{
			{Name: "y", Len: 8, Factor: 0.1, Offset: -12, Min: -10, Max: 10, Unit: "rad/s"},
			{Name: "T", Start: 8, Len: 8, Factor: 0.5, Offset: -40, Unit: "degC"},
		}},
	}}
	m, err := sigmap.Bind(db, sigmap.Spec{
		PeriodNs: hNs,
		Receive:  []sigmap.Link{{Message: "Command", Signal: "u", Port: "u"}},
		Send:     []sigmap.Link{{Message: "Exact", Signal: "y", Port: "y"}, {Message: "Coarse", Signal: "y", Port: "y"}},
		Sendings: []sigmap.Sending{{Message: "Exact", CycleNs: hNs}, {Message: "Coarse", Send: sigmap.OnChange, Values: []sigmap.Constant{{Signal: "T", Text: "21 degC"}}}},
	}, ports("u", "rad/s"), ports("y", "rad/s"))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func ports(name, unit string) []units.Port {
	return []units.Port{{Name: name, Unit: unit, Min: math.Inf(-1), Max: math.Inf(1)}}
}

// rig is a Set with a plant of two inputs and one output.
type rig struct {
	*Set
	plant plant
	m     *sigmap.Map
	y     []float64
}

func newRig(t testing.TB, p Plan) *rig {
	t.Helper()
	r := &rig{plant: plant{on: make([]bool, 2)}, m: testMap(t), y: []float64{0}}
	if p.Ranges == nil {
		p.Ranges = [][2]float64{{-30, 40}, {0, 10}}
	}
	var err error
	r.Set, err = New(p, System{PeriodNs: hNs, M: 2, P: 1, Maps: []*sigmap.Map{r.m}, Plant: &r.plant})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// tick runs tick k with v as the input from the bus and as the output. It returns the inputs of the
// step.
func (r *rig) tick(k int64, v float64, commands ...Command) (u []float64) {
	r.plant.tick = k
	for i := range commands {
		r.Apply(&commands[i])
	}
	r.BeginTick(k, r.y)
	for c := (Change{}); r.NextChange(&c); {
	}
	u = slices.Clone(r.DisturbInputs(k, []float64{v, -1}))
	r.y[0] = v
	r.DisturbSignals(k, r.y)
	return u
}

// sent encodes frame i of the map and returns its first value.
func (r *rig) sent(t testing.TB, i int) (float64, can.Frame) {
	t.Helper()
	var f can.Frame
	if !r.m.Encode(&f, i, 0, r.y, true) {
		return math.NaN(), f
	}
	if i == 0 {
		return math.Float64frombits(binary.LittleEndian.Uint64(f.Data[:])), f
	}
	return float64(f.Data[0])*0.1 - 12, f
}

// truth returns the value without a fault at tick k.
func truth(k int64) float64 { return 3 + math.Sin(float64(k)/7) + 0.01*float64(k) }

// begins is the first tick of the faults in the tests, lasts their duration.
const (
	begins = 11
	lasts  = 30
)

// formulas returns, per kind, the expected value at tick k of a fault from begins on, independent
// of the package. The range is -30 to 40 for the input; for the signal it is the largest numbers
// that its bits hold.
func formulas() map[Kind]struct {
	Fault
	want func(k int64, signal bool) float64
} {
	type row = struct {
		Fault
		want func(k int64, signal bool) float64
	}
	since := func(k int64) float64 { return float64(k-begins) * h }
	bound := func(signal bool, v float64) float64 {
		if signal {
			return math.Copysign(math.MaxFloat64/4, v)
		}
		return v
	}
	leak := func(k int64, _ bool) float64 { // v' = ((1-A)·truth - v)/B with truth held over each tick
		v := truth(begins)
		for i := int64(begins + 1); i <= k; i++ {
			target := 0.7 * truth(i)
			v = target + (v-target)*math.Exp(-h/0.04)
		}
		return v
	}
	return map[Kind]row{
		Stuck:   {Fault{A: 7}, func(int64, bool) float64 { return 7 }},
		Hold:    {Fault{}, func(int64, bool) float64 { return truth(begins) }},
		Offset:  {Fault{A: -2}, func(k int64, _ bool) float64 { return truth(k) - 2 }},
		Gain:    {Fault{A: 1.5}, func(k int64, _ bool) float64 { return 1.5 * truth(k) }},
		Ramp:    {Fault{A: 4}, func(k int64, _ bool) float64 { return truth(begins) + 4*since(k) }},
		Drift:   {Fault{A: -4}, func(k int64, _ bool) float64 { return truth(k) - 4*since(k) }},
		Floor:   {Fault{A: 3.2}, func(k int64, _ bool) float64 { return math.Max(truth(k), 3.2) }},
		Ceiling: {Fault{A: 3.2}, func(k int64, _ bool) float64 { return math.Min(truth(k), 3.2) }},
		Leak:    {Fault{A: 0.3, B: 0.04}, leak},
		Delay:   {Fault{N: 4}, func(k int64, _ bool) float64 { return truth(k - 4) }},
		Short:   {Fault{N: 0}, func(_ int64, s bool) float64 { return bound(s, -30) }},
	}
}

func TestValueFaultsFollowTheirFormulasForTheirDuration(t *testing.T) {
	for kind, c := range formulas() {
		for _, where := range []Where{Input, Signal} {
			f := c.Fault
			f.Kind, f.Where, f.Start.Tick, f.Duration = kind, where, begins, lasts
			r := newRig(t, Plan{Faults: []Fault{f}})
			for k := int64(1); k < begins+lasts+20; k++ {
				got := r.tick(k, truth(k))[driven]
				if where == Signal {
					got, _ = r.sent(t, 0)
				}
				want := truth(k)
				if k >= begins && k < begins+lasts {
					want = c.want(k, where == Signal)
				}
				if !scalar.EqualWithinRel(got, want, 1e-13) {
					t.Fatalf("kind %d on %d, tick %d: %v, want %v", kind, where, k, got, want)
				}
			}
			if s, n := r.State(0); s != Over || n != lasts {
				t.Errorf("kind %d on %d: %v after %d ticks, want over after %d", kind, where, s, n, lasts)
			}
		}
	}
}

// The reference is the sum of twelve uniform numbers of 53 bits from SplitMix64.
func TestNoiseIsNormalAndRepeatable(t *testing.T) {
	const n, a = 20_000, 0.25
	r := newRig(t, Plan{Faults: []Fault{{Kind: Noise, A: a, Seed: 42}}})
	state, sum, square := uint64(42), 0.0, 0.0
	for k := int64(1); k <= n; k++ {
		got := (r.tick(k, 1)[driven] - 1) / a
		want := 0.0
		for range 12 {
			state += 0x9e3779b97f4a7c15
			z := state
			z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
			z = (z ^ z>>27) * 0x94d049bb133111eb
			want += float64((z^z>>31)>>11) / (1 << 53)
		}
		if !scalar.EqualWithinAbs(got, want-6, 1e-12) || !(math.Abs(got) <= 6) {
			t.Fatalf("tick %d: %v, want %v", k, got, want-6)
		}
		sum, square = sum+got, square+got*got
	}
	mean, deviation := sum/n, math.Sqrt(square/n)
	if !(math.Abs(mean) < 5/math.Sqrt(n)) || !scalar.EqualWithinAbs(deviation, 1, 5/math.Sqrt(2*n)) { // five standard errors
		t.Errorf("mean %v, deviation %v", mean, deviation)
	}
}

func TestDecayIsTheExponential(t *testing.T) {
	for _, x := range []float64{0, 1e-18, 1e-9, 0.1, 0.125, 0.1251, 0.7, 1, 5, 20, 63.9, 64, 1e300, math.Inf(1)} {
		if got := decay(x); !scalar.EqualWithinAbsOrRel(got, math.Exp(-x), 1e-27, 1e-13) {
			t.Errorf("decay(%g) = %v, want %v", x, got, math.Exp(-x))
		}
	}
}

func TestOpenSignalIsAllOnesAndOpenInputIsZero(t *testing.T) {
	r := newRig(t, Plan{Faults: []Fault{{Kind: Open, Where: Signal, Message: 1}, {Kind: Open, Where: Input, Input: source}},
		Ranges: [][2]float64{{-1, 1}, {2, 10}}})
	u := r.tick(1, 5)
	if _, f := r.sent(t, 1); f.Data[0] != 0xFF || f.Data[1] != 122 {
		t.Errorf("the frame is % X, want FF 7A", f.Data[:2])
	}
	if u[source] != 2 {
		t.Errorf("the input is %v, want 2, the nearest to 0 in its range", u[source])
	}
	var f can.Frame
	if !r.m.Encode(&f, 1, 0, r.y, false) || f.Data[0] != 170 {
		t.Errorf("without faults the frame is % X, want raw 170 = (5+12)/0.1", f.Data[:2])
	}
}

// The message is sent at every second tick: raw 220 is a short to supply, 170 the value without it.
func TestFaultOfASentSignalLastsForItsFrames(t *testing.T) {
	r := newRig(t, Plan{Faults: []Fault{{Kind: Short, N: 1, Where: Signal, Message: 1, Duration: 3, Frames: true}}})
	for k := int64(1); k <= 10; k++ {
		r.tick(k, 5)
		if k%2 == 0 {
			continue
		}
		want := byte(220)
		if k > 5 {
			want = 170
		}
		_, f := r.sent(t, 1)
		if r.DisturbFrame(&f, 0, 1, k); f.Data[0] != want {
			t.Errorf("tick %d: raw %d is sent, want %d", k, f.Data[0], want)
		}
	}
	if state, frames := r.State(0); state == Active || frames != 3 {
		t.Errorf("state %d after %d frames, want ended after 3", state, frames)
	}
}

func TestOpenInputIsTheValueNearestToZero(t *testing.T) {
	for _, c := range []struct{ lo, hi, want float64 }{{-5, 7, 0}, {0.25, 7, 0.25}, {-5, -0.5, -0.5}, {0, 7, 0}} {
		r := newRig(t, Plan{Faults: []Fault{{Kind: Open, Where: Input, Input: source}}, Ranges: [][2]float64{{-1, 1}, {c.lo, c.hi}}})
		if u := r.tick(1, 5); u[source] != c.want {
			t.Errorf("open, range %g to %g: %v, want %g", c.lo, c.hi, u[source], c.want)
		}
	}
}

// The declared range is -10 to 10 rad/s, the bits hold -12 to 13.5.
func TestForcedSignalIsLimitedByItsBitsNotByItsRange(t *testing.T) {
	for _, c := range []struct {
		f    Fault
		want byte
	}{
		{Fault{Kind: Stuck, A: 13.5}, 255}, {Fault{Kind: Stuck, A: 99}, 255}, {Fault{Kind: Stuck, A: -99}, 0}, {Fault{Kind: Stuck, A: -11.26}, 7},
		{Fault{Kind: Short, N: 0}, 20}, {Fault{Kind: Short, N: 1}, 220}, {Fault{Kind: Offset, A: 8}, 250},
	} {
		c.f.Where, c.f.Message = Signal, 1
		r := newRig(t, Plan{Faults: []Fault{c.f}})
		r.tick(1, 5)
		if _, f := r.sent(t, 1); f.Data[0] != c.want {
			t.Errorf("%+v: raw %d, want %d", c.f, f.Data[0], c.want)
		}
	}
}

// Only stuck and short override open.
func TestOpenSignalIgnoresOtherFaults(t *testing.T) {
	for kind, want := range map[Kind]byte{Offset: 0xFF, Gain: 0xFF, Hold: 0xFF, Floor: 0xFF, Stuck: 140, Short: 20} {
		r := newRig(t, Plan{Faults: []Fault{{Kind: Open, Where: Signal, Message: 1}, {Kind: kind, A: 2, Where: Signal, Message: 1}}})
		r.tick(1, 5)
		if _, f := r.sent(t, 1); f.Data[0] != want {
			t.Errorf("open, then kind %d: raw %d, want %d", kind, f.Data[0], want)
		}
	}
}

func TestConstantOfTheBenchCanBeDisturbed(t *testing.T) {
	r := newRig(t, Plan{Faults: []Fault{{Kind: Drift, A: 100, Where: Signal, Message: 1, Field: 1}}})
	for k := int64(1); k <= 20; k++ {
		r.tick(k, 0)
		_, f := r.sent(t, 1)
		if want := byte(math.RoundToEven((21 + 100*h*float64(k-1) + 40) / 0.5)); f.Data[1] != want {
			t.Fatalf("tick %d: raw %d, want %d", k, f.Data[1], want)
		}
	}
}

func TestFrameSentOnChangeSeesTheDisturbedValue(t *testing.T) {
	r := newRig(t, Plan{Faults: []Fault{{Kind: Stuck, A: 2, Where: Signal, Message: 1, Start: Trigger{Tick: 10}, Duration: 10}}})
	var due []int64
	for k := int64(1); k <= 30; k++ {
		r.tick(k, 1)
		if r.m.Due(1, k, r.y, true) {
			due = append(due, k)
			r.sent(t, 1)
		}
	}
	if want := []int64{1, 10, 20}; !slices.Equal(due, want) {
		t.Errorf("sent at %v, want %v", due, want)
	}
}

func TestFaultsOnOneTargetActInTheOrderOfTheirSlots(t *testing.T) {
	offset, gain := Fault{Kind: Offset, A: 1}, Fault{Kind: Gain, A: 3}
	for _, c := range []struct {
		list []Fault
		want float64
	}{{[]Fault{offset, gain}, 9}, {[]Fault{gain, offset}, 7}, {[]Fault{offset, gain, {Kind: Stuck, A: 5}}, 5}, {[]Fault{{Kind: Stuck, A: 5}, offset, gain}, 18}} {
		for _, where := range []Where{Input, Signal} {
			list := slices.Clone(c.list)
			for i := range list {
				list[i].Where = where
			}
			r := newRig(t, Plan{Faults: list})
			got := r.tick(1, 2)[driven]
			if where == Signal {
				got, _ = r.sent(t, 0)
			}
			if got != c.want {
				t.Errorf("%+v: %v, want %v", list, got, c.want)
			}
		}
	}
}

// Whatever faults are accepted, and whatever value they act on: the plant gets a finite number, within
// 100 widths of the range of the input.
func TestFaultsOfValuesKeepInputsFinite(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 7))
	size := func() float64 {
		v := math.Pow(10, float64(rnd.IntN(617)-308))
		return math.Copysign(v, rnd.Float64()-0.5)
	}
	accepted, held, checker := 0, 0, newRig(t, Plan{})
	for range 200 {
		var faults []Fault
		for range 4 {
			f := Fault{Kind: Kind(1 + rnd.IntN(int(Short))), A: size(), B: math.Abs(size()), Input: rnd.IntN(2), Seed: 1}
			if f.Kind == Gain {
				f.A = math.Copysign(MaxGain, f.A)
			}
			if f.Kind == Short {
				f.Input = driven
			}
			if checker.Check(&Command{Op: Put, Fault: f}) == nil {
				faults = append(faults, f)
			}
		}
		accepted += len(faults)
		r := newRig(t, Plan{Faults: faults})
		for k := int64(1); k < 20; k++ {
			u := r.tick(k, size())
			for i, v := range u {
				lo, hi := r.inputRange(i)
				if least, most := lo-100*(hi-lo), hi+100*(hi-lo); slices.ContainsFunc(faults, func(f Fault) bool { return f.Input == i }) {
					if !(v >= least && v <= most) || math.IsInf(v, 0) {
						t.Fatalf("input %d is %v under %+v; want %v to %v", i, v, faults, least, most)
					}
					if v == least || v == most {
						held++
					}
				}
			}
		}
	}
	if accepted < 100 || held < 100 {
		t.Errorf("%d faults were accepted, %d values were limited", accepted, held)
	}
}

func TestFaultThatExceedsTheLimitsOfItsTargetIsRefused(t *testing.T) {
	r := newRig(t, Plan{})
	lo, hi := r.inputRange(driven)
	width := hi - lo
	for _, f := range []Fault{
		{Kind: Gain, A: MaxGain}, {Kind: Stuck, A: hi + 100*width}, {Kind: Floor, A: lo - 100*width}, {Kind: Ceiling, A: hi + 100*width},
		{Kind: Offset, A: -201 * width}, {Kind: Noise, A: 201 * width}, {Kind: Ramp, A: 201 * width / h}, {Kind: Drift, A: -201 * width / h},
	} {
		if err := r.Check(&Command{Op: Put, Fault: f}); err != nil {
			t.Errorf("%+v: %v", f, err)
		}
		f.A *= 1.001
		if err := r.Check(&Command{Op: Put, Fault: f}); err == nil {
			t.Errorf("%+v is accepted", f)
		}
	}
	for _, f := range []Fault{{Kind: Stuck, Where: Signal, Message: 1, A: 1e5}, {Kind: Offset, Where: Signal, Message: 1, A: 1e5}} {
		if err := r.Check(&Command{Op: Put, Fault: f}); err == nil {
			t.Errorf("%+v is accepted", f)
		}
	}
}

func TestNaNFulfilsNoConditionAndIsRefusedInAFault(t *testing.T) {
	nan := math.NaN()
	for _, above := range []bool{false, true} {
		r := newRig(t, Plan{Faults: []Fault{{Kind: Stuck, Start: Trigger{When: [2]Condition{{Set: true, Output: true, Above: above}}}}}})
		for k := int64(1); k < 9; k++ {
			r.tick(k, nan)
		}
		if s, _ := r.State(0); s != Armed {
			t.Errorf("above %t: %v", above, s)
		}
	}
	r := newRig(t, Plan{Faults: []Fault{{Kind: Floor, A: 1, Where: Signal}, {Kind: Floor, A: 1}}})
	if u := r.tick(1, nan); u[driven] == u[driven] {
		t.Errorf("a floor under NaN is %v", u[driven])
	}
	if got, _ := r.sent(t, 0); got == got {
		t.Errorf("a frame was made of NaN: %v", got)
	}
	for _, f := range []Fault{{Kind: Stuck, A: nan}, {Kind: Gain, A: math.Inf(1)}, {Kind: Leak, B: nan}, {Kind: Leak, B: -1},
		{Kind: Stuck, Start: Trigger{When: [2]Condition{{}, {Set: true, Limit: nan}}}}} {
		if err := r.Check(&Command{Op: Put, Slot: 1, Fault: f}); err == nil {
			t.Errorf("%+v is accepted", f)
		}
	}
	if err := r.Check(&Command{Op: Drive, Input: source, Value: nan}); err == nil {
		t.Error("an input can be set to NaN")
	}
}
