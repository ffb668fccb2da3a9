package supervisor

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"lockstep/io/can"
	"lockstep/rt"
	"lockstep/rt/bench"
)

// states returns the states of one bus, can0, without queries of the kernel, 10 ticks of 5 ms after
// the first.
func states(t *testing.T) (*busStates, *watchedBus) {
	t.Helper()
	r, _ := demoRun(t)
	r.Bench.Buses[0].Interface.Text = "can0"
	r.Status.StartNs.Store(1e9)
	r.Status.Ticks.Store(10)
	w := &watchedBus{bus: &r.Bench.Buses[0], since: 0.9e9, spent: map[string]int64{}, errorsLeft: maxErrorFrames}
	w.setLink(can.Link{Index: 3, Name: "can0", Up: true, Card: true, State: can.Active})
	w.lastState = w.currentState()
	s := &busStates{View: r.View, buses: []*watchedBus{w}}
	r.states = s
	return s, w
}

// addErrorAt adds an error frame at a time of the run, s.
func (s *busStates) addErrorAt(w *watchedBus, at float64, classes uint32, data ...byte) {
	f := can.Frame{ID: can.ERR | classes, Len: 8}
	copy(f.Data[:], data)
	s.addError(w, &f, 1e9+int64(at*1e9))
}

func TestStatesOfABusAndTheirTimesAreReported(t *testing.T) {
	s, w := states(t)
	const crtl = unix.CAN_ERR_CRTL | unix.CAN_ERR_CNT
	s.addErrorAt(w, -0.05, crtl, 0, unix.CAN_ERR_CRTL_TX_WARNING, 0, 0, 0, 0, 96, 0) // before the first tick
	s.addErrorAt(w, 0.010, crtl, 0, unix.CAN_ERR_CRTL_TX_PASSIVE, 0, 0, 0, 0, 128, 1)
	s.addErrorAt(w, 0.012, unix.CAN_ERR_ACK) // same state
	s.addErrorAt(w, 0.020, unix.CAN_ERR_BUSOFF)
	s.addErrorAt(w, 0.045, unix.CAN_ERR_RESTARTED)
	s.Status.State.Store(uint64(rt.Ended))
	list := s.report()
	if len(list) != 1 {
		t.Fatalf("%d buses", len(list))
	}
	v := &list[0]
	for state, want := range map[string]float64{"error-warning": 0.010, "error-passive": 0.010, "bus-off": 0.025, "error-active": 0.005} {
		if got := v.Seconds[state]; !(math.Abs(got-want) < 1e-9) {
			t.Errorf("%s for %v s, want %v s", state, got, want)
		}
	}
	var got []string
	for _, c := range v.Changes {
		got = append(got, c.Text)
	}
	if want := []string{
		"bus drive (can0): error-warning, 96 transmit errors, 0 receive errors",
		"bus drive (can0): error-passive, 128 transmit errors, 1 receive errors",
		"bus drive (can0): bus-off",
		"bus drive (can0): error-active, 128 transmit errors, 1 receive errors",
	}; !slices.Equal(got, want) {
		t.Errorf("changes %q, want %q", got, want)
	}
	if c := v.Changes[0]; c.At != 0 || c.Tick != 0 {
		t.Errorf("before the first tick: %+v", c)
	}
	if c := v.Changes[2]; c.Tick != 4 || !(math.Abs(c.At-0.02) < 1e-9) || c.State != "bus-off" {
		t.Errorf("off at %+v, want tick 4, 0.02 s", c)
	}
	lines := v.Lines()
	if want := []string{
		"drive on can0: bus-off 0.025 s, error-active 0.005 s, error-passive 0.010 s, error-warning 0.010 s; at the end error-active with 128 transmit errors, 1 receive errors",
		"5 error frames: error-warning 1, error-passive 1, bus-off 1, restarted 1, not acknowledged 1",
		"0.000 s: error-warning, 96 transmit errors, 0 receive errors",
	}; len(lines) != 6 || !slices.Equal(lines[:3], want) {
		t.Errorf("lines of the report %q, want the first %q", lines, want)
	}
	if events := s.events(); len(events) != 4 || events[1].Text != got[1] || events[2].Tick != 4 || len(s.events()) != 0 {
		t.Errorf("the record's events are %+v", events)
	}
}

func TestHealthyBusIsNotMentioned(t *testing.T) {
	s, w := states(t)
	s.noteState(w, 2e9)
	for _, v := range s.report() {
		if lines := v.Lines(); lines != nil {
			t.Errorf("%q", lines)
		}
	}
	if text := s.problem(); text != "" {
		t.Errorf("%q", text)
	}
	if text := (&busStates{}).problem(); text != "" {
		t.Errorf("without buses: %q", text)
	}
}

func TestStatusLineShowsTheStateOfABus(t *testing.T) {
	s, w := states(t)
	expect := func(want string) {
		t.Helper()
		if got := s.problem(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	s.addErrorAt(w, 1, unix.CAN_ERR_CRTL|unix.CAN_ERR_CNT, 0, unix.CAN_ERR_CRTL_RX_PASSIVE, 0, 0, 0, 0, 7, 130)
	expect("bus drive is error-passive (7/130)")
	s.addErrorAt(w, 2, unix.CAN_ERR_BUSOFF)
	expect("bus drive is off")
	w.setLink(can.Link{Index: 3, Name: "can0", Card: true, State: can.Stopped})
	s.noteState(w, 3e9)
	expect("bus drive is down")
	w.setLink(can.Link{Gone: true})
	s.noteState(w, 4e9)
	expect("bus drive is gone")
	w.setLink(can.Link{Index: 4, Name: "can0", Up: true, Card: true, State: can.Active})
	s.noteState(w, 5e9)
	expect("")
}

// The kernel's answer to a query may be older than an error frame that arrives before it is stored.
func TestStateOfAnErrorFrameOutlastsAnOlderAnswerOfTheKernel(t *testing.T) {
	s, w := states(t)
	active := can.Link{Index: 3, Name: "can0", Up: true, Card: true, State: can.Active}
	s.addErrorAt(w, 1, unix.CAN_ERR_CRTL, 0, unix.CAN_ERR_CRTL_TX_WARNING)
	s.updateLink(w, active)
	if w.lastState != "error-warning" {
		t.Errorf("%s after the older answer, want error-warning", w.lastState)
	}
	w.stateNew = false // the next poll
	s.addErrorAt(w, 2, unix.CAN_ERR_ACK)
	if s.updateLink(w, active); w.lastState != "error-active" {
		t.Errorf("%s after the answer of the next poll, want error-active", w.lastState)
	}
	s.addErrorAt(w, 3, unix.CAN_ERR_BUSOFF)
	for _, up := range []bool{false, true} {
		active.Up = up
		s.updateLink(w, active)
	}
	if w.lastState != "error-active" {
		t.Errorf("%s after a start of the interface, want error-active", w.lastState)
	}
}

// An interface keeps its index when it is renamed. After its end, the next interface of its name
// replaces it.
func TestBusFollowsTheIndexOfItsInterface(t *testing.T) {
	_, w := states(t)
	for _, c := range []struct {
		gone bool
		link can.Link
		want bool
	}{
		{false, can.Link{Index: 3, Name: "can7"}, true},
		{false, can.Link{Index: 4, Name: "can0"}, false},
		{true, can.Link{Index: 4, Name: "can0"}, true},
		{true, can.Link{Index: 3, Name: "can7"}, false},
	} {
		if w.link.Gone = c.gone; w.matchesLink(&c.link) != c.want {
			t.Errorf("gone %t: %+v matches the bus: %t, want %t", c.gone, c.link, !c.want, c.want)
		}
	}
}

func TestBusChangesAreKeptUpToALimit(t *testing.T) {
	s, w := states(t)
	for range maxChanges {
		s.addErrorAt(w, 1, unix.CAN_ERR_BUSOFF)
		s.addErrorAt(w, 1, unix.CAN_ERR_RESTARTED)
	}
	if n := len(s.events()); n != maxChanges || w.errors.Offs != maxChanges {
		t.Errorf("%d changes kept, %d times off; want %d and %d", n, w.errors.Offs, maxChanges, maxChanges)
	}
}

func TestRunIsRefusedOnABusThatIsOff(t *testing.T) {
	s, w := states(t)
	w.setLink(can.Link{Index: 3, Name: "can0", Up: true, Card: true, State: can.Passive, HasCounters: true, Tx: 300, Rx: 2, BitRate: 250_000})
	w.bus.BitRate = 500e3
	if err := s.refuseBusOff(); err != nil {
		t.Errorf("error-passive is refused: %v", err)
	}
	if got, want := s.warnings(), []string{
		"bus drive: can0 is error-passive, 255 transmit errors, 2 receive errors: check that another node is on the bus and has the same bit rate",
		"bus drive: can0 runs at 250 kbit/s, the bench file says 500 kbit/s: ip link set can0 down && ip link set can0 up type can bitrate 500000",
	}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	w.setLink(can.Link{Index: 3, Name: "can0", Up: true, Card: true, State: can.Off})
	if err := s.refuseBusOff(); err == nil || !strings.HasPrefix(err.Error(), "bus drive: can0 is bus-off: ") || !strings.HasSuffix(err.Error(), "ip link set can0 up type can bitrate 500000 restart-ms 100") {
		t.Errorf("bus-off at the start: %v", err)
	}
}

func TestRunWarnsOfADatabaseThatBreaksItsFormat(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "..", "model", "plants", "powershift.dbc"))
	if err != nil {
		t.Fatal(err)
	}
	for odd, want := range map[string]string{
		"": "", "\nBA_ \"Nonsense\" 5;\nBA_ \"More\" 6;\n": "database mine.dbc breaks its format in 2 places: lockstep check lists them\n",
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "mine.dbc"), append(data, odd...), 0o666); err != nil {
			t.Fatal(err)
		}
		r, _ := demoRun(t)
		text := strings.Replace(string(r.Bench.FileText()), "powershift.dbc", "mine.dbc", 1)
		if r.Bench, err = bench.Parse("bench.yaml", dir, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if r.Handover, err = bench.Prepare(r.Bench); err != nil {
			t.Fatal(err)
		}
		r.states = &busStates{View: r.View}
		if got := r.announcement(); strings.Contains(got, "database mine.dbc") != (want != "") || !strings.Contains(got, want) {
			t.Errorf("%q: the announcement is\n%s\nwant %q", odd, got, want)
		}
	}
}
