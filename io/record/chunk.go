package record

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"lockstep/io/inputfile"
)

// magic begins a record; its last byte is the version.
const magic = "lockrec8"

// marker begins every chunk; its first and last bytes are not text.
var marker = [4]byte{0x9e, 'L', 'C', 0xe9}

// handoverNumber is the number of the hand-over's chunk.
const handoverNumber = 1

// Kinds of chunks.
const (
	headerChunk   = 1
	dataChunk     = 2
	endChunk      = 3
	handoverChunk = 4
	tablesChunk   = 5
)

const (
	headSize    = 24
	maxHeader   = 64 << 20  // size of a header, bytes: it contains plants and databases
	maxHandover = 256 << 20 // size of a hand-over, or of tables, bytes: it contains the matrices of every lock set
	maxData     = 1 << 20   // size of a data chunk, bytes
	chunkFull   = 64 << 10  // size at which a data chunk is written, bytes
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// chunk is a chunk without its number.
type chunk struct {
	kind        byte
	packing     byte   // 1: stored is deflated
	stored      []byte // payload in the file
	unpackedLen int    // length of the unpacked payload, bytes
}

// appendTo appends the chunk in its file format.
func (c *chunk) appendTo(b []byte, number uint32) []byte {
	at := len(b)
	b = pack(b, marker, number, c.kind, c.packing, [2]byte{}, uint32(len(c.stored)), uint32(c.unpackedLen))
	sum := crc32.Update(crc32.Checksum(b[at:], castagnoli), castagnoli, c.stored)
	return pack(b, sum, c.stored)
}

// packer deflates payloads and reuses its memory.
type packer struct {
	w   *flate.Writer
	out bytes.Buffer
}

// pack makes a chunk of a payload; the chunk is valid until the next call or change of the payload.
func (p *packer) pack(kind byte, payload []byte) chunk {
	p.out.Reset()
	if p.w == nil {
		p.w, _ = flate.NewWriter(nil, flate.BestSpeed) // the level is legal
	}
	p.w.Reset(&p.out)
	_, _ = p.w.Write(payload) // a Buffer takes everything
	_ = p.w.Close()
	if p.out.Len() >= len(payload) {
		return chunk{kind: kind, stored: payload, unpackedLen: len(payload)}
	}

	return chunk{kind: kind, packing: 1, stored: p.out.Bytes(), unpackedLen: len(payload)}
}

// maxRatio is the largest ratio of deflate: two bits stand for at most 258 bytes.
const maxRatio = 8 / 2 * 258

// Causes for which a chunk cannot be read.
var (
	errEnd    = errors.New("the file ends here") // after a whole chunk
	errCut    = errors.New("the file ends within a chunk")
	errMarker = errors.New("no chunk begins here")
	errHead   = errors.New("the head of the chunk is damaged")
	errSum    = errors.New("the CRC-32C of the chunk does not fit")
)

// unpacker reads chunks and reuses its memory.
type unpacker struct {
	head     [headSize]byte
	stored   bytes.Buffer
	full     bytes.Buffer
	inflater io.ReadCloser
}

// foundChunk is a chunk of a file.
type foundChunk struct {
	kind    byte
	number  uint32
	payload []byte // payload, valid until the next call
	next    int64  // offset of the byte after the chunk
}

// read reads the chunk at an offset.
func (u *unpacker) read(r io.ReaderAt, at int64) (f foundChunk, err error) {
	n, err := r.ReadAt(u.head[:], at)
	switch {
	case n == 0 && err == io.EOF:
		return f, errEnd
	case err == io.EOF && n < headSize:
		return f, errCut
	case err != nil && n < headSize:
		return f, err
	}

	if [4]byte(u.head[:4]) != marker {
		return f, errMarker
	}
	word := func(i int) uint32 { return binary.LittleEndian.Uint32(u.head[i:]) }
	stored, full := int64(word(12)), int64(word(16))
	f = foundChunk{kind: u.head[8], number: word(4), next: at + headSize + stored}
	limit := int64(maxData)
	switch f.kind {
	case headerChunk:
		limit = maxHeader
	case handoverChunk, tablesChunk:
		limit = maxHandover
	}
	if f.kind < headerChunk || f.kind > tablesChunk || u.head[9] > 1 || stored > limit || full > limit {
		return f, errHead
	}
	u.stored.Reset()
	if _, err := u.stored.ReadFrom(io.NewSectionReader(r, at+headSize, stored)); err != nil {
		return f, err
	}
	if int64(u.stored.Len()) < stored {
		return f, errCut
	}
	sum := crc32.Update(crc32.Checksum(u.head[:20], castagnoli), castagnoli, u.stored.Bytes())
	if sum != word(20) {
		return f, errSum
	}
	f.payload, err = u.unpack(u.head[9], full)
	return f, err
}

// unpack returns the payload of the chunk read last. It uses memory for a payload of the length in the
// head only, and for none that deflate cannot reach.
func (u *unpacker) unpack(packing byte, full int64) ([]byte, error) {
	out := &u.stored
	if packing == 1 {
		if full > maxRatio*int64(out.Len()) {
			return nil, errHead
		}
		if u.inflater == nil {
			u.inflater = flate.NewReader(nil)
		}
		if err := u.inflater.(flate.Resetter).Reset(&u.stored, nil); err != nil {
			return nil, err
		}
		u.full.Reset()
		u.full.Grow(int(full) + 1 + bytes.MinRead) // ReadFrom does not grow it again
		if _, err := u.full.ReadFrom(io.LimitReader(u.inflater, full+1)); err != nil {
			return nil, fmt.Errorf("the chunk cannot be unpacked: %w", err)
		}
		out = &u.full
	}

	if int64(out.Len()) != full {
		return nil, errHead
	}
	return out.Bytes(), nil
}

// findNext returns the first readable chunk from at on, and its offset; -1 if there is none.
func (u *unpacker) findNext(r io.ReaderAt, at int64) (offset int64, f foundChunk) {
	window := make([]byte, chunkFull)
	sparse, _ := r.(*inputfile.File)
	for {
		if sparse != nil {
			at = sparse.SkipHole(at)
		}
		n, err := r.ReadAt(window, at)
		from := 0
		for {
			i := bytes.Index(window[from:n], marker[:])
			if i < 0 {
				break
			}
			from += i
			if f, err := u.read(r, at+int64(from)); err == nil {
				return at + int64(from), f
			}
			from++
		}

		if err != nil || n < len(marker) {
			return -1, f
		}
		at += int64(n - len(marker) + 1) // a marker may lie across two windows
	}
}
