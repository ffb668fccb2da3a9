package labs

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"lockstep/hil_test/lab"
)

// The unit as a program of its own, on a bus with a name: no wheel locks on ice, and on dry
// and wet roads the car stops before it does on locked wheels, which is what the scenarios
// expect; both ways are in the report. The same of a rail car, whose cylinders take their time:
// it bears it to be without its unit for some tens of milliseconds.
//
// They are judged where the lab has kept time, as no unit can act that is not heard for tens
// of milliseconds; that the unit takes hold of all wheels holds in any case. A lab with a drive
// idles: several are side by side, and nothing else beside them.
func TestLabBrakes(t *testing.T) {
	for _, d := range []struct {
		fact     string
		unit     brakeUnit
		scenario string
		attempts int
	}{
		{"AbsStopsBeforeLockedWheelsOnADryRoad", antiLock, "abs-dry", 2},
		{"AbsStopsBeforeLockedWheelsOnAWetRoad", antiLock, "abs-wet", 2},
		{"AbsKeepsWheelsFromLockingOnIce", antiLock, "abs-ice", 1},
		{"WspStopsBeforeLockedWheelsOnDryRail", slideProtection, "wsp-dry", 1},
		{"WspStopsBeforeLockedWheelsOnWetRail", slideProtection, "wsp-wet", 1},
		{"WspKeepsWheelsFromLockingOnIce", slideProtection, "wsp-ice", 1},
	} {
		t.Run(d.fact, func(t *testing.T) { d.unit.judge(t, d.scenario, d.attempts) })
	}
}

// brakeUnit is a control unit in the lab, what wakes it, and what it says at its end when it
// has had all wheels in hand.
type brakeUnit struct {
	name, waits string
	worked      *regexp.Regexp
	bears       float64 // ms that it may be without the bench, or the bench without it
}

var (
	antiLock        = brakeUnit{"abs", "WheelSpeeds", regexp.MustCompile(`in control of \[FL FR RL RR\]: \[[1-9]\d* [1-9]\d* [1-9]\d* [1-9]\d*\]`), 25}
	slideProtection = brakeUnit{"wsp", "AxleSpeeds", regexp.MustCompile(`axles 1 to 4 released \[[1-9]\d* [1-9]\d* [1-9]\d* [1-9]\d*\] times`), 60}
)

func (u brakeUnit) judge(t *testing.T, scenario string, attempts int) {
	t.Helper()
	if !lab.InVCAN(t) {
		return
	}
	for range attempts {
		if u.judged(t, scenario) {
			return
		}
	}
	t.Logf("%s: the lab was too slow to judge it", scenario)
}

// late and apart match the largest wake-up latency, us, and the longest times between frames of the
// unit, ms, in a report without line breaks.
var (
	late  = regexp.MustCompile(`wake-up latency .*? max ([0-9.]+) us`)
	apart = regexp.MustCompile(` frames every [0-9.]+ ms \([0-9.]+ to ([0-9.]+)\)`)
)

// kept reports whether the lab has kept time well enough for the unit.
func (u brakeUnit) kept(t *testing.T, out string) bool {
	t.Helper()
	out = strings.Join(strings.Fields(out), " ")
	found, longest := append(late.FindAllStringSubmatch(out, -1), apart.FindAllStringSubmatch(out, -1)...), u.bears
	if len(found) < 2 {
		t.Fatalf("no wake-up latency and no received frames in\n%s", out)
	}
	for i, f := range found {
		ms, err := strconv.ParseFloat(f[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			ms /= 1000
		}
		longest = max(longest, ms)
	}
	return longest == u.bears
}

// judged runs a scenario, and reports whether the lab has kept time; then it must hold. The
// report for machines has the figure with the unit and that on locked wheels.
func (u brakeUnit) judged(t *testing.T, scenario string) bool {
	t.Helper()
	file := filepath.Join(t.TempDir(), "report.json")
	unit := lab.Start(t, lab.Command(t), "ecu", u.name, "-bus", "vcan0")
	unit.AwaitOutput("waiting for " + u.waits)
	b := lab.Start(t, lab.Command(t), "run", u.name+"-bench", "-bus", "vcan0", "-besteffort", "-scenario", scenario, "-report", file)
	code := b.WaitFor(2 * time.Minute)
	unit.Signal(syscall.SIGTERM)
	unit.Wait()
	out, said := b.Out.String(), unit.Out.String()
	if !strings.Contains(said, " 0 malformed") || !u.worked.MatchString(said) {
		t.Errorf("%s: the unit says\n%s", scenario, said)
	}
	holds, slides := brakeFigures(t, file)
	t.Logf("%s: %g with the unit, %g on locked wheels", scenario, holds, slides)
	if !u.kept(t, out) {
		return false
	}
	if code != 0 || !(holds < slides) {
		t.Errorf("%s: exit %d: %s\n%s", scenario, code, &b.Err, out)
	}
	return true
}

// brakeFigures are what a report has of a stop with the unit and on locked wheels: where the
// vehicle stands, m, or how fast it still is, m/s.
func brakeFigures(t *testing.T, file string) (holds, slides float64) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var report struct {
		Scenario struct {
			Expectations []struct{ What, Demanded, Seen string }
		}
	}
	if err := json.Unmarshal(data, &report); err != nil {
		t.Fatal(err)
	}
	for _, e := range report.Scenario.Expectations {
		if !strings.HasSuffix(e.What, "on locked wheels") {
			continue
		}
		_, limit, _ := strings.Cut(e.Demanded, " below ")
		if _, err := fmt.Sscanf(limit, "%g", &slides); err != nil {
			t.Fatalf("%q: %v", e.Demanded, err)
		}
		if _, err := fmt.Sscanf(e.Seen, "worst %g", &holds); err != nil {
			t.Fatalf("%q: %v", e.Seen, err)
		}
		return holds, slides
	}
	t.Fatalf("no figures in %s", data)
	return
}
