package record

import (
	"bytes"
	"fmt"
	"math"
	"testing"
	"time"
)

// trajectory returns 100 values of a typical plant: 20 inputs, a few of which change, 40
// smooth outputs, 40 that are constant or switch.
func trajectory(t *Tick, k int64) {
	s := float64(k) * 0.005
	t.Index = k
	for i := range t.U {
		t.U[i] = 0
		if i < 5 {
			t.U[i] = math.Floor(100*(1+math.Sin(s*float64(i+1)/3))) * 0.05 // bar, from a bus
		}
	}
	for i := range t.Y {
		switch {
		case i < 40:
			t.Y[i] = 100*math.Exp(-s/float64(i+1)) + 10*math.Sin(s*float64(i+3)/7)
		case i < 60:
			t.Y[i] = float64(int(s) / (i - 39) % 3)
		default:
			t.Y[i] = float64(i)
		}
	}
	for i := range t.Phases {
		t.Phases[i] = 2000 + k*int64(i+7919)%977 + k*k*31%(1+int64(i)*100)
	}
}

func TestTickNeedsAFewBytesPerChangingValue(t *testing.T) {
	const ticks, values, perSecond = 20_000, 100, 200
	var out bytes.Buffer
	w, err := New(&out, header(20, 80, 5))
	if err != nil {
		t.Fatal(err)
	}
	tick := Tick{U: make([]float64, 20), Y: make([]float64, 80), Phases: make([]int64, 5)}
	empty := out.Len()
	begin := time.Now()
	for k := range int64(ticks) {
		trajectory(&tick, k)
		if err := w.Tick(&tick); err != nil {
			t.Fatal(err)
		}
		if k%perSecond == 0 {
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	spent := time.Since(begin)
	size := float64(out.Len()-empty) / ticks
	t.Logf("%.0f bytes per tick of %d values and 5 phases (%d bytes as they are), %.1f MB per hour at 5 ms, %.1f us per tick",
		size, values, 8*(values+5), size*3600*perSecond/1e6, float64(spent.Microseconds())/ticks)
	if !(size < 8*(values+5)/2) {
		t.Errorf("%.0f bytes per tick: less than half of the %d as they are was the point", size, 8*(values+5))
	}
}

func TestConstantOrLinearValueNeedsOneByte(t *testing.T) {
	h := header(1, 2, 1)
	c := newCodec(&h)
	for k := range 4 {
		tick := Tick{Index: int64(k), U: []float64{-3.7}, Y: []float64{math.NaN(), 1 + float64(k)/8}, Phases: []int64{9}}
		b := c.append(nil, &Entry{Kind: TickEntry, Tick: tick})
		if want := 7; k >= 2 && len(b) > want { // kind, index, flags, three values, a phase
			t.Errorf("tick %d takes %d bytes, want %d", k, len(b), want)
		}
	}
}

func BenchmarkTick(b *testing.B) {
	for _, values := range []int{10, 100} {
		b.Run(fmt.Sprint(values), func(b *testing.B) {
			var out bytes.Buffer
			w, _ := New(&out, header(values/5, values*4/5, 5))
			tick := Tick{U: make([]float64, values/5), Y: make([]float64, values*4/5), Phases: make([]int64, 5)}
			for k := range int64(b.N) {
				trajectory(&tick, k)
				_ = w.Tick(&tick)
			}
			_ = w.Flush()
			b.ReportMetric(float64(out.Len())/float64(b.N), "B/tick")
		})
	}
}
