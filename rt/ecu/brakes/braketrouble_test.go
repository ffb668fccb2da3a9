package brakes

import (
	"testing"
	"time"

	"lockstep/rt/ecu/unit/unittest"
)

// A sensor that stands while the others turn is wrong; wheels that lock under the brake are not.
func TestAbsFindsASensorThatStands(t *testing.T) {
	g := newAbsRig(t, 28, 0.3)
	u := g.u.Law.(*abs)
	for range 200 {
		g.cycle()
	}
	roll := func(w [4]float64, cycles int) {
		for range cycles {
			g.k++
			g.line.Now = time.Duration(g.k) * brakeCycle
			g.u.Receive(unittest.Pack(t, wheelFrame(w, uint8(g.k-1))), g.line.Now-1)
			g.u.Receive(unittest.Pack(t, chassisFrame(g.pedal, uint8(g.k-1))), g.line.Now-1)
			if err := g.u.Tick(g.line.Now); err != nil {
				t.Fatal(err)
			}
		}
	}
	g.pedal = 100
	roll([4]float64{0, 90, 90, 90}, 300)
	g.pedal = 0
	roll([4]float64{90, 90, 90, 90}, 300)
	if list := u.Memory.Stored(); len(list) != 0 {
		t.Errorf("codes %v of a wheel that locked under the brake", list)
	}
	roll([4]float64{90, 90, 90, 0}, 90)
	if list := u.Memory.Stored(); len(list) != 0 {
		t.Errorf("codes %v after 0.45 s", list)
	}
	roll([4]float64{90, 90, 90, 0}, 20)
	if list := u.Memory.Stored(); len(list) != 1 || list[0].Name() != "C0050" || list[0].Number != 0x405000 {
		t.Errorf("codes %v, want C0050", list)
	}
}
