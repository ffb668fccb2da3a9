package hiltest

import (
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The unit as a program of its own, on a bus with a name: no wheel locks on ice, and on dry
// and wet roads the car stops before it does on locked wheels, which is what the scenarios
// expect. They are judged where the lab has kept time, as no unit can act that is not
// heard for tens of milliseconds; that the unit takes hold of all wheels holds in any case.
func TestLabAbsStopsBeforeLockedWheelsOnADryRoad(t *testing.T) { antiLock.judge(t, "abs-dry", 2) }
func TestLabAbsStopsBeforeLockedWheelsOnAWetRoad(t *testing.T) { antiLock.judge(t, "abs-wet", 2) }
func TestLabAbsKeepsWheelsFromLockingOnIce(t *testing.T)       { antiLock.judge(t, "abs-ice", 1) }

// The same of a rail car, whose cylinders take their time: it bears it to be without its unit
// for some tens of milliseconds.
func TestLabWspStopsBeforeLockedWheelsOnDryRail(t *testing.T) { slideProtection.judge(t, "wsp-dry", 1) }
func TestLabWspStopsBeforeLockedWheelsOnWetRail(t *testing.T) { slideProtection.judge(t, "wsp-wet", 1) }
func TestLabWspKeepsWheelsFromLockingOnIce(t *testing.T)      { slideProtection.judge(t, "wsp-ice", 1) }

// brakeUnit is a control unit in the lab, what wakes it, and what it says at its end when it
// has had all wheels in hand.
type brakeUnit struct {
	name, waits string
	worked      *regexp.Regexp
	bears       float64 // ms that it may be without the bench, or the bench without it; 0: not a tick
}

var (
	antiLock        = brakeUnit{"abs", "WheelSpeeds", regexp.MustCompile(`in control of \[FL FR RL RR\]: \[[1-9]\d* [1-9]\d* [1-9]\d* [1-9]\d*\]`), 0}
	slideProtection = brakeUnit{"wsp", "AxleSpeeds", regexp.MustCompile(`axles 1 to 4 let go \[[1-9]\d* [1-9]\d* [1-9]\d* [1-9]\d*\] times`), 60}
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

// gaps are the largest lateness, us, and the longest time between frames of the unit, ms.
var gaps = regexp.MustCompile(`lateness .* max ([0-9.]+) us\n(?s:.*?) frames every [0-9.]+ ms \([0-9.]+ to ([0-9.]+)\)`)

// kept reports whether the lab has kept time well enough for the unit.
func (u brakeUnit) kept(t *testing.T, out string) bool {
	if u.bears == 0 {
		return strings.Contains(out, "missed 0 (policy") && !strings.Contains(out, "timeouts")
	}
	g := gaps.FindStringSubmatch(out)
	if g == nil {
		t.Fatalf("no lateness and frames in\n%s", out)
	}
	late, err := strconv.ParseFloat(g[1], 64)
	apart, err2 := strconv.ParseFloat(g[2], 64)
	return err == nil && err2 == nil && late <= 1000*u.bears && apart <= u.bears
}

// judged runs a scenario, and reports whether the lab has kept time; then it must hold.
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
	if !u.kept(t, out) {
		return false
	}
	if code != 0 {
		t.Errorf("%s: exit %d: %s\n%s", scenario, code, &b.err, out)
	}
	return true
}
