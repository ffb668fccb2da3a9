package record

import (
	"encoding/binary"
	"errors"
	"math"
	"math/bits"
)

// codec holds the previous values from which records of a chunk are coded as differences. Its
// methods code a record in either direction, so that one description of the format writes and
// reads it.
type codec struct {
	stream

	index      int64    // index of the last tick
	time       int64    // time of the last frame or event
	hard       int64    // last time of the controller
	acts       int64    // last Frame.Acts
	last       []uint64 // bits of the values of the last tick, inputs then outputs
	beforeLast []uint64 // bits of the values of the tick before the last
	phases     []int64  // phases of the last tick
}

func newCodec(h *Header) codec {
	n := len(h.Inputs) + len(h.Outputs)
	return codec{last: make([]uint64, n), beforeLast: make([]uint64, n), phases: make([]int64, len(h.Phases))}
}

// reset starts a new chunk.
func (c *codec) reset() {
	c.index, c.time, c.hard, c.acts = 0, 0, 0, 0
	clear(c.last)
	clear(c.beforeLast)
	clear(c.phases)
}

// errRecord is a format error in a chunk with a right checksum: another program wrote the file.
var errRecord = errors.New("the chunk holds no records of this form")

// append appends a record to b.
func (c *codec) append(b []byte, e *Entry) []byte {
	c.stream = stream{b: b}
	c.codeEntry(e)
	return c.b
}

// decode reads the first record of b into e and returns the rest.
func (c *codec) decode(e *Entry, b []byte) (rest []byte, err error) {
	c.stream = stream{b: b, reads: true}
	if c.codeEntry(e); c.bad {
		return nil, errRecord
	}
	return c.b, nil
}

func (c *codec) codeEntry(e *Entry) {
	c.byte((*byte)(&e.Kind))
	switch e.Kind {
	case TickEntry:
		c.codeTick(&e.Tick)
	case FrameEntry:
		c.codeFrame(&e.Frame)
	case EventEntry:
		c.codeEvent(&e.Event)
	default:
		c.bad = true
	}
}

func (c *codec) codeTick(t *Tick) {
	c.delta(&t.Index, &c.index)
	flags := uint64(t.Flags)
	c.uvarint(&flags)
	t.Flags = Flags(flags)

	i := 0
	for _, values := range [...][]float64{t.U, t.Y} {
		for j := range values {
			expected := 2*c.last[i] - c.beforeLast[i]
			z := zigzag(math.Float64bits(values[j]) - expected)
			c.shortUint(&z)
			now := expected + unzigzag(z)
			values[j] = math.Float64frombits(now)
			c.beforeLast[i], c.last[i] = c.last[i], now
			i++
		}
	}

	for i := range t.Phases {
		c.delta(&t.Phases[i], &c.phases[i])
	}
}

func (c *codec) codeFrame(f *Frame) {
	if c.reads {
		*f = Frame{}
	}
	hard, acts, bits := f.Hard != 0, f.Acts != 0, byte(0)
	flags := [...]*bool{&f.Sent, &f.Lost, &f.Safe, &f.Withheld, &f.Copy, &hard, &f.Other, &acts}
	for i, set := range flags {
		if *set {
			bits |= 1 << i
		}
	}

	c.byte(&bits)
	for i, set := range flags {
		*set = bits>>i&1 != 0
	}
	c.byte(&f.Bus)
	c.codeTime(&f.Tick, &f.Time)
	if hard {
		c.delta(&f.Hard, &c.hard)
	}
	if acts {
		c.delta(&f.Acts, &c.acts)
	}

	var id [4]byte
	binary.LittleEndian.PutUint32(id[:], f.ID)
	c.bytes(id[:])
	f.ID = binary.LittleEndian.Uint32(id[:])
	c.byte(&f.Len)
	c.byte(&f.Flags)
	if f.Len > uint8(len(f.Data)) {
		c.bad = true
		return
	}

	c.bytes(f.Data[:f.Len])
}

func (c *codec) codeEvent(e *Event) {
	c.byte((*byte)(&e.Kind))
	c.codeTime(&e.Tick, &e.Time)
	c.uvarint(&e.Count)
	n := uint64(min(len(e.Text), MaxText))
	c.uvarint(&n)
	if !c.reads {
		c.b = append(c.b, e.Text[:n]...)
		return
	}

	e.Text = string(c.next(n))
}

// codeTime codes the tick and the time of a frame or an event.
func (c *codec) codeTime(tick, time *int64) {
	last := c.index
	c.delta(tick, &last)
	c.delta(time, &c.time)
}

// stream is the byte stream of a chunk's records. Its methods append a number, or read the next
// one if reads is set.
type stream struct {
	b     []byte
	reads bool
	bad   bool // a value read was not valid
}

// next returns the next n bytes and removes them from the stream.
func (s *stream) next(n uint64) []byte {
	if n > uint64(len(s.b)) {
		s.b, s.bad = nil, true
		return nil
	}

	b := s.b[:n]
	s.b = s.b[n:]
	return b
}

func (s *stream) bytes(b []byte) {
	if s.reads {
		copy(b, s.next(uint64(len(b))))
	} else {
		s.b = append(s.b, b...)
	}
}

func (s *stream) byte(v *byte) {
	if !s.reads {
		s.b = append(s.b, *v)
	} else if b := s.next(1); b != nil {
		*v = b[0]
	} else {
		*v = 0
	}
}

func (s *stream) uvarint(v *uint64) {
	if !s.reads {
		s.b = binary.AppendUvarint(s.b, *v)
		return
	}

	u, n := binary.Uvarint(s.b)
	if n <= 0 {
		s.b, s.bad, n = nil, true, 0
	}
	*v, s.b = u, s.b[n:]
}

// delta codes v as the difference to *before, and sets *before to v.
func (s *stream) delta(v, before *int64) {
	z := zigzag(uint64(*v - *before))
	s.uvarint(&z)
	*before += int64(unzigzag(z))
	*v = *before
}

// shortUint codes an integer as a byte n and n bytes.
func (s *stream) shortUint(z *uint64) {
	n := byte((bits.Len64(*z) + 7) / 8)
	s.byte(&n)
	if n > 8 {
		s.bad = true
		return
	}

	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], *z)
	s.bytes(b[:n])
	clear(b[n:])
	*z = binary.LittleEndian.Uint64(b[:])
}

func zigzag(d uint64) uint64 { return d<<1 ^ uint64(int64(d)>>63) }

func unzigzag(z uint64) uint64 { return z>>1 ^ -(z & 1) }
