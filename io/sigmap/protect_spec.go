package sigmap

import (
	"fmt"
	"slices"
)

// ProtectionSpec says how a group of a message is protected: what a bench file
// writes. A place is the name of a signal or a position (Message.position); a
// number that is split has two, the place of its lower bits first.
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

// profile is what the name of a profile stands for.
type profile struct {
	name              string
	algorithm         Algorithm
	width, digit      uint8
	poly, init, xor   uint32
	ids               IDMode
	modulus, start    int
	checksum, counter string // own places, relative to Offset
	fold              Fold
	classic           bool
}

// own tells whether the profile fixes the numbers of its checksum.
func (f *profile) own() bool { return f.poly != 0 || f.fold != NoFold || f.algorithm == NoChecksum }

// e2e tells whether f is one of AUTOSAR's.
func (f *profile) e2e() bool { return f.ids != NoID }

// profiles lists all of them.
func profiles() []profile {
	one := profile{algorithm: CRC, width: 8, poly: 0x1D, modulus: 15, checksum: "0|8", counter: "8|4"}
	two := profile{algorithm: CRC, width: 8, poly: 0x2F, init: 0xFF, xor: 0xFF, ids: IDList, modulus: 16, start: 1, checksum: "0|8", counter: "8|4"}
	of := func(f profile, name string, ids IDMode, classic bool) profile {
		f.name, f.ids, f.classic = name, ids, classic
		return f
	}
	return []profile{
		of(one, "e2e-1a", IDBoth, true), of(one, "e2e-1b", IDAlternating, true),
		of(one, "e2e-1low", IDLow, true), of(one, "e2e-1c", IDNibble, true),
		of(one, "e2e-11a", IDBoth, false), of(one, "e2e-11c", IDNibble, false),
		of(two, "e2e-2", IDList, true), of(two, "e2e-22", IDList, false),
		{name: "e2e-5", algorithm: CRC, width: 16, poly: 0x1021, init: 0xFFFF, ids: IDAfter, modulus: 256, checksum: "0|16", counter: "16|8"},
		{name: "crc8", algorithm: CRC, width: 8},
		{name: "crc16", algorithm: CRC, width: 16},
		{name: "sum", algorithm: Sum, digit: 8},
		{name: "nibble-sum", algorithm: Sum, digit: 4},
		{name: "bit-sum", algorithm: Sum, digit: 1},
		{name: "xor", algorithm: XOR},
		{name: "j1939-tsc1", algorithm: Sum, digit: 8, fold: FoldTSC1, modulus: 8, checksum: "60|4", counter: "56|4"},
		{name: "j1939-xbr", algorithm: Sum, digit: 8, fold: FoldXBR, modulus: 16, checksum: "60|4", counter: "56|4"},
		{name: "counter-only"},
	}
}

// NewProtection compiles a specification for message m.
func NewProtection(spec ProtectionSpec, m *Message) (Protection, error) {
	p, err := newProtection(spec, m)
	if err != nil {
		err = fmt.Errorf("sigmap: message %s: %w", m.Name, err)
	}
	return p, err
}

// newProtection is NewProtection whose errors do not say of which message they are.
func newProtection(spec ProtectionSpec, m *Message) (Protection, error) {
	c := protector{spec: spec, m: m, p: Protection{Profile: spec.Profile}}
	list := profiles()
	i := slices.IndexFunc(list, func(f profile) bool { return f.name == spec.Profile })
	if i < 0 {
		var names []string
		for _, f := range list {
			names = append(names, f.name)
		}
		return Protection{}, fmt.Errorf("protection: profile %q; %s", spec.Profile, nearest(spec.Profile, names))
	}
	c.f = list[i]
	for _, step := range []func() error{c.keys, c.span, c.places, c.counter, c.ids, c.checksum, c.order, c.sequence, c.window} {
		if err := step(); err != nil {
			return Protection{}, fmt.Errorf("protection %s: %w", spec.Profile, err)
		}
	}
	return c.p, nil
}

// protector is NewProtection at work.
type protector struct {
	spec        ProtectionSpec
	f           profile
	m           *Message
	p           Protection
	first, last int  // bytes covered
	own         Bits // of the checksum
}

// keys refuses what the profile has no use for.
func (c *protector) keys() error {
	s, f := &c.spec, &c.f
	crc := f.algorithm == CRC
	for _, k := range []struct {
		name        string
		given, fits bool
	}{
		{"offset", s.Offset != 0, f.e2e()},
		{"checksum", len(s.Checksum) > 0, f.algorithm != NoChecksum},
		{"range", len(s.Range) > 0, f.algorithm != NoChecksum},
		{"skip", len(s.Skip) > 0, f.algorithm != NoChecksum},
		{"reverse", s.Reverse, crc && !f.own()},
		{"data id", len(s.DataIDs) > 0, f.e2e() || crc && f.width == 8},
		{"nibble", len(s.Nibble) > 0, f.ids == IDNibble},
		{"poly", s.Poly != 0, crc && !f.own()},
		{"init", s.Init != 0, !f.own()},
		{"xor out", s.XorOut != 0, !f.own()},
		{"xor per id", len(s.XorPerID) > 0, !f.own()},
		{"reflect", s.Reflect, crc && !f.own()},
		{"subtract", s.Subtract, f.algorithm == Sum && !f.own()},
		{"include id", s.IncludeID != "" && s.IncludeID != "none", !f.own()},
		{"include length", s.IncludeLength, !f.own()},
		{"max no new", s.MaxNoNew != nil, f.classic},
		{"sync counter", s.SyncCounter != 0, f.classic},
	} {
		if k.given && !k.fits {
			return fmt.Errorf("%s: the profile has no such thing", k.name)
		}
	}
	return nil
}
