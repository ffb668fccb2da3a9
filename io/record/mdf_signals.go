package record

import (
	"crypto/md5"
	"fmt"
	"math"

	"lockstep/io/can"
	"lockstep/io/framelog"
	"lockstep/io/j1939"
	"lockstep/io/messages"
)

// mdfMessage is the group of the signals of a message: time, a channel with the raw value of each
// signal, and a bit for each signal that is set in a record whose frame does not hold the signal.
type mdfMessage struct {
	*group
	*messages.Message
	need []int // length of a frame that holds the signal, bytes
	flag []byte
}

// mdfMessageFill is the size of the records of a message in a block, bytes: a record may have hundreds
// of messages.
const mdfMessageFill = 64 << 10

// busMessage identifies a message.
type busMessage struct {
	bus uint8
	id  uint32
}

// attach embeds the databases of the record, each once.
func (x *mdfExporter) attach() {
	list, done := &listEnd{framelog.MDFHeader, 3}, map[string]bool{}
	for _, f := range x.h.Files {
		if f.Role != "dbc" || done[f.Name] {
			continue
		}
		done[f.Name] = true
		const embedded, hashed = uint16(1), uint16(4)
		links := []int64{0, x.w.addText("TX", f.Name), x.w.addText("TX", "application/octet-stream"), 0}
		size := uint64(len(f.Text))
		x.w.appendToList(list, x.w.addBlock("AT", links,
			embedded|hashed, [6]byte{}, md5.Sum(f.Text), size, size, f.Text))
	}
}

// writeSignals appends a record to the group of the frame's message, and begins the group. Frames of
// no message of the database have none.
func (x *mdfExporter) writeSignals(at float64, f *Frame) {
	id := busMessage{f.Bus, f.ID}
	m, known := x.messages[id]
	if !known {
		if m = x.newMessage(id); m != nil || len(x.messages) < 1<<16 { // a flood of identifiers is not kept
			x.messages[id] = m
		}
	}
	if m == nil {
		return
	}

	b := pack(m.buf, at)
	clear(m.flag)
	for i := range m.Signals {
		s := &m.Signals[i]
		if int(f.Len) < m.need[i] || !m.Present(s, &f.Data) {
			m.flag[i/8] |= 1 << (i % 8)
		}
		raw, unused := s.Raw(&f.Data), 64-s.Len
		switch {
		case s.Float && s.Len == 32:
			raw = math.Float64bits(float64(math.Float32frombits(uint32(raw))))
		case s.Signed && !s.Float:
			raw = uint64(int64(raw<<unused) >> unused)
		}
		b = pack(b, raw)
	}
	m.buf = append(b, m.flag...)
	m.finishRecord()
}

// newMessage begins the group of a message; nil: the database has no such message, or it has no signals.
func (x *mdfExporter) newMessage(id busMessage) *mdfMessage {
	if int(id.bus) >= len(x.h.Buses) || x.h.Buses[id.bus].Layout == nil {
		return nil
	}
	bus := &x.h.Buses[id.bus]
	m := findMessage(bus.Layout, id.id)
	if m == nil || len(m.Signals) == 0 {
		return nil
	}
	g := &mdfMessage{Message: m, flag: make([]byte, (len(m.Signals)+7)/8)}
	list := []channel{timeChannel}
	for j := range m.Signals {
		s := &m.Signals[j]
		_, last := s.Span()
		g.need = append(g.need, last+1)
		list = append(list, signalChannel(m.Name, s, j))
	}
	name := bus.Name + "." + m.Name
	if id.id != m.ID {
		name += fmt.Sprintf(" (0x%X)", id.id&can.MaskEFF)
	}
	g.group = x.w.addGroup(x.groups, groupForm{name: name, about: m.Comment, invalid: len(g.flag)}, list)
	g.fill = mdfMessageFill
	return g
}

// findMessage returns the message of an identifier. A message of J1939 is found by its parameter group,
// before others with the source address; nil: there is none.
func findMessage(db *messages.Database, id uint32) (m *messages.Message) {
	parts, best := j1939.ParseID(id), 0
	for i := range db.Messages {
		o := &db.Messages[i]
		of, rank := j1939.ParseID(o.ID), 0
		switch {
		case o.ID == id:
			rank = 3
		case !o.J1939 || id&can.EFF == 0 || of.PGN != parts.PGN:
		case of.Source == parts.Source:
			rank = 2
		default:
			rank = 1
		}
		if rank > best {
			m, best = o, rank
		}
	}
	return m
}

// signalChannel returns the channel of signal i of a message.
func signalChannel(message string, s *messages.Signal, i int) channel {
	const hasInvalidBit = 2
	c := channel{name: message + "." + s.Name, unit: s.Unit, about: s.Comment, kind: mdfUint, bits: 64,
		flags: hasInvalidBit, invalidBit: uint32(i), factor: s.Factor, offset: s.Offset}
	switch {
	case s.Float:
		c.kind = mdfFloat
	case s.Signed:
		c.kind = mdfSigned
	}
	for _, v := range s.Values {
		c.texts = append(c.texts, valueText{float64(v.Raw), v.Text})
	}
	return c
}

// valueText is a raw value and its text.
type valueText struct {
	raw  float64
	text string
}

// addConversion writes the conversion of a channel from raw values and returns its offset, 0 if there is
// none: value = factor·raw + offset, or a text for some raw values.
func (w *blocks) addConversion(c *channel) int64 {
	const linear, toText = byte(1), byte(7)
	unlimited := [2]float64{}
	about := int64(0)
	if c.factor != 0 && (c.factor != 1 || c.offset != 0) {
		about = w.addBlock("CC", make([]int64, 4), linear, [3]byte{}, uint16(0), uint16(2), unlimited, c.offset, c.factor)
	}
	if len(c.texts) == 0 {
		return about
	}

	links, values := []int64{0, 0, 0, 0}, []float64{}
	for _, v := range c.texts {
		links, values = append(links, w.addText("TX", v.text)), append(values, v.raw)
	}
	links = append(links, about) // of all other values
	return w.addBlock("CC", links, toText, [3]byte{}, uint16(len(c.texts)+1), uint16(len(values)), unlimited, values)
}

// valueTexts returns the texts of a signal of the ticks.
func (s *Signal) valueTexts() (list []valueText) {
	for i, text := range s.Texts {
		list = append(list, valueText{float64(s.FirstText + i), text})
	}
	return list
}
