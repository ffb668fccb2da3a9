package gearbox

import (
	"bytes"
	"encoding/binary"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/brutella/can"

	"lockstep/rt/ecu/unit/unittest"
)

// shaftFrame packs ShaftSpeeds, rad/s.
func shaftFrame(in, out float64, counter uint8) can.Frame {
	f := can.Frame{ID: idShafts, Length: 8}
	binary.LittleEndian.PutUint16(f.Data[0:], uint16(math.RoundToEven(in/shaftBit)))
	binary.LittleEndian.PutUint16(f.Data[2:], uint16(math.RoundToEven(out/shaftBit)))
	f.Data[7] = 0xF0 | counter&15
	return f
}

// truckRig is the truck's unit with shaft speeds set by the test.
type truckRig struct {
	t    *testing.T
	u    *unittest.Unit
	line *unittest.Line
	log  bytes.Buffer
	k    int
}

func newTruckRig(t *testing.T) *truckRig {
	t.Helper()
	g := &truckRig{t: t, line: &unittest.Line{T: t}}
	g.u = newUnit(t, "truck", g.line, &g.log)
	return g
}

// drive steps the unit for a while; shaft speeds, rad/s, are functions of the time.
func (g *truckRig) drive(seconds float64, shafts func(t float64) (in, out float64)) {
	g.t.Helper()
	for i := range int(math.Round(seconds * 100)) {
		g.k++
		g.line.Now = time.Duration(g.k) * 10 * time.Millisecond
		in, out := shafts(float64(i) / 100)
		g.u.Receive(unittest.Pack(g.t, shaftFrame(in, out, uint8(g.k-1))), g.line.Now-1)
		if err := g.u.Tick(g.line.Now); err != nil {
			g.t.Fatal(err)
		}
	}
}

// of returns the sent frames with an identifier.
func (g *truckRig) of(id uint32) (list []can.Frame) {
	for _, f := range g.line.All {
		if f.ID == id {
			list = append(list, f)
		}
	}
	return list
}

func still(float64) (in, out float64) { return 0, 0 }

func TestTruckClaimsItsAddressBeforeItSends(t *testing.T) {
	g := newTruckRig(t)
	g.drive(1, still)
	if f := g.line.All[0]; f.ID != idClaim || binary.LittleEndian.Uint64(f.Data[:]) != truckName {
		t.Errorf("the first frame is %08X % X", f.ID, f.Data)
	}
	if d := g.line.At[1] - g.line.At[0]; d < 250*time.Millisecond {
		t.Errorf("it sends %v after its claim", d)
	}
	all := can.Frame{ID: extended | 0x18EAFFF9, Length: 3, Data: [8]byte{0, 0xEE, 0}}
	g.u.Receive(unittest.Pack(t, all), g.line.Now)
	higher := can.Frame{ID: idClaim, Length: 8, Data: [8]byte{7: 0xF0}}
	g.u.Receive(unittest.Pack(t, higher), g.line.Now)
	if n := len(g.of(idClaim)); n != 3 {
		t.Errorf("%d claims after a request and a higher NAME, want 3", n)
	}
	lower := can.Frame{ID: idClaim, Length: 8, Data: [8]byte{1}}
	g.u.Receive(unittest.Pack(t, lower), g.line.Now)
	sent := len(g.line.All)
	g.drive(1, still)
	if n := len(g.of(idNoAddress)); n != 1 || len(g.line.All) != sent {
		t.Errorf("without its address: %d times said, %d frames more", n, len(g.line.All)-sent)
	}
}

func TestTruckShiftsUpWithLessTorqueAndDownWithout(t *testing.T) {
	g := newTruckRig(t)
	g.drive(1, still)
	g.drive(2, func(s float64) (float64, float64) { // second gear is reached 0.6 s after the shift
		if s < 0.6 {
			return 50 * 2.86, 50
		}
		return 50 * 1.62, 50
	})
	limited := 0
	for _, f := range g.of(idTSC1) {
		if f.Data[0]&3 == 3 {
			limited++
			if p := int(f.Data[3]) - 125; p < truckReduced || p > 100 {
				t.Errorf("limit %d %%", p)
			}
		} else if f.Data[3] != 250 {
			t.Errorf("no limit, but %d %%", int(f.Data[3])-125)
		}
	}
	// From the shift until the slip has gone for three readings, and 0.2 s more.
	if limited < 80 || limited > 84 {
		t.Errorf("%d frames with a limit, want 0.82 s of them", limited)
	}
	last := g.of(idClutches)[len(g.of(idClutches))-1]
	if want := [6]byte{80, 0, 0, 90, 180, 0}; [6]byte(last.Data[:6]) != want {
		t.Errorf("pressures in second gear % X, want % X", last.Data[:6], want)
	}
	before := len(g.of(idTSC1))
	g.drive(2, func(float64) (float64, float64) { return 10 * 2.86, 10 })
	for _, f := range g.of(idTSC1)[before:] {
		if f.Data[0]&3 != 0 {
			t.Fatal("the engine is limited on the way down")
		}
	}
	etc2 := g.of(idETC2)
	if selected, current := etc2[len(etc2)-1].Data[0], etc2[len(etc2)-1].Data[3]; selected != 126 || current != 126 {
		t.Errorf("gears %d and %d, want 1", int(selected)-125, int(current)-125)
	}
	u := g.u.Law.(*truck)
	if c := u.Counts; c.Missed != 0 || c.Dropped != 0 || u.shifts != 2 || u.gear != 1 {
		t.Errorf("%v; %d shifts, gear %d; want none missed or dropped, 2 shifts, gear 1", c, u.shifts, u.gear)
	}
}

func TestTruckFallsAsleepWithoutShaftSpeeds(t *testing.T) {
	g := newTruckRig(t)
	g.drive(1, still)
	if err := g.u.Tick(g.line.Now + 1500*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	sent := len(g.line.All)
	if err := g.u.Tick(g.line.Now + 5*time.Second); err != nil {
		t.Fatal(err)
	}
	if len(g.line.All) != sent || !strings.Contains(g.log.String(), "no ShaftSpeeds (0CFF0180) for 1s") {
		t.Errorf("%d frames more; %s", len(g.line.All)-sent, &g.log)
	}
}
