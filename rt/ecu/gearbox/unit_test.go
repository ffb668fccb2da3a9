package gearbox

import (
	"bytes"
	"strings"
	"testing"
)

// turning returns speeds that fit a gear, rad/s.
func turning(g gear, wheel float64) (w [4]float64) {
	w[3] = -wheel
	for stage := 2; stage >= 0; stage-- {
		w[stage] = -clutchRatio[g[stage]] * w[stage+1]
	}
	return w
}

func TestFirstGearIsHeldUntilTheFirstShift(t *testing.T) {
	u := shiftLaw{logf: logTo(&bytes.Buffer{})}
	w := turning(gear{1, 3, 6}, 2)
	u.begin(w)
	want := [8]float64{18, 0, 17.5, 0, 0, 18, 0, 0}
	for k := range 50 { // 0 .. 0.49 s
		if got := u.step(float64(k)*0.01, w, true); got != want {
			t.Fatalf("at %d ms: pressures %v bar, want %v", 10*k, got, want)
		}
	}
}

func TestPressureIsNotRaisedWhileSlipPersists(t *testing.T) {
	log := &bytes.Buffer{}
	u := shiftLaw{logf: logTo(log)}
	w := turning(gear{1, 3, 6}, 2) // for ever: clutch 2 slips by 96 - 2*32 = 32 rad/s
	u.begin(w)
	for k := range 520 { // 5.2 s: three reports, 1.5 s apart
		p := u.step(float64(k)*0.01, w, true)
		if !(p[1] <= 12.4) {
			t.Fatalf("at %d ms: clutch 2 slips and has %v bar, more than the slip pressure 12.4 bar", 10*k, p[1])
		}
		if k >= 56 && p[0] != 0 {
			t.Fatalf("at %d ms: the off-going clutch 1 still has %v bar", 10*k, p[0])
		}
		if k >= 70 && p[1] != 12.4 {
			t.Fatalf("at %d ms: clutch 2 has %v bar, want the slip pressure 12.4 bar held", 10*k, p[1])
		}
	}
	if n := strings.Count(log.String(), "clutch 2 still slips by 32 rad/s"); n != 3 {
		t.Errorf("reported %d times in 5.2 s, want 3:\n%s", n, log)
	}
}

func TestPressureRisesAfterTwoNewReadingsWithoutSlip(t *testing.T) {
	u := shiftLaw{logf: logTo(&bytes.Buffer{})}
	slipping, fits := turning(gear{1, 3, 6}, 2), turning(gear{2, 3, 6}, 2)
	u.begin(slipping)
	now := 0.0
	run := func(w [4]float64, fresh bool) float64 {
		now += 0.01
		return u.step(now, w, fresh)[1]
	}
	for now < 0.9 {
		run(slipping, true)
	}
	for _, c := range []struct {
		w     [4]float64
		fresh bool
	}{
		{fits, true}, {slipping, true}, // one reading, then slip again
		{fits, true}, {fits, false}, {fits, false}, // one reading, seen three times
		{slipping, true}, {fits, true},
	} {
		if got := run(c.w, c.fresh); got != 12.4 {
			t.Fatalf("at %.2f s: clutch 2 has %v bar before a second reading without slip", now, got)
		}
	}
	run(fits, true) // the second reading
	if got := run(fits, true); !(got > 12.4) {
		t.Errorf("after two readings without slip clutch 2 has %v bar, want more than 12.4", got)
	}
	for range 10 {
		run(fits, true)
	}
	if got := run(fits, true); got != 24 {
		t.Errorf("0.1 s later clutch 2 has %v bar, want 24", got)
	}
}

func TestNoShiftBeginsWithoutNewSpeeds(t *testing.T) {
	u := shiftLaw{logf: logTo(&bytes.Buffer{})}
	w := turning(first, 2)
	u.begin(w)
	for k := range 300 {
		if p := u.step(float64(k)*0.01, w, false); p[0] != 18 {
			t.Fatalf("at %d ms a shift began on old speeds: %v bar", 10*k, p)
		}
	}
}

func TestRoundingOfTwoSpeedsIsNotSlip(t *testing.T) {
	// 100 rad/s and -33.333.. rad/s are sent as 100 and -33.33: 0.01 rad/s of slip.
	if !vanished(0, 1, [4]float64{100, -33.33}) {
		t.Error("a slip of half a bit counts")
	}
	if vanished(0, 1, [4]float64{100, -33.3}) {
		t.Error("a slip of 0.1 rad/s does not count")
	}
}

func TestUnitTakesOverAVehicleInMotion(t *testing.T) {
	u := shiftLaw{logf: logTo(&bytes.Buffer{})}
	w := [4]float64{300, -20, 5, -9}
	u.begin(w)
	if got := u.step(0, w, true); got != ([8]float64{}) {
		t.Fatalf("begins with %v bar, want nothing engaged", got)
	}
	if got, want := u.step(0.2, w, true), ([8]float64{1: 13, 3: 4.5, 6: 7}); got != want {
		t.Errorf("after 0.2 s %v bar, want the slip pressures %v", got, want)
	}
}
