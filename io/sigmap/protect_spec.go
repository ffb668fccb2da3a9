package sigmap

import (
	"fmt"
	"slices"

	"lockstep/io/messages"
)

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
func NewProtection(spec messages.ProtectionSpec, m *messages.Message) (Protection, error) {
	p, err := newProtection(spec, m)
	if err != nil {
		err = fmt.Errorf("sigmap: message %s: %w", m.Name, err)
	}
	return p, err
}

// newProtection is NewProtection whose errors do not say of which message they are.
func newProtection(spec messages.ProtectionSpec, m *messages.Message) (Protection, error) {
	c := protector{spec: spec, m: m, p: Protection{Profile: spec.Profile}}
	list := profiles()
	i := slices.IndexFunc(list, func(f profile) bool { return f.name == spec.Profile })
	if i < 0 {
		var names []string
		for _, f := range list {
			names = append(names, f.name)
		}
		return Protection{}, problemf(ErrUnknown, "protection: profile %q; %s", spec.Profile, nearest(spec.Profile, names))
	}
	c.f = list[i]
	for _, step := range []func() error{c.keys, c.span, c.places, c.counter, c.ids, c.checksum, c.order, c.sequence, c.window} {
		if err := step(); err != nil {
			return Protection{}, problemf(ErrProtection, "protection %s: %w", spec.Profile, err)
		}
	}
	return c.p, nil
}

// protector is NewProtection at work.
type protector struct {
	spec        messages.ProtectionSpec
	f           profile
	m           *messages.Message
	p           Protection
	first, last int           // bytes covered
	own         messages.Bits // of the checksum
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
