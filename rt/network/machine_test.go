package network

import (
	"testing"

	"lockstep/io/can"
	"lockstep/io/sigmap"
	"lockstep/rt/fault"
)

// three messages on one bus: cycle 4 ticks, phase 1.
func threeMessages() []*sigmap.Map {
	m := &sigmap.Map{PeriodNs: 1e6, Rx: make([]sigmap.Rx, 2)}
	for range 3 {
		m.Tx = append(m.Tx, sigmap.Tx{CycleTicks: 4, PhaseTicks: 1, Len: 8, GapTicks: 1})
	}
	return []*sigmap.Map{m}
}

func newMachine(t *testing.T, p *Plan, maps []*sigmap.Map) *Machine {
	t.Helper()
	m, err := New(p, maps)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// sentTicks returns the ticks from first to last at which message i of bus 0 is sent. Call it for all messages at once.
func sentTicks(m *Machine, maps []*sigmap.Map, first, last int64, switches map[int64]State) (list [3][]int64) {
	for k := first; k <= last; k++ {
		if s, ok := switches[k]; ok {
			m.Apply(&fault.Command{Op: fault.SwitchIgnition, Slot: int(s)}, k)
		}
		m.Begin(k)
		for i := range maps[0].Tx {
			if may, _ := m.Sends(0, i, k); may && maps[0].Due(i, k, nil, false) {
				list[i] = append(list[i], k)
			}
		}
	}
	return list
}

func TestMessagesStartAfterTheirDelayAndKeepTheirCycle(t *testing.T) {
	maps := threeMessages()
	p := &Plan{Delays: [][States]int64{
		{Never, Never, 0, 0, 0}, {Never, Never, 6, 6, 6}, {0, 0, 0, 0, 0},
	}}
	m := newMachine(t, p, maps)
	got := sentTicks(m, maps, 1, 24, map[int64]State{4: Ignition, 10: Crank, 12: Run, 19: Off})
	want := [3][]int64{
		{5, 9, 13, 17},        // in its phase, from tick 4 to 18
		{10, 14, 18},          // 6 ticks after tick 4, then its cycle; crank and run do not start it again
		{1, 5, 9, 13, 17, 21}, // in each state
	}
	for i := range want {
		if !equal(got[i], want[i]) {
			t.Errorf("message %d is sent at %v, want %v", i, got[i], want[i])
		}
	}
	if again := sentTicks(m, maps, 25, 40, map[int64]State{30: Run}); !equal(again[1], []int64{36, 40}) {
		t.Errorf("after a second switch-on at tick 30 message 1 is sent at %v, want 36 and 40", again[1])
	}
}

func equal(a, b []int64) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

func TestMessageOnChangeIsSentAtTheSwitchOn(t *testing.T) {
	maps := threeMessages()
	t0 := &maps[0].Tx[0]
	t0.Send, t0.CycleTicks, t0.PhaseTicks = sigmap.OnChange, 1, 0
	m := newMachine(t, &Plan{Start: Run, Delays: [][States]int64{{Never, Never, 3, 3, 3}, {}, {}}}, maps)
	got := sentTicks(m, maps, 1, 40, map[int64]State{10: Off, 20: Run})
	if !equal(got[0], []int64{4, 23}) {
		t.Errorf("sent at %v, want 4 and 23: 3 ticks after each switch-on", got[0])
	}
}

func TestSignalCarriesTheState(t *testing.T) {
	maps := threeMessages()
	maps[0].Tx[0].Waveforms = []sigmap.Waveform{{At: []int64{0}, Value: []float64{9}}}
	maps[0].Tx[0].Fields = []sigmap.Field{{Waveform: 1}}
	m := newMachine(t, &Plan{Start: Standby, Delays: make([][States]int64, 3), Signals: []Signal{{Values: [States]float64{10, 11, 12, 13, 14}}}}, maps)
	for _, s := range []State{Standby, Off, Crank, Run} {
		m.Apply(&fault.Command{Op: fault.SwitchIgnition, Slot: int(s)}, 1)
		if got := maps[0].Tx[0].Waveforms[0].Value[0]; got != 10+float64(s) || m.State() != s {
			t.Errorf("%v: the signal is %g, want %g", s, got, 10+float64(s))
		}
	}
	m.Apply(&fault.Command{Op: fault.SwitchIgnition, Slot: States}, 1)
	if m.State() != Run {
		t.Errorf("a state that does not exist is entered: %v", m.State())
	}
}

func TestFrameWakesTheBenchAndSilenceLetsItSleep(t *testing.T) {
	maps := threeMessages()
	p := &Plan{Delays: [][States]int64{{Never, 0, 0, 0, 0}, {}, {}}, Wake: Wake{By: [][]bool{{false, true}}, To: Standby, Hold: 5}}
	m := newMachine(t, p, maps)
	states := map[int64]State{}
	for k := int64(1); k <= 40; k++ {
		m.Begin(k)
		states[k] = m.State()
		switch k {
		case 3:
			m.Receive(0, 0, &can.Frame{}) // the other message wakes nothing
		case 10, 13:
			m.Receive(0, 1, &can.Frame{})
		}
	}
	for k, want := range map[int64]State{4: Off, 10: Off, 11: Standby, 18: Standby, 19: Off, 40: Off} {
		if states[k] != want {
			t.Errorf("tick %d: %v, want %v; frames came after ticks 10 and 13", k, states[k], want)
		}
	}
	m.Receive(0, 1, &can.Frame{})
	m.Begin(41)
	m.Apply(&fault.Command{Op: fault.SwitchIgnition, Slot: int(Run)}, 42)
	for k := int64(42); k < 60; k++ {
		m.Begin(k)
	}
	if m.State() != Run {
		t.Errorf("a key that was turned is turned back by silence: %v", m.State())
	}
}

func TestMachineDoesNotAllocate(t *testing.T) {
	maps := threeMessages()
	p := &Plan{Delays: make([][States]int64, 3), Nodes: []NodePlan{nodePlan(maps)}, Wake: Wake{By: [][]bool{{true, true}}, To: Standby, Hold: 5}}
	m := newMachine(t, p, maps)
	k, f, c := int64(0), &can.Frame{Len: 8}, Change{}
	command := &fault.Command{Op: fault.SwitchIgnition}
	if n := testing.AllocsPerRun(1000, func() {
		k++
		command.Slot = int(k/7) % States
		m.Apply(command, k)
		m.Begin(k)
		for m.NextChange(&c) {
		}
		m.Receive(0, 1, f)
		if may, managed := m.Sends(0, 2, k); may && managed {
			m.Fill(0, 2, f)
			m.Confirm(0, 2, k)
		}
	}); n != 0 {
		t.Errorf("%g allocations per tick, want 0", n)
	}
}

func TestStatesAndSuppliesAreReadAsTheyArePrinted(t *testing.T) {
	for s := Off; s < States; s++ {
		if got, err := ParseState(s.String()); got != s || err != nil {
			t.Errorf("%v: %v, %v", s, got, err)
		}
	}
	if got, err := ParseState("on"); got != Run || err != nil {
		t.Errorf("on: %v, %v", got, err)
	}
	for _, text := range []string{"off", "on", "9 V", "13.85 V", "600 V"} {
		if got, err := ParseSupply(text); err != nil || got.String() != text {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "9", "-1 V", "0 V", "601 V", "9 A", "onn"} {
		if got, err := ParseSupply(text); err == nil {
			t.Errorf("%q: %v, want an error", text, got)
		}
	}
}
