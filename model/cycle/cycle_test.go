package cycle

import (
	"math"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/gonum/floats/scalar"

	"lockstep/io/sigmap"
)

// published are the figures of each phase and of each cycle, in the units of their sources.
//
// wltc-3b: GRPE-68-03, technical report on the development of the WLTC, class 3 version 5.3. ftp-75 and hwfet: EPA,
// dynamometer drive schedules (7.45 mi, 19.59 mph; 11.04 mi; 10.26 mi, 48.3 mph), and the distances of the phases of
// EPA's OMEGA model (3.591 mi, 3.859 mi). nedc: UN R83, Annex 4a, 6.1.1 and 6.1.2: 19 km/h, 195 s and 1.013 km;
// 62.6 km/h, 400 s and 6.955 km. The operations of Table 1 of R83 sum up to 1.0183 km, 0.5 % above the rounded
// distance of its text: hence a tolerance of 1 % there. Otherwise the tolerance is half of the last digit.
var published = []struct {
	cycle, phase                      string
	seconds                           float64
	distance, distanceTol, distanceIn float64 // m
	highest                           float64 // km/h or mph
	mean, meanTol                     float64 // km/h or mph
	speedUnit                         float64 // m/s
}{
	{"wltc-3b", "low", 589, 3095, 0.5, 1, 56.5, 18.9, 0.05, kmh},
	{"wltc-3b", "medium", 433, 4756, 0.5, 1, 76.6, 39.5, 0.05, kmh},
	{"wltc-3b", "high", 455, 7162, 0.5, 1, 97.4, 56.7, 0.05, kmh},
	{"wltc-3b", "extra high", 323, 8254, 0.5, 1, 131.3, 92.0, 0.05, kmh},
	{"wltc-3b", "", 1800, 23266, 0.5, 1, 131.3, 46.5, 0.05, kmh},

	{"ftp-75", "cold transient", 505, 3.591, 0.0005, mile, 56.7, 25.6, 0.05, mph},
	{"ftp-75", "cold stabilised", 864, 3.859, 0.0005, mile, 34.3, 16.1, 0.05, mph},
	{"ftp-75", "soak", 600, 0, 0, mile, 0, 0, 0, mph},
	{"ftp-75", "hot transient", 505, 3.591, 0.0005, mile, 56.7, 25.6, 0.05, mph},
	{"ftp-75", "", 2474, 11.04, 0.005, mile, 56.7, 11.04 / 2474 * 3600, 0.01, mph},

	{"nedc", "urban 1", 195, 1013, 10, 1, 50, 19, 0.5, kmh},
	{"nedc", "urban 2", 195, 1013, 10, 1, 50, 19, 0.5, kmh},
	{"nedc", "urban 3", 195, 1013, 10, 1, 50, 19, 0.5, kmh},
	{"nedc", "urban 4", 195, 1013, 10, 1, 50, 19, 0.5, kmh},
	{"nedc", "extra-urban", 400, 6955, 0.5, 1, 120, 62.6, 0.05, kmh},
	{"nedc", "", 1180, 4*1013 + 6955, 110, 1, 120, (4*1.013 + 6.955) / 1180 * 3600, 0.3, kmh},

	{"hwfet", "highway", 765, 10.26, 0.005, mile, 59.9, 48.3, 0.05, mph},
	{"hwfet", "", 765, 10.26, 0.005, mile, 59.9, 48.3, 0.05, mph},
}

const (
	mile = 1609.344    // m
	kmh  = 1 / 3.6     // m/s
	mph  = mile / 3600 // m/s
)

func TestPhasesHaveTheFiguresOfTheirRegulations(t *testing.T) {
	seen := map[string]bool{}
	for _, want := range published {
		c, err := Load(want.cycle)
		if err != nil {
			t.Fatal(err)
		}
		begin, end := int64(0), c.End()
		for _, p := range c.Phases {
			if p.Name == want.phase {
				begin, end = p.Begin, p.End
			}
		}
		seen[want.cycle+" "+want.phase] = true
		got, name := c.Figures(begin, end), want.cycle+" "+want.phase
		if got.Duration.Seconds() != want.seconds {
			t.Errorf("%s: duration %v s, want %v s", name, got.Duration.Seconds(), want.seconds)
		}
		if d := got.Distance / want.distanceIn; !scalar.EqualWithinAbs(d, want.distance, want.distanceTol+1e-9) {
			t.Errorf("%s: distance %v, want %v ± %v (unit %v m)", name, d, want.distance, want.distanceTol, want.distanceIn)
		}
		if v := got.Highest / want.speedUnit; !scalar.EqualWithinAbs(v, want.highest, 1e-9) {
			t.Errorf("%s: highest speed %v, want %v (unit %v m/s)", name, v, want.highest, want.speedUnit)
		}
		if v := got.Mean / want.speedUnit; !scalar.EqualWithinAbs(v, want.mean, want.meanTol+1e-9) {
			t.Errorf("%s: mean speed %v, want %v ± %v (unit %v m/s)", name, v, want.mean, want.meanTol, want.speedUnit)
		}
	}
	for _, name := range Names() {
		c, err := Load(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range append(c.Phases, Phase{}) {
			if !seen[name+" "+p.Name] {
				t.Errorf("%s: phase %q has no published figures", name, p.Name)
			}
		}
		if last := c.Target.At[len(c.Target.At)-1]; last != c.End() {
			t.Errorf("%s: the target ends at %d ns, the last phase at %d ns", name, last, c.End())
		}
		target := sigmap.Waveform{At: c.Target.At, Value: c.Target.Value}
		if err := target.Check(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestWLTCHasTheChecksumsOfTheRegulation compares the sums of the speeds at 1 Hz with those of UN R154, Annex B1,
// Table A1/13: a wrong second would show.
func TestWLTCHasTheChecksumsOfTheRegulation(t *testing.T) {
	c, err := Load("wltc-3b")
	if err != nil {
		t.Fatal(err)
	}
	sum := func(from, to int) (s int64) {
		for _, v := range c.Target.Value[from : to+1] {
			s += int64(math.Round(v / tenthKmh))
		}
		return s
	}
	for _, want := range []struct {
		from, to int // s
		sum      int64
	}{{0, 589, 111403}, {590, 1022, 171212}, {1023, 1477, 257822}, {1478, 1800, 297149}, {0, 1800, 837586}} {
		if got := sum(want.from, want.to); got != want.sum {
			t.Errorf("sum of the speeds from %d s to %d s: %d, want %d tenths of km/h", want.from, want.to, got, want.sum)
		}
	}
}

func TestHotTransientPhaseRepeatsTheColdOne(t *testing.T) {
	c, err := Load("ftp-75")
	if err != nil {
		t.Fatal(err)
	}
	for s := range int64(506) {
		if cold, hot := c.Target.Eval(s*second), c.Target.Eval((1969+s)*second); cold != hot {
			t.Fatalf("at %d s: cold %v m/s, hot %v m/s", s, cold, hot)
		}
	}
	if !c.Phases[2].Parked || c.Phases[1].Parked {
		t.Error("want the soak to be the only parked phase")
	}
}

// TestNEDCFollowsItsAccelerations checks the accelerations that Tables 1 and 2 of R83 state beside the speeds.
func TestNEDCFollowsItsAccelerations(t *testing.T) {
	c, err := Load("nedc")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []struct{ at, a float64 }{ // s, m/s²
		{13, 1.04}, {24, -0.69}, {26, -0.92}, {51, 0.83}, {58, 0.94}, {89, -0.75}, {94, -0.92}, {119, 0.83}, {128, 0.62},
		{139, 0.52}, {159, -0.52}, {181, -0.99}, {186, -0.92}, {780 + 22, 0.83}, {780 + 30, 0.62}, {780 + 40, 0.52},
		{780 + 50, 0.43}, {780 + 115, -0.69}, {780 + 195, 0.43}, {780 + 260, 0.24}, {780 + 320, 0.28}, {780 + 350, -0.69},
		{780 + 365, -1.04}, {780 + 375, -1.39},
	} {
		at := int64(want.at * 1e9)
		got := (c.Target.Eval(at+1e8) - c.Target.Eval(at-1e8)) / 0.2
		if !scalar.EqualWithinAbs(got, want.a, 0.015) { // the tables round to 0.01 m/s², some of them down
			t.Errorf("acceleration at %v s: %v, want %v m/s²", want.at, got, want.a)
		}
	}
}

func TestFileIsReadAsACycle(t *testing.T) {
	c, err := Read("ramp.csv", strings.NewReader("# a ramp\ntime[s],v[km/h]\n0,0\n10,36\n20.5,36\n30,-3.6\n"))
	if err != nil {
		t.Fatal(err)
	}
	if c.End() != 30*second || len(c.Phases) != 1 {
		t.Errorf("end %d ns with %d phases, want 30 s with one", c.End(), len(c.Phases))
	}
	for at, want := range map[int64]float64{0: 0, 5 * second: 5, 15 * second: 10, 30 * second: -1} {
		if got := c.Target.Eval(at); !scalar.EqualWithinAbs(got, want, 1e-12) {
			t.Errorf("speed at %d ns: %v, want %v m/s", at, got, want)
		}
	}
	f := c.Figures(0, 10*second)
	if !scalar.EqualWithinAbs(f.Distance, 50, 1e-9) || !scalar.EqualWithinAbs(f.Mean, 5, 1e-9) || f.Duration != 10*time.Second {
		t.Errorf("figures of the ramp: %+v, want 50 m, 5 m/s, 10 s", f)
	}
}

func TestFileErrorsNameLineAndRemedy(t *testing.T) {
	for text, want := range map[string]string{
		"":                                 "x.csv:1:1: cycle: the file is empty",
		"time[s],v[km/h]\n":                "x.csv:2:1: cycle: the file has a header and no row",
		"time[s],v[km/h]\n0,0\n":           "x.csv: cycle: the file has one row: a cycle has at least two",
		"time[s]\n0\n1\n":                  "x.csv: cycle: the column v is missing: the header is time[s],v[km/h]",
		"time[s],v\n0,0\n1,1\n":            `x.csv:1:9: cycle: column "v" has no unit: write v[km/h]`,
		"time[s],v[kg]\n0,0\n1,1\n":        "x.csv:1:9: cycle: column v: ",
		"time[s],w[km/h]\n0,0\n1,1\n":      `x.csv:1:9: cycle: expected the columns time[s] and v[km/h], got "w"`,
		"time[s],v[km/h],a[m/s2]\n0,0,0\n": `x.csv:1:17: cycle: expected the columns time[s] and v[km/h], got "a"`,
		"time[s],v[km/h]\n1,0\n2,0\n":      "x.csv:2:1: cycle: column time: the first row is at 1 s: a cycle begins at 0 s",
		"time[s],v[km/h]\n0,0\n0.005,0\n":  "x.csv:3:1: cycle: column time: 0.005 s is less than 10 ms after the row before it",
		"time[s],v[km/h]\n0,0\n5,NaN\n":    "x.csv:3:3: cycle: column v: NaN km/h is outside the range of a speed, -540 to 540 km/h",
		"time[s],v[km/h]\n0,0\n5,541\n":    "x.csv:3:3: cycle: column v: 541 km/h is outside the range of a speed, -540 to 540 km/h",
		"time[s],v[km/h]\n0,0\n90000,0\n":  "x.csv:3:1: cycle: column time: 90000 is not between 0 and 86400 s",
		"time[s],v[km/h]\n0,0\n1,x\n":      `x.csv:3:3: cycle: column v: "x" is not a number`,
	} {
		_, err := Read("x.csv", strings.NewReader(text))
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: got error %v, want %s", text, err, want)
		}
	}
	if _, err := Load("wltc"); err == nil || !strings.Contains(err.Error(), `unknown cycle "wltc"`) || !strings.Contains(err.Error(), "wltc-3b") {
		t.Errorf("unknown cycle: got error %v", err)
	}
	if _, err := Load("missing.csv"); err == nil || !strings.Contains(err.Error(), "missing.csv") {
		t.Errorf("missing file: got error %v", err)
	}
	var long strings.Builder
	long.WriteString("time[s],v[km/h]\n")
	for range mostRows + 1 {
		long.WriteString("0,0\n")
	}
	if _, err := Read("x.csv", strings.NewReader(long.String())); err == nil {
		t.Error("equal times: got no error")
	}
}

func TestFirstPhasesHaveTheTargetOfTheCycle(t *testing.T) {
	for _, name := range Names() {
		c, err := Load(name)
		if err != nil {
			t.Fatal(err)
		}
		for n := 1; n <= len(c.Phases); n++ {
			first := c.First(n)
			if len(first.Phases) != n || first.End() != c.Phases[n-1].End || first.Target.At[len(first.Target.At)-1] != first.End() {
				t.Errorf("%s, %d phases: end %d, want %d", name, n, first.End(), c.Phases[n-1].End)
			}
			for at := int64(0); at <= first.End(); at += 1e8 {
				if got, want := first.Target.Eval(at), c.Target.Eval(at); got != want {
					t.Fatalf("%s, %d phases: %g m/s at %d ns, want %g", name, n, got, at, want)
				}
			}
		}
	}
}
