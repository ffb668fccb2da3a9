package bench

import (
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"lockstep/io/can"
	"lockstep/io/wire"
)

const wired = `bench: wired
plant: car-abs
period: 5 ms
scheme: complete
buses:
  box:
    io: {udp: "192.0.2.7:5005"}
    units: {Analog0.a0: bar}
    frames: {Wheel0: {values: {teeth: 48}}}
    send: [w_fl -> Wheel0.speed, phi_fl -> Wheel0.angle, p_pedal -> Analog0.a0]
    receive: [BoxPwm0.duty0 -> fl.inlet]
`

func TestBusByWireSendsItsMessagesAtEachTick(t *testing.T) {
	b, err := Parse("wired.yaml", "", []byte(wired))
	if err != nil {
		t.Fatal(err)
	}
	h, err := Prepare(b)
	if err != nil {
		t.Fatal(err)
	}
	m := h.Maps[0]
	if len(m.Tx) != 2 || m.Tx[0].CycleTicks != 1 || m.Tx[1].CycleTicks != 1 || len(m.Rx) != 1 || m.Rx[0].ID != wire.Box+wire.PWMs4 {
		t.Errorf("sent %+v, received %+v", m.Tx, m.Rx)
	}
	if list := h.Loop.Wires; len(list) != 1 || list[0] != "udp:192.0.2.7:5005" {
		t.Errorf("wires %q", list)
	}
	for bus, good := range map[string]bool{"pair": true, "udp:127.0.0.1:7": true, "shm:box": true, "vcan0": false, "udp:127.0.0.1": false} {
		if err := b.SetBuses([]string{bus}); (err == nil) != good {
			t.Errorf("-bus %s: %v", bus, err)
		}
	}
}

func TestMistakesInABusByWireAreNamed(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{`{udp: "192.0.2.7:5005"}`, `{udp: 192.0.2.7}`, `wired.yaml:7:15: bench: bus "box": io: udp: "192.0.2.7" is not ADDRESS:PORT of a box`},
		{`{udp: "192.0.2.7:5005"}`, `{shm: ../x}`, `"../x" is not the name of a file in /dev/shm/`},
		{`{udp: "192.0.2.7:5005"}`, `{tcp: 1}`, `unknown key "tcp"`},
		{`{udp: "192.0.2.7:5005"}`, `{}`, `expected {udp: ADDRESS:PORT} of a box, or {shm: NAME}`},
		{"    units:", "    interface: can0\n    units:", `interface is not possible with io`},
		{"{values: {teeth: 48}}", "{cycle: 5 ms}", "frame Wheel0: the number of teeth is missing (frames: {Wheel0: {values: {teeth: 48}}})"},
		{"phi_fl -> Wheel0.angle", "w_fr -> Digital.d0", "frame Wheel0: a tone wheel needs its angle and its speed"},
		{"p_pedal -> Analog0.a0", "p_pedal -> Analog9.a0", `Analog9`},
		{"teeth: 48", "teeth: 70000", "teeth"},
		{"teeth: 48", "teeth: 48, missing: 49", "missing"},
		{"teeth: 48", "teeth: 0", "frame Wheel0: teeth is 0: a tone wheel has at least 1 tooth"},
	} {
		text := strings.Replace(wired, c.old, c.new, 1)
		b, err := Parse("wired.yaml", "", []byte(text))
		if err == nil {
			_, err = Prepare(b)
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q", c.new, err, c.want)
		}
	}
}

// Each signal of the database is at the place from which package wire takes it, or to which it writes it.
func TestDatabaseOfTheImageFitsItsLayout(t *testing.T) {
	b, err := Parse("wired.yaml", "", []byte(wired))
	if err != nil {
		t.Fatal(err)
	}
	db, err := b.Database(&b.Buses[0])
	if err != nil {
		t.Fatal(err)
	}
	number := func(name, before string) (n int) {
		for _, c := range strings.TrimPrefix(name, before) {
			n = 10*n + int(c-'0')
		}
		return n
	}
	messages := 0
	for _, m := range db.Messages {
		box := strings.HasPrefix(m.Name, "Box")
		for _, s := range m.Signals {
			var data [64]byte
			var image wire.Image
			var place *float64
			var raw uint64
			switch {
			case strings.HasPrefix(s.Name, "frequency"):
				place = &image.PWM[number(s.Name, "frequency")].Frequency
			case strings.HasPrefix(s.Name, "duty"):
				place = &image.PWM[number(s.Name, "duty")].Duty
			case strings.HasPrefix(m.Name, "Wheel"), m.Name == "BoxStatus":
				continue // see TestSignalsOfAToneWheelFitTheDatabase
			case s.Name[0] == 'a':
				place = &image.Analog[number(s.Name, "a")]
			default:
				image.Digital = 1 << number(s.Name, "d")
			}
			if place != nil {
				*place = 0.75
				raw = math.Float64bits(0.75)
			}
			if box {
				if size := image.Message(m.ID, &data); int(size) != m.Len {
					t.Errorf("%s has %d bytes, want %d", m.Name, size, m.Len)
				}
				if got := binary.LittleEndian.Uint64(data[s.Start/64*8:]); place != nil && got != raw || place == nil && got != 1<<s.Start {
					t.Errorf("%s.%s is not at bit %d: %x", m.Name, s.Name, s.Start, data)
				}
				continue
			}
			if raw == 0 {
				raw = 1 << s.Start
			}
			binary.LittleEndian.PutUint64(data[s.Start/64*8:], raw)
			var out wire.Outgoing
			if !out.Put(m.ID, &data) || out.Image != image {
				t.Errorf("%s.%s is not at bit %d", m.Name, s.Name, s.Start)
			}
		}
		messages++
	}
	if messages != 2*9+8+1 {
		t.Errorf("%d messages", messages)
	}
}

func TestSignalsOfAToneWheelFitTheDatabase(t *testing.T) {
	b, err := Parse("wired.yaml", "", []byte(strings.Replace(wired, "{teeth: 48}", "{teeth: 48, weak: 8, missing: 3, field: 5, reversed: 1, state: 2}", 1)))
	if err != nil {
		t.Fatal(err)
	}
	h, err := Prepare(b)
	if err != nil {
		t.Fatal(err)
	}
	y := make([]float64, len(h.Tables.Outputs))
	y[PortIndex(h.Tables.Outputs, "w_fl")], y[PortIndex(h.Tables.Outputs, "phi_fl")] = 12, 34
	var out wire.Outgoing
	for i := range h.Maps[0].Tx {
		var f can.Frame
		if !h.Maps[0].Encode(&f, i, 1, y, false) || !out.Put(f.ID, &f.Data) {
			t.Fatal("the message is refused")
		}
	}
	var want wire.Wheel
	(&wire.Motion{Angle: 34, Speed: 12, Teeth: 48, Missing: 3, Weak: 8, Field: 5, State: wire.ShortToSupply, Reversed: true}).Wheel(&want)
	if out.Finish(); out.Wheel[0] != want {
		t.Errorf("%+v, want %+v", out.Wheel[0], want)
	}
}

// The virtual unit has its wires in real time where the box is on this host. The box of another host belongs to a unit
// of the user, and a unit without wires has no box.
func TestVirtualUnitHasABoxOnThisHostOnly(t *testing.T) {
	for _, c := range []struct {
		unit, buses, box, want string
	}{
		{"esc", "", "127.0.0.1:5005", ""},
		{"esc", "box=udp:[::1]:7000", "[::1]:7000", ""},
		{"esc", "box=udp:192.0.2.8:5005", "", "-bus box=udp:127.0.0.1:5005"},
		{"esc", "box=pair", "", "-bus box=udp:127.0.0.1:5005"},
		{"esc", "brakes=can0 box=udp:192.0.2.8:5005", "", ""},
		{"abs", "", "", "abs has no wires: connect yours (-bus brakes=can0 -bus box=udp:ADDRESS:PORT)"},
	} {
		b, err := Load("esc-wire-bench")
		if err != nil {
			t.Fatal(err)
		}
		b.Unit.Text = c.unit
		if err := b.SetBuses(strings.Fields(c.buses)); err != nil {
			t.Fatal(err)
		}
		if got := b.VirtualBox(); got != c.box {
			t.Errorf("%s %s: box %q, want %q", c.unit, c.buses, got, c.box)
		}
		if err := b.CheckWires(); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s: error %v, want %q", c.unit, c.buses, err, c.want)
		}
		if has := strings.Contains(strings.Join(b.ControlUnitArgs("fd:3"), " "), "-box "+c.box); c.box != "" && !has {
			t.Errorf("%s %s: %v", c.unit, c.buses, b.ControlUnitArgs("fd:3"))
		}
	}
}
