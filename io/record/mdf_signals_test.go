package record

import (
	"bytes"
	"crypto/md5"
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"testing"

	"lockstep/io/can"
	"lockstep/io/messages"
)

// gearbox is a database with every kind of signal.
func gearbox(t *testing.T) *messages.Database {
	t.Helper()
	db := &messages.Database{Messages: []messages.Message{{Name: "Gear", ID: 0x110, Len: 24, FD: true, Signals: []messages.Signal{
		{Name: "speed", Start: 0, Len: 13, Signed: true, Factor: 0.5, Offset: -3, Unit: "rpm", Comment: "of the shaft"},
		{Name: "torque", Start: 23, Len: 12, BigEndian: true, Factor: 1, Unit: "N·m"},
		{Name: "gear", Start: 32, Len: 3, Factor: 2, Values: []messages.Value{{Raw: 0, Text: "neutral"}, {Raw: 7, Text: "<reverse>"}}},
		{Name: "selector", Start: 40, Len: 2, Factor: 1, Multiplexor: true},
		{Name: "oil", Start: 48, Len: 8, Factor: 1, Unit: "degC", MuxedBy: "selector", Ranges: [][2]uint64{{0, 0}}},
		{Name: "water", Start: 48, Len: 8, Factor: 1, Offset: -40, Unit: "degC", MuxedBy: "selector", Ranges: [][2]uint64{{1, 3}}},
		{Name: "exact", Start: 64, Len: 64, Factor: 1},
		{Name: "ratio", Start: 128, Len: 32, Float: true, Factor: 10},
		{Name: "fine", Start: 160, Len: 32, Signed: true, Factor: 1e-3},
	}}}}
	if err := db.Check(); err != nil {
		t.Fatal(err)
	}
	return db
}

// The values are compared with those of package messages, the texts and units with the database.
func TestMDF4HoldsTheSignalsOfTheBus(t *testing.T) {
	h := header(1, 2, 1)
	h.Outputs[1].Texts, h.Outputs[1].FirstText = []string{"backward", "stuck"}, -1
	h.Outputs[1].Unit, h.Outputs[1].Declared = "1", ""
	h.Files = []File{{Role: "bench", Name: "b.yaml", Text: []byte("bench: b")}, {Role: "dbc", Name: "gear.dbc", Text: []byte("BU_: A\r\n")},
		{Role: "dbc", Name: "gear.dbc", Text: []byte("BU_: A\r\n")}}
	h.Buses[1].Layout = gearbox(t)
	m := &h.Buses[1].Layout.Messages[0]
	list := drive(&h, 100)
	var frames []can.Frame
	for k := range int64(500) {
		f := Frame{Bus: 1, Sent: k%2 == 0, Tick: k, Time: h.At(k), Frame: can.Frame{ID: 0x110, Len: 24, Flags: can.FlagFDF}}
		for i := range f.Data[:24] {
			f.Data[i] = byte(k*31 + int64(i)*97)
		}
		if k%10 == 9 {
			f.Len = 8 // without its last signals
		}
		frames = append(frames, f.Frame)
		list = append(list, Entry{Kind: FrameEntry, Frame: f})
	}
	_, file := exported(t, "mdf4", &h, list)
	groups, _ := readMDF(t, file)
	if len(groups) != 5 {
		t.Fatalf("%d groups, want 4 and one of the message", len(groups))
	}
	g := groups[4]
	if g.source != h.Buses[1].Name+".Gear" || g.cycles != 500 {
		t.Errorf("group %q of %d records", g.source, g.cycles)
	}
	for i := range m.Signals {
		s := &m.Signals[i]
		name := "Gear." + s.Name
		c := g.about[name]
		if g.units[name] != s.Unit || len(c.texts) != len(s.Values) {
			t.Errorf("%s: unit %q, %d texts", name, g.units[name], len(c.texts))
		}
		for _, v := range s.Values {
			if c.texts[float64(v.Raw)] != v.Text {
				t.Errorf("%s: the text of %d is %q, want %q", name, v.Raw, c.texts[float64(v.Raw)], v.Text)
			}
		}
		if c.factor == 0 {
			c.factor = 1
		}
		for k := range frames {
			f := &frames[k]
			bits, _ := s.Bits()
			held := m.Present(s, &f.Data) && bits.Bytes() <= int(f.Len)
			if g.invalid[name][k] == held {
				t.Fatalf("%s of frame %d is marked as invalid: %t, held: %t", name, k, g.invalid[name][k], held)
			}
			raw := fmt.Sprint(g.channels[name][k])
			var v float64
			fmt.Sscan(raw, &v)
			want := s.Value(s.Raw(&f.Data))
			if got := float64(v*c.factor) + c.offset; held && !(got == want || math.IsNaN(got) && math.IsNaN(want)) {
				t.Fatalf("%s of frame %d is %v, want %v", name, k, got, want)
			}
			if exact := fmt.Sprint(binary.LittleEndian.Uint64(f.Data[8:])); s.Name == "exact" && raw != exact {
				t.Fatalf("64 bits are %s, want %s", raw, exact)
			}
		}
	}
	if got := groups[0].about["y1"].texts; got[-1] != "backward" || got[0] != "stuck" || len(got) != 2 {
		t.Errorf("texts of a mode: %v", got)
	}
	checkAttachment(t, mdfFile{t, file}, h.Files[1])

	h.DropDeclaredUnits()
	for i := range h.Buses {
		h.Buses[i].Layout = nil
	}
	_, file = exported(t, "mdf4", &h, list)
	if groups, _ := readMDF(t, file); len(groups) != 4 {
		t.Errorf("%d groups without a database, want 4", len(groups))
	}
}

// A sender has another address than in the database, or another priority, and a message of 20 bytes comes
// in packets.
func TestMDF4FindsMessagesOfJ1939ByTheirParameterGroup(t *testing.T) {
	signal := []messages.Signal{{Name: "s", Len: 8, Factor: 1}}
	db := &messages.Database{Messages: []messages.Message{
		{Name: "Any", ID: can.EFF | 0x0CF004FE, Len: 8, J1939: true, Signals: signal},
		{Name: "Engine", ID: can.EFF | 0x0CF00400, Len: 8, J1939: true, Signals: signal},
		{Name: "Control", ID: can.EFF | 0x0C0000FE, Len: 8, J1939: true, Signals: signal}, // PDU1, to address 0
		{Name: "Long", ID: can.EFF | 0x18FEE3FE, Len: 20, J1939: true, Signals: []messages.Signal{{Name: "s", Start: 152, Len: 8, Factor: 1}}},
		{Name: "Plain", ID: can.EFF | 0x18FFFFFE, Len: 8, Signals: signal},
	}}
	h := header(1, 2, 1)
	h.Buses[0].Layout = db
	var list []Entry
	want := map[string]string{}
	for i, c := range []struct {
		id    uint32
		group string
	}{
		{0x0CF00400, "Engine"}, {0x18F00400, "Engine (0x18F00400)"}, {0x0CF00403, "Any (0xCF00403)"}, {0x0CF004FE, "Any"},
		{0x0C000317, "Control (0xC000317)"}, {0x18FEE300, "Long (0x18FEE300)"}, {0x18FFFF00, ""}, {0x0CF00500, ""}, {0x00F00400, "Engine (0xF00400)"},
	} {
		f := Frame{Tick: int64(i), Frame: can.Frame{ID: can.EFF | c.id, Len: 8, Data: [64]byte{byte(i), 19: 99}}}
		value := fmt.Sprint(i)
		if c.id == 0x18FEE300 {
			f.Len, f.Flags, value = 20, can.FlagLong, "99"
		}
		list = append(list, Entry{Kind: FrameEntry, Frame: f})
		if c.group != "" {
			want[h.Buses[0].Name+"."+c.group] = value
		}
	}
	_, file := exported(t, "mdf4", &h, list)
	groups, _ := readMDF(t, file)
	for _, g := range groups[4:] {
		name, _, _ := strings.Cut(strings.TrimPrefix(g.source, h.Buses[0].Name+"."), " ")
		if got := fmt.Sprint(g.channels[name+".s"]...); got != want[g.source] || g.invalid[name+".s"][0] {
			t.Errorf("group %q has %s, want %s", g.source, got, want[g.source])
		}
		delete(want, g.source)
	}
	if len(want) > 0 {
		t.Errorf("groups %v are missing", want)
	}
	for _, format := range []string{"candump", "mdf4"} { // the packets are frames, the message is none
		_, file := exported(t, format, &h, list)
		if frames, err := readFrames(t, file); err != nil || len(frames) != len(list)-1 {
			t.Errorf("%s: %d frames, %v; want %d", format, len(frames), err, len(list)-1)
		}
	}
}

// checkAttachment checks that a file is the only attachment.
func checkAttachment(t *testing.T, m mdfFile, want File) {
	t.Helper()
	hd, _ := m.block("HD", 64)
	links, data := m.block("AT", hd[3])
	le := binary.LittleEndian
	sum := md5.Sum(want.Text)
	if links[0] != 0 || m.text(links[1]) != want.Name || le.Uint16(data) != 5 || !bytes.Equal(data[8:24], sum[:]) ||
		le.Uint64(data[24:]) != uint64(len(want.Text)) || le.Uint64(data[32:]) != uint64(len(want.Text)) || !bytes.Equal(data[40:], want.Text) {
		t.Errorf("attachment %q, links %d, data %x", m.text(links[1]), links, data)
	}
}
