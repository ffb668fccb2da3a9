package messages

// ProtectionSpec says how a group of a message is protected: what a bench file
// writes. A place is the name of a signal, or a position as in a DBC, "start|length",
// which is Intel unless "@0" follows; a number that is split has two places, that of
// its lower bits first.
//
//	profile                      checksum                            counter
//	e2e-1a, -1b, -1low, -1c      CRC-8 0x1D, init 0, xor out 0       0 to 14
//	e2e-2                        CRC-8 0x2F, init 0xFF, xor out 0xFF 0 to 15, the first sent is 1
//	e2e-5                        CRC-16 0x1021, init 0xFFFF          0 to 255
//	e2e-11a, -11c                as e2e-1a, -1c                      0 to 14
//	e2e-22                       as e2e-2                            0 to 15, the first sent is 1
//	crc8, crc16                  a CRC with Poly, Init, XorOut       any
//	sum, nibble-sum, bit-sum     a sum of bytes, nibbles, bits       any
//	xor                          all bytes exclusive-or              any
//	j1939-tsc1                   3 bits of a sum with the identifier 0 to 7
//	j1939-xbr                    4 bits of a sum with the identifier 0 to 15
//	counter-only                 none                                any
//
// The checksum covers all bytes of Range but its own bits and what Skip names. Own
// and skipped bits count as 0; a byte that has no other bits is left out.
type ProtectionSpec struct {
	Profile  string
	Counter  []string // places; none: the profile's own place, or no counter
	Checksum []string // places; none: the profile's own place
	Offset   int      // e2e: where checksum and counter begin, bytes after the first of Range
	Range    []int    // first and last byte covered; none: the whole message
	Skip     []string // places and bytes ("7") that are not covered
	Reverse  bool     // the last byte is taken first

	DataIDs []uint32 // e2e-2, e2e-22: 16, by counter; other e2e: one; crc8: up to 16, by counter, or none
	Nibble  []string // e2e-1c, e2e-11c: where the data identifier's bits above the lowest 8 are

	Modulus int  // counter values, 2 to what its bits hold; 0: the profile's, or all its bits hold
	Start   *int // the first counter sent; nil: the profile's, or 0

	Poly          uint32            // crc8, crc16: without its highest bit
	Init          uint32            // at first: crc8, crc16, sums, xor
	XorOut        uint32            // onto the result
	XorPerID      map[uint32]uint32 // instead of XorOut, by identifier of the message
	Reflect       bool              // crc8, crc16: lowest bit first, in and out
	Subtract      bool              // sums: the sum is taken from Init, not added to it
	IncludeID     string            // the identifier's "bytes" or "nibbles" are taken before the data, lowest first; "" or "none"
	IncludeLength bool              // the number of the frame's bytes is taken before all

	MaxDelta    int         // received: the largest step of the counter that is no WRONGSEQUENCE; 0: 3, or Modulus-2 if that is less
	MaxNoNew    *int        // e2e-1, e2e-2: MaxNoNewOrRepeatedData; nil: no limit
	SyncCounter int         // e2e-1, e2e-2: SyncCounterInit
	Window      *WindowSpec // nil: ten frames, valid after two good ones, until there are three wrong ones or nothing good
}

// WindowSpec holds the limits of the state machine E2E_SM: of the last WindowSize
// frames and cycles without one, at least MinOk are to be good and at most
// MaxError wrong, by the state the machine is in. AUTOSAR wants
//
//	1 <= MinOkStateValid <= MinOkStateInit <= MinOkStateInvalid
//	MaxErrorStateValid >= MaxErrorStateInit >= MaxErrorStateInvalid >= 0
//	MinOk + MaxError <= WindowSize in every state
type WindowSpec struct {
	WindowSize           int // 1 to 64 (AUTOSAR: 255)
	MinOkStateInit       int
	MaxErrorStateInit    int
	MinOkStateValid      int
	MaxErrorStateValid   int
	MinOkStateInvalid    int
	MaxErrorStateInvalid int
}
