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

// The control unit runs as a separate program on a bus. No wheel locks on ice, and on dry and wet
// roads the vehicle stops in a shorter distance than on locked wheels, as the scenarios expect. The
// report has both figures. The cylinders of the rail car are slow: it tolerates longer gaps in the
// frames of its unit.
//
// The result counts only if the lab has kept time, since a unit cannot act without frames. In any
// case the unit must have controlled all wheels.
func TestLabBrakesPreventLockedWheels(t *testing.T) {
	t.Run("AbsKeepsWheelsFromLockingOnIce", func(t *testing.T) { antiLock.test(t, "abs-ice", 1) })
	t.Run("WspStopsBeforeLockedWheelsOnWetRail", func(t *testing.T) { slideProtection.test(t, "wsp-wet", 1) })
}

// brakeUnit is a control unit in the lab.
type brakeUnit struct {
	name   string
	waits  string         // frame for which it waits at the start
	worked *regexp.Regexp // output at the end if it has controlled all wheels
	limit  float64        // longest tolerated gap in the frames of the unit, and latency of the bench, ms
}

var (
	antiLock        = brakeUnit{"abs", "WheelSpeeds", regexp.MustCompile(`in control of \[FL FR RL RR\]: \[[1-9]\d* [1-9]\d* [1-9]\d* [1-9]\d*\]`), 25}
	slideProtection = brakeUnit{"wsp", "AxleSpeeds", regexp.MustCompile(`axles 1 to 4 released \[[1-9]\d* [1-9]\d* [1-9]\d* [1-9]\d*\] times`), 60}
)

// test runs a scenario until the lab has kept time, at most attempts times.
func (u brakeUnit) test(t *testing.T, scenario string, attempts int) {
	t.Helper()
	if !lab.InVCAN(t) {
		return
	}
	for range attempts {
		if u.attempt(t, scenario) {
			return
		}
	}
	t.Logf("%s: the lab was too slow for a result", scenario)
}

// Patterns of the largest wake-up latency, us, and of the longest times between frames of the unit,
// ms.
var (
	latency = regexp.MustCompile(`wake-up latency .* max ([0-9.]+) us\n`)
	gaps    = regexp.MustCompile(` frames every [0-9.]+ ms \([0-9.]+ to ([0-9.]+)\)`)
)

// keptTime reports whether the lab has kept time well enough for the unit.
func (u brakeUnit) keptTime(t *testing.T, out string) bool {
	t.Helper()
	found, longest := append(latency.FindAllStringSubmatch(out, -1), gaps.FindAllStringSubmatch(out, -1)...), u.limit
	if len(found) < 2 {
		t.Fatalf("no wake-up latency and times of frames in\n%s", out)
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
	return longest == u.limit
}

// attempt runs a scenario and reports whether the lab has kept time. If so, the scenario must pass.
func (u brakeUnit) attempt(t *testing.T, scenario string) bool {
	t.Helper()
	file := filepath.Join(t.TempDir(), "report.json")
	unit := lab.Start(t, lab.Command(t), "ecu", u.name, "-bus", "vcan0")
	unit.AwaitOutput("waiting for " + u.waits)
	b := lab.Start(t, lab.Command(t), "run", u.name+"-bench", "-bus", "vcan0", "-besteffort", "-scenario", scenario, "-report", file)
	code := b.WaitFor(2 * time.Minute)
	unit.Signal(syscall.SIGTERM)
	unit.Wait()
	out, unitOut := b.Out.String(), unit.Out.String()
	if !strings.Contains(unitOut, " 0 malformed") || !u.worked.MatchString(unitOut) {
		t.Errorf("%s: malformed frames, or not all wheels controlled; output of the unit:\n%s", scenario, unitOut)
	}
	braked, locked := brakeFigures(t, file)
	t.Logf("%s: %g with the unit, %g on locked wheels", scenario, braked, locked)
	if !u.keptTime(t, out) {
		return false
	}
	if code != 0 || !(braked < locked) {
		t.Errorf("%s: exit %d: %s\n%s", scenario, code, &b.Err, out)
	}
	return true
}

// brakeFigures returns the figures of a report with the unit and on locked wheels: the position at
// the end, m, or the remaining speed, m/s.
func brakeFigures(t *testing.T, file string) (braked, locked float64) {
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
		if _, err := fmt.Sscanf(limit, "%g", &locked); err != nil {
			t.Fatalf("%q: %v", e.Demanded, err)
		}
		if _, err := fmt.Sscanf(e.Seen, "worst %g", &braked); err != nil {
			t.Fatalf("%q: %v", e.Seen, err)
		}
		return braked, locked
	}
	t.Fatalf("no figures in %s", data)
	return
}
