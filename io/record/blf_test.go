package record

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"fmt"
	"io"
	"testing"
	"time"

	"lockstep/io/can"
)

// blfObjectRead is an object of a BLF as an independent reader sees it: by the offsets of Vector's
// structures VBLObjectHeader, VBLCANMessage, VBLCANFDMessage64's predecessor VBLCANFDMessage and
// VBLCANErrorFrameExt.
type blfObjectRead struct {
	kind uint32
	at   uint64 // ns since the start
	body []byte
}

// readBLF returns the objects of a file.
func readBLF(t *testing.T, file []byte) (list []blfObjectRead) {
	t.Helper()
	le := binary.LittleEndian
	var objects []byte
	for at := 144; at < len(file); {
		size := int(le.Uint32(file[at+8:]))
		z, err := zlib.NewReader(bytes.NewReader(file[at+32 : at+size]))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(z)
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, body...)
		at += size + size%4
	}
	for at := 0; at < len(objects); {
		b := objects[at:]
		size := int(le.Uint32(b[8:]))
		if string(b[:4]) != "LOBJ" || le.Uint16(b[4:]) != 32 || le.Uint32(b[16:]) != 2 {
			t.Fatalf("object %d: %x", len(list), b[:32])
		}
		list = append(list, blfObjectRead{le.Uint32(b[12:]), le.Uint64(b[24:]), b[32:size]})
		at += size
	}
	return list
}

// blfFrame returns the frame of an object, as text.
func blfFrame(o blfObjectRead) string {
	le, b := binary.LittleEndian, o.body
	flags := func(b byte) string { return fmt.Sprintf("sent %t, remote %t", b&1 != 0, b&0x80 != 0) }
	switch o.kind {
	case 1:
		return fmt.Sprintf("%d: channel %d, id %x, dlc %d, %s, % x", o.at, le.Uint16(b), le.Uint32(b[4:]), b[3], flags(b[2]), b[8:16])
	case 100:
		return fmt.Sprintf("%d: channel %d, id %x, dlc %d, %s, fd %b of %d bytes, % x",
			o.at, le.Uint16(b), le.Uint32(b[4:]), b[3], flags(b[2]), b[13], b[14], b[20:84])
	case 73:
		return fmt.Sprintf("%d: channel %d, error % x", o.at, le.Uint16(b), b[24:32])
	}
	return fmt.Sprintf("%d: kind %d", o.at, o.kind)
}

func TestBLFHoldsEveryFrameAsItWas(t *testing.T) {
	h := header(1, 2, 1)
	entries := drive(&h, 5000)
	_, file := exported(t, "blf", &h, entries)
	list, i := readBLF(t, file), 0
	for _, e := range entries {
		if e.Kind != FrameEntry {
			continue
		}
		f, o := e.Frame, list[i]
		i++
		id := f.ID & 0x7FF
		if f.ID&can.EFF != 0 {
			id = f.ID&0x1FFFFFFF | 0x80000000
		}
		at := uint64(f.Time - h.Start/1e6*1e6) // since the start in the head, a whole millisecond
		flags := fmt.Sprintf("sent %t, remote %t", f.Sent, f.ID&can.RTR != 0)
		want := fmt.Sprintf("%d: channel %d, id %x, dlc %d, %s, % x", at, f.Bus+1, id, f.Len, flags, f.Data[:8])
		switch {
		case f.ID&can.ERR != 0:
			want = fmt.Sprintf("%d: channel %d, error % x", at, f.Bus+1, f.Data[:8])
		case f.FD():
			bits := 1 + 2*(f.Flags&can.FlagBRS) + 2*(f.Flags&can.FlagESI) // EDL, BRS, ESI
			want = fmt.Sprintf("%d: channel %d, id %x, dlc %d, %s, fd %b of %d bytes, % x", at, f.Bus+1, id, can.DLC(f.Len), flags, bits, f.Len, f.Data[:])
		}
		if got := blfFrame(o); got != want {
			t.Fatalf("frame %d is\n%s, want\n%s", i, got, want)
		}
	}
	if i != 5000 || len(list) != 5001 || list[5000].kind != 96 {
		t.Errorf("%d frames, %d objects; want 5000 and an event", i, len(list))
	}
}

// The event of drive is at tick n: n periods after the start.
func TestBLFHasItsStartItsEndAndItsEvents(t *testing.T) {
	defer func(l *time.Location) { time.Local = l }(time.Local)
	time.Local = time.FixedZone("here", -5*3600-1800)
	h := header(1, 2, 1)
	_, file := exported(t, "blf", &h, drive(&h, 400))
	le := binary.LittleEndian
	for _, c := range []struct {
		name string
		at   int
		ns   int64
	}{{"start", 40, h.Start}, {"end", 56, h.Start + 400*h.Period}} {
		var v [8]int // SYSTEMTIME: year, month, day of the week, day, hour, minute, second, ms
		for i := range v {
			v[i] = int(le.Uint16(file[c.at+2*i:]))
		}
		got, want := time.Date(v[0], time.Month(v[1]), v[3], v[4], v[5], v[6], v[7]*1e6, time.Local), time.Unix(0, c.ns).Truncate(time.Millisecond)
		if !got.Equal(want) || time.Weekday(v[2]) != want.Weekday() {
			t.Errorf("%s %v, day %d of the week; want %v", c.name, got, v[2], want)
		}
	}
	list := readBLF(t, file)
	e := list[len(list)-1]
	n := []int{int(le.Uint32(e.body[16:])), int(le.Uint32(e.body[20:])), int(le.Uint32(e.body[24:]))}
	text := e.body[40:]
	if e.kind != 96 || e.at != uint64(400*h.Period+h.Start%1e6) || len(text) != n[0]+n[1]+n[2] {
		t.Fatalf("the event is of kind %d at %d ns, with %d bytes of text for %v", e.kind, e.at, len(text), n)
	}
	if got := string(text[:n[0]]) + "|" + string(text[n[0]:n[0]+n[1]]) + "|" + string(bytes.TrimRight(text[n[0]+n[1]:], " ")); got != "lockstep|overrun|2 grid points lost <here> & there" {
		t.Errorf("the event says %q", got)
	}
}

// Events before the start and of several kinds, ticks with flags, and a remote and an error frame on
// another bus than the first: the groups and the list of markers have members beyond their first.
func TestMDF4HoldsSeveralEventsAndGroups(t *testing.T) {
	h := header(1, 1, 0)
	var list []Entry
	var want []string
	for i, k := range []EventKind{Overrun, Fault, Note} {
		at := h.Start + int64(i-1)*250e6
		list = append(list, Entry{Kind: EventEntry, Event: Event{Kind: k, Tick: int64(i), Time: at, Text: fmt.Sprint("text ", i)}},
			Entry{Kind: TickEntry, Tick: Tick{Index: int64(i), Flags: Flags(257 * i), U: []float64{1}, Y: []float64{float64(i) / 7}}},
			Entry{Kind: FrameEntry, Frame: Frame{Bus: uint8(i), Time: h.Start + int64(i)*1e6, Sent: i == 1, Frame: can.Frame{ID: 0x100 + uint32(i) | can.RTR, Len: 8}}},
			Entry{Kind: FrameEntry, Frame: Frame{Bus: uint8(2 * i), Time: h.Start + int64(i)*2e6, Frame: can.Frame{ID: can.ERR | 4, Len: 8, Data: [64]byte{byte(i)}}}})
		want = append(want, fmt.Sprintf("%.6f %s tick %d: text %d", max(0, float64(i-1)*0.25), k, i, i))
	}
	_, file := exported(t, "mdf4", &h, list)
	groups, events := readMDF(t, file)
	if fmt.Sprint(events) != fmt.Sprint(want) {
		t.Errorf("events %q, want %q", events, want)
	}
	for i := range 3 {
		ticks, remote, errors := groups[0].channels, groups[2].channels, groups[3].channels
		if f, y := ticks["flags"][i], ticks["y0"][i]; f != uint64(257*i) || y != float64(i)/7 {
			t.Errorf("tick %d: flags %v, y0 %v", i, f, y)
		}
		sent := uint64(0)
		if i == 1 {
			sent = 1
		}
		if got, want := fmt.Sprint(remote["time"][i], remote["CAN_RemoteFrame.BusChannel"][i], remote["CAN_RemoteFrame.ID"][i], remote["CAN_RemoteFrame.Dir"][i]),
			fmt.Sprint(float64(i)/1e3, i+1, 0x100+i, sent); got != want {
			t.Errorf("remote frame %d: %s, want %s", i, got, want)
		}
		if got, want := fmt.Sprint(errors["time"][i], errors["CAN_ErrorFrame.BusChannel"][i], errors["CAN_ErrorFrame.DataBytes"][i].([]byte)[0]),
			fmt.Sprint(float64(i)*2/1e3, 2*i+1, i); got != want {
			t.Errorf("error frame %d: %s, want %s", i, got, want)
		}
	}
}
