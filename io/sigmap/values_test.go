package sigmap

import (
	"fmt"
	"math"
	"testing"

	"gonum.org/v1/gonum/floats/scalar"

	"lockstep/io/can"
	"lockstep/io/messages"
)

// sendingOne returns a map that sends message M with one signal, whose values are the given constants.
func sendingOne(t *testing.T, s messages.Signal, values ...Constant) *Map {
	t.Helper()
	s.Name = "s"
	db := &messages.Database{Messages: []messages.Message{{Name: "M", Len: 8, Signals: []messages.Signal{s}}}}
	m, err := Bind(db, Spec{PeriodNs: 1, Sendings: []Sending{{Message: "M", CycleNs: 1, Values: values}}}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// sentRaw returns the raw bits of the only signal of a map.
func sentRaw(t *testing.T, m *Map, s messages.Signal) uint64 {
	t.Helper()
	var f can.Frame
	if !m.Encode(&f, 0, 0, nil, false) {
		t.Fatal("not sent")
	}
	return slow(&s, &f.Data)
}

// 0.3 is not 3·0.1, and is sent as 3.
func TestConstantIsSentAsTheDecimalNumberWritten(t *testing.T) {
	s := messages.Signal{Start: 3, Len: 12, Factor: 0.1, Offset: -40.2}
	for raw := range uint64(1 << 12) {
		text := fmt.Sprintf("%.1f", float64(int(raw)-402)/10)
		if got := sentRaw(t, sendingOne(t, s, Constant{Signal: "s", Text: text}), s); got != raw {
			t.Fatalf("%s is sent as %d, want %d", text, got, raw)
		}
	}
}

func TestStartValueIsRoundedHalfToEvenAndLimited(t *testing.T) {
	for _, signed := range []bool{false, true} {
		for initial, want := range map[float64]int64{
			0: 0, 2.4: 2, 2.5: 2, 3.5: 4, 2.9999999999999996: 3, 126.6: 127, 127: 127,
			127.6: map[bool]int64{false: 128, true: 127}[signed], 300: map[bool]int64{false: 255, true: 127}[signed],
			-1: map[bool]int64{false: 0, true: -1}[signed], -2.5: map[bool]int64{false: 0, true: -2}[signed],
			-300: map[bool]int64{false: 0, true: -128}[signed],
		} {
			s := messages.Signal{Start: 4, Len: 8, Signed: signed, Factor: 0.5, HasInitial: true, Initial: initial}
			if got := sentRaw(t, sendingOne(t, s), s); got != uint64(want)&0xFF {
				t.Errorf("signed %t: a start value of %g bits is sent as %d, want %d", signed, initial, got, uint64(want)&0xFF)
			}
		}
	}
	s := messages.Signal{Len: 32, Float: true, Factor: 1, HasInitial: true, Initial: 2.75}
	if got := sentRaw(t, sendingOne(t, s), s); got != uint64(math.Float32bits(2.75)) {
		t.Errorf("a start value of 2.75 is sent as %#x", got)
	}
}

// The error is that of 1024 lines per period, (2π/1024)²/8 = 4.7e-6, and of points at whole ns.
func TestSineIsWithinItsErrorAtEveryInstant(t *testing.T) {
	for _, frequency := range []float64{0.1, 1, 3.7, 50} {
		const mean, amplitude = 7, 3
		c := Sine(mean, amplitude, frequency)
		if err := c.Check(); err != nil || len(c.At) != 1025 || !scalar.EqualWithinAbs(float64(c.Period), 1e9/frequency, 0.5) {
			t.Fatalf("%g Hz: %d points, period %d ns, %v", frequency, len(c.At), c.Period, err)
		}
		worst, tol := 0.0, amplitude*(4.75e-6+2*math.Pi*frequency*0.5e-9)
		for i := range int64(3000) {
			at := i * c.Period / 1000 // three periods
			want := mean + amplitude*math.Sin(2*math.Pi*float64(at)/float64(c.Period))
			if err := math.Abs(c.Eval(at) - want); !(err <= tol) {
				t.Fatalf("%g Hz: %g at %d ns, want %g", frequency, c.Eval(at), at, want)
			}
			worst = max(worst, math.Abs(c.Eval(at)-want))
		}
		if !(worst > amplitude*4e-6) {
			t.Errorf("%g Hz: the largest error is %g of the amplitude, smaller than that of 1024 lines", frequency, worst/amplitude)
		}
		for i, at := range c.At {
			part := float64(i) / 1024
			if want := mean + amplitude*math.Sin(2*math.Pi*part); !scalar.EqualWithinAbs(c.Value[i], want, 1e-12) || !scalar.EqualWithinAbs(float64(at), part*float64(c.Period), 0.5) {
				t.Errorf("%g Hz: point %d is %g at %d ns, want %g", frequency, i, c.Value[i], at, want)
			}
		}
	}
}

func TestWaveformOfTheLargestSizeIsTaken(t *testing.T) {
	for _, c := range []Waveform{
		{At: make([]int64, 1<<16), Value: make([]float64, 1<<16)},
		{At: []int64{0, 5}, Value: []float64{1, 2}, Period: 5},
		{At: []int64{0, 0}, Value: []float64{math.MaxFloat64, -math.MaxFloat64}, Period: 1},
	} {
		if err := c.Check(); err != nil {
			t.Errorf("%d points, period %d ns: %v", len(c.At), c.Period, err)
		}
	}
}

// The limits of a floating-point signal are decimal numbers: 0.3 in 24 bits is more than 0.3.
func TestLimitOfAFloatIsWithinItsRange(t *testing.T) {
	for _, c := range []struct {
		length    int
		limit     float64
		in, small float64 // relative excess that is taken, and one that is not
	}{{32, 0.3, 0.4e-7, 3e-7}, {64, 0.3, 0.8e-15, 1.5e-15}, {64, 1e9, 0.8e-15, 1.5e-15}} {
		s := messages.Signal{Name: "s", Len: c.length, Float: true, Factor: 1, Min: -c.limit, Max: c.limit}
		db := &messages.Database{Messages: []messages.Message{{Name: "M", ID: 1, Len: 8, Signals: []messages.Signal{s}}}}
		m, err := Bind(db, Spec{PeriodNs: 1, Receive: []Link{{"M", "s", "u"}}}, ports("1", "u"), nil)
		if err != nil {
			t.Fatal(err)
		}
		for excess, want := range map[float64]Result{-1e-3: OK, 0: OK, c.in: OK, c.small: Range, 1e-3: Range, 1: Range} {
			for _, sign := range []float64{-1, 1} {
				v := sign * (c.limit + c.limit*excess)
				f := can.Frame{ID: 1, Len: 8}
				d := rawField(&s)
				d.store(&f.Data, d.rawBits(v))
				if _, r := m.Decode([]float64{0}, &f); r != want {
					t.Errorf("%d bits, range ±%g: a relative excess of %g, %g: %d, want %d", c.length, c.limit, excess, v, r, want)
				}
			}
		}
	}
}

func TestRangesOfInvalidValuesReachTheLastRawValue(t *testing.T) {
	for text, want := range map[string][2]uint64{"255": {255, 255}, "0": {0, 0}, "0-255": {0, 255}, "250 - 0xFF": {250, 255}, "7-7": {7, 7}} {
		in := bindRich(t, Spec{Receive: []Link{{"Plain", "x", "u0"}}, Receptions: []Reception{{Message: "Plain", Invalid: []InvalidSpec{{"x", []string{text}}}}}})
		for raw := range 256 {
			f := can.Frame{ID: 3, Len: 8}
			f.Data[2] = byte(raw)
			_, r := in.Decode(make([]float64, 4), &f)
			if invalid := uint64(raw) >= want[0] && uint64(raw) <= want[1]; (r == Invalid) != invalid {
				t.Errorf("%s: raw value %d has the result %d", text, raw, r)
			}
		}
	}
}

// Beyond the end of its range a counter goes on from 0, and never reaches the bits beside it.
func TestCounterLeavesTheBitsBesideItAlone(t *testing.T) {
	for _, s := range []messages.Signal{{Start: 8, Len: 4, Factor: 1}, {Start: 13, Len: 4, BigEndian: true, Factor: 1}, {Start: 62, Len: 1, Factor: 1}} {
		s.Name = "n"
		db := &messages.Database{Messages: []messages.Message{{Name: "M", Len: 8, Signals: []messages.Signal{s}}}}
		m, err := Bind(db, Spec{PeriodNs: 1, Sendings: []Sending{{Message: "M", CycleNs: 1, Counter: "n"}}}, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		for k := range uint64(70) {
			var f, want can.Frame
			m.Encode(&f, 0, 0, nil, false)
			d := rawField(&s)
			d.store(&want.Data, k%(1<<s.Len))
			if f.Data != want.Data {
				t.Fatalf("%d bits from %d, frame %d: % x, want % x", s.Len, s.Start, k, f.Data[:8], want.Data[:8])
			}
			if next := (k + 1) % (1 << s.Len); m.Tx[0].Counts() != next {
				t.Fatalf("frame %d: the next count is %d, want %d", k, m.Tx[0].Counts(), next)
			}
		}
	}
}

// A count is exact below 2^53; a wider one is limited.
func TestCountOf53BitsIsLimitedNotWrapped(t *testing.T) {
	for _, c := range []struct {
		length          int
		y               float64
		want, saturated uint64
	}{
		{52, -1, 1<<52 - 1, 0}, {52, 1 << 52, 0, 0}, {53, -1, 0, 1}, {53, 1 << 53, 1<<53 - 1, 1}, {54, -1, 0, 1}, {8, 1 << 53, 255, 1}, {8, 1<<53 - 2, 254, 0},
	} {
		m := countMap(t, messages.Signal{Len: c.length, Factor: 1})
		var f can.Frame
		if !m.Encode(&f, 0, 0, []float64{c.y, 0}, false) || m.Tx[0].Fields[0].load(&f.Data) != c.want || m.Saturated != c.saturated {
			t.Errorf("%d bits: %g is sent as %d with %d saturated, want %d, %d", c.length, c.y, m.Tx[0].Fields[0].load(&f.Data), m.Saturated, c.want, c.saturated)
		}
	}
}
