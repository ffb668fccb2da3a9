package sigmap

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// counted returns a counter-only or e2e group in bytes 0 and 1 of a frame of 8.
func counted(t *testing.T, name string, spec ProtectionSpec) Protection {
	t.Helper()
	spec.Profile = name
	switch {
	case name == "counter-only":
		spec.Counter = []string{"8|4"}
	case name == "e2e-2" || name == "e2e-22":
		spec.DataIDs = upTo(16)
	default:
		spec.DataIDs = []uint32{0x123}
	}
	return protection(t, 8, 0x100, spec)
}

// letters abbreviate states in the tables below.
const letters = ".OLRWEIS" // NONEWDATA OK OK_SOMELOST REPEATED WRONGSEQUENCE ERROR INITIAL SYNC

// receive passes frames with the given counters to p and returns the letters of their states: "-"
// is a cycle without a frame, "x" a frame with a wrong checksum.
func receive(p *Protection, words string) string {
	var got strings.Builder
	sends := *p
	for _, word := range strings.Fields(words) {
		var data [64]byte
		var s Status
		switch word {
		case "-":
			s = p.CheckMissing()
		case "x":
			sends.Protect(&data, 8, 0x100)
			data[4] ^= 1
			s = p.Check(&data, 8, 0x100)
		default:
			fmt.Sscan(word, &sends.Next)
			sends.Protect(&data, 8, 0x100)
			s = p.Check(&data, 8, 0x100)
		}
		got.WriteByte(letters[s.Frame])
	}
	return got.String()
}

func TestCounterErrorsGetTheStatesOfTheProfile(t *testing.T) {
	for _, c := range []struct {
		name, profile string
		spec          ProtectionSpec
		words, want   string
	}{
		{"in order and round", "e2e-5", ProtectionSpec{}, "0 1 2 3", "OOOO"},
		{"round", "e2e-5", ProtectionSpec{}, "254 255 0 1", "WOOO"},
		{"joins in the middle", "e2e-5", ProtectionSpec{}, "77 78", "WO"},
		{"repeated", "e2e-5", ProtectionSpec{}, "0 0 0 1", "ORRO"},
		{"lost", "e2e-5", ProtectionSpec{MaxDelta: 3}, "0 2 5 9 10", "OLLWO"},
		{"a wrong frame is no step", "e2e-5", ProtectionSpec{MaxDelta: 2}, "0 x 2 x x 5", "OELEEW"},
		{"back", "e2e-5", ProtectionSpec{}, "5 4 5 6", "WWOO"},
		{"misses do not widen the step", "e2e-5", ProtectionSpec{MaxDelta: 1}, "0 - - 3 4", "O..WO"},
		{"15 values, 14 to 0", "e2e-11a", ProtectionSpec{}, "0 14 0 1", "OWOO"},
		{"16 values, 15 to 0", "e2e-22", ProtectionSpec{MaxDelta: 1}, "15 0 1", "ROO"},

		{"initial", "e2e-1a", ProtectionSpec{}, "7 8 9", "IOO"},
		{"15 values", "e2e-1a", ProtectionSpec{}, "13 14 0", "IOO"},
		{"16 values", "e2e-2", ProtectionSpec{}, "14 15 0", "IOO"},
		{"repeated", "e2e-2", ProtectionSpec{}, "1 1 2 2", "IROR"},
		{"lost", "e2e-2", ProtectionSpec{MaxDelta: 2}, "1 3 4", "ILO"},
		{"the step grows with misses", "e2e-2", ProtectionSpec{MaxDelta: 1}, "1 - - 4", "I..L"},
		{"and with wrong frames", "e2e-1a", ProtectionSpec{MaxDelta: 1}, "1 x x 4", "IEEL"},
		{"too far, then it grows until it is not", "e2e-2", ProtectionSpec{MaxDelta: 1}, "0 5 5 5 5", "IWWWL"},
		{"too far, then in step", "e2e-2", ProtectionSpec{MaxDelta: 1, SyncCounter: 2}, "0 8 9 10 11", "IWSSO"},
		{"after a pause, no synchronising", "e2e-1a", ProtectionSpec{MaxNoNew: at(2), MaxDelta: 5}, "0 - - 3 4 - - - 8 9", "I..LO...SO"},
		{"after a pause", "e2e-1a", ProtectionSpec{MaxNoNew: at(2), MaxDelta: 5, SyncCounter: 1}, "0 - - - 4 5 6", "I...SSO"},
		{"after repetitions", "e2e-1a", ProtectionSpec{MaxNoNew: at(1), SyncCounter: 1}, "0 0 1 1 1 2 3 4", "IRORRSSO"},

		{"repetitions without a limit", "e2e-1a", ProtectionSpec{}, strings.Repeat("0 ", 20) + "1", "I" + strings.Repeat("R", 19) + "O"},
		{"a pause without a limit", "e2e-2", ProtectionSpec{}, "0 " + strings.Repeat("- ", 20) + "1", "I" + strings.Repeat(".", 20) + "O"},
		{"two may be lost", "e2e-5", ProtectionSpec{}, "0 3 7", "OLW"},

		{"one of four may be lost", "counter-only", ProtectionSpec{Modulus: 4}, "0 2 1", "ILW"},
		{"none of two", "counter-only", ProtectionSpec{Modulus: 2}, "0 1 0 0", "IOOR"},
		{"initial", "counter-only", ProtectionSpec{}, "7 8 8 10 9", "IORLW"},
		{"of 5", "counter-only", ProtectionSpec{Modulus: 5}, "3 4 0 2 7", "IOOLE"},
	} {
		p := counted(t, c.profile, c.spec)
		if got := receive(&p, c.words); got != c.want {
			t.Errorf("%s: %s: %s: %s, want %s", c.profile, c.name, c.words, got, c.want)
		}
	}
}

func TestCounterBeyondItsModulusIsAnError(t *testing.T) {
	for name, want := range map[string]State{"e2e-1a": FrameError, "e2e-11c": FrameError, "e2e-2": FrameInitial} {
		p := counted(t, name, ProtectionSpec{})
		p.Next = 15
		var data [64]byte
		p.Protect(&data, 8, 0x100)
		if got := p.Check(&data, 8, 0x100).Frame; got != want {
			t.Errorf("%s: counter 15: %v, want %v", name, got, want)
		}
	}
}

// A frame whose checksum is right for another data identifier with the same low
// byte differs from ours in the nibble only.
func TestWrongNibbleOfTheDataIdentifierIsAnError(t *testing.T) {
	ours := protection(t, 8, 0x100, ProtectionSpec{Profile: "e2e-11c", DataIDs: []uint32{0x123}})
	theirs := protection(t, 8, 0x100, ProtectionSpec{Profile: "e2e-11c", DataIDs: []uint32{0x923}})
	var data [64]byte
	theirs.Protect(&data, 8, 0x100)
	if got := ours.Check(&data, 8, 0x100).Frame; got != FrameError {
		t.Errorf("%v, want ERROR", got)
	}
}

// classicModel is E2E_P01Check and E2E_P02Check as the requirements number their
// steps, one variable of AUTOSAR's for each.
type classicModel struct {
	modulus, maxDeltaCounterInit, maxNoNewOrRepeatedData, syncCounterInit int

	waitForFirstData, started                                           bool
	lastValidCounter, maxDeltaCounter, syncCounter, noNewOrRepeatedData int
}

// check takes a counter, -1 for no frame, -2 for a wrong checksum.
func (m *classicModel) check(counter int) State {
	if !m.started {
		m.started, m.waitForFirstData = true, true
	}
	if m.maxDeltaCounter < m.modulus-1 {
		m.maxDeltaCounter++
	}
	if counter == -1 {
		if m.noNewOrRepeatedData < m.modulus-1 {
			m.noNewOrRepeatedData++
		}
		return FrameNoNewData
	}
	if counter == -2 {
		return FrameError
	}
	if m.waitForFirstData {
		m.waitForFirstData = false
		m.maxDeltaCounter = m.maxDeltaCounterInit
		m.lastValidCounter = counter
		return FrameInitial
	}
	delta := (counter - m.lastValidCounter + m.modulus) % m.modulus
	if delta == 0 {
		if m.noNewOrRepeatedData < m.modulus-1 {
			m.noNewOrRepeatedData++
		}
		return FrameRepeated
	}
	if delta > m.maxDeltaCounter {
		m.noNewOrRepeatedData = 0
		m.syncCounter = m.syncCounterInit
		if m.syncCounter > 0 {
			m.maxDeltaCounter = m.maxDeltaCounterInit
			m.lastValidCounter = counter
		}
		return FrameWrongSequence
	}
	m.maxDeltaCounter = m.maxDeltaCounterInit
	m.lastValidCounter = counter
	if m.noNewOrRepeatedData <= m.maxNoNewOrRepeatedData {
		m.noNewOrRepeatedData = 0
		if m.syncCounter > 0 {
			m.syncCounter--
			return FrameSync
		}
		if delta == 1 {
			return FrameOK
		}
		return FrameSomeLost
	}
	m.noNewOrRepeatedData = 0
	m.syncCounter = m.syncCounterInit
	return FrameSync
}

// windowModel is E2E_SMCheck computed from the list of all states since INIT.
type windowModel struct {
	WindowLimits
	state Window
	since []State // states since INIT
}

func (m *windowModel) check(s State) Window {
	if m.state == WindowNoData {
		if s != FrameError && s != FrameNoNewData {
			m.state = WindowInit
		}
		return m.state
	}
	m.since = append(m.since, s)
	ok, wrong := 0, 0
	for i := max(0, len(m.since)-m.WindowSize); i < len(m.since); i++ {
		switch m.since[i] {
		case FrameOK, FrameSomeLost, FrameSync:
			ok++
		case FrameError:
			wrong++
		}
	}
	type limits struct{ ok, wrong int }
	l := map[Window]limits{
		WindowInit:    {m.MinOkStateInit, m.MaxErrorStateInit},
		WindowValid:   {m.MinOkStateValid, m.MaxErrorStateValid},
		WindowInvalid: {m.MinOkStateInvalid, m.MaxErrorStateInvalid},
	}[m.state]
	fits := wrong <= l.wrong && ok >= l.ok
	switch {
	case fits:
		m.state = WindowValid
	case m.state == WindowValid || wrong > l.wrong:
		m.state = WindowInvalid
	}
	return m.state
}

// limits returns random limits of a window that AUTOSAR allows.
func limits(r *rand.Rand) (w WindowLimits) {
	w.WindowSize = 1 + r.IntN(64)
	wrong := r.IntN(w.WindowSize)
	w.MaxErrorStateValid = wrong
	w.MaxErrorStateInit = r.IntN(wrong + 1)
	w.MaxErrorStateInvalid = r.IntN(w.MaxErrorStateInit + 1)
	w.MinOkStateValid = 1 + r.IntN(w.WindowSize-wrong)
	w.MinOkStateInit = w.MinOkStateValid + r.IntN(w.WindowSize-wrong-w.MinOkStateValid+1)
	w.MinOkStateInvalid = w.MinOkStateInit + r.IntN(w.WindowSize-w.MaxErrorStateInit-w.MinOkStateInit+1)
	return w
}

func TestRandomSequencesMatchTheReferenceModels(t *testing.T) {
	r := rand.New(rand.NewPCG(15, 16))
	var frames [8]int
	var windows [4]int
	for round := range 400 {
		w := limits(r)
		name := []string{"e2e-1a", "e2e-2", "e2e-1b"}[round%3]
		spec := ProtectionSpec{MaxDelta: 1 + r.IntN(5), MaxNoNew: at(r.IntN(8)), SyncCounter: r.IntN(4), Window: &w}
		p := counted(t, name, spec)
		frame := classicModel{modulus: int(p.Modulus), maxDeltaCounterInit: spec.MaxDelta, maxNoNewOrRepeatedData: *spec.MaxNoNew, syncCounterInit: spec.SyncCounter}
		window := windowModel{WindowLimits: w}
		interval := 1 + r.IntN(30) // frames per disturbance
		sends := p
		for i := range 1500 {
			if i%200 == 0 {
				interval = 1 + r.IntN(30)
			}
			counter := int(sends.Next)
			var got Status
			var data [64]byte
			sends.Protect(&data, 8, 0x100)
			what := 9
			if r.IntN(interval) == 0 {
				what = r.IntN(5)
			}
			switch what {
			case 0:
				counter = -1
				got = p.CheckMissing()
			case 1:
				counter = -2
				data[3]++
				got = p.Check(&data, 8, 0x100)
			case 2: // lost: the next is sent
				sends.Next = (sends.Next + r.Uint64N(8)) % sends.Modulus
				continue
			case 3: // repeated
				sends.Next = uint64(counter)
				fallthrough
			default:
				got = p.Check(&data, 8, 0x100)
			}
			want := frame.check(counter)
			if state := window.check(want); got != (Status{want, state}) {
				t.Fatalf("%s %+v, window %+v: cycle %d, counter %d: %v, want %v %v", name, spec, w, i, counter, got, want, state)
			}
			frames[got.Frame]++
			windows[got.Window]++
		}
	}
	for s, n := range frames {
		if n == 0 {
			t.Errorf("%v never came", State(s))
		}
	}
	for s, n := range windows {
		if n == 0 {
			t.Errorf("%v never came", Window(s))
		}
	}
}

func TestWindowFollowsStartFailureAndRecovery(t *testing.T) {
	w := WindowLimits{WindowSize: 4, MinOkStateInit: 2, MaxErrorStateInit: 1, MinOkStateValid: 1, MaxErrorStateValid: 1, MinOkStateInvalid: 3, MaxErrorStateInvalid: 0}
	p := counted(t, "e2e-5", ProtectionSpec{Window: &w})
	var got strings.Builder
	for _, word := range strings.Fields("- x 0 1 2 - - - - 3 4 5 x 6 x 7 8 9 10") {
		receive(&p, word)
		got.WriteString(map[Window]string{WindowNoData: "n", WindowInit: "i", WindowValid: "V", WindowInvalid: "x"}[p.Window])
	}
	// Two cycles give NODATA; INIT lasts until two frames are good. The fourth missing frame leaves
	// no good frame in the window. After three good frames the window allows one wrong frame but not
	// two. Then it needs three good frames and no wrong one.
	if want := "nniiV" + "VVVx" + "xxVVVx" + "xxxV"; got.String() != want {
		t.Errorf("%s, want %s", &got, want)
	}
}

func TestStatesHaveTheNamesOfAUTOSAR(t *testing.T) {
	for s, want := range map[fmt.Stringer]string{
		FrameNoNewData: "NONEWDATA", FrameOK: "OK", FrameSomeLost: "OK_SOMELOST", FrameRepeated: "REPEATED",
		FrameWrongSequence: "WRONGSEQUENCE", FrameError: "ERROR", FrameInitial: "INITIAL", FrameSync: "SYNC",
		WindowNoData: "NODATA", WindowInit: "INIT", WindowValid: "VALID", WindowInvalid: "INVALID",
	} {
		if s.String() != want {
			t.Errorf("%v, want %s", s, want)
		}
	}
}
