package gearbox

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/brutella/can"

	"lockstep/rt/ecu/unit/unittest"
)

// wrongShafts steps the truck's unit with frames that the test changes.
func (g *truckRig) wrongShafts(seconds float64, in, out float64, change func(f *can.Frame)) {
	g.t.Helper()
	for range int(seconds * 100) {
		g.k++
		g.line.Now += 10e6
		f := shaftFrame(in, out, uint8(g.k-1))
		change(&f)
		g.u.Receive(unittest.Pack(g.t, f), g.line.Now-1)
		if err := g.u.Tick(g.line.Now); err != nil {
			g.t.Fatal(err)
		}
	}
}

// request asks for a group from address 0x21, and returns the diagnostic frames that the unit sends within 0.3 s.
func (g *truckRig) request(pgn uint32, to uint32) (list []string) {
	g.t.Helper()
	from := len(g.line.All)
	f := can.Frame{ID: extended | 0x18EA0021 | to<<8, Length: 3}
	binary.LittleEndian.PutUint32(f.Data[:], pgn)
	g.u.Receive(unittest.Pack(g.t, f), g.line.Now)
	g.drive(0.3, func(float64) (float64, float64) { return 20, 20 })
	for _, f := range g.line.All[from:] {
		switch f.ID &^ extended {
		case 0x18FECA03, 0x18FECB03, 0x18FECD03, 0x18E8FF03, 0x1CECFF03, 0x1CEBFF03:
			list = append(list, fmt.Sprintf("%08X %X", f.ID&^extended, f.Data))
		}
	}
	return list
}

func TestTruckTellsItsTroubleCodesOnJ1939(t *testing.T) {
	g := newTruckRig(t)
	g.drive(2, func(float64) (float64, float64) { return 20 * 2.86, 20 })
	dm1 := func() []can.Frame { return g.of(extended | 0x18FECA03) }
	if n := len(dm1()); n != 0 {
		t.Errorf("%d DM1 without a code", n)
	}
	// The output speed is an error, 0xFE00: SPN 191, FMI 19, after 0.5 s; DM1 every second; third gear.
	g.wrongShafts(0.95, 20*2.86, 20, func(f *can.Frame) { f.Data[2], f.Data[3] = 0, 0xFE })
	if list := dm1(); len(list) != 1 || fmt.Sprintf("%X", list[0].Data) != "04FFBF001301FFFF" {
		t.Errorf("DM1 %X", list)
	}
	g.drive(2.5, func(float64) (float64, float64) { return 20, 20 })
	if u := g.u.Law.(*truck); u.gear != limpGear {
		t.Errorf("gear %d in limp-home", u.gear)
	}
	if list := dm1(); len(list) != 3 || fmt.Sprintf("%X", list[2].Data) != "04FF00000000FFFF" {
		t.Errorf("DM1 %X; want one more while the code is active and one when it is not", list)
	}
	for _, c := range []struct {
		what    string
		pgn, to uint32
		want    string
	}{
		{"DM2", 0xFECB, 3, "[18FECB03 04FFBF001301FFFF]"},
		{"DM4, gear 1, 20 rad/s and 20·2.86 rad/s in 0.125 rpm", 0xFECD, 0xFF,
			"[1CECFF03 20120003FFCDFE00 1CEBFF03 0111BF001301FFFF 1CEBFF03 02FFFFFFFFFFFF7E 1CEBFF03 03F8051211FFFFFF]"},
		{"DM11 clears no code that is not active", 0xFED3, 3, "[18E8FF03 00FFFFFF21D3FE00]"},
		{"DM2 after it", 0xFECB, 3, "[18FECB03 04FFBF001301FFFF]"},
		{"DM3", 0xFECC, 3, "[18E8FF03 00FFFFFF21CCFE00]"},
		{"DM2 after DM3", 0xFECB, 3, "[18FECB03 00FF00000000FFFF]"},
		{"another group", 0xFEE5, 3, "[]"},
	} {
		if got := fmt.Sprint(g.request(c.pgn, c.to)); got != c.want {
			t.Errorf("%s: %s, want %s", c.what, got, c.want)
		}
	}
}

// A gear that does not respond: the input shaft turns faster than the gear lets it.
func TestTruckFindsAGearThatDoesNotRespond(t *testing.T) {
	g := newTruckRig(t)
	g.drive(2, func(float64) (float64, float64) { return 20 * 2.86, 20 })
	g.drive(0.6, func(float64) (float64, float64) { return 20*2.86 + 15, 20 })
	if u := g.u.Law.(*truck); len(u.Memory.Stored()) != 1 || u.Memory.Stored()[0].Number != codeTruckGear || !u.Memory.LimpHome() {
		t.Errorf("codes %v", u.Memory.Stored())
	}
	if last := g.u.Close(); last[len(last)-len("; trouble codes SPN 523 FMI 7"):] != "; trouble codes SPN 523 FMI 7" {
		t.Errorf("last line %q", last)
	}
}

// EBC1 is not missing before it has come once.
func TestTruckFindsMissingEBC1(t *testing.T) {
	g := newTruckRig(t)
	g.drive(3, still)
	u := g.u.Law.(*truck)
	if n := len(u.Memory.Stored()); n != 0 {
		t.Errorf("%d codes", n)
	}
	g.u.Receive(unittest.Pack(t, can.Frame{ID: idEBC1, Length: 8}), g.line.Now)
	g.drive(1.2, still)
	if list := u.Memory.Stored(); len(list) != 1 || list[0].Number != codeTruckNetwork {
		t.Errorf("codes %v", list)
	}
}
