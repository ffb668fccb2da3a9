package sigmap

import (
	"math"
	"strings"
	"testing"

	"lockstep/io/can"
	"lockstep/io/messages"
	"lockstep/model/units"
)

// counts returns the ports of a counter and of a timer that may run out.
func counts() []units.Port {
	return []units.Port{{Name: "n", Unit: "1", Max: math.Inf(1), Beyond: units.Wraps}, {Name: "age", Unit: "s", Max: math.Inf(1), Beyond: units.Rests}}
}

func countMap(t *testing.T, s messages.Signal) *Map {
	t.Helper()
	s.Name = "n"
	db := &messages.Database{Messages: []messages.Message{{Name: "M", Len: 8, Signals: []messages.Signal{s}}}}
	m, err := Bind(db, Spec{PeriodNs: 1, Send: []Link{{"M", "n", "n"}}, Sendings: []Sending{{Message: "M", CycleNs: 1}}}, nil, counts())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// A count is sent modulo two to the number of bits, or modulo the number of values
// that the database allows.
func TestCountWrapsAtTheRangeOfItsSignal(t *testing.T) {
	for _, c := range []struct {
		s    messages.Signal
		y    float64
		want uint64
	}{
		{messages.Signal{Len: 8, Factor: 1}, 255, 255},
		{messages.Signal{Len: 8, Factor: 1}, 256, 0},
		{messages.Signal{Len: 8, Factor: 1}, 1e6, 1000000 % 256},
		{messages.Signal{Len: 8, Factor: 1}, -1, 255},
		{messages.Signal{Len: 8, Factor: 1}, 1<<53 - 1, 255},
		{messages.Signal{Len: 8, Signed: true, Factor: 1}, 128, 0x80},
		{messages.Signal{Len: 8, Signed: true, Factor: 1}, 383, 127},
		{messages.Signal{Len: 16, Factor: 1, Min: 0, Max: 64255}, 64256, 0},
		{messages.Signal{Len: 16, Factor: 1, Min: 0, Max: 64255}, 64256*7 + 12, 12},
		{messages.Signal{Len: 16, Factor: 1, Min: 10, Max: 19}, 25, 15},
		{messages.Signal{Len: 16, Factor: 1, Min: 10, Max: 19}, 3, 13},
		{messages.Signal{Len: 8, Factor: 2}, 515, 2}, // 257.5 is 258
		{messages.Signal{Len: 8, Factor: 1, Offset: -3}, 253, 0},
		{messages.Signal{Len: 1, Factor: 1}, 7, 1},
		{messages.Signal{Len: 53, Factor: 1}, 1<<53 - 1, 1<<53 - 1},
		{messages.Signal{Len: 64, Factor: 1}, 1 << 52, 1 << 52},
	} {
		m := countMap(t, c.s)
		var f can.Frame
		if !m.Encode(&f, 0, 0, []float64{c.y, 0}, false) || m.Tx[0].Fields[0].load(&f.Data) != c.want || m.Saturated != 0 {
			t.Errorf("%+v: %g is sent as %d with %d saturated, want %d", c.s, c.y, m.Tx[0].Fields[0].load(&f.Data), m.Saturated, c.want)
		}
	}
	m := countMap(t, messages.Signal{Len: 8, Factor: 1})
	var f can.Frame
	if m.Encode(&f, 0, 0, []float64{math.NaN(), 0}, false) {
		t.Error("a count that is no number is sent")
	}
	for _, far := range []float64{math.Inf(1), 1e300} {
		if !m.Encode(&f, 0, 0, []float64{far, 0}, false) || f.Data[0] != 255 {
			t.Errorf("%g is sent as %d", far, f.Data[0])
		}
	}
	if m.Saturated != 2 {
		t.Errorf("%d saturated, want the two that are no counts", m.Saturated)
	}
}

// The forced value of a count wraps, too.
func TestForcedCountWraps(t *testing.T) {
	m := countMap(t, messages.Signal{Len: 8, Factor: 1})
	m.Tx[0].Fields[0].Force, m.Tx[0].Fields[0].Value = ForceValue, 1003
	var f can.Frame
	if !m.Encode(&f, 0, 0, []float64{1000, 0}, true) || f.Data[0] != 1003%256 {
		t.Errorf("sent as %d, want %d", f.Data[0], 1003%256)
	}
}

func TestExpiredTimerIsNotSaturated(t *testing.T) {
	db := &messages.Database{Messages: []messages.Message{{Name: "M", Len: 8, Signals: []messages.Signal{{Name: "age", Len: 16, Factor: 1, Unit: "us", Max: 65534}}}}}
	m, err := Bind(db, Spec{PeriodNs: 1, Send: []Link{{"M", "age", "age"}}, Sendings: []Sending{{Message: "M", CycleNs: 1}}}, nil, counts())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		y    float64
		want uint64
	}{{0, 0}, {1.2345e-3, 1234}, {65.5341e-3, 65534}, {3, 65534}} {
		var f can.Frame
		if !m.Encode(&f, 0, 0, []float64{0, c.y}, false) || m.Tx[0].Fields[0].load(&f.Data) != c.want || m.Saturated != 0 {
			t.Errorf("%g s is sent as %d us with %d saturated, want %d", c.y, m.Tx[0].Fields[0].load(&f.Data), m.Saturated, c.want)
		}
	}
}

func TestCountInAFloatIsRefused(t *testing.T) {
	db := &messages.Database{File: "f.dbc", Messages: []messages.Message{{Name: "M", Len: 8, Signals: []messages.Signal{{Name: "n", Len: 32, Float: true, Factor: 1, Line: 7}}}}}
	_, err := Bind(db, Spec{PeriodNs: 1, Send: []Link{{"M", "n", "n"}}, Sendings: []Sending{{Message: "M", CycleNs: 1}}}, nil, counts())
	if err == nil || !strings.Contains(err.Error(), "signal M.n, port n: the port is a count, and the signal (f.dbc:7) a floating-point number") {
		t.Errorf("%v", err)
	}
}
