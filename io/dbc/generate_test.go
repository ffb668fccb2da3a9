package dbc_test

import (
	"fmt"

	"lockstep/io/can"
	"lockstep/io/messages"
)

// generate returns a database that keeps to the format, of 1 to 4 messages with
// everything package dbc reads. draw(n) chooses one of 0 to n-1.
func generate(draw func(n int) int) *messages.Database {
	g := generator{draw: draw, names: map[string]bool{}, ids: map[uint32]bool{}}
	db := &messages.Database{}
	for range 1 + draw(4) {
		db.Messages = append(db.Messages, g.message())
	}
	return db
}

// generator holds the state of generate.
type generator struct {
	draw  func(n int) int
	names map[string]bool   // taken
	ids   map[uint32]bool   // taken
	m     *messages.Message // the one that gets signals
}

func pick[T any](draw func(n int) int, list ...T) T { return list[draw(len(list))] }

// name makes a unique name.
func (g *generator) name(prefix string) string {
	name := prefix + pick(g.draw, "", "_", "Drehzahl", "x1", "_Temp_Oel")
	for i := 2; g.names[name]; i++ {
		name = fmt.Sprintf("%s_%d", prefix, i)
	}
	g.names[name] = true
	return name
}

func (g *generator) message() messages.Message {
	draw := g.draw
	m := messages.Message{Name: g.name("M"), Len: pick(draw, 8, 8, 8, 3, 1, 64, 12, 0)}
	m.ID = uint32(draw(0x800))
	if draw(2) == 0 {
		m.ID = uint32(draw(1<<29)) | can.EFF
	}
	for base, i := m.ID, uint32(1); g.ids[m.ID]; i++ {
		m.ID = base ^ i
	}
	g.ids[m.ID] = true
	m.Sender = pick(draw, "", "Getriebe", "Motor")
	if m.Sender != "" && draw(3) == 0 {
		m.OtherSenders = []string{"Bench"}
	}
	m.Comment = text(draw)
	m.SendType = pick(draw, "Cyclic", "OnChange", "IfActive")
	m.CycleNs = int64(draw(3)) * int64(draw(100)) * 1e6
	m.FD = m.Len > 8 || draw(4) == 0
	m.BRS = m.FD && draw(2) == 0
	m.J1939 = !m.FD && m.ID > can.MaskSFF && draw(2) == 0
	g.m = &m
	var taken messages.Bits
	for i := 8 * m.Len; i < 512; i++ {
		taken[i/64] |= 1 << (i % 64)
	}
	for range draw(8) {
		g.add(messages.Signal{}, &taken)
	}
	if draw(2) == 0 {
		g.mux("", nil, taken, 2)
	}
	return m
}

// mux adds a multiplexor and its signals, which share the free bits, nested to the
// given depth.
func (g *generator) mux(under string, ranges [][2]uint64, taken messages.Bits, levels int) {
	s := g.add(messages.Signal{Multiplexor: true, Len: 2 + g.draw(5), MuxedBy: under, Ranges: ranges}, &taken)
	if s == "" {
		return
	}
	next := uint64(0)
	for i := range 1 + g.draw(3) {
		branch := taken
		list := [][2]uint64{{next, next}}
		next++
		if g.draw(3) == 0 && levels > 1 { // a range, or two
			list[0][1] = next
			list = append(list, [2]uint64{next + 2, next + 2})[:1+g.draw(2)]
			next += 3
		}
		for range 1 + g.draw(3) {
			g.add(messages.Signal{MuxedBy: s, Ranges: list}, &branch)
		}
		if i == 0 && levels > 1 && g.draw(2) == 0 {
			g.mux(s, list, branch, levels-1)
		}
	}
}

// add completes s and adds it where bits are free; it returns the name of s, "" if no
// bits are free.
func (g *generator) add(s messages.Signal, taken *messages.Bits) string {
	draw := g.draw
	s.BigEndian = draw(2) == 0
	if s.Len == 0 {
		s.Len = pick(draw, 1+draw(64), 1+draw(16), 8, 16, 32, 64)
		s.Signed = draw(2) == 0
		s.Float = (s.Len == 32 || s.Len == 64) && draw(3) == 0
	}
	free := false
	for range 4 {
		s.Start = draw(8*g.m.Len + 1)
		bits, ok := s.Bits()
		if free = ok && !bits.Overlaps(taken); free {
			taken.Add(&bits)
			break
		}
	}
	if !free {
		return ""
	}
	s.Name = g.name("S")
	s.Factor = pick(draw, 1, 0.1, 0.25, -0.5, 1e-6, 1234.5, 0.0001220703125)
	s.Offset = pick(draw, 0, -40, 0.5, 1e6, -273.15)
	if draw(2) == 0 {
		s.Min, s.Max = float64(-draw(100)), float64(1+draw(1000))/8
	}
	s.Unit = pick(draw, "", "rpm", "°C", "N·m", "%", "m/s²", "1/min")
	s.Comment = text(draw)
	s.Receivers = pick(draw, nil, []string{"Motor"}, []string{"Motor", "Bench"})
	for i := range draw(3) {
		s.Values = append(s.Values, messages.Value{Raw: int64(i), Text: pick(draw, "", "ein", "ungültig", "a b; c")})
	}
	s.Initial, s.HasInitial = float64(draw(2)), true
	s.SPN = draw(3) * draw(1000)
	g.m.Signals = append(g.m.Signals, s)
	return s.Name
}

func text(draw func(n int) int) string {
	return pick(draw, "", "", "Öldruck am Ausgang", `a "quoted" word`, "two\nlines; BO_ 1 X: 8 Y")
}
