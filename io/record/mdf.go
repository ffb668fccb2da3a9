package record

import (
	"encoding/binary"
	"fmt"
	"strings"
	"time"

	"lockstep/io/can"
)

// mdf writes ASAM MDF 4.1: a group of the ticks with inputs, outputs, flags and phases,
// three groups of CAN frames in the form of the bus logging standard, and events.
//
// While it is written the file is called unfinished ("UnFinMF", cycle counters), and
// what is there can be read: every block is linked only after it is whole. Close makes
// it a finished one.
type mdf struct {
	h     *Header
	w     blocks
	clock clock
	ticks *group
	data  *group // CAN_DataFrame
	rtr   *group // CAN_RemoteFrame
	err   *group // CAN_ErrorFrame
	event int64  // offset of the last event, 0 if there is none
}

const mdfHD = 64 // offset of the header block, behind the identification

// Unfinished: the cycle counters may be behind.
const mdfCounters = 1

func newMDF(to Target, h *Header) (Exporter, error) {
	x := &mdf{h: h, w: blocks{to: to, at: mdfHD}, clock: clock{start: h.Start}}
	x.identify("UnFinMF ", mdfCounters)
	x.header()
	names := append([]channel{timeChannel()}, tickChannels(h)...)
	x.ticks = x.w.group(0, "plant", tickSize(h), 0, names)
	x.data = x.w.group(x.ticks.dg, "CAN", dataSize, mdfBus, busChannels("CAN_DataFrame", dataSize))
	x.rtr = x.w.group(x.data.dg, "CAN", rtrSize, mdfBus, busChannels("CAN_RemoteFrame", rtrSize))
	x.err = x.w.group(x.rtr.dg, "CAN", dataSize, mdfBus, busChannels("CAN_ErrorFrame", dataSize))
	return x, x.w.err
}

// identify writes the identification: the name that tells if the file is finished.
func (x *mdf) identify(name string, unfinished uint16) {
	b := make([]byte, 0, mdfHD)
	b = append(b, name...)
	b = append(b, "4.10    lockstep"...)
	b = append(b, 0, 0, 0, 0)
	b = binary.LittleEndian.AppendUint16(b, 410)
	b = append(b, make([]byte, 30)...)
	b = binary.LittleEndian.AppendUint16(b, unfinished)
	x.w.write(append(b, 0, 0), 0)
}

// header writes the header block and the file history, which has to be there.
func (x *mdf) header() {
	var f fields
	f.u64(uint64(x.h.Start))
	f.u16(0) // UTC
	f.u16(0)
	f.u8(2, 0, 0, 0) // the zone is valid
	f.f64(0)
	f.f64(0)
	x.w.add("HD", make([]int64, 6), f)
	comment := x.w.text("MD", fmt.Sprintf(`<FHcomment xmlns="http://www.asam.net/mdf/v4"><TX>export of run %s</TX>`+
		`<tool_id>lockstep</tool_id><tool_vendor>lockstep</tool_vendor><tool_version>%s</tool_version></FHcomment>`,
		xml(x.h.Run), xml(x.h.Version)))
	f = nil
	f.u64(uint64(x.h.Start))
	f.u16(0)
	f.u16(0)
	f.u8(2, 0, 0, 0)
	x.w.link(mdfHD, 1, x.w.add("FH", []int64{0, comment}, f))
}

// xml is text for an XML element; what XML cannot hold is left out.
func xml(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' || r == 0xFFFE || r == 0xFFFF {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(s)
}

func timeChannel() channel {
	return channel{name: "time", unit: "s", kind: mdfFloat, bits: 64, master: true}
}

// tickSize is the size of a tick's record: time, values, flags, phases.
func tickSize(h *Header) int { return 8 + 8*(len(h.Inputs)+len(h.Outputs)) + 2 + 8*len(h.Phases) }

func tickChannels(h *Header) (list []channel) {
	at := uint32(8)
	for _, signals := range [...][]Signal{h.Inputs, h.Outputs} {
		for _, s := range signals {
			list = append(list, channel{name: s.Name, unit: s.Unit, kind: mdfFloat, at: at, bits: 64})
			at += 8
		}
	}
	list = append(list, channel{name: "flags", kind: mdfUint, at: at, bits: 16})
	at += 2
	for _, name := range h.Phases {
		list = append(list, channel{name: "phase " + name, unit: "ns", kind: mdfSigned, at: at, bits: 64})
		at += 8
	}
	return list
}

// Sizes of the records of frames: time, then the structure of busChannels.
const (
	dataSize = 84
	rtrSize  = 17
)

// busChannels are time and the structure of a frame, as python-can and asammdf write
// it; a remote frame has no data and no CAN FD.
func busChannels(name string, size int) []channel {
	const event = 0x400 // a bus event
	list := []struct {
		name string
		bits uint32
	}{{"BusChannel", 8}, {"ID", 32}, {"IDE", 8}, {"DLC", 8}, {"DataLength", 8}, {"DataBytes", 512}, {"Dir", 8}, {"EDL", 8}, {"BRS", 8}, {"ESI", 8}}
	if size == rtrSize {
		list = append(list[:5], list[6])
	}
	whole := channel{name: name, kind: mdfArray, at: 8, bits: uint32(size-8) * 8, flags: event}
	at := uint32(8)
	for _, p := range list {
		c := channel{name: name + "." + p.name, kind: mdfUint, at: at, bits: p.bits, flags: event}
		if p.bits > 64 {
			c.kind = mdfArray
		}
		whole.parts = append(whole.parts, c)
		at += p.bits / 8
	}
	return []channel{timeChannel(), whole}
}

func (x *mdf) Write(e *Entry) error {
	switch e.Kind {
	case TickEntry:
		x.tick(&e.Tick)
	case FrameEntry:
		x.frame(&e.Frame)
	case EventEntry:
		x.mark(&e.Event)
	}
	return x.w.err
}

func (x *mdf) tick(t *Tick) {
	g := x.ticks
	f := fields(g.buf)
	f.f64(float64(t.Index*x.h.Period) / 1e9)
	for _, values := range [...][]float64{t.U, t.Y} {
		for _, v := range values {
			f.f64(v)
		}
	}
	f.u16(uint16(t.Flags))
	for _, ns := range t.Phases {
		f.u64(uint64(ns))
	}
	g.buf = f
	g.row()
}

// frame appends a frame to its group. Vector's programs see from bit 31 of ID that a
// frame is extended, others from IDE.
func (x *mdf) frame(r *Frame) {
	id, extended := r.ID&can.MaskSFF, byte(0)
	if r.ID&can.EFF != 0 {
		id, extended = r.ID&can.MaskEFF|1<<31, 1
	}
	g := x.data
	switch {
	case r.ID&can.ERR != 0:
		g = x.err
	case r.ID&can.RTR != 0:
		g = x.rtr
	}
	sent := byte(0)
	if r.Sent {
		sent = 1
	}
	f := fields(g.buf)
	f.f64(float64(x.clock.since(x.h.time(r.Time, r.Tick))) / 1e9)
	f.u8(r.Bus + 1)
	f.u32(id)
	f.u8(extended, dlc(r.Len))
	if g == x.rtr {
		f.u8(0, sent)
	} else {
		f.u8(r.Len)
		f.u8(r.Data[:]...)
		f.u8(sent, flag(r.FD()), r.Flags&can.FlagBRS, r.Flags&can.FlagESI>>1)
	}
	g.buf = f
	g.row()
}

func flag(is bool) byte {
	if is {
		return 1
	}
	return 0
}

// mark writes an event as a marker.
func (x *mdf) mark(e *Event) {
	at := max(0, x.h.time(e.Time, e.Tick)-x.h.Start)
	var f fields
	f.u8(6, 1, 0, 0, 0, 0, 0, 0) // a marker, at a time, a point, for no cause of the standard's
	f.u32(0)
	f.u16(0)
	f.u16(0)
	f.u64(uint64(at))
	f.f64(float64(time.Nanosecond) / float64(time.Second))
	text := fmt.Sprintf("tick %d: %s", e.Tick, e.Text)
	ev := x.w.add("EV", []int64{0, 0, 0, x.w.text("TX", e.Kind.String()), x.w.text("TX", text)}, f)
	if x.event == 0 {
		x.w.link(mdfHD, 4, ev)
	} else {
		x.w.link(x.event, 0, ev)
	}
	x.event = ev
}

func (x *mdf) Close() error {
	for _, g := range [...]*group{x.ticks, x.data, x.rtr, x.err} {
		g.flush()
	}
	x.identify("MDF     ", 0)
	return x.w.err
}
