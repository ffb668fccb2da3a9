package uds

import (
	"fmt"
	"math/bits"
)

// Download says how a segment is written into the memory of a unit.
type Download struct {
	Format       byte // data format identifier: compression and encryption; 0: neither
	AddressBytes int  // bytes of an address; 0: 4
	SizeBytes    int  // bytes of a size; 0: 4
}

// maxBlock bounds the length of a TransferData request, bytes; a unit may allow less.
const maxBlock = 4095

// Write writes a segment: RequestDownload, TransferData, RequestTransferExit. progress is called with the bytes
// written so far; nil: it is not.
func (t *Tester) Write(d Download, s Segment, progress func(n int)) error {
	if d.AddressBytes == 0 {
		d.AddressBytes = 4
	}
	if d.SizeBytes == 0 {
		d.SizeBytes = 4
	}
	request := []byte{RequestDownload, d.Format, byte(d.SizeBytes<<4 | d.AddressBytes)}
	for _, v := range []struct {
		what  string
		value uint64
		bytes int
	}{{"address", uint64(s.Address), d.AddressBytes}, {"size", uint64(len(s.Data)), d.SizeBytes}} {
		if v.bytes < 1 || v.bytes > 8 || bits.Len64(v.value) > 8*v.bytes {
			return fmt.Errorf("%s 0x%X does not fit %d bytes", v.what, v.value, v.bytes)
		}
		for i := v.bytes - 1; i >= 0; i-- {
			request = append(request, byte(v.value>>(8*i)))
		}
	}
	a, err := t.Ask(request...)
	if err != nil {
		return err
	}
	room, err := parseMaxBlock(a)
	if err != nil {
		return err
	}
	counter := byte(1)
	for n := 0; n < len(s.Data); counter++ {
		part := s.Data[n:min(n+room, len(s.Data))]
		if _, err := t.Ask(append([]byte{TransferData, counter}, part...)...); err != nil {
			return fmt.Errorf("block %d at 0x%08X: %w", n/room+1, int(s.Address)+n, err)
		}
		if n += len(part); progress != nil {
			progress(n)
		}
	}
	_, err = t.Ask(TransferExit)
	return err
}

// parseMaxBlock returns how many data bytes a TransferData request may have.
func parseMaxBlock(a []byte) (int, error) {
	n := int(a[1] >> 4)
	if n == 0 || n > 8 || len(a) != 2+n {
		return 0, fmt.Errorf("answer %s has %d bytes, want 2 and the %d of its length format", Bytes(a), len(a), n)
	}
	most := uint64(0)
	for _, b := range a[2:] {
		most = most<<8 | uint64(b)
	}
	if most < 3 {
		return 0, fmt.Errorf("the unit allows blocks of %d bytes; a block has at least 3", most)
	}
	return int(min(most, maxBlock)) - 2, nil
}
