package certify

import (
	"bytes"
	"strings"
	"testing"

	"lockstep/sched"
)

func compared(t *testing.T, old, now *Certificate) *Comparison {
	t.Helper()
	c, err := Compare(old, now)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// figure returns the figure with a name.
func (c *Comparison) figure(t *testing.T, name string) Compared {
	t.Helper()
	for _, f := range c.Figures {
		if f.Name == name {
			return f
		}
	}
	t.Fatalf("no figure %q", name)
	return Compared{}
}

func printed(c *Comparison) string {
	var b bytes.Buffer
	c.Text(&b)
	return b.String()
}

func TestACertificateEqualsItself(t *testing.T) {
	c := stored(t, sample(t, 1, 1))
	got := compared(t, c, c)
	if got.Boxes != "" || len(got.Settings) != 0 || len(got.Worse()) != 0 || !strings.HasSuffix(printed(got), "\nnothing changed\n") {
		t.Errorf("%+v\n%s", got, printed(got))
	}
	for _, f := range got.Figures {
		if f.Verdict != Same {
			t.Errorf("%s is %s: %s, %s", f.Name, f.Verdict, f.format(f.Old), f.format(f.New))
		}
	}
}

func TestAnotherRunOnTheSameHostIsNotWorse(t *testing.T) {
	for seed := range uint64(5) {
		now := sample(t, 1, 10*seed+100)
		got := compared(t, stored(t, sample(t, 1, 1)), stored(t, now))
		if worse := got.Worse(); len(worse) != 0 {
			t.Errorf("seed %d: %+v", seed, worse)
		}
	}
}

func TestCompareFindsAChangedSettingAndDoubledFigures(t *testing.T) {
	old, now := sample(t, 1, 1), sample(t, 2, 50)
	now.Box.Governor, now.Versions.Files[0].SHA256, now.Run.Missed, now.Run.TxDropped = "powersave", "ef56", 1, 0
	for i := range now.Doctor.Checks {
		if c := &now.Doctor.Checks[i]; c.Name == "governor" {
			c.Verdict, c.Found = "wrong", "powersave"
		}
	}
	got := compared(t, stored(t, old), stored(t, now))
	changed := map[string]Change{}
	for _, s := range got.Settings {
		changed[s.What] = s
	}
	if len(changed) != 4 || changed["box.governor"].New != "powersave" || changed["versions.files.plant powershift.sha256"].Old != "cd34" ||
		changed["doctor.checks.governor.verdict"].New != "wrong" || changed["doctor.checks.governor.found"].New != "powersave" {
		t.Errorf("settings %v", changed)
	}
	for _, name := range []string{"wake-up, p50", "wake-up, p99", "tick, p99.9", "bus to bus, p50", "worst tick of the plant", "missed ticks"} {
		f := got.figure(t, name)
		if f.Verdict != Worse || f.New == nil {
			t.Errorf("%s is %s, %s then %s", name, f.Verdict, f.format(f.Old), f.format(f.New))
		}
		if name != "missed ticks" && !(*f.New / *f.Old > 1.9 && *f.New / *f.Old < 2.1) {
			t.Errorf("%s: ratio %s", name, f.formatRatio())
		}
	}
	// The old worst case is a single sample far above the others: one larger sample may be chance.
	if f := got.figure(t, "wake-up, worst"); f.Verdict != Noise || !strings.Contains(f.Why, "1 of 720000 ") {
		t.Errorf("the worst is %s %s", f.Verdict, f.Why)
	}
	back := compared(t, stored(t, now), stored(t, old))
	if f := back.figure(t, "tick, p50"); f.Verdict != Better || len(back.Worse()) != 0 {
		t.Errorf("the other way round: %s is %s; worse: %v", f.Name, f.Verdict, back.Worse())
	}
}

func TestASmallDifferenceNamesItsThreshold(t *testing.T) {
	for _, c := range []struct {
		x, y, factor, delta float64
		want                string
	}{
		{100e3, 119e3, 1.25, 0, "small difference (factor of 1.25 at most)"},
		{119e3, 100e3, 1.25, 0, "small difference (factor of 1.25 at most)"},
		{100e3, 109e3, maxFactor, maxDeltaNs, "small difference (factor of 1.1 at most)"},
		{800, 1600, maxFactor, maxDeltaNs, "small difference (1 us at most)"},
		{100e3, 126e3, 1.25, 0, "WORSE"},
		{126e3, 100e3, 1.25, 0, "better"},
	} {
		var got Compared
		if got.Verdict, got.Why = judgeSize(c.x, c.y, c.factor, c.delta); got.formatVerdict() != c.want {
			t.Errorf("%g, then %g ns: %s, want %s", c.x, c.y, got.formatVerdict(), c.want)
		}
	}
	old, now := sample(t, 1, 1), sample(t, 1, 1)
	now.Worst.WorstNs = old.Worst.WorstNs * 119 / 100
	f := compared(t, stored(t, old), stored(t, now)).figure(t, "worst tick of the plant")
	if want := "small difference (factor of 1.25 at most)"; f.formatRatio() != "1.19" || f.formatVerdict() != want {
		t.Errorf("ratio %s: %s, want %s", f.formatRatio(), f.formatVerdict(), want)
	}
}

func TestAWorstCaseIsWorseIfManySamplesExceedTheOldOne(t *testing.T) {
	at := func(worst int64, more int) *Distribution {
		h := histogram(10_000, 9_000, 60_000, 1)
		for i := range more {
			h.Record(worst + int64(i))
		}
		return distribution(h)
	}
	for more, want := range map[int]Verdict{1: Noise, 9: Noise, 11: Worse, 40: Worse} {
		if got, why := judgeLargest(at(0, 0), at(120_000, more)); got != want {
			t.Errorf("%d of 10000 above: %s (%s), want %s", more, got, why, want)
		}
	}
	if got, _ := judgeLargest(at(120_000, 40), at(0, 0)); got != Better {
		t.Errorf("without them: %s", got)
	}
	if got, why := judgeLargest(at(0, 0), at(61_500, 40)); got != Small {
		t.Errorf("1.5 us more: %s (%s)", got, why)
	}
}

func TestCountsAreJudgedByTheirNoise(t *testing.T) {
	for _, c := range []struct {
		old, now, ticksOld, ticksNow float64
		want                         Verdict
	}{
		{0, 1, 1e6, 1e6, Worse}, {1, 0, 1e6, 1e6, Better}, {3, 5, 1e6, 1e6, Noise}, {5, 3, 1e6, 1e6, Noise},
		{3, 60, 1e6, 1e6, Worse}, {60, 3, 1e6, 1e6, Better}, {10, 100, 1e6, 1e7, Noise}, {1e6, 1.02e6, 1e9, 1e9, Small},
		{10, 20, 0, 1e6, Open},
	} {
		if got, why := judgeCounts(c.old, c.now, c.ticksOld, c.ticksNow); got != c.want {
			t.Errorf("%g of %g, then %g of %g: %s (%s), want %s", c.old, c.ticksOld, c.now, c.ticksNow, got, why, c.want)
		}
	}
}

func TestTheConfidenceIntervalOfAQuantileFollowsItsRanks(t *testing.T) {
	var h sched.Histogram
	for us := range int64(1000) {
		h.Record(us * 1000)
	}
	d := distribution(&h)
	low, high := d.confidence(0.5) // 3.3 standard deviations of 15.8 ranks
	if !(low > 440 && low < 455 && high > 545 && high < 560) {
		t.Errorf("the median is between %g and %g us", low, high)
	}
	if _, high := d.confidence(0.999); high != 999 {
		t.Errorf("p99.9 is at most %g us, want the largest", high)
	}
}

func TestAComparisonNamesDifferentHosts(t *testing.T) {
	now := sample(t, 1, 1)
	now.Box.Name, now.Box.ID, now.Box.Processor = "bench9", "0123", "Some other CPU"
	got := compared(t, sample(t, 1, 1), now)
	if !strings.Contains(printed(got), got.Boxes) || !strings.Contains(got.Boxes, now.Box.Name) || !strings.Contains(got.Boxes, "Some other CPU") {
		t.Errorf("%s", printed(got))
	}
}

func TestAMissingFigureIsNotComparedAsZero(t *testing.T) {
	c := sample(t, 1, 1)
	bare := edited(t, c, func(tree map[string]any) {
		run := tree["run"].(map[string]any)
		delete(run, "missed")
		delete(run, "allocs")
		run["tick_ns"].(map[string]any)["p50"] = nil
		delete(tree, "worst_case")
		delete(tree, "beside")
		tree["bus_to_bus"] = nil
	})
	for _, sides := range [][2]*Certificate{{stored(t, c), bare}, {bare, stored(t, c)}} {
		got := compared(t, sides[0], sides[1])
		for _, name := range []string{"missed ticks", "allocations", "tick, p50", "worst tick of the plant", "ratio to cyclictest, p50", "bus to bus, p99"} {
			f := got.figure(t, name)
			if f.Verdict != Unknown || (f.format(f.Old) != "-") == (f.format(f.New) != "-") || f.formatRatio() != "-" {
				t.Errorf("%s: %s then %s, ratio %s, %s", name, f.format(f.Old), f.format(f.New), f.formatRatio(), f.Verdict)
			}
		}
	}
}

func TestInterruptCountsAndThreadNumbersAreNoSettings(t *testing.T) {
	c, now := sample(t, 1, 1), sample(t, 1, 1)
	c.Doctor.Checks[0].Found, now.Doctor.Checks[0].Found = "131 enp4s0 (7719 so far), jackd 991 FIFO 90", "131 enp4s0 (8000 so far), jackd 1002 FIFO 90"
	if got := compared(t, c, now); len(got.Settings) != 0 {
		t.Errorf("%v", got.Settings)
	}
	now.Doctor.Checks[0].Found = "131 enp4s0 (7719 so far), jackd 991 FIFO 91"
	if got := compared(t, c, now); len(got.Settings) != 1 {
		t.Errorf("%v", got.Settings)
	}
}
