package hiltest

import (
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The unit as a program of its own, on a bus with a name: no wheel locks on ice, and on dry
// and wet roads the car stops before it does on locked wheels, which is what the scenarios
// expect. They are judged where the lab has kept time, as no unit can act that is not
// heard for tens of milliseconds; that the unit takes hold of all wheels holds in any case.
func TestLabAbsStopsBeforeLockedWheelsOnADryRoad(t *testing.T) { absInTheLab(t, "abs-dry", 4) }
func TestLabAbsStopsBeforeLockedWheelsOnAWetRoad(t *testing.T) { absInTheLab(t, "abs-wet", 4) }
func TestLabAbsKeepsWheelsFromLockingOnIce(t *testing.T)       { absInTheLab(t, "abs-ice", 2) }

func absInTheLab(t *testing.T, scenario string, attempts int) {
	t.Helper()
	if !inLab(t) {
		return
	}
	for range attempts {
		if absJudged(t, scenario) {
			return
		}
	}
	t.Logf("%s: the lab was too slow to judge it", scenario)
}

var (
	absFigures = regexp.MustCompile(`before it does on locked wheels: wanted .*`)
	absMissed  = regexp.MustCompile(`ticks +\d+ of 5 ms, missed (\d+)`)
)

// absJudged runs a scenario, and reports whether fewer than ten points of the grid were
// missed and the unit was always heard in time; then it must hold.
func absJudged(t *testing.T, scenario string) bool {
	t.Helper()
	unit := start(t, command(t), "ecu", "abs", "-bus", "vcan0")
	unit.await("waiting for WheelSpeeds", patience)
	b := start(t, command(t), "run", "abs-bench", "-bus", "vcan0", "-besteffort", "-scenario", scenario)
	code := b.wait(2 * time.Minute)
	unit.signal(syscall.SIGTERM)
	unit.wait(patience)
	out, said := b.out.String(), unit.out.String()
	if !strings.Contains(said, " 0 malformed") || !regexp.MustCompile(`in control of \[FL FR RL RR\]: \[[1-9]\d* [1-9]\d* [1-9]\d* [1-9]\d*\]`).MatchString(said) {
		t.Errorf("%s: the unit says\n%s", scenario, said)
	}
	missed := absMissed.FindStringSubmatch(out)
	if missed == nil {
		t.Fatalf("%s: exit %d: %s\n%s", scenario, code, &b.err, out)
	}
	if len(missed[1]) > 1 || strings.Contains(out, "timeouts") {
		return false
	}
	if code != 0 {
		t.Errorf("%s: exit %d: %s\n%s", scenario, code, &b.err, out)
	}
	t.Logf("%s: %s", scenario, absFigures.FindString(out))
	return true
}
