package record

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"lockstep/io/can"
	"lockstep/io/framelog"
)

// mdfExporter writes ASAM MDF 4.1: a group of the ticks with inputs, outputs, flags and phases, three
// groups of CAN frames as in the bus logging standard, a group for each message of the databases that
// came, with its signals, the databases as attachments, and events.
//
// During the export the file is marked unfinished ("UnFinMF", cycle counters). It can be
// read nevertheless, because a block is linked only after it is whole. Close marks the file
// as finished.
type mdfExporter struct {
	h     *Header
	w     blocks
	clock clock
	ticks *group
	data  *group  // CAN_DataFrame
	rtr   *group  // CAN_RemoteFrame
	err   *group  // CAN_ErrorFrame
	marks listEnd // list of events

	groups   *listEnd // list of groups
	messages map[busMessage]*mdfMessage
}

// TickGroup is the name of the group of ticks in an MDF4 file.
const TickGroup = "plant"

// mdfCounters marks a file whose cycle counters may be behind.
const mdfCounters = 1

func newMDF(to Target, h *Header) (Exporter, error) {
	x := &mdfExporter{h: h, w: blocks{to: to, at: framelog.MDFHeader}, clock: clock{start: h.Start}, marks: listEnd{framelog.MDFHeader, 4}}
	x.writeIdentification(framelog.MDFUnfinished, mdfCounters)
	x.writeHeader()
	x.attach()
	x.groups, x.messages = &listEnd{framelog.MDFHeader, 0}, map[busMessage]*mdfMessage{}
	bus := groupForm{name: "CAN", flags: mdfBus}
	x.ticks = x.w.addGroup(x.groups, groupForm{name: TickGroup}, tickChannels(h))
	x.data = x.w.addGroup(x.groups, bus, busChannels("CAN_DataFrame", false))
	x.rtr = x.w.addGroup(x.groups, bus, busChannels("CAN_RemoteFrame", true))
	x.err = x.w.addGroup(x.groups, bus, busChannels("CAN_ErrorFrame", false))
	return x, x.w.err
}

// writeIdentification writes the identification block; name tells whether the file is finished.
func (x *mdfExporter) writeIdentification(name string, unfinished uint16) {
	x.w.write(pack(nil, []byte(name+"4.10    lockstep"), [4]byte{}, uint16(410), [30]byte{}, unfinished, [2]byte{}), 0)
}

// writeHeader writes the header block and the mandatory file history.
func (x *mdfExporter) writeHeader() {
	utc := [8]byte{4: 2} // no offsets; the zone is valid
	x.w.addBlock("HD", make([]int64, 6), x.h.Start, utc, [2]float64{})
	comment := x.w.addText("MD", fmt.Sprintf(`<FHcomment xmlns="http://www.asam.net/mdf/v4"><TX>export of run %s</TX>`+
		`<tool_id>lockstep</tool_id><tool_vendor>lockstep</tool_vendor><tool_version>%s</tool_version></FHcomment>`,
		xml(x.h.Run), xml(x.h.Version)))
	x.w.link(framelog.MDFHeader, 1, x.w.addBlock("FH", []int64{0, comment}, x.h.Start, utc))
}

// xml escapes a text for an XML element and removes characters that XML does not allow.
func xml(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' || r == 0xFFFE || r == 0xFFFF {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(s)
}

// timeChannel is the first channel of each group.
var timeChannel = channel{name: "time", unit: "s", kind: mdfFloat, bits: 64, master: true}

// tickChannels returns time, values, flags and phases of a tick.
func tickChannels(h *Header) []channel {
	list := []channel{timeChannel}
	for _, s := range slices.Concat(h.Inputs, h.Outputs) {
		list = append(list, channel{name: s.Name, unit: s.Unit, kind: mdfFloat, bits: 64, texts: s.valueTexts()})
	}

	list = append(list, channel{name: "flags", kind: mdfUint, bits: 16})
	for _, name := range h.Phases {
		list = append(list, channel{name: "phase " + name, unit: "ns", kind: mdfSigned, bits: 64})
	}
	return list
}

// busChannels returns time and the structure of a frame as python-can and asammdf write it;
// a remote frame has no data and no CAN FD flags.
func busChannels(name string, remote bool) []channel {
	const event = 0x400 // a bus event
	list := []struct {
		name string
		bits uint32
	}{
		{"BusChannel", 8}, {"ID", 32}, {"IDE", 8}, {"DLC", 8}, {"DataLength", 8}, {"DataBytes", 512},
		{"Dir", 8}, {"EDL", 8}, {"BRS", 8}, {"ESI", 8},
	}
	if remote {
		list = append(list[:5], list[6])
	}
	whole := channel{name: name, kind: mdfArray, flags: event}
	for _, p := range list {
		c := channel{name: name + "." + p.name, kind: mdfUint, bits: p.bits, flags: event}
		if p.bits > 64 {
			c.kind = mdfArray
		}
		whole.parts = append(whole.parts, c)
		whole.bits += p.bits
	}

	return []channel{timeChannel, whole}
}

// placeChannels places channels one after the other from a byte of the record on, with the members
// of structures, and returns the byte behind them.
func placeChannels(list []channel, at uint32) (end uint32) {
	for i := range list {
		list[i].at = at
		placeChannels(list[i].parts, at)
		at += list[i].bits / 8
	}
	return at
}

func (x *mdfExporter) Write(e *Entry) error {
	switch t := &e.Tick; e.Kind {
	case TickEntry:
		x.ticks.addRecord(float64(t.Index*x.h.Period)/1e9, t.U, t.Y, uint16(t.Flags), t.Phases)
	case FrameEntry:
		x.writeFrame(&e.Frame)
	case EventEntry:
		x.writeMarker(&e.Event)
	}

	return x.w.err
}

// writeFrame appends a frame to its group. Vector's programs recognize an extended frame by
// bit 31 of ID, others by IDE.
func (x *mdfExporter) writeFrame(r *Frame) {
	id, extended := r.ID&can.MaskSFF, r.ID&can.EFF != 0
	if extended {
		id = r.ID&can.MaskEFF | 1<<31
	}
	at := float64(x.clock.elapsed(x.h.timeOr(r.Time, r.Tick))) / 1e9
	if r.Flags&can.FlagLong != 0 { // its packets are frames of their own
		x.writeSignals(at, r)
		return
	}
	head := pack(nil, at, r.Bus+1, id, bit(extended), can.DLC(r.Len))
	if r.ID&(can.ERR|can.RTR) == can.RTR {
		x.rtr.addRecord(head, byte(0), bit(r.Sent))
		return
	}

	g := x.data
	if r.ID&can.ERR != 0 {
		g = x.err
	} else {
		x.writeSignals(at, r)
	}
	g.addRecord(head, r.Len, r.Data[:], bit(r.Sent), bit(r.FD()), r.Flags&can.FlagBRS, r.Flags&can.FlagESI>>1)
}

// writeMarker writes an event as a marker.
func (x *mdfExporter) writeMarker(e *Event) {
	at := max(0, x.h.timeOr(e.Time, e.Tick)-x.h.Start)
	text := fmt.Sprintf("tick %d: %s", e.Tick, e.Text)
	links := []int64{0, 0, 0, x.w.addText("TX", e.Kind.String()), x.w.addText("TX", text)}
	marker := [16]byte{6, 1} // a marker, at a time, a point, for no cause of the standard's
	x.w.appendToList(&x.marks, x.w.addBlock("EV", links, marker, at, 1e-9))
}

func (x *mdfExporter) Close() error {
	for _, g := range [...]*group{x.ticks, x.data, x.rtr, x.err} {
		g.flush()
	}
	for _, m := range x.messages {
		if m != nil {
			m.flush()
		}
	}
	x.writeIdentification(framelog.MDFMagic, 0)
	return x.w.err
}

// pack appends values of a fixed size in little endian order.
func pack(b []byte, values ...any) []byte {
	for _, v := range values {
		b, _ = binary.Append(b, binary.LittleEndian, v)
	}
	return b
}

// bit returns 1 for true, 0 for false.
func bit(is bool) byte {
	if is {
		return 1
	}
	return 0
}

// blocks writes blocks in sequence and patches links of written blocks. After the first
// error it does nothing.
type blocks struct {
	to  Target
	at  int64 // offset of the next block, a multiple of 8
	err error
}

// addBlock writes a block of links and data and returns its offset. Links are offsets in the
// file, 0 for none; id has two letters.
func (w *blocks) addBlock(id string, links []int64, data ...any) int64 {
	body := pack(nil, data...)
	size := 24 + 8*len(links) + len(body)
	out := pack(nil, []byte("##"+id), [4]byte{}, uint64(size), uint64(len(links)), links, body, make([]byte, -size&7))
	at := w.at
	w.write(out, at)
	w.at += int64(len(out))
	return at
}

func (w *blocks) write(b []byte, at int64) {
	if w.err == nil {
		_, w.err = w.to.WriteAt(b, at)
	}
}

// patch overwrites 8 bytes at an offset.
func (w *blocks) patch(at, value int64) {
	w.write(pack(nil, value), at)
}

// link sets link i of the block at an offset to another offset.
func (w *blocks) link(at int64, i int, to int64) { w.patch(at+24+8*int64(i), to) }

// listEnd is the place of the link to the next block of a list: at first in the head of the list,
// then link 0 of the last block.
type listEnd struct {
	at   int64 // offset of the block with the link
	link int   // index of the link
}

// appendToList links a block to the end of a list.
func (w *blocks) appendToList(c *listEnd, block int64) {
	w.link(c.at, c.link, block)
	*c = listEnd{block, 0}
}

// addText writes a text block and returns its offset, 0 if s is empty.
func (w *blocks) addText(id, s string) int64 {
	if s == "" {
		return 0
	}
	return w.addBlock(id, nil, []byte(s), byte(0))
}

// channel is a channel of a group with its place in the record.
type channel struct {
	name, unit string
	kind       byte // one of the constants below
	at         uint32
	bits       uint32
	flags      uint32
	parts      []channel // members of a structure
	master     bool      // the channel is the time of the record
	about      string    // comment
	invalidBit uint32    // bit behind the record that is set if the value is not valid
	factor     float64   // value = factor·raw + offset; 0: 1
	offset     float64
	texts      []valueText
}

// Data types of channels.
const (
	mdfUint   = 0
	mdfFloat  = 4
	mdfArray  = 10
	mdfSigned = 2
)

// addChannels writes a list of channels and returns the offset of the first.
func (w *blocks) addChannels(list []channel) (first int64) {
	for i := len(list) - 1; i >= 0; i-- {
		c := &list[i]
		links := []int64{first, w.addChannels(c.parts), w.addText("TX", c.name), 0, w.addConversion(c), 0,
			w.addText("TX", c.unit), w.addText("TX", c.about)}
		first = w.addBlock("CN", links,
			[2]byte{2 * bit(c.master), bit(c.master)}, // master, of time
			c.kind, byte(0), c.at, c.bits, c.flags, c.invalidBit,
			[4]byte{},    // precision, attachments
			[6]float64{}) // ranges and limits, not given
	}

	return first
}

// group is a data group with one channel group, that is, sorted records of one form. Its
// data are blocks in a list; each is linked only after it is whole, so that the file can be
// read at any moment.
type group struct {
	w       *blocks
	cg      int64   // offset of the channel group block
	data    listEnd // list of the blocks with its records
	records uint64
	written int64 // bytes written before
	fill    int   // size of the records in a block, bytes
	buf     []byte
}

// groupForm is what a group has besides its channels.
type groupForm struct {
	name, about string
	flags       uint16
	invalid     int // bytes of bits of channels without a valid value
}

// mdfFill is the size of the records in a block, bytes.
const mdfFill = 1 << 20

// mdfBus holds the flags of a channel group that logs a bus: bus event, plain bus event.
const mdfBus = 0x6

// addGroup starts a group and links it to the end of the list of groups.
func (w *blocks) addGroup(groups *listEnd, f groupForm, list []channel) *group {
	g, size := &group{w: w, fill: mdfFill}, placeChannels(list, 0)
	source := int64(0)
	if f.flags == mdfBus {
		bus := [8]byte{2, 2} // a bus, CAN
		source = w.addBlock("SI", []int64{w.addText("TX", "CAN"), w.addText("TX", "CAN"), 0}, bus)
	}

	const identifier, records = uint64(0), uint64(0) // the number of records is patched
	g.cg = w.addBlock("CG", []int64{0, w.addChannels(list), w.addText("TX", f.name), source, 0, w.addText("TX", f.about)},
		identifier, records, f.flags, uint16('.'), uint32(0), size, uint32(f.invalid))
	dg := w.addBlock("DG", []int64{0, g.cg, 0, 0}, [8]byte{})
	w.appendToList(groups, dg)
	g.data = listEnd{dg, 2}
	return g
}

// addRecord adds a record and writes the block when it is full.
func (g *group) addRecord(values ...any) {
	g.buf = pack(g.buf, values...)
	g.finishRecord()
}

// finishRecord counts a record and writes the block when it is full.
func (g *group) finishRecord() {
	g.records++
	if len(g.buf) >= g.fill {
		g.flush()
	}
}

// flush writes the records collected so far.
func (g *group) flush() {
	if len(g.buf) == 0 {
		return
	}
	dt := g.w.addBlock("DT", nil, g.buf)
	g.w.appendToList(&g.data, g.w.addBlock("DL", []int64{0, dt}, [4]byte{}, uint32(1), g.written))
	g.w.patch(g.cg+24+6*8+8, int64(g.records))
	g.written += int64(len(g.buf))
	g.buf = g.buf[:0]
}
