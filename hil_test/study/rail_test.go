package main

import (
	"math"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"gonum.org/v1/gonum/floats/scalar"
)

// shortRail are the parameters of a short study of the rail car.
var shortRail = railExtent{
	2500 * time.Millisecond, []time.Duration{20 * ms, 10 * ms}, []int{0, 2}, []int{1, 5}, []float64{0.2, 0.05, 0.005}, 2,
}

// rode returns the result of the short study, which runs once.
var rode = sync.OnceValue(func() *railResult { return doRail(shortRail) })

func TestRailTruthAgreesWithTheFile(t *testing.T) {
	want, r := readFile(t, "G_rail17"), rode().truth
	compared := 0
	for i, at := range want["t"] {
		n := int(math.Round(at / r.h.Seconds()))
		if n == 0 || n > len(r.rows) {
			continue
		}
		for c, name := range map[int]string{0: "xc", 1: "v_xc", 6: "u1", 7: "u2", 8: "u3", 9: "u4"} {
			compared++
			if got := r.rows[n-1][c]; !scalar.EqualWithinAbs(got, want[name][i], 1e-6) {
				t.Fatalf("%s at %g s is %.9g, want %.9g", name, at, got, want[name][i])
			}
		}
	}
	if compared < 700 {
		t.Errorf("%d values compared, want at least 700", compared)
	}
}

func TestRailCarInTwoPartsDependsOnStepAndIterations(t *testing.T) {
	r := rode()
	for s, f := range r.maps {
		if f.err != nil || math.IsNaN(f.speed+f.place+f.shake+f.cost) || math.IsInf(f.cost, 0) {
			t.Fatalf("%s: %v, places %g m, speeds %g m/s", s.text(), f.err, f.place, f.speed)
		}
		if own := r.at(s.h, 0, 0); s.sub > 0 && !(own.speed <= 1e-3*f.speed && own.place <= 1e-3*f.place) {
			t.Errorf("%s: error %g m/s; of the kernel's own step %g", s.text(), f.speed, own.speed)
		}
	}
	coarse, fine := 20*time.Millisecond, 10*time.Millisecond
	if shaking, still := r.at(coarse, 1, 0), r.at(coarse, 5, 2); !(class(shaking.shake) > class(still.shake)) {
		t.Errorf("at 20 ms the wheels shake by %g m/s with one step and by %g m/s with micro steps and iterations", shaking.shake, still.shake)
	}
	for _, iter := range []int{0, 2} {
		if a, b := r.at(coarse, 5, iter), r.at(fine, 5, iter); !(b.speed < 0.7*a.speed) {
			t.Errorf("N_iter %d: error of the speeds %g m/s at 20 ms and %g at 10 ms", iter, a.speed, b.speed)
		}
	}
	if a, b := r.at(fine, 5, 0), r.at(fine, 5, 2); !(b.speed < 0.5*a.speed) {
		t.Errorf("at 10 ms iterations reduce the error of the speeds only from %g to %g m/s", a.speed, b.speed)
	}
	for _, s := range r.scans {
		if s.err != nil || !(s.rolled > 0) || math.IsNaN(s.own) != (s.sign < leastOwn) {
			t.Errorf("T_sgn %g m/s: %+v", s.sign, s)
		}
	}
	if !(r.scans[0].rolled >= r.scans[1].rolled) {
		t.Errorf("T_sgn 0.2 m/s is nearer to rolling (%g m/s) than 0.05 m/s (%g)", r.scans[0].rolled, r.scans[1].rolled)
	}
}

func TestErrorOfARailRunPreservesNaN(t *testing.T) {
	truth := &ride{setting: setting{h: time.Millisecond}, rows: make([][10]float64, 4)}
	r := &ride{setting: setting{h: 2 * time.Millisecond}, rows: make([][10]float64, 2)}
	r.rows[1] = [10]float64{1, 2, 4, 0, 0, 0, 0, 0, 0, 8}
	if place, speed := r.off(truth); place != 1 || speed != 2 {
		t.Errorf("errors %g m and %g m/s, want 1 and 2", place, speed)
	}
	if s := r.shakes(); s != 4 {
		t.Errorf("amplitude %g m/s of the highest frequency, want 4", s)
	}
	r.rows[1][6] = math.NaN()
	if _, speed := r.off(truth); !math.IsNaN(speed) {
		t.Errorf("error %g m/s, want NaN", speed)
	}
	if s := r.shakes(); !math.IsNaN(s) || class(s) != 4 {
		t.Errorf("amplitude %g m/s of the highest frequency, class %d", s, class(s))
	}
}

func TestPowerLawIsFitted(t *testing.T) {
	if a, b := powerLaw([]float64{1, 2, 4}, []float64{3, 12, 48}); !scalar.EqualWithinRel(a, 3, 1e-12) || !scalar.EqualWithinRel(b, 2, 1e-12) {
		t.Errorf("%g·h^%g, want 3·h^2", a, b)
	}
}

func TestRailFilesAreWritten(t *testing.T) {
	dir := t.TempDir()
	if err := rode().files().write(dir); err != nil {
		t.Fatal(err)
	}
	plots, err := filepath.Glob(filepath.Join(dir, "rail-*.svg"))
	if err != nil || len(plots) != 9 {
		t.Fatalf("%d plots, want three of each step, the classes, the car by T_sgn and the wheels: %v", len(plots), err)
	}
	for _, file := range plots {
		wellFormed(t, file)
	}
	text := string(rode().markdown())
	for _, want := range []string{"| own step |", "| 10ms | N_sub 1 | N_sub 5 |", "## Order", "## Stability", "| 0.005 |", "cheapest allowed"} {
		if !strings.Contains(text, want) {
			t.Errorf("rail.md lacks %q", want)
		}
	}
	if strings.Contains(text, "NaN") {
		t.Error("rail.md contains NaN")
	}
}
