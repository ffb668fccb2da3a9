package ecu

import (
	"testing"
	"time"

	"github.com/brutella/can"
)

// turnKey steps the unit for a while with the ignition in a state. Without speeds no ShaftSpeeds are sent.
func (g *automaticRig) turnKey(seconds float64, key int, speeds bool) {
	g.t.Helper()
	for range int(seconds*100 + 0.5) {
		g.k++
		g.line.now = time.Duration(g.k) * 10 * time.Millisecond
		frames := []can.Frame{g.protectedFrame(idPedals, leverD<<12|uint64(key)<<48)}
		if speeds {
			frames = append(frames, g.protectedFrame(idShaftSpeeds, 0))
		}
		for _, f := range frames {
			g.u.Receive(pack(g.t, f), g.line.now-1)
		}
		if err := g.u.Tick(g.line.now); err != nil {
			g.t.Fatal(err)
		}
	}
}

// last returns the time of the last frame with an identifier, s, and how many there were.
func (g *automaticRig) last(id uint32) (at float64, n int) {
	for i, f := range g.line.all {
		if f.ID == id {
			at, n = g.line.at[i].Seconds(), n+1
		}
	}
	return at, n
}

func TestAutomaticSleepsAfterItsAfterRun(t *testing.T) {
	g := newAutomaticRig(t)
	g.turnKey(2, keyRun, true)
	if got := g.shifts(); got != "N1" {
		t.Fatalf("shifts %q, want N1", got)
	}
	g.turnKey(10, keyOff, false)
	at, n := g.last(idClutchPressures)
	if at < 4.97 || at > 5.01 || n < 490 {
		t.Errorf("the last of %d pressures is sent at %g s; want 5 s: 3 s after the end of the ignition", n, at)
	}
	if nm, n := g.last(idNMUnit); nm < 4.8 || nm > 5.01 || n < 45 {
		t.Errorf("the last of %d NM messages is sent at %g s; want the last 100 ms before 5 s", n, nm)
	}
	if got := g.shifts(); got != "N1 1N" {
		t.Errorf("shifts %q, want N1 1N: the unit opens its clutches", got)
	}
	g.turnKey(1, keyOff, true) // speeds without ignition wake nothing
	if again, _ := g.last(idClutchPressures); again != at {
		t.Errorf("the unit sends at %g s without ignition", again)
	}
	g.turnKey(1, keyRun, true)
	if again, _ := g.last(idClutchPressures); again < 13.9 {
		t.Errorf("the last pressures are sent at %g s, want 14 s: the ignition is on again", again)
	}
}

func TestAutomaticWithoutIgnitionSignalSendsNoNetworkManagement(t *testing.T) {
	g := newAutomaticRig(t)
	g.turnKey(3, keyUnknown, true)
	if _, n := g.last(idNMUnit); n != 0 {
		t.Errorf("%d NM messages", n)
	}
	if at, n := g.last(idClutchPressures); n < 290 || at < 2.9 {
		t.Errorf("%d pressures until %g s", n, at)
	}
}

func TestAutomaticWakesUpByItselfForItsAfterRun(t *testing.T) {
	g := newAutomaticRig(t)
	u, err := NewStepped("automatic", g.line, &g.log, Setting{Name: "wake_up", Value: 5}, Setting{Name: "after_run", Value: 1})
	if err != nil {
		t.Fatal(err)
	}
	g.u = u
	g.turnKey(10, keyOff, false)
	at, n := g.last(idNMUnit)
	if _, pressures := g.last(idClutchPressures); pressures != 0 || n < 9 || n > 12 || at < 5.8 || at > 6.1 {
		t.Errorf("%d NM messages until %g s, %d pressures; want about ten from 5 s to 6 s, and none", n, at, pressures)
	}
	if f := g.line.all[0]; f.Data[0] != unitNode || f.Data[1] != 1<<4 || f.Length != 8 {
		t.Errorf("the first message is % X; want the node and the bit of an active wake-up", f.Data)
	}
}
