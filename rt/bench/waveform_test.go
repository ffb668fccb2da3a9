package bench

import (
	"math"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats/scalar"

	"lockstep/io/can"
	"lockstep/rt/bench/benchtest"
)

// A restbus follows a formula of time: its frames carry it, rounded to their bits.
func TestRestbusFollowsAFormulaOfTime(t *testing.T) {
	text := strings.Replace(benchtest.GuardedText(t), "{sine: {mean: 10 N.m, amplitude: 5 N.m, frequency: 2 Hz}}", "{formula: 10 N.m + 5 N.m*sin(2*pi*t)*exp(-t), period: 1 s}", 1)
	b, err := guardedBench(t, text)
	if err != nil {
		t.Fatal(err)
	}
	h, err := Prepare(b)
	if err != nil {
		t.Fatal(err)
	}
	m, y, frames := h.Maps[0], make([]float64, len(h.Tables.Outputs)), 0
	for i := range m.Tx {
		if m.Tx[i].Name != "Motor" {
			continue
		}
		for k := int64(1); k <= 400; k++ {
			var f can.Frame
			if !m.Encode(&f, i, k, y, false) {
				t.Fatal("not sent")
			}
			s := math.Mod(float64(k)*0.005, 1)
			got, want := 0.1*float64(int16(uint16(f.Data[2])|uint16(f.Data[3])<<8)), 10+5*math.Sin(2*math.Pi*s)*math.Exp(-s)
			if !scalar.EqualWithinAbs(got, want, 0.05+1e-4) { // half a bit, and the lines
				t.Fatalf("tick %d: %g N.m, want %g", k, got, want)
			}
			frames++
		}
	}
	if frames != 400 {
		t.Errorf("%d frames", frames)
	}
}
