package gearbox

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"lockstep/rt/ecu/unit/unittest"
)

// drivePowershift gives the unit the speeds of the gear that it wants, at a wheel speed that grows from one to another
// by the time, s; change alters them. Each Speeds has the counter that next returns.
func (g *automaticRig) drivePowershift(seconds, from, to float64, change func(w *[4]float64), next func(k int) uint8) {
	g.t.Helper()
	n := int(seconds * 200)
	for i := range n {
		g.k++
		g.line.Now = time.Duration(g.k) * 5 * time.Millisecond
		w := turning(g.u.Law.(*powershift).shift.gear, from+(to-from)*float64(i)/float64(n))
		change(&w)
		f := speeds(w)
		f.Data[7] |= next(g.k) << 4
		g.u.Receive(unittest.Pack(g.t, f), g.line.Now-1)
		if err := g.u.Tick(g.line.Now); err != nil {
			g.t.Fatal(err)
		}
	}
}

func powershiftRig(t *testing.T) *automaticRig {
	t.Helper()
	g := &automaticRig{t: t, line: &unittest.Line{T: t}}
	g.u = newUnit(t, "powershift", g.line, &g.log)
	g.u.Law.(*powershift).shift.gear = first
	g.drivePowershift(6, 2, 10, right, counted) // the opening: three shifts
	if codes := g.ask("19 02 0D"); codes != "59 02 FF" {
		t.Fatalf("codes of a healthy drive: %s", codes)
	}
	return g
}

func right(*[4]float64)         {}
func counted(k int) uint8       { return uint8(k) & 15 }
func jumping(k int) uint8       { return uint8(5*k) & 15 }
func halved(w *[4]float64)      { w[3] /= 2 }
func frozenInput(w *[4]float64) { w[0] = 120 }
func frozenSpeed(w *[4]float64) { w[3] = -10 }

func TestPowershiftStoresFaultsOfItsInputs(t *testing.T) {
	for _, c := range []struct {
		name   string
		rise   float64 // of the wheel speed, rad/s
		change func(w *[4]float64)
		next   func(k int) uint8
		code   string
		limp   bool
	}{
		{"half of the output speed", 0.3, halved, counted, "07 30 00", true},
		{"output speed frozen", 1.5, frozenSpeed, counted, "07 20 00", true},
		{"input speed frozen", 0.5, frozenInput, counted, "07 15 00", true},
		{"counter jumps", 0.3, right, jumping, "D4 01 00", false},
	} {
		g := powershiftRig(t)
		g.drivePowershift(0.9, 10, 10+c.rise, c.change, c.next)
		if codes := g.ask("19 02 08"); !strings.HasPrefix(codes, "59 02 FF "+c.code) {
			t.Errorf("%s: %s, want %s\n%s", c.name, codes, c.code, g.log.String())
		}
		if limp := g.ask("22 10 0A"); limp != map[bool]string{true: "62 10 0A 01", false: "62 10 0A 00"}[c.limp] {
			t.Errorf("%s: limp-home %s", c.name, limp)
		}
		if frame := g.ask("19 04 " + c.code + " 01"); !strings.HasPrefix(frame, "59 04 "+c.code) {
			t.Errorf("%s: freeze frame %s", c.name, frame)
		}
	}
}

// In limp-home the unit holds its gear where it would shift up; it shifts when the code is cleared.
func TestPowershiftHoldsItsGearInLimpHome(t *testing.T) {
	g := powershiftRig(t)
	u := g.u.Law.(*powershift)
	before := u.shift.gear
	g.drivePowershift(1, 10, 10.2, halved, counted)
	g.drivePowershift(2, 11.5, 12, right, counted)
	if u.shift.gear != before {
		t.Errorf("gear %v in limp-home, before %v", u.shift.gear, before)
	}
	if a := g.ask("14 FF FF FF"); a != "54" {
		t.Errorf("clear: %s", a)
	}
	g.drivePowershift(2, 12, 12, right, counted)
	if u.shift.gear == before {
		t.Errorf("gear %v after clearing\n%s", u.shift.gear, g.log.String())
	}
	if last := g.u.Close(); !strings.HasPrefix(last, "powershift: ") || strings.Contains(last, "P0730") {
		t.Errorf("last line %q", last)
	}
}

// No code is stored while the gearbox does what the unit wants: slipping shifts are no wrong ratio.
func TestPowershiftIsHealthyInADriveWithShifts(t *testing.T) {
	var log bytes.Buffer
	last := step(t, &unittest.Line{T: t}, &log, 12)
	if text := log.String() + last; !strings.Contains(text, "engaged") || strings.Contains(text, "P0") || strings.Contains(text, "U1") {
		t.Error(text)
	}
}
