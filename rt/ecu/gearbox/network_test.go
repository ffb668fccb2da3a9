package gearbox

import (
	"testing"
	"time"

	"github.com/brutella/can"

	"lockstep/rt/ecu/unit"
	"lockstep/rt/ecu/unit/unittest"
)

// turnKey steps the unit for a while with the ignition in a state. Without speeds no ShaftSpeeds are sent.
func (g *automaticRig) turnKey(seconds float64, key int, speeds bool) {
	g.t.Helper()
	for range int(seconds*100 + 0.5) {
		g.k++
		g.line.Now = time.Duration(g.k) * 10 * time.Millisecond
		frames := []can.Frame{g.protectedFrame(idPedals, leverD<<12|uint64(key)<<48)}
		if speeds {
			frames = append(frames, g.protectedFrame(idShaftSpeeds, 0))
		}
		for _, f := range frames {
			g.u.Receive(unittest.Pack(g.t, f), g.line.Now-1)
		}
		if err := g.u.Tick(g.line.Now); err != nil {
			g.t.Fatal(err)
		}
	}
}

// last returns the time of the last frame with an identifier, s, and how many there were.
func (g *automaticRig) last(id uint32) (at float64, n int) {
	for i, f := range g.line.All {
		if f.ID == id {
			at, n = g.line.At[i].Seconds(), n+1
		}
	}
	return at, n
}

func TestAutomaticSleepsAfterItsAfterRun(t *testing.T) {
	g := newAutomaticRig(t)
	g.turnKey(2, unit.KeyRun, true)
	if got := g.shifts(); got != "N1" {
		t.Fatalf("shifts %q, want N1", got)
	}
	g.turnKey(10, unit.KeyOff, false)
	at, n := g.last(idClutchPressures)
	if at < 4.97 || at > 5.01 || n < 490 {
		t.Errorf("the last of %d pressures is sent at %g s; want 5 s: 3 s after the end of the ignition", n, at)
	}
	if nm, n := g.last(unit.IDNMUnit); nm < 4.8 || nm > 5.01 || n < 45 {
		t.Errorf("the last of %d NM messages is sent at %g s; want the last 100 ms before 5 s", n, nm)
	}
	if got := g.shifts(); got != "N1 1N" {
		t.Errorf("shifts %q, want N1 1N: the unit opens its clutches", got)
	}
	g.turnKey(1, unit.KeyOff, true) // speeds without ignition wake nothing
	if again, _ := g.last(idClutchPressures); again != at {
		t.Errorf("the unit sends at %g s without ignition", again)
	}
	g.turnKey(1, unit.KeyRun, true)
	if again, _ := g.last(idClutchPressures); again < 13.9 {
		t.Errorf("the last pressures are sent at %g s, want 14 s: the ignition is on again", again)
	}
}

func TestAutomaticWithoutIgnitionSignalSendsNoNetworkManagement(t *testing.T) {
	g := newAutomaticRig(t)
	g.turnKey(3, unit.KeyUnknown, true)
	if _, n := g.last(unit.IDNMUnit); n != 0 {
		t.Errorf("%d NM messages", n)
	}
	if at, n := g.last(idClutchPressures); n < 290 || at < 2.9 {
		t.Errorf("%d pressures until %g s", n, at)
	}
}

func TestAutomaticWakesUpByItselfForItsAfterRun(t *testing.T) {
	g := newAutomaticRig(t)
	g.u = newUnit(t, "automatic", g.line, &g.log, unit.Setting{Name: "wake_up", Value: 5}, unit.Setting{Name: "after_run", Value: 1})
	g.turnKey(10, unit.KeyOff, false)
	at, n := g.last(unit.IDNMUnit)
	if _, pressures := g.last(idClutchPressures); pressures != 0 || n < 9 || n > 12 || at < 5.8 || at > 6.1 {
		t.Errorf("%d NM messages until %g s, %d pressures; want about ten from 5 s to 6 s, and none", n, at, pressures)
	}
	if f := g.line.All[0]; f.Data[0] != 0x18 || f.Data[1] != 1<<4 || f.Length != 8 {
		t.Errorf("the first message is % X; want the node and the bit of an active wake-up", f.Data)
	}
}
