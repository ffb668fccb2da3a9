package framelog

import (
	"errors"
	"testing"
)

// An object without data ends with its last fixed field, as in Vector's description of the format; with a
// length it holds as many bytes as that says.
func TestBLFObjectsAreReadFromTheirShortestLengthOn(t *testing.T) {
	for kind, c := range map[uint32]struct {
		fixed        int
		length, code int // places of the length and of its code; 0: none
		flags        int // place of the flag of CAN FD
		flag         byte
	}{
		BLFMessage: {fixed: 8, code: 3}, blfMessage2: {fixed: 8, code: 3}, BLFFD: {20, 14, 3, 13, 1}, blfFD64: {40, 2, 1, 13, 16},
		BLFError: {fixed: 2}, blfError1: {fixed: 2}, blfFDError: {fixed: 1},
	} {
		parse := blfFrames[kind]
		for n := range byte(9) {
			if c.code == 0 && n > 0 {
				break
			}
			b := make([]byte, c.fixed+int(n))
			if c.code > 0 {
				b[c.code] = n
			}
			if c.length > 0 {
				b[c.length], b[c.flags] = n, c.flag
			}
			for i := range n {
				b[c.fixed+int(i)] = i + 1
			}
			var f Frame
			if err := parse(b, &f); err != nil || c.code > 0 && (f.Len != n || n > 0 && f.Data[n-1] != n) {
				t.Errorf("object %d with %d bytes: %v, frame %+v", kind, n, err, f.Frame)
			}
			if kind == blfFD64 && n > 0 {
				continue // a logger leaves out zeros at the end of the data
			}
			if err := parse(b[:len(b)-1], &Frame{}); !errors.Is(err, errShort) {
				t.Errorf("object %d with %d bytes, cut by one: %v, want %v", kind, n, err, errShort)
			}
		}
	}
}
