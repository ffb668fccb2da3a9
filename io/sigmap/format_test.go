package sigmap

import (
	"encoding/hex"
	"math/rand/v2"
	"testing"

	"lockstep/io/can"
	"lockstep/io/messages"
)

// formats returns a classic message of 8 bytes, A, and a CAN FD message of 16, B, with one signal each.
func formats() *messages.Database {
	signal := []messages.Signal{{Name: "x", Start: 8, Len: 8, Factor: 1, Min: 0, Max: 200}, {Name: "y", Start: 16, Len: 8, Factor: 1}}
	return &messages.Database{Messages: []messages.Message{
		{Name: "A", ID: 0x123, Len: 8, Signals: signal}, {Name: "B", ID: 0x321 | can.EFF, Len: 16, Signals: signal},
	}}
}

// receiver binds signal x of both messages and y of A.
func receiver(t *testing.T, db *messages.Database, list ...Reception) *Map {
	t.Helper()
	links := []Link{{"A", "x", "u0"}, {"A", "y", "u1"}, {"B", "x", "u2"}}
	m, err := Bind(db, Spec{PeriodNs: period, Receive: links, Receptions: list}, ports("1", "u0", "u1", "u2"), nil)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// twenty decodes a frame 20 times, each before a tick, and returns the inputs, the last result and the
// last request.
func twenty(m *Map, f can.Frame) (u []float64, result Result, request Request) {
	u = make([]float64, 3)
	for k := int64(1); k <= 20; k++ {
		f.Data[1] = byte(k)
		_, result = m.Decode(u, &f)
		request = m.Tick(u, k)
	}
	return u, result, request
}

func TestFormatIsPartOfAMessage(t *testing.T) {
	const fd = can.FlagFDF
	for name, c := range map[string]struct {
		f    can.Frame
		i    int
		want Result
	}{
		"a classic frame":                  {can.Frame{ID: 0x123, Len: 8}, 0, OK},
		"CAN FD for classic":               {can.Frame{ID: 0x123, Len: 8, Flags: fd}, 0, WrongFormat},
		"29 bits for 11":                   {can.Frame{ID: 0x123 | can.EFF, Len: 8}, 0, WrongFormat},
		"remote for data":                  {can.Frame{ID: 0x123 | can.RTR, Len: 8}, 0, WrongFormat},
		"a CAN FD frame":                   {can.Frame{ID: 0x321 | can.EFF, Len: 16, Flags: fd}, 1, OK},
		"with bit rate switch":             {can.Frame{ID: 0x321 | can.EFF, Len: 16, Flags: fd | can.FlagBRS}, 1, OK},
		"classic for CAN FD":               {can.Frame{ID: 0x321 | can.EFF, Len: 8}, 1, WrongFormat},
		"11 bits for 29":                   {can.Frame{ID: 0x321, Len: 16, Flags: fd}, 1, WrongFormat},
		"remote for CAN FD":                {can.Frame{ID: 0x321 | can.EFF | can.RTR}, 1, WrongFormat},
		"CAN FD by its length, old kernel": {can.Frame{ID: 0x321 | can.EFF, Len: 16}, 1, OK},
	} {
		react := ReactionSpec{Action: SafeState}
		m := receiver(t, formats(), Reception{Message: "A", OnError: react}, Reception{Message: "B", OnError: react})
		u, result, request := twenty(m, c.f)
		if result != c.want {
			t.Errorf("%s: result %d, want %d", name, result, c.want)
		}
		n, wrong, last := m.Rx[c.i].Counts, uint64(0), 20.0
		asked := NoRequest
		if c.want == WrongFormat {
			wrong, last, asked = 20, 0, SafeByError
		}
		if n.Frames != 20 || n.Format != wrong || n.Length != 0 || u[0]+u[2] != last || request != asked {
			t.Errorf("%s: counted %+v, inputs %v, request %d", name, n, u, request)
		}
	}
}

// Three wrong frames of ten make the window INVALID.
func TestWrongFormatsAreJudgedByOnError(t *testing.T) {
	for _, protect := range [][]ProtectionSpec{nil, {{Profile: "counter-only", Counter: []string{"56|8"}}}} {
		m := receiver(t, formats(), Reception{Message: "A", Protect: protect,
			OnError: ReactionSpec{Action: Substitute, Values: []PortValue{{"u0", "77"}}}})
		u := make([]float64, 3)
		for k := int64(1); k <= 40; k++ {
			f := can.Frame{ID: 0x123, Len: 8, Data: [64]byte{1: 5, 7: byte(k)}}
			if k > 10 && k < 20 {
				f.Flags = can.FlagFDF
			}
			m.Decode(u, &f)
			m.Tick(u, k)
			if want := map[bool]float64{true: 77, false: 5}[k > 12 && k < 27]; u[0] != want {
				t.Fatalf("protection %v, tick %d: %g, want %g (%+v)", protect, k, u[0], want, m.Rx[0].Counts)
			}
		}
	}
}

func TestFrameOfAnotherMessageOfTheDatabaseIsNotOfTheWrongFormat(t *testing.T) {
	db := formats()
	db.Messages = append(db.Messages, messages.Message{Name: "C", ID: 0x123 | can.EFF, Len: 8})
	m := receiver(t, db)
	for id, want := range map[uint32]int{0x123 | can.EFF: -1, 0x123 | can.EFF | can.RTR: -1, 0x123 | can.RTR: 0, 0x321: 1} {
		i, _ := m.Decode(make([]float64, 3), &can.Frame{ID: id, Len: 8})
		passes := false
		for _, f := range m.Filters() {
			passes = passes || id&f.Mask == f.ID&f.Mask
		}
		if i != want || passes != (want >= 0) {
			t.Errorf("%X is of message %d, want %d; the filters pass it: %v", id, i, want, passes)
		}
	}
}

func TestBitRateSwitchIsJudgedOnlyIfRequired(t *testing.T) {
	for _, required := range []bool{false, true} {
		m := receiver(t, formats(), Reception{Message: "B", BRS: required})
		for i, flags := range []uint8{0, can.FlagBRS, can.FlagESI, can.FlagBRS | can.FlagESI, can.FlagESI} {
			want := OK
			if required && flags&can.FlagBRS == 0 {
				want = WrongFormat
			}
			f := can.Frame{ID: 0x321 | can.EFF, Len: 16, Flags: can.FlagFDF | flags}
			if _, r := m.Decode(make([]float64, 3), &f); r != want {
				t.Errorf("required %v, frame %d: %d, want %d", required, i, r, want)
			}
		}
		want := Counts{Frames: 5, BRS: 2, ESI: 3}
		if required {
			want.Format = 3
		}
		if n := m.Rx[1].Counts; n != want {
			t.Errorf("required %v: counted %+v, want %+v", required, n, want)
		}
	}
}

func TestBytesBeyondTheMessageAreCountedAndAShorterFrameIsAnError(t *testing.T) {
	m := receiver(t, formats(), Reception{Message: "B", OnError: ReactionSpec{Action: SafeState}})
	u := make([]float64, 3)
	for n, want := range map[uint8]Result{12: Short, 16: OK, 20: OK, 64: OK, 0: Short} {
		if _, r := m.Decode(u, &can.Frame{ID: 0x321 | can.EFF, Len: n, Flags: can.FlagFDF}); r != want {
			t.Errorf("%d bytes: %d, want %d", n, r, want)
		}
	}
	if n, want := m.Rx[1].Counts, (Counts{Frames: 5, OK: 3, Errors: 2, Length: 2, Beyond: 4 + 48}); n != want {
		t.Errorf("counted %+v, want %+v", n, want)
	}
	if _, _, request := twenty(m, can.Frame{ID: 0x321 | can.EFF, Len: 12, Flags: can.FlagFDF}); request != SafeByError {
		t.Errorf("short frames alone ask for %d, want %d", request, SafeByError)
	}
}

// Signal x of A takes 0 to 200; a value of 201 leaves y as it was, or not, by the rule.
func TestOutOfRangeSignalRejectsTheFrameOrTheSignalByItsRule(t *testing.T) {
	protect := []ProtectionSpec{{Profile: "counter-only", Counter: []string{"56|8"}}}
	for name, c := range map[string]struct {
		rule    RangeRule
		protect []ProtectionSpec
		whole   bool
	}{
		"unprotected": {RangeDefault, nil, false}, "protected": {RangeDefault, protect, true},
		"frame": {RangeFrame, nil, true}, "signal of a protected one": {RangeSignal, protect, false},
	} {
		r := Reception{Message: "A", Rule: c.rule, Protect: c.protect, TimeoutNs: 4 * period,
			OnTimeout: ReactionSpec{Action: SafeState}, Invalid: []InvalidSpec{{"y", []string{"255"}}}}
		m := receiver(t, formats(), r)
		u := make([]float64, 3)
		step := func(k int64, x, y byte, want Result, wantX, wantY float64, asked Request) {
			t.Helper()
			_, got := m.Decode(u, &can.Frame{ID: 0x123, Len: 8, Data: [64]byte{1: x, 2: y, 7: byte(k)}})
			if d := m.Tick(u, k); got != want || u[0] != wantX || u[1] != wantY || d != asked {
				t.Fatalf("%s, tick %d: result %d, inputs %v, request %d", name, k, got, u, d)
			}
		}
		step(1, 10, 20, OK, 10, 20, NoRequest)
		step(2, 11, 255, Invalid, 11, 20, NoRequest) // "no value" is of its signal alone
		result, y, late := Range, 30.0, NoRequest
		if c.whole {
			result, y, late = Rejected, 20, SafeByTimeout // rejected frames do not end a timeout
		}
		for k := int64(3); k <= 6; k++ {
			step(k, 201, 30, result, 11, y, NoRequest)
		}
		step(7, 201, 30, result, 11, y, late)
		step(8, 200, 40, OK, 200, 40, NoRequest)
		if n := m.Rx[0].Counts; n.Range != 5 || n.Invalid != 1 {
			t.Errorf("%s: counted %+v", name, n)
		}
	}
}

// A map without Strict, of a record of an earlier version, takes frames of every format.
func TestMapOfAnEarlierVersionDecodesAsBefore(t *testing.T) {
	m := receiver(t, formats())
	for i := range m.Rx {
		m.Rx[i].Strict, m.Rx[i].FD, m.Rx[i].Size = false, false, 0
	}
	u := make([]float64, 3)
	for _, c := range []struct {
		f    can.Frame
		i    int
		want Result
	}{
		{can.Frame{ID: 0x123, Len: 8, Flags: can.FlagFDF}, 0, OK}, {can.Frame{ID: 0x321 | can.EFF, Len: 16, Flags: can.FlagFDF}, 1, OK},
		{can.Frame{ID: 0x123 | can.RTR, Len: 8}, -1, Unknown}, {can.Frame{ID: 0x321, Len: 16, Flags: can.FlagFDF}, -1, Unknown},
	} {
		if i, r := m.Decode(u, &c.f); i != c.i || r != c.want {
			t.Errorf("%X: message %d, result %d, want %d, %d", c.f.ID, i, r, c.i, c.want)
		}
	}
}

// Any frame: the first bytes are identifier, flags and length.
func FuzzDecodeTakesOnlyFramesOfTheRightForm(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, head := range []string{"0000012308", "0000012328", "8000032114", "4000012308"} {
		b, _ := hex.DecodeString(head)
		for range 64 {
			b = append(b, byte(r.Uint32()))
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < 6 {
			return
		}
		m := receiver(t, formats(), Reception{Message: "A", Rule: RangeFrame})
		frame := can.Frame{ID: uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3]), Len: b[4] % 65, Flags: b[5] & 7}
		copy(frame.Data[:frame.Len], b[6:])
		u := []float64{-1, -1, -1}
		i, result := m.Decode(u, &frame)
		d := &frame.Data
		a := frame.ID == 0x123 && !frame.FD() && frame.Len == 8
		long := frame.ID == 0x321|can.EFF && frame.FD() && frame.Len >= 16
		want := []float64{-1, -1, -1}
		switch {
		case a && d[1] <= 200:
			want[0], want[1] = float64(d[1]), float64(d[2])
		case long && d[1] <= 200:
			want[2] = float64(d[1])
		}
		if same := u[0] == want[0] && u[1] == want[1] && u[2] == want[2]; !same || (result == OK) != (want[0]+want[2] > -2) {
			t.Errorf("%X, %d bytes, flags %d: message %d, result %d, inputs %v, want %v", frame.ID, frame.Len, frame.Flags, i, result, u, want)
		}
	})
}
