package record

import (
	"encoding/binary"
	"math"
)

// block is a block of an MDF4 file: its links and what follows them. Links are offsets
// in the file, 0 for none.
type block struct {
	id    string // two letters
	links []int64
	data  []byte
}

// bytes is the block as it lies in the file, without what fills it up to 8 bytes.
func (b *block) bytes() []byte {
	out := append([]byte("##"), b.id...)
	out = append(out, 0, 0, 0, 0)
	out = binary.LittleEndian.AppendUint64(out, uint64(24+8*len(b.links)+len(b.data)))
	out = binary.LittleEndian.AppendUint64(out, uint64(len(b.links)))
	for _, l := range b.links {
		out = binary.LittleEndian.AppendUint64(out, uint64(l))
	}
	return append(out, b.data...)
}

// blocks writes blocks one behind the other and patches links of written ones. After
// the first error it does nothing more.
type blocks struct {
	to  Target
	at  int64 // where the next block begins, a multiple of 8
	err error
}

// add writes a block and returns its offset.
func (w *blocks) add(id string, links []int64, data []byte) int64 {
	b := block{id, links, data}
	out := b.bytes()
	for len(out)%8 != 0 {
		out = append(out, 0)
	}
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

// patch sets a word of 8 bytes.
func (w *blocks) patch(at, value int64) {
	w.write(binary.LittleEndian.AppendUint64(nil, uint64(value)), at)
}

// link sets link i of the block at an offset.
func (w *blocks) link(at int64, i int, to int64) { w.patch(at+24+8*int64(i), to) }

// text writes a text block, or returns 0 if there is no text.
func (w *blocks) text(id, s string) int64 {
	if s == "" {
		return 0
	}
	return w.add(id, nil, append([]byte(s), 0))
}

// fields builds the data of a block.
type fields []byte

func (f *fields) u8(values ...byte) { *f = append(*f, values...) }
func (f *fields) u16(v uint16)      { *f = binary.LittleEndian.AppendUint16(*f, v) }
func (f *fields) u32(v uint32)      { *f = binary.LittleEndian.AppendUint32(*f, v) }
func (f *fields) u64(v uint64)      { *f = binary.LittleEndian.AppendUint64(*f, v) }
func (f *fields) f64(v float64)     { f.u64(math.Float64bits(v)) }

// channel is a channel of a group: where it lies in the record.
type channel struct {
	name, unit string
	kind       byte // one of the constants below
	at         uint32
	bits       uint32
	flags      uint32
	parts      []channel // of a structure
	master     bool      // time of the record
}

// Data types of channels.
const (
	mdfUint   = 0
	mdfFloat  = 4
	mdfArray  = 10
	mdfSigned = 2
)

// channels writes a list of channels and returns the first.
func (w *blocks) channels(list []channel) (first int64) {
	for i := len(list) - 1; i >= 0; i-- {
		c := &list[i]
		links := []int64{first, w.channels(c.parts), w.text("TX", c.name), 0, 0, 0, w.text("TX", c.unit), 0}
		var f fields
		if c.master {
			f.u8(2, 1) // master, of time
		} else {
			f.u8(0, 0)
		}
		f.u8(c.kind, 0)
		f.u32(c.at)
		f.u32(c.bits)
		f.u32(c.flags)
		f.u32(0)
		f.u8(0, 0, 0, 0) // precision, attachments
		for range 6 {    // ranges and limits, not given
			f.f64(0)
		}
		first = w.add("CN", links, f)
	}
	return first
}

// group is a data group with one channel group: records of one form, sorted. Its data
// are blocks in a list, each written whole before it is linked, so that the file can be
// read at any moment.
type group struct {
	w     *blocks
	dg    int64 // offset of the data group
	cg    int64 // of the channel group
	last  int64 // of the last block of the list
	size  int   // bytes of a record
	rows  uint64
	moved int64 // bytes written before
	buf   []byte
}

// mdfFill is how many bytes of records make a block.
const mdfFill = 1 << 20

// Flags of a channel group that logs a bus: bus event, plain bus event.
const mdfBus = 0x6

// group starts a group; before is the data group it is linked behind, 0 for the first.
func (w *blocks) group(before int64, name string, size int, flags uint16, list []channel) *group {
	g := &group{w: w, size: size}
	source := int64(0)
	if flags == mdfBus {
		var f fields
		f.u8(2, 2, 0, 0, 0, 0, 0, 0) // a bus, CAN
		source = w.add("SI", []int64{w.text("TX", "CAN"), w.text("TX", "CAN"), 0}, f)
	}
	var f fields
	f.u64(0) // record identifier
	f.u64(0) // records: patched
	f.u16(flags)
	f.u16('.')
	f.u32(0)
	f.u32(uint32(size))
	f.u32(0)
	g.cg = w.add("CG", []int64{0, w.channels(list), w.text("TX", name), source, 0, 0}, f)
	g.dg = w.add("DG", []int64{0, g.cg, 0, 0}, make([]byte, 8))
	if before == 0 {
		w.link(mdfHD, 0, g.dg)
	} else {
		w.link(before, 0, g.dg)
	}
	return g
}

// row counts the record that was appended to buf and writes a full block.
func (g *group) row() {
	g.rows++
	if len(g.buf) >= mdfFill {
		g.flush()
	}
}

// flush writes the records there are.
func (g *group) flush() {
	if len(g.buf) == 0 {
		return
	}
	dt := g.w.add("DT", nil, g.buf)
	var f fields
	f.u8(0, 0, 0, 0)
	f.u32(1)
	f.u64(uint64(g.moved))
	dl := g.w.add("DL", []int64{0, dt}, f)
	if g.last == 0 {
		g.w.link(g.dg, 2, dl)
	} else {
		g.w.link(g.last, 0, dl)
	}
	g.w.patch(g.cg+24+6*8+8, int64(g.rows))
	g.last = dl
	g.moved += int64(len(g.buf))
	g.buf = g.buf[:0]
}
