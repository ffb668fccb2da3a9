package fault

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats/scalar"

	"lockstep/io/can"
	"lockstep/io/messages"
	"lockstep/io/sigmap"
)

// history runs ticks 1 to n, where the commands of at come at their ticks, and lists the
// changes: "TICK SLOT STATE COUNT".
func (r *rig) history(n int64, v func(k int64) float64, at map[int64][]Command) (list []string) {
	for k := int64(1); k <= n; k++ {
		for _, c := range at[k] {
			r.Apply(&c)
		}
		r.BeginTick(k, r.y)
		for c := (Change{}); r.NextChange(&c); {
			list = append(list, fmt.Sprint(k, " ", c.Slot, " ", c.State, " ", c.Count))
		}
		r.DisturbInputs(k, []float64{v(k), 0})
		r.y[0] = v(k)
		r.DisturbSignals(k, r.y)
	}
	return list
}

func straight(k int64) float64 { return float64(k) }

// The input and output of tick k are k.
func TestFaultStartsAtTheTickAfterItsConditionsHold(t *testing.T) {
	y := Condition{Set: true, Output: true, Above: true, Limit: 20}
	u := Condition{Set: true, Above: true, Limit: 30.5}
	for _, c := range []struct {
		start Trigger
		want  string
	}{
		{Trigger{}, "1 0 active 0"},
		{Trigger{Tick: 5}, "5 0 active 0"},
		{Trigger{When: [2]Condition{y}}, "22 0 active 0"},     // y of 21 is above 20
		{Trigger{When: [2]Condition{{}, u}}, "32 0 active 0"}, // u of 31 is above 30.5
		{Trigger{When: [2]Condition{y, u}}, "32 0 active 0"},
		{Trigger{Tick: 40, When: [2]Condition{y, u}}, "40 0 active 0"},
		{Trigger{When: [2]Condition{{Set: true, Output: true, Limit: 1000}}}, "2 0 active 0"}, // no outputs before tick 1
		{Trigger{When: [2]Condition{{Set: true, Limit: 0}}}, ""},
	} {
		r := newRig(t, Plan{Faults: []Fault{{Kind: Stuck, Start: c.start, Where: Signal}}})
		list := r.history(50, straight, nil)
		if list[0] != "1 0 armed 0" || strings.Join(list[1:], "; ") != c.want {
			t.Errorf("%+v: %q, want %q", c.start, list, c.want)
		}
	}
}

func TestStateChangesAreReportedAtTheirTickWithTheirCounts(t *testing.T) {
	stuck := Fault{Kind: Stuck, Start: Trigger{Tick: 10}, Duration: 5}
	r := newRig(t, Plan{Faults: []Fault{stuck}})
	list := r.history(100, straight, map[int64][]Command{
		30: {{Op: Put, Slot: 2, Fault: Fault{Kind: Gain}}, {Op: Put, Slot: 0, Fault: stuck}},
		40: {{Op: Clear, Slot: 2}, {Op: Clear, Slot: 0}, {Op: Clear, Slot: 5}},
		50: {{Op: Put, Slot: 2, Fault: Fault{Kind: Gain}}},
		60: {{Op: Put, Slot: 2, Fault: Fault{Kind: Gain, Duration: 1}}},
	})
	want := []string{"1 0 armed 0", "10 0 active 0", "15 0 over 5",
		"30 2 armed 0", "30 0 armed 0", "30 0 active 0", "30 2 active 0", "35 0 over 5",
		"40 2 cleared 10", "40 0 cleared 5", "50 2 armed 0", "50 2 active 0",
		"60 2 cleared 10", "60 2 armed 0", "60 2 active 0", "61 2 over 1"}
	if !slices.Equal(list, want) {
		t.Errorf("got  %q\nwant %q", list, want)
	}
}

func TestAllSlotsCanChangeAtOneTick(t *testing.T) {
	r := newRig(t, Plan{})
	var put []Command
	for i := range Max {
		put = append(put, Command{Op: Put, Slot: i, Fault: Fault{Kind: Offset, A: 1}})
	}
	list := r.history(3, straight, map[int64][]Command{1: put, 2: put})
	if len(list) != Max*(2+3) {
		t.Errorf("%d changes, want %d: armed and active, then cleared, armed and active", len(list), Max*5)
	}
	if u := r.tick(4, 0); u[driven] != Max {
		t.Errorf("the input is %v, want %d", u[driven], Max)
	}
}

// The own waveform of input 1 is 100 + tick.
func TestActiveFaultOverridesTheOwnWaveformOfAnInput(t *testing.T) {
	r := newRig(t, Plan{Faults: []Fault{
		{Kind: Offset, A: 0.5, Input: source, Start: Trigger{Tick: 5}, Duration: 10},
		{Kind: Gain, A: 2, Input: source, Start: Trigger{Tick: 10}, Duration: 10},
	}})
	for k := int64(1); k <= 30; k++ {
		got, want := r.tick(k, 0)[source], 100+float64(k)
		switch {
		case k < 5 || k >= 20:
			want = -1 // not read by the plant
		case k < 10:
			want += 0.5
		case k < 15:
			want = 2 * (want + 0.5)
		default:
			want = 2 * want
		}
		if got != want {
			t.Errorf("tick %d: %v, want %v", k, got, want)
		}
	}
	if want := []int64{5, -20}; !slices.Equal(r.plant.log, want) {
		t.Errorf("the plant was told at %v, want %v", r.plant.log, want)
	}
}

func TestLiveValueOverridesTheStimulusWhichOverridesTheWaveform(t *testing.T) {
	waveform := sigmap.Waveform{At: []int64{0, 1e9}, Value: []float64{0, 100}} // 0.5 per tick
	for _, with := range []bool{false, true} {
		var p Plan
		if with {
			p.Stimuli = []Stimulus{{Input: source, Waveform: waveform}}
		}
		r := newRig(t, p)
		for k := int64(1); k <= 12; k++ {
			var list []Command
			switch k {
			case 4:
				list = []Command{{Op: Drive, Input: source, Value: 7}, {Op: Drive, Input: source, Value: 9}}
			case 8:
				list = []Command{{Op: Release, Input: source}}
			}
			got, want := r.tick(k, 0, list...)[source], -1.0
			if with {
				want = 0.5 * float64(k)
			}
			if k >= 4 && k < 8 {
				want = 9
			}
			if !scalar.EqualWithinRel(got, want, 1e-14) {
				t.Errorf("stimulus %t, tick %d: %v, want %v", with, k, got, want)
			}
		}
		want := []int64{4, -8}
		if with {
			want = []int64{1}
		}
		if !slices.Equal(r.plant.log, want) {
			t.Errorf("stimulus %t: the plant was told at %v, want %v", with, r.plant.log, want)
		}
	}
}

// The signal T has 0.5 K in a bit, from -40 degC, and the value 21 degC. The stimulus rises by 0.5 K a
// tick. Encode without faults is that of the safe state.
func TestLiveValueOfASignalOverridesItsStimulus(t *testing.T) {
	const tField = 1
	signal := Fault{Where: Signal, Message: 1, Field: tField}
	for _, with := range []bool{false, true} {
		p := Plan{Faults: []Fault{{Kind: Offset, A: 3, Where: Signal, Message: 1, Field: tField, Start: Trigger{Tick: 6}, Duration: 4}}}
		if with {
			p.Stimuli = []Stimulus{{Where: Signal, Message: 1, Field: tField, Waveform: sigmap.Waveform{At: []int64{0, 1e9}, Value: []float64{0, 100}}}}
		}
		r := newRig(t, p)
		for k := int64(1); k <= 14; k++ {
			var list []Command
			switch k {
			case 4:
				list = []Command{{Op: Drive, Fault: signal, Value: 7}, {Op: Drive, Fault: signal, Value: 9}}
			case 8:
				list = []Command{{Op: Release, Fault: signal}}
			case 11:
				list = []Command{{Op: Drive, Fault: signal, Value: -3}}
			case 13:
				list = []Command{{Op: ReleaseAll}}
			}
			r.tick(k, 0, list...)
			want := 21.0
			if with {
				want = 0.5 * float64(k)
			}
			switch {
			case k >= 4 && k < 8:
				want = 9
			case k >= 11 && k < 13:
				want = -3
			}
			for _, faults := range []bool{false, true} {
				if faults && k >= 6 && k < 10 {
					want += 3
				}
				var f can.Frame
				if !r.m.Encode(&f, 1, k, r.y, faults) {
					t.Fatal("no frame")
				}
				if got := float64(f.Data[1])*0.5 - 40; got != want {
					t.Errorf("stimulus %t, faults %t, tick %d: %v degC, want %v", with, faults, k, got, want)
				}
			}
		}
	}
}

// received returns the value that reaches the plant by a frame of input 0 with the value v.
func (r *rig) received(v float64) float64 {
	f := can.Frame{ID: 0x100, Len: 8}
	binary.LittleEndian.PutUint64(f.Data[:], math.Float64bits(v))
	if copies, _ := r.FilterReceived(0, &f, can.Stamp{}); copies > 0 {
		f = r.Copied
	}
	return math.Float64frombits(binary.LittleEndian.Uint64(f.Data[:]))
}

// A frame comes at every seventh tick. A delayed value is that of the last frame at the time, and a leak
// has its time constant in seconds, not in frames.
func TestFaultsOfAReceivedSignalFollowTheTimeBetweenFrames(t *testing.T) {
	for _, n := range []int64{1, 7, 20, 999, MaxDelay} {
		r := newRig(t, Plan{Faults: []Fault{{Kind: Delay, N: n, Where: ReceivedSignal, Start: Trigger{Tick: 1500}}}})
		for k := int64(1); k < 4000; k++ {
			r.tick(k, 0)
			if k%7 != 0 {
				continue
			}
			want := float64(k)
			if k >= 1500 {
				want = float64((k - n) / 7 * 7)
			}
			for range 2 { // the second frame of a tick
				if got := r.received(float64(k)); got != want {
					t.Fatalf("delay %d, tick %d: %v, want %v", n, k, got, want)
				}
			}
		}
	}
	const share, time, v = 0.3, 0.2, 8.0
	r := newRig(t, Plan{Faults: []Fault{{Kind: Leak, A: share, B: time, Where: ReceivedSignal}}})
	for k := int64(1); k < 400; k++ {
		if r.tick(k, 0); k%7 != 0 {
			continue
		}
		want := v * (1 - share*(1-math.Exp(-float64(k-7)*h/time)))
		if got := r.received(v); !scalar.EqualWithinRel(got, want, 1e-12) {
			t.Fatalf("tick %d: %v, want %v", k, got, want)
		}
	}
}

func TestDelayReturnsValuesSinceItWasArmed(t *testing.T) {
	for _, n := range []int64{0, 1, 999, MaxDelay} {
		r := newRig(t, Plan{Faults: []Fault{{Kind: Delay, N: n, Start: Trigger{Tick: 1500}}}})
		for k := int64(1); k < 4000; k++ {
			want := float64(k)
			if k >= 1500 {
				want -= float64(n)
			}
			if got := r.tick(k, float64(k))[driven]; got != want {
				t.Fatalf("%d ticks late, tick %d: %v, want %v", n, k, got, want)
			}
		}
	}
	r := newRig(t, Plan{})
	for k := int64(1); k < 60; k++ {
		var list []Command
		if k == 20 {
			list = []Command{{Op: Put, Fault: Fault{Kind: Delay, N: 10}}}
		}
		want := float64(k)
		if k >= 20 {
			want = max(20, want-10)
		}
		if got := r.tick(k, float64(k), list...)[driven]; got != want {
			t.Errorf("armed at 20, tick %d: %v, want %v", k, got, want)
		}
	}
}

func TestInvalidCommandIsRefusedAndChangesNothing(t *testing.T) {
	put := func(f Fault) Command { return Command{Op: Put, Fault: f} }
	for want, list := range map[error][]Command{
		errSlot:    {{Op: Put, Slot: Max, Fault: Fault{Kind: Stuck}}, {Op: Clear, Slot: -1}},
		errCommand: {{Op: 99}},
		errTarget: {put(Fault{Kind: Stuck, Input: 2}), put(Fault{Kind: Stuck, Input: -1}), put(Fault{Kind: Stuck, Where: Signal, Bus: 1}),
			put(Fault{Kind: Stuck, Where: Signal, Message: 2}), put(Fault{Kind: Stuck, Where: Signal, Field: 1}), put(Fault{Kind: Stuck, Where: Signal, Field: -1}),
			put(Fault{Kind: Drop, Where: SentFrame, Message: -1}), put(Fault{Kind: Drop, Where: ReceivedFrame, Message: 1}),
			put(Fault{Kind: Stuck, Where: ReceivedSignal, Message: 1}), put(Fault{Kind: Stuck, Where: ReceivedSignal, Field: 1}),
			put(Fault{Kind: BusOff, Where: Bus, Bus: -1}), put(Fault{Kind: BusOff, Where: wheres}), {Op: Drive, Input: 9}},
		errKind: {put(Fault{}), put(Fault{Kind: Drop}), put(Fault{Kind: kinds}), put(Fault{Kind: Stuck, Where: SentFrame}), put(Fault{Kind: Stuck, Where: Bus}),
			put(Fault{Kind: BusOff, Where: SentFrame}), put(Fault{Kind: Stuck, Where: ReceivedFrame}), put(Fault{Kind: Drop, Where: ReceivedSignal}), put(Fault{Kind: Drop, Where: Bus})},
		errInputDriven:  {{Op: Drive, Input: driven}, {Op: Release, Input: driven}},
		errSignalDriven: {{Op: Drive, Fault: Fault{Where: Signal, Message: 1}}, {Op: Release, Fault: Fault{Where: Signal}}},
		errRange:        {put(Fault{Kind: Short, Input: source, N: 1})},
		errNumber:       {put(Fault{Kind: Short, N: 2})},
		errHeld:         {put(Fault{Kind: DelayFrame, Where: SentFrame, N: MaxHeld + 1})},
		errDelay:        {put(Fault{Kind: DelayFrame, Where: SentFrame}), put(Fault{Kind: DelayFrame, Where: ReceivedFrame}), put(Fault{Kind: Delay, N: MaxDelay + 1}), put(Fault{Kind: Delay, N: -1}), put(Fault{Kind: DelayFrame, Where: SentFrame, N: MaxDelay + 1}), put(Fault{Kind: DelayFrame, Where: ReceivedFrame, N: -1})},
		errNoChecksum:   {put(Fault{Kind: ChecksumValue, Where: SentFrame}), put(Fault{Kind: ChecksumRandom, Where: ReceivedFrame})},
		errNoCounter:    {put(Fault{Kind: FreezeCounter, Where: SentFrame}), put(Fault{Kind: FreezeCounter, Where: ReceivedFrame})},
		errLength:       {put(Fault{Kind: WrongLength, Where: SentFrame, N: 8}), put(Fault{Kind: WrongLength, Where: SentFrame, N: 9}), put(Fault{Kind: WrongLength, Where: SentFrame, N: -1}), put(Fault{Kind: WrongLength, Where: SentFrame, N: 12}), put(Fault{Kind: WrongLength, Where: ReceivedFrame, N: 8}), put(Fault{Kind: WrongLength, Where: ReceivedFrame, N: 12})},
		errBurst:        {put(Fault{Kind: Burst, Where: SentFrame}), put(Fault{Kind: Burst, Where: SentFrame, N: MaxBurst + 1}), put(Fault{Kind: Burst, Where: ReceivedFrame})},
		errDuration:     {put(Fault{Kind: Stuck, Duration: -1}), put(Fault{Kind: Stuck, Frames: true}), put(Fault{Kind: BusOff, Where: Bus, Frames: true})},
		errTrigger:      {put(Fault{Kind: Stuck, Start: Trigger{When: [2]Condition{{Set: true, Output: true, Index: 1}}}}), put(Fault{Kind: Stuck, Start: Trigger{When: [2]Condition{{Set: true, Index: -1}}}})},
	} {
		for _, c := range list {
			r := newRig(t, Plan{Ranges: [][2]float64{{0, 1}}})
			if err := r.Check(&c); !errors.Is(err, want) {
				t.Errorf("%+v: %v, want %v", c, err, want)
			}
			if got := r.history(2, straight, map[int64][]Command{1: {c}}); len(got) != 0 || r.UsedSlots() != 0 {
				t.Errorf("%+v changes %q", c, got)
			}
		}
	}
}

func TestInvalidPlanIsRefused(t *testing.T) {
	waveform := sigmap.Waveform{At: []int64{0}, Value: []float64{1}}
	system := System{PeriodNs: hNs, M: 2, P: 1, Maps: []*sigmap.Map{testMap(t)}, Plant: &plant{on: make([]bool, 2)}}
	for _, c := range []struct {
		plan Plan
		kind error // nil: only the text is checked
		want string
	}{
		{Plan{Faults: make([]Fault, Max+1)}, nil, "65 faults"},
		{Plan{Faults: []Fault{{Kind: Stuck}, {}}}, errKind, "fault 2: "},
		{Plan{Stimuli: []Stimulus{{Input: driven, Waveform: waveform}}}, errInputDriven, "stimulus 1: "},
		{Plan{Stimuli: []Stimulus{{Input: source, Waveform: waveform}, {Input: source, Waveform: waveform}}}, nil, "stimulus 2: input 1 has"},
		{Plan{Stimuli: []Stimulus{{Input: source}}}, nil, "stimulus 1: a waveform has 1 to"},
	} {
		_, err := New(c.plan, system)
		if err == nil || c.kind != nil && !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %v, %q", err, c.kind, c.want)
		}
	}
	system.Plant = nil
	if _, err := New(Plan{Faults: []Fault{{Kind: Stuck, Input: source}}}, system); !errors.Is(err, errInputKept) {
		t.Errorf("a plant without Driver: %v", err)
	}
}

// The texts differ, and name the limit.
func TestEveryRefusalHasItsOwnError(t *testing.T) {
	all := []error{
		errCommand, errSlot, errTarget, errInputKept, errInputDriven, errKind, errNumber, errDelay, errHeld, errRange,
		errNoChecksum, errNoCounter, errOffset, errLength, errBurst, errDuration, errTrigger,
	}
	texts := map[string]bool{"": true}
	for _, err := range all {
		if texts[err.Error()] {
			t.Errorf("not unique, or empty: %q", err)
		}
		texts[err.Error()] = true
	}
	if got, want := errHeld.Error(), "more than 64 frames would be held back at once"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestSetDoesNotAllocate(t *testing.T) {
	r := newRig(t, Plan{})
	put := Command{Op: Put, Fault: Fault{Kind: Delay, N: 7}}
	k := int64(0)
	if n := testing.AllocsPerRun(200, func() {
		k++
		put.Slot = int(k % Max)
		put.Fault.Kind, put.Fault.Where = Kind(1+k%int64(Short)), Where(k%2)
		put.Fault.N = k % 2
		r.Apply(&put)
		r.BeginTick(k, r.y)
		for c := (Change{}); r.NextChange(&c); {
		}
		r.DisturbInputs(k, []float64{1, 2}[:])
		r.DisturbSignals(k, r.y)
	}); n != 0 {
		t.Errorf("%v allocations a tick", n)
	}
}

// A float64 is exact up to 2^53.
func TestValuesOf64BitsAreSetExactly(t *testing.T) {
	db := &messages.Database{File: "x.dbc", Messages: []messages.Message{{Name: "M", ID: 1, Len: 8, Signals: []messages.Signal{{Name: "n", Len: 64, Factor: 1}}}}}
	m, err := sigmap.Bind(db, sigmap.Spec{PeriodNs: hNs, Sendings: []sigmap.Sending{{Message: "M", CycleNs: hNs, Restbus: true}}}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(Plan{}, System{PeriodNs: hNs, Maps: []*sigmap.Map{m}})
	if err != nil {
		t.Fatal(err)
	}
	sent := func() uint64 {
		var f can.Frame
		m.Encode(&f, 0, 0, nil, true)
		return binary.LittleEndian.Uint64(f.Data[:])
	}
	const want = 1<<64 - 3
	signal := Fault{Where: Signal}
	for _, c := range []struct {
		command Command
		want    uint64
	}{
		{Command{Op: Drive, Fault: signal, Value: want, Whole: true, Raw: want}, want},
		{Command{Op: Drive, Fault: signal, Value: 7}, 7},
		{Command{Op: Drive, Fault: signal, Value: want, Whole: true, Raw: want}, want},
		{Command{Op: Release, Fault: signal}, 0},
	} {
		if err := s.Check(&c.command); err != nil {
			t.Fatal(err)
		}
		s.Apply(&c.command)
		if got := sent(); got != c.want {
			t.Errorf("%+v: sent %d, want %d", c.command, got, c.want)
		}
	}
}
