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
func TestLabAbsStopsBeforeLockedWheelsOnADryRoad(t *testing.T) { antiLock.judge(t, "abs-dry", 4) }
func TestLabAbsStopsBeforeLockedWheelsOnAWetRoad(t *testing.T) { antiLock.judge(t, "abs-wet", 4) }
func TestLabAbsKeepsWheelsFromLockingOnIce(t *testing.T)       { antiLock.judge(t, "abs-ice", 2) }

// The same of a rail car.
func TestLabWspStopsBeforeLockedWheelsOnDryRail(t *testing.T) { slideProtection.judge(t, "wsp-dry", 3) }
func TestLabWspStopsBeforeLockedWheelsOnWetRail(t *testing.T) { slideProtection.judge(t, "wsp-wet", 2) }
func TestLabWspKeepsWheelsFromLockingOnIce(t *testing.T)      { slideProtection.judge(t, "wsp-ice", 2) }

// brakeUnit is a control unit in the lab, what wakes it, and what it says at its end when it
// has had all wheels in hand.
type brakeUnit struct {
	name, waits string
	worked      *regexp.Regexp
}

var (
	antiLock        = brakeUnit{"abs", "WheelSpeeds", regexp.MustCompile(`in control of \[FL FR RL RR\]: \[[1-9]\d* [1-9]\d* [1-9]\d* [1-9]\d*\]`)}
	slideProtection = brakeUnit{"wsp", "AxleSpeeds", regexp.MustCompile(`axles 1 to 4 let go \[[1-9]\d* [1-9]\d* [1-9]\d* [1-9]\d*\] times`)}
	brakeFigures    = regexp.MustCompile(`.* on locked wheels: wanted .*`)
)

func (u brakeUnit) judge(t *testing.T, scenario string, attempts int) {
	t.Helper()
	if !inLab(t) {
		return
	}
	for range attempts {
		if u.judged(t, scenario) {
			return
		}
	}
	t.Logf("%s: the lab was too slow to judge it", scenario)
}

// judged runs a scenario, and reports whether no point of the grid was missed and no frame
// late; then it must hold.
func (u brakeUnit) judged(t *testing.T, scenario string) bool {
	t.Helper()
	unit := start(t, command(t), "ecu", u.name, "-bus", "vcan0")
	unit.await("waiting for "+u.waits, patience)
	b := start(t, command(t), "run", u.name+"-bench", "-bus", "vcan0", "-besteffort", "-scenario", scenario)
	code := b.wait(2 * time.Minute)
	unit.signal(syscall.SIGTERM)
	unit.wait(patience)
	out, said := b.out.String(), unit.out.String()
	if !strings.Contains(said, " 0 malformed") || !u.worked.MatchString(said) {
		t.Errorf("%s: the unit says\n%s", scenario, said)
	}
	t.Logf("%s: %s", scenario, brakeFigures.FindString(out))
	if !strings.Contains(out, "missed 0 (policy") || strings.Contains(out, "timeouts") {
		return false
	}
	if code != 0 {
		t.Errorf("%s: exit %d: %s\n%s", scenario, code, &b.err, out)
	}
	return true
}
