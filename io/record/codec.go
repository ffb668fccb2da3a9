package record

import (
	"encoding/binary"
	"errors"
	"math"
	"math/bits"
)

// codec is what the records of a chunk are written less: both sides keep one.
type codec struct {
	index  int64    // of the last tick
	time   int64    // of the last frame or event
	hard   int64    // of the last frame that had one
	last   []uint64 // bits of the values of the last tick, inputs then outputs
	before []uint64 // of the tick before that
	phases []int64  // of the last tick
}

func newCodec(h *Header) codec {
	n := len(h.Inputs) + len(h.Outputs)
	return codec{last: make([]uint64, n), before: make([]uint64, n), phases: make([]int64, len(h.Phases))}
}

// reset starts a chunk.
func (c *codec) reset() {
	c.index, c.time, c.hard = 0, 0, 0
	clear(c.last)
	clear(c.before)
	clear(c.phases)
}

// expect returns the bits on the straight line through the last two ticks and takes
// value i's place for the next one, which next fills.
func (c *codec) expect(i int) uint64 { return 2*c.last[i] - c.before[i] }

func (c *codec) next(i int, b uint64) { c.before[i], c.last[i] = c.last[i], b }

func zigzag(d uint64) uint64 { return d<<1 ^ uint64(int64(d)>>63) }

func unzigzag(z uint64) uint64 { return z>>1 ^ -(z & 1) }

func (c *codec) appendTick(b []byte, t *Tick) []byte {
	b = append(b, byte(TickEntry))
	b = binary.AppendVarint(b, t.Index-c.index)
	c.index = t.Index
	b = binary.AppendUvarint(b, uint64(t.Flags))
	i := 0
	for _, values := range [...][]float64{t.U, t.Y} {
		for _, v := range values {
			now := math.Float64bits(v)
			z := zigzag(now - c.expect(i))
			c.next(i, now)
			b = append(b, byte((bits.Len64(z)+7)/8))
			for ; z != 0; z >>= 8 {
				b = append(b, byte(z))
			}
			i++
		}
	}
	for i, ns := range t.Phases {
		b = binary.AppendVarint(b, ns-c.phases[i])
		c.phases[i] = ns
	}
	return b
}

func (c *codec) appendFrame(b []byte, f *Frame) []byte {
	bits := byte(0)
	for i, set := range [...]bool{f.Sent, f.Lost, f.Safe, f.Withheld, f.Copy, f.Hard != 0, f.Other} {
		if set {
			bits |= 1 << i
		}
	}
	b = append(b, byte(FrameEntry), bits, f.Bus)
	b = c.appendWhen(b, f.Tick, f.Time)
	if f.Hard != 0 {
		b = binary.AppendVarint(b, f.Hard-c.hard)
		c.hard = f.Hard
	}
	b = binary.LittleEndian.AppendUint32(b, f.ID)
	b = append(b, f.Len, f.Flags)
	return append(b, f.Data[:f.Len]...)
}

func (c *codec) appendEvent(b []byte, e *Event) []byte {
	text := e.Text[:min(len(e.Text), MaxText)]
	b = append(b, byte(EventEntry), byte(e.Kind))
	b = c.appendWhen(b, e.Tick, e.Time)
	b = binary.AppendUvarint(b, e.Count)
	b = binary.AppendUvarint(b, uint64(len(text)))
	return append(b, text...)
}

func (c *codec) appendWhen(b []byte, tick, time int64) []byte {
	b = binary.AppendVarint(b, tick-c.index)
	b = binary.AppendVarint(b, time-c.time)
	c.time = time
	return b
}

// errRecord is damage that no checksum shows: another program wrote the file.
var errRecord = errors.New("the chunk holds no records of this form")

// decode reads the first record of b into e and returns the rest.
func (c *codec) decode(e *Entry, b []byte) (rest []byte, err error) {
	in := input{b: b}
	e.Kind = Kind(in.byte())
	switch e.Kind {
	case TickEntry:
		c.decodeTick(&e.Tick, &in)
	case FrameEntry:
		c.decodeFrame(&e.Frame, &in)
	case EventEntry:
		c.decodeEvent(&e.Event, &in)
	default:
		in.bad = true
	}
	if in.bad {
		return nil, errRecord
	}
	return in.b, nil
}

func (c *codec) decodeTick(t *Tick, in *input) {
	c.index += in.varint()
	t.Index, t.Flags = c.index, Flags(in.uvarint())
	i := 0
	for _, values := range [...][]float64{t.U, t.Y} {
		for j := range values {
			now := c.expect(i) + unzigzag(in.word())
			c.next(i, now)
			values[j] = math.Float64frombits(now)
			i++
		}
	}
	for i := range t.Phases {
		c.phases[i] += in.varint()
		t.Phases[i] = c.phases[i]
	}
}

func (c *codec) decodeFrame(f *Frame, in *input) {
	*f = Frame{}
	bits := in.byte()
	f.Sent, f.Lost, f.Safe, f.Bus = bits&1 != 0, bits&2 != 0, bits&4 != 0, in.byte()
	f.Withheld, f.Copy, f.Other = bits&8 != 0, bits&16 != 0, bits&64 != 0
	f.Tick, f.Time = c.decodeWhen(in)
	if bits&32 != 0 {
		c.hard += in.varint()
		f.Hard = c.hard
	}
	for i := range 4 {
		f.ID |= uint32(in.byte()) << (8 * i)
	}
	f.Len, f.Flags = in.byte(), in.byte()
	if f.Len > uint8(len(f.Data)) {
		in.bad = true
		return
	}
	copy(f.Data[:], in.bytes(uint64(f.Len)))
}

func (c *codec) decodeEvent(e *Event, in *input) {
	e.Kind = EventKind(in.byte())
	e.Tick, e.Time = c.decodeWhen(in)
	e.Count = in.uvarint()
	e.Text = string(in.bytes(in.uvarint()))
}

func (c *codec) decodeWhen(in *input) (tick, time int64) {
	tick = c.index + in.varint()
	c.time += in.varint()
	return tick, c.time
}

// input is what is left of a chunk; bad once something did not fit.
type input struct {
	b   []byte
	bad bool
}

func (in *input) bytes(n uint64) []byte {
	if n > uint64(len(in.b)) {
		in.b, in.bad = nil, true
		return nil
	}
	b := in.b[:n]
	in.b = in.b[n:]
	return b
}

func (in *input) byte() byte {
	if b := in.bytes(1); b != nil {
		return b[0]
	}
	return 0
}

func (in *input) uvarint() uint64 {
	v, n := binary.Uvarint(in.b)
	if n <= 0 {
		in.b, in.bad = nil, true
		return 0
	}
	in.b = in.b[n:]
	return v
}

func (in *input) varint() int64 { return int64(unzigzag(in.uvarint())) }

// word reads a byte n and an integer of n bytes.
func (in *input) word() (z uint64) {
	n := in.byte()
	if n > 8 {
		in.bad = true
		return 0
	}
	for i, b := range in.bytes(uint64(n)) {
		z |= uint64(b) << (8 * i)
	}
	return z
}
