package gearbox

import (
	"bytes"
	"encoding/binary"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/brutella/can"

	"lockstep/rt/ecu/unit"
	"lockstep/rt/ecu/unit/unittest"
)

// automaticRig is the unit of the automatic gearbox with speeds and pedals set by the test.
type automaticRig struct {
	t       *testing.T
	u       *unittest.Unit
	line    *unittest.Line
	log     bytes.Buffer
	k       int
	damaged bool    // the checksums of the frames to the unit are wrong
	oil     float64 // temperature of the oil in GearboxOil, degC; 0: the frame is not sent
	more    uint64  // further bits of Pedals
	engine  float64 // speed of the engine, rad/s
	torque  float64 // of the engine, N.m; NaN: EngineTorque is not sent
	distort func(id uint32, data uint64) (changed uint64, send bool)
}

func newAutomaticRig(t *testing.T) *automaticRig {
	t.Helper()
	return newRigOf(t, "automatic")
}

// newRigOf returns the unit called name, automatic or hp8.
func newRigOf(t *testing.T, name string) *automaticRig {
	t.Helper()
	g := &automaticRig{t: t, line: &unittest.Line{T: t}, torque: math.NaN()}
	g.u = newUnit(t, name, g.line, &g.log)
	return g
}

// protectedFrame packs a frame with the checksum and the counter of profile 1A.
func (g *automaticRig) protectedFrame(id uint32, data uint64) can.Frame {
	return g.checkedFrame(id, data|uint64((g.k-1)%15)<<8)
}

// checkedFrame packs a frame with the checksum.
func (g *automaticRig) checkedFrame(id uint32, data uint64) can.Frame {
	f := can.Frame{ID: id, Length: 8}
	binary.LittleEndian.PutUint64(f.Data[:], data)
	if f.Data[0] = unit.CRC1A(&f); g.damaged {
		f.Data[0] ^= 1
	}
	return f
}

// receive sends a protected frame to the unit, changed by distort.
func (g *automaticRig) receive(id uint32, data uint64) {
	f, send := g.protectedFrame(id, data), true
	if g.distort != nil {
		data, send = g.distort(id, data|uint64((g.k-1)%15)<<8)
		f = g.checkedFrame(id, data)
	}
	if send {
		g.u.Receive(unittest.Pack(g.t, f), g.line.Now-1)
	}
}

// inGear is the ratio of the gear that the unit has engaged.
const inGear = 0

// drive steps the unit for a while, with the input shaft at the ratio of a gear.
func (g *automaticRig) drive(seconds float64, lever int, accelerator, out, ratio float64) {
	g.t.Helper()
	for range int(math.Round(seconds * 100)) {
		g.k++
		ratio := ratio
		if ratio == inGear {
			u := g.u.Law.(*automatic)
			ratio = u.ratios[u.gear]
		}
		g.line.Now = time.Duration(g.k) * 10 * time.Millisecond
		g.receive(idPedals, uint64(lever)<<12|uint64(math.Round(accelerator/automaticPedal))<<16|g.more)
		g.receive(idShaftSpeeds, rawSpeed(out*ratio)<<16|rawSpeed(out)<<32|rawSpeed(g.engine)<<48)
		if !math.IsNaN(g.torque) {
			g.receive(idEngineTorque, uint64(uint16(int16(math.Round(g.torque/torqueStep))))<<16)
		}
		if g.oil != 0 {
			g.receive(idGearboxOil, uint64(math.Round((g.oil-oilOffset)/oilStep))<<16)
		}
		if err := g.u.Tick(g.line.Now); err != nil {
			g.t.Fatal(err)
		}
	}
}

// shifts returns the shifts in the log: "N1 12 21".
func (g *automaticRig) shifts() string {
	var list []string
	for _, line := range strings.Split(g.log.String(), "\n") {
		if _, names, ok := strings.Cut(line, ": shift "); ok {
			list = append(list, strings.Replace(names, " -> ", "", 1))
		}
	}
	return strings.Join(list, " ")
}

func TestAutomaticShiftsLaterUnderLoad(t *testing.T) {
	for _, c := range []struct {
		accelerator, out float64
		want             string
	}{
		{0.1, 38, "N1"}, {0.1, 42, "N1 12"}, {0.1, 90, "N1 12 23"}, {0.1, 150, "N1 12 23 34"},
		{1, 150, "N1"}, {1, 210, "N1 12"}, {1, 380, "N1 12 23"},
	} {
		g := newAutomaticRig(t)
		g.drive(2, leverD, c.accelerator, 0, inGear)
		g.drive(8, leverD, c.accelerator, c.out, inGear)
		if got := g.shifts(); got != c.want {
			t.Errorf("accelerator %g, output shaft %g rad/s: shifts %q, want %q", c.accelerator, c.out, got, c.want)
		}
	}
}

func TestAutomaticKickdownShiftsDown(t *testing.T) {
	g := newAutomaticRig(t)
	g.drive(2, leverD, 0.1, 0, 1)
	g.drive(6, leverD, 0.1, 200, 0.72)
	before := g.shifts()
	g.drive(6, leverD, 1, 200, 1.62)
	if got := g.shifts(); before != "N1 12 23 34" || got != "N1 12 23 34 43 32" {
		t.Errorf("shifts %q, after a kick-down %q", before, got)
	}
}

func TestAutomaticShiftsLaterWithColdOil(t *testing.T) {
	for oil, want := range map[float64]string{-10: "N1", 19.9: "N1", 20: "N1 12", 90: "N1 12"} {
		g := newAutomaticRig(t)
		g.oil = oil
		g.drive(2, leverD, 0.1, 0, inGear)
		g.drive(3, leverD, 0.1, 45, inGear)
		if got := g.shifts(); got != want {
			t.Errorf("oil at %g degC, output shaft 45 rad/s: shifts %q, want %q", oil, got, want)
		}
	}
}

// Too hot oil: one gear at a time to the third, which stays at standstill, too, until the oil has cooled down.
func TestAutomaticStaysInThirdGearWhileTheOilIsTooHot(t *testing.T) {
	g := newAutomaticRig(t)
	g.oil = 90
	g.drive(2, leverD, 0.1, 0, inGear)
	g.drive(3, leverD, 0.1, 60, inGear)
	g.oil = 141
	g.drive(4, leverD, 0.1, 60, inGear)
	g.drive(4, leverD, 0.1, 200, inGear)
	g.drive(4, leverD, 1, 0, inGear)
	g.oil = 125
	g.drive(4, leverD, 0.1, 0, inGear)
	if got, want := g.shifts(), "N1 12 23"; got != want {
		t.Errorf("shifts %q, want %q", got, want)
	}
	g.drive(2, leverN, 0.1, 0, inGear)
	g.drive(2, leverD, 0.1, 0, inGear)
	g.oil = 119
	g.drive(6, leverD, 0.1, 0, inGear)
	if got, want := g.shifts(), "N1 12 23 3N N3 32 21"; got != want {
		t.Errorf("shifts %q, want %q", got, want)
	}
	for _, want := range []string{"oil at 141.0 degC: third gear only", "oil at 119.0 degC: all gears"} {
		if !strings.Contains(g.log.String(), want) {
			t.Errorf("the log does not say %q:\n%s", want, &g.log)
		}
	}
}

func TestAutomaticFollowsTheLever(t *testing.T) {
	g := newAutomaticRig(t)
	g.drive(1, leverP, 0, 0, 1)
	g.drive(2, leverR, 0, 0, 1)
	g.drive(2, leverD, 0, -20, -2) // rolls backwards: no forward gear
	g.drive(2, leverD, 0, 0, 1)
	g.drive(2, leverR, 0, 30, 2.86) // rolls forwards: no reverse
	g.drive(2, leverN, 0, 0, 1)
	if got, want := g.shifts(), "NR RN N1 1N"; got != want {
		t.Errorf("shifts %q, want %q", got, want)
	}
}

func TestAutomaticUsesNoFrameWithAWrongChecksum(t *testing.T) {
	g := newAutomaticRig(t)
	g.drive(2, leverD, 0, 0, 1)
	g.damaged = true
	g.drive(0.1, leverR, 0, 0, 1)
	if got := g.shifts(); got != "N1" {
		t.Errorf("shifts %q, want the lever of damaged frames ignored", got)
	}
	g.drive(2, leverD, 0, 0, 1)
	if !strings.Contains(g.log.String(), "no ShaftSpeeds (0x210) for 1s") {
		t.Errorf("the unit does not sleep without valid frames:\n%s", &g.log)
	}
	if last := g.u.Close(); !strings.Contains(last, "420 malformed") {
		t.Errorf("%q; want the 420 damaged frames", last)
	}
}
