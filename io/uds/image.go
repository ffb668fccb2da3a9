package uds

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
)

// Segment is a contiguous part of an image.
type Segment struct {
	Address uint32
	Data    []byte
}

// maxImage bounds the data of an image, bytes.
const maxImage = 64 << 20

// ReadImage reads an image of memory as S-records (Motorola) or as Intel HEX; the first character tells which. The
// segments have rising addresses and do not touch. Errors are "NAME:LINE: ...".
func ReadImage(name string, from io.Reader) ([]Segment, error) {
	var r image
	scanner := bufio.NewScanner(from)
	for scanner.Scan() {
		r.line++
		line := bytes.TrimSpace(scanner.Bytes())
		if len(line) == 0 {
			continue
		}
		if err := r.add(line); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, r.line, err)
		}
	}
	if err := scanner.Err(); err != nil {
		return nil, fmt.Errorf("%s:%d: %w", name, r.line+1, err)
	}
	list, err := r.join()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return list, nil
}

// image is an image that is read.
type image struct {
	line  int
	ended bool
	base  uint32 // of Intel HEX
	size  int
	parts []Segment
}

// add adds a line.
func (r *image) add(line []byte) error {
	if r.ended {
		return fmt.Errorf("a record after the end record")
	}
	switch line[0] {
	case 'S':
		return r.addSRecord(line)
	case ':':
		return r.addHex(line)
	}
	return fmt.Errorf("the line begins with %q; an S-record begins with S, Intel HEX with a colon", line[0])
}

// decodeRecord returns the bytes of a record.
func decodeRecord(text []byte) ([]byte, error) {
	b := make([]byte, hex.DecodedLen(len(text)))
	if _, err := hex.Decode(b, text); err != nil {
		return nil, fmt.Errorf("the record is not of pairs of hexadecimal digits: %w", err)
	}
	return b, nil
}

func sum(b []byte) (s byte) {
	for _, v := range b {
		s += v
	}
	return s
}

// addSRecord adds an S-record: count, address, data and the complement of their sum.
func (r *image) addSRecord(line []byte) error {
	if len(line) < 2 {
		return fmt.Errorf("the S-record has no type")
	}
	b, err := decodeRecord(line[2:])
	if err != nil {
		return err
	}
	address, known := map[byte]int{'0': 2, '1': 2, '2': 3, '3': 4, '5': 2, '6': 3, '7': 4, '8': 3, '9': 2}[line[1]]
	switch {
	case !known:
		return fmt.Errorf("type S%c is not one of S-records", line[1])
	case len(b) < 2+address || int(b[0]) != len(b)-1:
		return fmt.Errorf("the S-record has %d bytes after its count of %d", max(0, len(b)-1), countOf(b))
	case sum(b) != 0xFF:
		return fmt.Errorf("the checksum is 0x%02X, want 0x%02X", b[len(b)-1], ^sum(b[:len(b)-1]))
	}
	switch line[1] {
	case '1', '2', '3':
		at := uint32(0)
		for _, v := range b[1 : 1+address] {
			at = at<<8 | uint32(v)
		}
		return r.addData(at, b[1+address:len(b)-1])
	case '7', '8', '9':
		r.ended = true
	}
	return nil
}

// addHex adds a record of Intel HEX: count, address, type, data and the negated sum.
func (r *image) addHex(line []byte) error {
	b, err := decodeRecord(line[1:])
	if err != nil {
		return err
	}
	switch {
	case len(b) < 5 || int(b[0]) != len(b)-5:
		return fmt.Errorf("the record has %d bytes; its length does not fit", len(b))
	case sum(b) != 0:
		return fmt.Errorf("the checksum is 0x%02X, want 0x%02X", b[len(b)-1], -sum(b[:len(b)-1]))
	}
	data := b[4 : len(b)-1]
	if (b[3] == 2 || b[3] == 4) && len(data) != 2 {
		return fmt.Errorf("an address record has %d bytes, want 2", len(data))
	}
	switch b[3] {
	case 0:
		return r.addData(r.base+uint32(binary.BigEndian.Uint16(b[1:])), data)
	case 1:
		r.ended = true
	case 2:
		r.base = uint32(binary.BigEndian.Uint16(data)) << 4
	case 4:
		r.base = uint32(binary.BigEndian.Uint16(data)) << 16
	case 3, 5: // start address
	default:
		return fmt.Errorf("record type %d is not known", b[3])
	}
	return nil
}

// addData adds data at an address.
func (r *image) addData(at uint32, data []byte) error {
	if len(data) == 0 {
		return nil
	}
	if uint64(at)+uint64(len(data)) > 1<<32 {
		return fmt.Errorf("data at 0x%08X go beyond 32 bits", at)
	}
	if r.size += len(data); r.size > maxImage {
		return fmt.Errorf("the image has more than %d MB", maxImage>>20)
	}
	if n := len(r.parts); n > 0 && uint64(r.parts[n-1].Address)+uint64(len(r.parts[n-1].Data)) == uint64(at) {
		r.parts[n-1].Data = append(r.parts[n-1].Data, data...)
		return nil
	}
	r.parts = append(r.parts, Segment{at, slices.Clone(data)})
	return nil
}

// join returns the segments in the order of their addresses.
func (r *image) join() ([]Segment, error) {
	if len(r.parts) == 0 {
		return nil, fmt.Errorf("the file has no data: want S-records or Intel HEX")
	}
	if !r.ended {
		return nil, fmt.Errorf("the end record is missing: the file is cut off")
	}
	slices.SortStableFunc(r.parts, func(a, b Segment) int { return cmp.Compare(a.Address, b.Address) })
	list := r.parts[:1]
	for _, s := range r.parts[1:] {
		last := &list[len(list)-1]
		switch end := uint64(last.Address) + uint64(len(last.Data)); {
		case end > uint64(s.Address):
			return nil, fmt.Errorf("two records have data at 0x%08X", s.Address)
		case end == uint64(s.Address):
			last.Data = append(last.Data, s.Data...)
		default:
			list = append(list, s)
		}
	}
	return list, nil
}

// countOf returns the count of a record, 0 if it has none.
func countOf(b []byte) int {
	if len(b) == 0 {
		return 0
	}
	return int(b[0])
}
