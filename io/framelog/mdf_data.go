package framelog

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/zlib"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
)

// mdfWindow is the number of records of variable length that are held for frames which refer to them, and
// the number of frames held for data that follow.
const mdfWindow = 4096

// mdfValues are values of variable length, each a length of 32 bits and so many bytes. A frame has the
// offset of its value from the first one.
type mdfValues struct {
	in     *bufio.Reader // blocks with the values; nil: records between those of the frames
	size   uint64        // offset behind the last value read, bytes
	recent []mdfValue    // last values read, up to mdfWindow
}

// mdfValue is the data of a frame.
type mdfValue struct {
	at   uint64 // offset, bytes
	n    uint8
	data [64]byte
}

// read reads the bytes of the next value.
func (v *mdfValues) read(in io.Reader, n int64) error {
	if n > 64 {
		return fmt.Errorf("data of %d bytes; a frame has at most 64", n)
	}
	x := mdfValue{at: v.size, n: uint8(n)}
	if _, err := io.ReadFull(in, x.data[:n]); err != nil {
		return err
	}
	if len(v.recent) == mdfWindow {
		v.recent = slices.Delete(v.recent, 0, mdfWindow/2)
	}
	v.recent = append(v.recent, x)
	v.size += 4 + uint64(n)
	return nil
}

// find returns the value at an offset; nil: it has not been read yet.
func (v *mdfValues) find(at uint64) (*mdfValue, error) {
	if v.in != nil && at >= v.size {
		var n [4]byte
		if _, err := io.CopyN(io.Discard, v.in, int64(min(at-v.size, 1<<62))); err != nil {
			return nil, cutShort(err)
		}
		v.size = at
		if _, err := io.ReadFull(v.in, n[:]); err != nil {
			return nil, cutShort(err)
		}
		if err := v.read(v.in, int64(binary.LittleEndian.Uint32(n[:]))); err != nil {
			return nil, cutShort(err)
		}
	}
	for i := len(v.recent) - 1; i >= 0; i-- {
		if v.recent[i].at == at {
			return &v.recent[i], nil
		}
	}
	if at < v.size {
		return nil, fmt.Errorf("there are no data at %d, or more than %d records before", at, mdfWindow/2)
	}
	return nil, nil
}

// complete reads the data of the frame. It returns false if they follow in a later record.
func (f *mdfWaiting) complete() (bool, error) {
	if f.values == nil {
		return true, nil
	}
	x, err := f.values.find(f.at)
	if x == nil || err != nil {
		return false, err
	}
	if x.n < f.Len {
		return false, fmt.Errorf("%d bytes of data where the length says %d", x.n, f.Len)
	}
	copy(f.Data[:f.Len], x.data[:x.n])
	f.values = nil
	return true, nil
}

// stream returns the content of a chain of blocks.
func (m *mdfInput) stream(at int64) *bufio.Reader {
	return bufio.NewReader(&mdfData{file: m, pending: []int64{at}})
}

// mdfData is the content of the data blocks of a data group, as one stream.
type mdfData struct {
	file    *mdfInput
	pending []int64 // offsets of the next blocks; 0: none
	inner   io.Reader
	at      int64 // offset of the block that inner reads
}

func (d *mdfData) Read(p []byte) (int, error) {
	for {
		if d.inner == nil {
			if err := d.openNext(); err != nil {
				return 0, err
			}
		}
		n, err := d.inner.Read(p)
		switch {
		case err == io.EOF:
			d.inner = nil
		case err != nil:
			return n, d.file.errorf(d.at, "the data: %w", cutShort(err))
		}
		if n > 0 {
			return n, nil
		}
	}
}

// openNext opens the next block of data.
func (d *mdfData) openNext() error {
	for len(d.pending) > 0 && d.inner == nil {
		d.at, d.pending = d.pending[0], d.pending[1:]
		if d.at == 0 {
			continue
		}
		b, err := d.file.block(d.at, "DT SD DZ DL HL", 0)
		if err != nil {
			return err
		}
		switch b.id {
		case "DT", "SD":
			if b.id == "DT" && b.size == 24 && d.file.unfinished&mdfDT != 0 {
				b.size = d.file.in.Size() - b.at
			}
			d.inner = io.NewSectionReader(d.file.in, b.at+24, b.size-24)
		case "DZ":
			err = d.openPacked(&b)
		default: // a list, or the head of one: the first link leads to the next list
			if len(b.links) == 0 || len(b.links)+len(d.pending) > mdfMaxMeta/8 {
				return d.file.errorf(d.at, "block %s has %d links", b.id, len(b.links))
			}
			d.pending = slices.Concat(b.links[1:], b.links[:1], d.pending)
		}
		if err != nil {
			return err
		}
	}

	if d.inner == nil {
		return io.EOF
	}
	return nil
}

// openPacked opens a deflated block, which may be transposed: of a matrix with a row for each record,
// it holds the columns.
func (d *mdfData) openPacked(b *mdfNode) error {
	if len(b.data) < 24 {
		return d.file.errorf(d.at, "block DZ is too short")
	}
	method, width := b.data[2], uint64(binary.LittleEndian.Uint32(b.data[4:]))
	size, packed := binary.LittleEndian.Uint64(b.data[8:]), binary.LittleEndian.Uint64(b.data[16:])
	if packed > uint64(b.size-48) {
		return d.file.errorf(d.at, "%d deflated bytes in a block of %d", packed, b.size)
	}
	inflated, err := zlib.NewReader(bufio.NewReader(io.NewSectionReader(d.file.in, b.at+48, int64(packed))))
	if err != nil {
		return d.file.errorf(d.at, "the data: %w", cutShort(err))
	}
	switch {
	case method == 0:
		d.inner = inflated
		return nil
	case method != 1 || width == 0 || size > mdfMaxPacked:
		return d.file.errorf(d.at, "packing %d of %d bytes, %d in a row: "+
			"use 0 (deflate) or 1 (transposed, at most %d bytes)", method, size, width, mdfMaxPacked)
	}

	columns, err := io.ReadAll(io.LimitReader(inflated, int64(size)+1))
	if err != nil || uint64(len(columns)) != size {
		return d.file.errorf(d.at, "the data: %d bytes instead of %d, %w", len(columns), size, cmp.Or(err, io.ErrUnexpectedEOF))
	}
	rows, whole := make([]byte, size), size/width
	copy(rows, columns) // the rest of an incomplete record is not transposed
	for i := range whole * width {
		rows[i] = columns[i%width*whole+i/width]
	}
	d.inner = bytes.NewReader(rows)
	return nil
}
