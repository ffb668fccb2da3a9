package record

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lockstep/io/can"
)

// mdfFile is an independent reader of MDF4: it follows the links as the standard
// defines them, and checks every block.
type mdfFile struct {
	t testing.TB
	b []byte
}

func (m mdfFile) word(at int64) int64 { return int64(binary.LittleEndian.Uint64(m.b[at:])) }

// block returns links and data of the block at an offset.
func (m mdfFile) block(id string, at int64) (links []int64, data []byte) {
	m.t.Helper()
	if at%8 != 0 || at < 64 || at+24 > int64(len(m.b)) || string(m.b[at:at+4]) != "##"+id {
		m.t.Fatalf("no block %s at %d", id, at)
	}
	size, n := m.word(at+8), m.word(at+16)
	if at+size > int64(len(m.b)) || 24+8*n > size {
		m.t.Fatalf("block %s at %d: %d bytes, %d links", id, at, size, n)
	}
	for i := range n {
		links = append(links, m.word(at+24+8*i))
	}
	return links, m.b[at+24+8*n : at+size]
}

func (m mdfFile) text(at int64) string {
	if at == 0 {
		return ""
	}
	_, data := m.block("TX", at)
	return strings.TrimRight(string(data), "\x00")
}

// mdfGroup is a group as read: its channels by name.
type mdfGroup struct {
	source    string
	cycles    int64
	flags     uint16
	channels  map[string][]any // float64, uint64, int64 or []byte per record
	units     map[string]string
	flagBytes int // bytes of invalidation bits
	about     map[string]conversion
	invalid   map[string][]bool // per record
}

// conversion is the conversion of a channel.
type conversion struct {
	offset, factor float64 // of a linear one; factor 0: none
	texts          map[float64]string
}

func (m mdfFile) float(data []byte, i int) float64 {
	return math.Float64frombits(binary.LittleEndian.Uint64(data[i:]))
}

// conversion reads a conversion block: linear, or texts of values with a linear one for all others.
func (m mdfFile) conversion(at int64) (c conversion) {
	if at == 0 {
		return c
	}
	links, data := m.block("CC", at)
	refs, n := int(binary.LittleEndian.Uint16(data[4:])), int(binary.LittleEndian.Uint16(data[6:]))
	if len(links) != 4+refs || len(data) != 24+8*n {
		m.t.Fatalf("CC of %d links and %d bytes for %d and %d", len(links), len(data), refs, n)
	}
	switch data[0] {
	case 1:
		return conversion{offset: m.float(data, 24), factor: m.float(data, 32)}
	case 7:
		c = m.conversion(links[4+n])
		c.texts = map[float64]string{}
		for i := range n {
			c.texts[m.float(data, 24+8*i)] = m.text(links[4+i])
		}
		return c
	}
	m.t.Fatalf("conversion of type %d", data[0])
	return c
}

func readMDF(t testing.TB, file []byte) (groups []mdfGroup, events []string) {
	t.Helper()
	m := mdfFile{t, file}
	if string(file[8:16]) != "4.10    " || binary.LittleEndian.Uint16(file[28:]) != 410 {
		t.Fatalf("identification %q", file[:64])
	}
	hd, data := m.block("HD", 64)
	if len(hd) != 6 || len(data) != 32 {
		t.Fatalf("HD of %d links and %d bytes", len(hd), len(data))
	}
	fh, data := m.block("FH", hd[1])
	if len(fh) != 2 || len(data) != 16 {
		t.Fatalf("FH of %d links and %d bytes", len(fh), len(data))
	}
	m.block("MD", fh[1])
	for dg := hd[0]; dg != 0; {
		links, data := m.block("DG", dg)
		if len(links) != 4 || len(data) != 8 || data[0] != 0 {
			t.Fatalf("DG of %d links, data %x", len(links), data)
		}
		groups = append(groups, m.group(links[1], m.rows(links[2])))
		dg = links[0]
	}
	for ev := hd[4]; ev != 0; {
		links, data := m.block("EV", ev)
		if len(links) != 5 || len(data) != 32 || data[0] != 6 || data[1] != 1 {
			t.Fatalf("EV of %d links, data %x", len(links), data)
		}
		at := float64(binary.LittleEndian.Uint64(data[16:])) * math.Float64frombits(binary.LittleEndian.Uint64(data[24:]))
		events = append(events, fmt.Sprintf("%.6f %s %s", at, m.text(links[3]), m.text(links[4])))
		ev = links[0]
	}
	return groups, events
}

// rows joins the data blocks of a list.
func (m mdfFile) rows(dl int64) (rows []byte) {
	for dl != 0 {
		links, data := m.block("DL", dl)
		if len(links) != 2 || len(data) != 16 || binary.LittleEndian.Uint32(data[4:]) != 1 || binary.LittleEndian.Uint64(data[8:]) != uint64(len(rows)) {
			m.t.Fatalf("DL at %d: %d links, data %x, %d bytes before", dl, len(links), data, len(rows))
		}
		_, dt := m.block("DT", links[1])
		rows = append(rows, dt...)
		dl = links[0]
	}
	return rows
}

func (m mdfFile) group(cg int64, rows []byte) (g mdfGroup) {
	links, data := m.block("CG", cg)
	if len(links) != 6 || len(data) != 32 || links[0] != 0 {
		m.t.Fatalf("CG of %d links and %d bytes", len(links), len(data))
	}
	g = mdfGroup{source: m.text(links[2]), cycles: int64(binary.LittleEndian.Uint64(data[8:])),
		flags: binary.LittleEndian.Uint16(data[16:]), channels: map[string][]any{}, units: map[string]string{},
		about: map[string]conversion{}, invalid: map[string][]bool{},
		flagBytes: int(binary.LittleEndian.Uint32(data[28:]))}
	size := int(binary.LittleEndian.Uint32(data[24:])) + int(binary.LittleEndian.Uint32(data[28:]))
	if int(g.cycles)*size > len(rows) {
		m.t.Fatalf("%d records of %d bytes in %d bytes", g.cycles, size, len(rows))
	}
	m.channels(&g, links[1], size, rows[:int(g.cycles)*size])
	if si := links[3]; si != 0 {
		links, data := m.block("SI", si)
		if len(links) != 3 || len(data) != 8 || data[0] != 2 || data[1] != 2 {
			m.t.Errorf("SI of %d links, data %x", len(links), data)
		}
	}
	return g
}

func (m mdfFile) channels(g *mdfGroup, cn int64, size int, rows []byte) {
	for cn != 0 {
		links, data := m.block("CN", cn)
		if len(links) != 8 || len(data) != 72 {
			m.t.Fatalf("CN of %d links and %d bytes", len(links), len(data))
		}
		name := m.text(links[2])
		at, bits := int(binary.LittleEndian.Uint32(data[4:])), int(binary.LittleEndian.Uint32(data[8:]))
		if data[3] != 0 || data[12]&2 == 0 && binary.LittleEndian.Uint32(data[16:]) != 0 { // offset in the byte, invalidation bit
			m.t.Errorf("channel %s: bit %d, invalidation bit %d", name, data[3], data[16])
		}
		if (data[0] == 2) != (name == "time") || at+bits/8 > size {
			m.t.Errorf("channel %s: type %d, byte %d, %d bits in %d bytes", name, data[0], at, bits, size)
		}
		g.units[name], g.about[name] = m.text(links[6]), m.conversion(links[4])
		if bit := int(binary.LittleEndian.Uint32(data[16:])); data[12]&2 != 0 {
			for r := 0; r < len(rows); r += size {
				flags := rows[r+size-g.flagBytes:]
				g.invalid[name] = append(g.invalid[name], flags[bit/8]>>(bit%8)&1 != 0)
			}
		}
		for r := 0; r < len(rows); r += size {
			v := rows[r+at : r+at+bits/8]
			switch data[2] {
			case 0:
				word := make([]byte, 8)
				copy(word, v)
				g.channels[name] = append(g.channels[name], binary.LittleEndian.Uint64(word))
			case 2:
				g.channels[name] = append(g.channels[name], int64(binary.LittleEndian.Uint64(v)))
			case 4:
				g.channels[name] = append(g.channels[name], math.Float64frombits(binary.LittleEndian.Uint64(v)))
			case 10:
				g.channels[name] = append(g.channels[name], slices.Clone(v))
			default:
				m.t.Errorf("channel %s: data type %d", name, data[2])
			}
		}
		m.channels(g, links[1], size, rows)
		cn = links[0]
	}
}

// exported exports entries and returns the file as it is before and after Close.
func exported(t testing.TB, format string, h *Header, entries []Entry) (open, closed []byte) {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "export"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	x, err := NewExporter(format, f, h)
	if err != nil {
		t.Fatal(err)
	}
	for i := range entries {
		if err := x.Write(&entries[i]); err != nil {
			t.Fatal(err)
		}
	}
	open, err = os.ReadFile(f.Name())
	err = errors.Join(err, x.Close())
	closed, err2 := os.ReadFile(f.Name())
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	return open, closed
}

// drive returns a record of n ticks with frames of every kind and an event.
func drive(h *Header, n int64) (list []Entry) {
	for k := range n {
		list = append(list, Entry{Kind: TickEntry, Tick: Tick{Index: k, U: []float64{float64(k) / 3}, Y: []float64{math.Sqrt(float64(k)), -float64(k)}, Phases: []int64{k - 7}}})
		f := Frame{Bus: uint8(k % 2), Sent: k%3 == 0, Tick: k, Time: h.At(k) + 1_234_000}
		f.ID, f.Len = uint32(k)%0x800, uint8(k%9)
		switch k % 5 {
		case 1:
			f.ID = uint32(k*7919)&can.MaskEFF | can.EFF
		case 2:
			f.Flags, f.Len = can.FlagFDF|uint8(k)&3, can.Lengths[1+k%15]
		case 3:
			f.ID |= can.RTR
		}
		if k%50 == 49 {
			f.Frame = can.Frame{ID: can.ERR | 4, Len: 8}
		}
		if f.ID&can.RTR == 0 {
			for i := range f.Len {
				f.Data[i] = uint8(k + int64(i))
			}
		}
		list = append(list, Entry{Kind: FrameEntry, Frame: f})
	}
	return append(list, Entry{Kind: EventEntry, Event: Event{Kind: Overrun, Tick: n, Text: "2 grid points lost <here> & there"}})
}

func TestMDF4HoldsEveryValueFrameAndEvent(t *testing.T) {
	h := header(1, 2, 1)
	const n = 60_000 // several blocks per group
	list := drive(&h, n)
	open, closed := exported(t, "mdf4", &h, list)
	if name, flags := string(open[:8]), binary.LittleEndian.Uint16(open[60:]); name != "UnFinMF " || flags != 1 {
		t.Errorf("before Close the file is %q, flags %d", name, flags)
	}
	if name, flags := string(closed[:8]), binary.LittleEndian.Uint16(closed[60:]); name != "MDF     " || flags != 0 {
		t.Errorf("after Close the file is %q, flags %d", name, flags)
	}
	before, _ := readMDF(t, open)
	groups, events := readMDF(t, closed)
	if len(groups) != 4 || before[0].cycles == 0 || before[0].cycles >= n || groups[0].cycles != n {
		t.Fatalf("%d groups; %d ticks before Close, %d after; want 4 and some and %d", len(groups), before[0].cycles, groups[0].cycles, n)
	}
	if want := []string{fmt.Sprintf("%.6f overrun tick %d: 2 grid points lost <here> & there", n*0.005, n)}; !slices.Equal(events, want) {
		t.Errorf("events %q, want %q", events, want)
	}
	ticks, bus := groups[0], map[string]mdfGroup{"CAN_DataFrame": groups[1], "CAN_RemoteFrame": groups[2], "CAN_ErrorFrame": groups[3]}
	if ticks.units["u0"] != "Pa" || ticks.units["y1"] != "rad/s" || ticks.units["time"] != "s" {
		t.Errorf("units %v", ticks.units)
	}
	at := map[string]int{}
	for _, e := range list {
		switch e.Kind {
		case TickEntry:
			k := e.Tick.Index
			got := fmt.Sprint(ticks.channels["time"][k], ticks.channels["u0"][k], ticks.channels["y0"][k], ticks.channels["y1"][k], ticks.channels["phase phase 0"][k], ticks.channels["flags"][k])
			if want := fmt.Sprint(float64(k*5e6)/1e9, e.Tick.U[0], e.Tick.Y[0], e.Tick.Y[1], e.Tick.Phases[0], 0); got != want {
				t.Fatalf("tick %d: %s, want %s", k, got, want)
			}
		case FrameEntry:
			checkMDFFrame(t, &h, &e.Frame, bus, at)
		}
	}
	for name, g := range bus {
		if int(g.cycles) != at[name] || g.flags != 6 || g.source != "CAN" {
			t.Errorf("%s: %d records, flags %d, from %q; want %d, 6, CAN", name, g.cycles, g.flags, g.source, at[name])
		}
	}
}

// checkMDFFrame compares the next record of a frame's group.
func checkMDFFrame(t *testing.T, h *Header, f *Frame, bus map[string]mdfGroup, at map[string]int) {
	t.Helper()
	name := "CAN_DataFrame"
	switch {
	case f.ID&can.ERR != 0:
		name = "CAN_ErrorFrame"
	case f.ID&can.RTR != 0:
		name = "CAN_RemoteFrame"
	}
	i := at[name]
	at[name]++
	c := bus[name].channels
	value := func(part string) any { return c[name+"."+part][i] }
	id, ide := uint64(f.ID&can.MaskSFF), uint64(0)
	if f.ID&can.EFF != 0 {
		id, ide = uint64(f.ID&can.MaskEFF|1<<31), 1
	}
	got := fmt.Sprint(c["time"][i], value("BusChannel"), value("ID"), value("IDE"), value("DLC"), value("Dir"))
	want := fmt.Sprint(float64(f.Time-h.Start)/1e9, f.Bus+1, id, ide, can.DLC(f.Len), map[bool]int{true: 1}[f.Sent])
	if name == "CAN_RemoteFrame" && value("DataLength") != uint64(0) {
		t.Fatalf("%s %d has %v bytes", name, i, value("DataLength"))
	}
	if name != "CAN_RemoteFrame" {
		got += fmt.Sprint(value("DataLength"), value("DataBytes"), value("EDL"), value("BRS"), value("ESI"))
		want += fmt.Sprint(f.Len, f.Data[:], map[bool]int{true: 1}[f.FD()], f.Flags&1, f.Flags>>1&1)
	}
	if got != want {
		t.Fatalf("%s %d: %s, want %s", name, i, got, want)
	}
}

// TestMDF4HasTheBlocksOfTheStandard holds the layout: identifier, length and number of
// links of every block of a small file, in the order of the file, ASAM MDF 4.1.
func TestMDF4HasTheBlocksOfTheStandard(t *testing.T) {
	h := header(1, 0, 0)
	h.Run = "r"
	_, file := exported(t, "mdf4", &h, []Entry{
		{Kind: TickEntry, Tick: Tick{Index: 1, U: []float64{2}}},
		{Kind: EventEntry, Event: Event{Kind: Note, Text: "x"}},
	})
	if got, want := fmt.Sprintf("%x", file[:64]), fmt.Sprintf("%x", "MDF     4.10    lockstep")+"00000000"+"9a01"+strings.Repeat("00", 34); got != want {
		t.Errorf("identification\n%s, want\n%s", got, want)
	}
	m := mdfFile{t, file}
	count := map[string]int{}
	for at := int64(64); at < int64(len(file)); {
		size := m.word(at + 8)
		count[fmt.Sprintf("%s %d bytes %d links", file[at+2:at+4], size, m.word(at+16))]++
		at += (size + 7) / 8 * 8
	}
	for name := range count {
		if strings.HasPrefix(name, "TX ") || strings.HasPrefix(name, "MD ") { // as long as their texts
			delete(count, name)
		}
	}
	// three channels of ticks; three groups of frames with time, a structure and 10, 6 and 10 parts
	want := map[string]int{"HD 104 bytes 6 links": 1, "FH 56 bytes 2 links": 1, "DG 64 bytes 4 links": 4, "CG 104 bytes 6 links": 4,
		"CN 160 bytes 8 links": 3 + 12 + 8 + 12, "SI 56 bytes 3 links": 3, "DT 42 bytes 0 links": 1, "DL 56 bytes 2 links": 1, "EV 96 bytes 5 links": 1}
	if !maps.Equal(count, want) {
		t.Errorf("blocks\n%v, want\n%v", count, want)
	}
}
