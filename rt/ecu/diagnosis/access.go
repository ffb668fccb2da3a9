package diagnosis

import (
	"encoding/binary"
	"hash/crc32"
	"math/bits"
	"time"
)

const (
	wrongKeys = 3                // wrong keys until the delay
	keyDelay  = 10 * time.Second // time after them without seeds
)

// Key returns the key for a seed: the seed XOR 0x4C6F636B ("Lock"), rotated left by 7 bits, plus 0x5EED.
func Key(seed uint32) uint32 { return bits.RotateLeft32(seed^0x4C6F636B, 7) + 0x5EED }

// access is the state of SecurityAccess.
type access struct {
	open    bool
	seed    uint32        // asked and not yet answered; 0: none
	last    uint32        // last seed
	wrong   int           // consecutive wrong keys
	blocked time.Duration // instant until which there are no seeds
}

// lock ends an access. Wrong keys stay counted.
func (a *access) lock() { a.open, a.seed = false, 0 }

// secure is service 27: request seed (1), send key (2). Seeds are a sequence, not random, so that runs in
// virtual time repeat.
func (s *Server) secure(request []byte) reply {
	a := &s.access
	switch sub := request[1]; {
	case sub != 1 && sub != 2:
		return refuse(subFunctionNotSupported)
	case sub == 1 && len(request) != 2 || sub == 2 && len(request) != 6:
		return refuse(wrongLength)
	case s.now < a.blocked:
		return refuse(timeDelayNotExpired)
	case sub == 1 && a.open:
		return reply{data: []byte{1, 0, 0, 0, 0}}
	case sub == 1:
		a.last = a.last*1664525 + 1013904223 // Numerical Recipes' generator
		a.seed = max(a.last, 1)
		return reply{data: binary.BigEndian.AppendUint32([]byte{1}, a.seed)}
	case a.seed == 0:
		return refuse(requestSequenceError)
	}
	seed := a.seed
	a.seed = 0
	if binary.BigEndian.Uint32(request[2:]) == Key(seed) {
		a.open, a.wrong = true, 0
		return reply{data: []byte{2}}
	}
	if a.wrong++; a.wrong < wrongKeys {
		return refuse(invalidKey)
	}
	a.wrong, a.blocked = 0, s.now+keyDelay
	return refuse(exceededAttempts)
}

// The memory for downloads. Nothing runs from it.
const (
	memoryStart = 0x80000
	memorySize  = 64 << 10
	longBlock   = 514 // longest request of TransferData, bytes
	eraseTime   = 1500 * time.Millisecond

	eraseMemory = 0xFF00 // identifiers of routines
	checkMemory = 0x0202
)

// download is the memory for downloads, and the download under way.
type download struct {
	area   [memorySize]byte
	erased bool // no byte has been written since the last erasure
	at     int  // next byte
	rest   int  // bytes to come
	begun  bool
	some   bool // a block has been written
	block  byte // block sequence counter of the next request
}

// erase sets all bytes to 0xFF.
func (d *download) erase() {
	for i := range d.area {
		d.area[i] = 0xFF
	}
	d.erased = true
	d.stop()
}

// stop ends a download.
func (d *download) stop() { d.begun, d.rest = false, 0 }

// requestDownload is service 34: neither compressed nor encrypted, address and length of 4 bytes each.
func (s *Server) requestDownload(request []byte) reply {
	d := &s.download
	switch {
	case s.session != programmingSession:
		return refuse(notInThisSession)
	case request[1] != 0 || request[2] != 0x44:
		return refuse(RequestOutOfRange)
	case len(request) != 11:
		return refuse(wrongLength)
	case !s.access.open:
		return refuse(securityAccessDenied)
	}
	at, n, ok := area(request[3:])
	switch {
	case !ok:
		return refuse(RequestOutOfRange)
	case d.begun || !d.erased:
		return refuse(ConditionsNotCorrect)
	}
	d.at, d.rest, d.begun, d.some, d.block, d.erased = at, n, true, false, 1, false
	return reply{data: []byte{0x20, longBlock >> 8, longBlock & 0xFF}}
}

// area reads address and length, and reports whether they lie in the memory.
func area(b []byte) (at, n int, ok bool) {
	at, n = int(binary.BigEndian.Uint32(b))-memoryStart, int(binary.BigEndian.Uint32(b[4:]))
	return at, n, at >= 0 && n > 0 && at+n <= memorySize
}

// transfer is service 36. The last block may come twice; the second one is confirmed and not written.
func (s *Server) transfer(request []byte) reply {
	d, block, data := &s.download, request[1], request[2:]
	switch {
	case s.session != programmingSession:
		return refuse(notInThisSession)
	case !d.begun:
		return refuse(requestSequenceError)
	case d.some && block == d.block-1:
		return reply{data: []byte{block}}
	case block != d.block:
		return refuse(wrongBlockCounter)
	case len(request) > longBlock || len(data) == 0:
		return refuse(wrongLength)
	case len(data) > d.rest:
		return refuse(transferDataSuspended)
	}
	copy(d.area[d.at:], data)
	d.at, d.rest, d.block, d.some = d.at+len(data), d.rest-len(data), d.block+1, true
	return reply{data: []byte{block}}
}

// exitTransfer is service 37.
func (s *Server) exitTransfer(request []byte) reply {
	d := &s.download
	switch {
	case s.session != programmingSession:
		return refuse(notInThisSession)
	case len(request) != 1:
		return refuse(wrongLength)
	case !d.begun || d.rest > 0:
		return refuse(requestSequenceError)
	}
	d.stop()
	return reply{data: []byte{}}
}

// ownRoutines returns the routines that the server itself has.
func (s *Server) ownRoutines() []Routine {
	programming := []byte{programmingSession}
	return []Routine{
		{ID: eraseMemory, Takes: eraseTime, Secure: true, Sessions: programming, Start: func(option []byte) ([]byte, byte) {
			if len(option) != 0 {
				return nil, wrongLength
			}
			s.download.erase()
			return []byte{0}, 0
		}},
		{ID: checkMemory, Secure: true, Sessions: programming, Start: func(option []byte) ([]byte, byte) {
			if len(option) != 8 {
				return nil, wrongLength
			}
			at, n, ok := area(option)
			if !ok {
				return nil, RequestOutOfRange
			}
			return binary.BigEndian.AppendUint32([]byte{0}, crc32.ChecksumIEEE(s.download.area[at:at+n])), 0
		}},
	}
}
