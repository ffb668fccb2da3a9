package kernel

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"lockstep/model"
)

func TestPrepareRefusesPlantsThatItCannotStep(t *testing.T) {
	fine := Options{Period: ms(5)}
	many := rig{J: []float64{1}}
	for range 65 {
		many.Frictions = append(many.Frictions, contact{W: []float64{1}, K: always(1)})
	}
	nan := powershift()
	nan.A[0] = math.NaN()
	inf := powershift()
	inf.X0[2] = math.Inf(1)
	for name, c := range map[string]struct {
		sys  *model.System
		opt  Options
		want string
	}{
		"no period":         {powershift(), Options{}, "kernel: period 0s is not positive"},
		"negative period":   {powershift(), Options{Period: -time.Millisecond}, "kernel: period -1ms is not positive"},
		"unknown scheme":    {powershift(), Options{Period: ms(5), Scheme: "paper"}, `kernel: scheme "paper" is neither "papers" nor "complete"`},
		"unknown form":      {powershift(), Options{Period: ms(5), Form: "exact"}, `kernel: form "exact" is neither "projected" nor "held"`},
		"negative budget":   {powershift(), Options{Period: ms(5), EventBudget: -1}, "kernel: event budget -1 is below 1"},
		"short lag bound":   {powershift(), Options{Period: ms(5), LagBound: ms(4)}, "kernel: lag bound 4ms is below the period 5ms"},
		"driven too short":  {powershift(), Options{Period: ms(5), Driven: []bool{true}}, `kernel: 1 entries in Driven; the plant has 8 inputs`},
		"no state":          {rig{}.system(), fine, `kernel: plant "rig" has no state: it has no inertia that can move`},
		"too many elements": {many.system(), fine, `kernel: plant "rig": 65 friction elements act on each other without anything elastic between them; at most 64 are possible`},
		"NaN in the plant":  {nan, fine, `kernel: plant "powershift": its matrices are not finite`},
		"Inf at the start":  {inf, fine, `kernel: plant "powershift": its matrices are not finite`},
	} {
		_, err := Prepare(c.sys, c.opt)
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %s", name, err, c.want)
		}
	}
}

// A body on a spring of 1e6 rad/s: 256 substeps of 1 µs span 256 µs.
func TestPlantTooFastForTheGridNamesAPeriodThatFits(t *testing.T) {
	for _, omega := range []float64{1e6, 3e9} {
		sys := oscillator(omega, 1, 0).system()
		_, err := Prepare(sys, Options{Period: ms(5)})
		if err == nil {
			t.Fatal("a plant of 1e6 rad/s is stepped at 5 ms")
		}
		var fast *TooFastError
		if !errors.As(err, &fast) || !(math.Abs(fast.Rate-omega) <= 1e-6*omega) || fast.Period != ms(5) || !(fast.Fit.Seconds() >= 200/omega) {
			t.Fatalf("error %v: %+v", err, fast)
		}
		if _, err := Prepare(sys, Options{Period: fast.Fit}); err != nil {
			t.Errorf("%g rad/s: the period that should fit does not: %v", omega, err)
		}
	}
}

// 1e12 rad/s: 256 substeps of one radian are shorter than a nanosecond.
func TestPlantTooFastForAnyGridNamesNoPeriod(t *testing.T) {
	_, err := Prepare(oscillator(1e12, 1, 0).system(), Options{Period: ms(5)})
	var fast *TooFastError
	if !errors.As(err, &fast) || fast.Fit != 0 {
		t.Errorf("error %v, want one that proposes nothing", err)
	}
}

func TestTablesNameInputsOutputsAndStart(t *testing.T) {
	tables, err := Prepare(powershift(), Options{Period: ms(5)})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, o := range tables.Outputs {
		names = append(names, o.Name)
	}
	all := strings.Join(names, " ")
	if !strings.HasPrefix(all, "w1 w2 w3 w4 clutch1.mode clutch1.w_rel clutch1.tau clutch2.mode ") || !strings.HasSuffix(all, " clutch8.tau eta lag events transitions fault") {
		t.Errorf("outputs %s", all)
	}
	if m, p := New(tables).Dims(); m != 8 || p != 4+3*8+5 || len(tables.Start) != 8 || tables.Start[0] != 900 || tables.Start[1] != 0 {
		t.Errorf("%d inputs, %d outputs, start %v", m, p, tables.Start)
	}
	if tables.PeriodNs != 5e6 || tables.Frictions[7] != "clutch8" || tables.Bytes() < 256*8*(3*16+4*4*18) {
		t.Errorf("period %d ns, frictions %v, %d bytes", tables.PeriodNs, tables.Frictions, tables.Bytes())
	}
}

// The system belongs to the caller: Prepare must not change it.
func TestPrepareDoesNotChangeTheSystem(t *testing.T) {
	r := brake(8, table(0, 4, 1, -6), always(0))
	r.Frictions[0].Offset = 1.5
	sys := r.system()
	if _, err := Prepare(sys, Options{Period: ms(5), Driven: []bool{true, false}}); err != nil {
		t.Fatal(err)
	}
	if s := sys.Signals[0].Source; len(s.T) != 2 || s.V[1] != -6 {
		t.Errorf("the source is now %v", s)
	}
}

func TestErrorsOfAPlantNameTheRemedy(t *testing.T) {
	for want, err := range map[string]error{
		`its fastest mode, 6.283e+04 rad/s (1e+04 Hz) of "shaft", is too fast for a period of 10ms; 4.07ms would fit`:           &TooFastError{Rate: 2e4 * math.Pi, Element: "shaft", Period: ms(10), Fit: 4070 * time.Microsecond},
		"its fastest mode, 1e+12 rad/s (1.592e+11 Hz), is too fast for a period of 5ms; none is short enough, is a unit wrong?": &TooFastError{Rate: 1e12, Period: ms(5)},
		"t.yaml:7:3: stepping \"sparse\" is another": &PlaceError{"t.yaml:7:3", errors.New(`stepping "sparse" is another`)},
	} {
		if err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}

// TestGridsThatWouldTakeUnboundedMemoryOrWorkAreRefused has periods and delays at the ends of their types.
func TestGridsThatWouldTakeUnboundedMemoryOrWorkAreRefused(t *testing.T) {
	for _, c := range []struct {
		period time.Duration
		delay  float64
		source model.Source
		want   string
	}{
		{math.MaxInt64, 0, model.Source{}, "is longer than 1h0m0s"},
		{1, 1, model.Source{}, "an input is delayed by 1 s"},
		{time.Second, 0, model.Source{T: []float64{0, 1e-6}, V: []float64{0, 1}, Period: 1e-6}, "repeats every 1e-06 s"},
	} {
		sys := powershift()
		sys.Inputs[0].Delay = c.delay
		if c.source.T != nil {
			sys.Signals[sys.Inputs[0].Signal].Source = c.source
		}
		if _, err := Prepare(sys, Options{Period: c.period}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("period %v: %v, want %s", c.period, err, c.want)
		}
	}
}
