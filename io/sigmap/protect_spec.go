package sigmap

import (
	"errors"
	"math"
	"reflect"
	"strconv"
	"strings"

	"lockstep/io/messages"
)

// ProtectionSpec is a protection as a bench file describes it. A place is the name of a signal, or
// a position as in a DBC, "start|length", which is Intel unless "@0" follows. A split number has
// two places, the lower bits in the first.
//
// The checksum covers all bytes of Range except its own bits and the bits in Skip. Own and skipped
// bits count as 0; a byte without other bits is left out.
//
// The tag key names a field in a bench file. The tag of says which profiles have the field: see
// profile.has.
type ProtectionSpec struct {
	Profile string `key:"profile"` // name of the profile: see profiles

	Counter  []string `key:"counter"`                // places of the counter; empty: the profile's place, or no counter
	Checksum []string `key:"checksum" of:"checksum"` // places of the checksum; empty: the profile's place
	Offset   int      `key:"offset" of:"e2e"`        // start of the profile's places, bytes after the first byte of Range
	Range    []int    `key:"range" of:"checksum"`    // first and last byte covered; empty: the whole message
	Skip     []string `key:"skip" of:"checksum"`     // places and bytes ("7") not covered
	Reverse  bool     `key:"reverse" of:"open crc"`  // the bytes are processed from last to first

	// Smallest and largest length received, bytes from the first byte of Range on; 0: the length of Range.
	MinLength int `key:"min_length" of:"length"`
	MaxLength int `key:"max_length" of:"length"`

	// Data identifiers. e2e-2, e2e-22: 16, by counter; other e2e: one; crc8: up to 16, by counter, or none.
	DataIDs []uint32 `key:"data_ids,data_id" of:"data id"`
	Nibble  []string `key:"nibble" of:"nibble"` // place of the data identifier's bits above the lowest 8

	Modulus int  `key:"modulus"` // number of counter values, at least 2; 0: the profile's, or all values of its bits
	Start   *int `key:"start"`   // first counter sent; nil: the profile's, or 0

	Poly          uint64            `key:"poly" of:"open crc"`       // polynomial without its highest bit
	Init          uint64            `key:"init" of:"open"`           // initial value of the register
	XorOut        uint64            `key:"xor_out" of:"open"`        // mask XORed onto the result
	XorPerID      map[uint32]uint64 `key:"xor_per_id" of:"open"`     // replacements of XorOut, by identifier
	Reflect       bool              `key:"reflect" of:"open crc"`    // the lowest bit is first, in input and output
	Subtract      bool              `key:"subtract" of:"open sum"`   // the sum is subtracted from Init, not added
	IncludeID     string            `key:"include_id" of:"open"`     // one of IncludeIDs; the identifier is before the data, lowest first
	IncludeLength bool              `key:"include_length" of:"open"` // the length of the frame is processed before all

	// Received: largest counter step that is not WRONGSEQUENCE; 0: 3, or Modulus-2 if less.
	MaxDelta    int  `key:"max_delta"`
	MaxNoNew    *int `key:"max_no_new" of:"classic"`   // MaxNoNewOrRepeatedData; nil: no limit
	SyncCounter int  `key:"sync_counter" of:"classic"` // SyncCounterInit

	// Limits of the window; nil: ten frames, VALID after two good ones, until three are wrong or none is good.
	Window *WindowLimits `key:"window"`
}

// IncludeIDs returns the values of ProtectionSpec.IncludeID; "" means "none".
func IncludeIDs() []string { return []string{"none", "bytes", "nibbles"} }

// idMode is the way in which a CRC includes the data identifier.
type idMode uint8

const (
	noID          idMode = iota
	idBoth               // low byte, then high byte, before the data
	idAlternating        // before the data, the low byte if the counter is even, the high byte if odd
	idLow                // low byte before the data
	idNibble             // low byte and a zero before the data; the other bits are in Nibble
	idAfter              // low byte, then high byte, after the data
	idAfterHigh          // high byte, then low byte, after the data
	idSent               // in the frame, at Protection.ID, and so among the data
	idList               // the entry of DataIDs selected by the counter, after the data
)

// profile holds the parameters that a profile fixes.
type profile struct {
	name              string
	algorithm         Algorithm
	width, digit      uint8
	poly, init, xor   uint64
	reflect           bool
	ids               idMode
	modulus, start    int    // 0: the specification gives them
	checksum, counter string // places of the profile, relative to Offset
	id, length        string // places of the data identifier and the length, likewise; "": none
	fold              Fold
	classic           bool
}

// profiles lists all profiles, with the numbers and the places of checksum and counter that the
// profiles of AUTOSAR and SAE fix. For other profiles the specification gives them.
func profiles() []profile {
	one := profile{algorithm: CRC, width: 8, poly: 0x1D, modulus: 15, checksum: "0|8", counter: "8|4"}
	two := profile{
		algorithm: CRC, width: 8, poly: 0x2F, init: 0xFF, xor: 0xFF,
		modulus: 16, start: 1, checksum: "0|8", counter: "8|4",
	}
	five := profile{
		algorithm: CRC, width: 16, poly: 0x1021, init: 0xFFFF,
		modulus: 256, checksum: "0|16", counter: "16|8",
	}
	four := profile{
		algorithm: CRC, width: 32, poly: 0xF4ACFB13, init: 0xFFFFFFFF, xor: 0xFFFFFFFF, reflect: true,
		modulus: 1 << 16, length: "7|16@0", counter: "23|16@0", id: "39|32@0", checksum: "71|32@0",
	}
	six := profile{
		algorithm: CRC, width: 16, poly: 0x1021, init: 0xFFFF,
		modulus: 256, checksum: "7|16@0", length: "23|16@0", counter: "32|8",
	}
	seven := profile{
		algorithm: CRC, width: 64, poly: 0x42F0E1EBA9EA3693, init: math.MaxUint64, xor: math.MaxUint64, reflect: true,
		modulus: 1 << 32, checksum: "7|64@0", length: "71|32@0", counter: "103|32@0", id: "135|32@0",
	}
	eight := four
	eight.modulus, eight.checksum = 1<<32, "7|32@0"
	eight.length, eight.counter, eight.id = "39|32@0", "71|32@0", "103|32@0"
	of := func(f profile, name string, ids idMode, classic bool) profile {
		f.name, f.ids, f.classic = name, ids, classic
		return f
	}

	return []profile{
		of(one, "e2e-1a", idBoth, true),
		of(one, "e2e-1b", idAlternating, true),
		of(one, "e2e-1low", idLow, true),
		of(one, "e2e-1c", idNibble, true),
		of(one, "e2e-11a", idBoth, false),
		of(one, "e2e-11c", idNibble, false),
		of(two, "e2e-2", idList, true),
		of(two, "e2e-22", idList, false),
		of(four, "e2e-4", idSent, false),
		of(five, "e2e-5", idAfter, false),
		of(six, "e2e-6", idAfterHigh, false),
		of(seven, "e2e-7", idSent, false),
		of(eight, "e2e-8", idSent, false),
		of(four, "e2e-44", idSent, false),
		{name: "crc8", algorithm: CRC, width: 8},
		{name: "crc16", algorithm: CRC, width: 16},
		{name: "crc32", algorithm: CRC, width: 32},
		{name: "crc64", algorithm: CRC, width: 64},
		{name: "sum", algorithm: Sum, digit: 8},
		{name: "nibble-sum", algorithm: Sum, digit: 4},
		{name: "bit-sum", algorithm: Sum, digit: 1},
		{name: "xor", algorithm: XOR},
		{name: "j1939-tsc1", algorithm: Sum, digit: 8, fold: FoldTSC1, modulus: 8, checksum: "60|4", counter: "56|4"},
		{name: "j1939-xbr", algorithm: Sum, digit: 8, fold: FoldXBR, modulus: 16, checksum: "60|4", counter: "56|4"},
		{name: "counter-only"},
	}
}

// Profiles returns the names of all profiles.
func Profiles() (names []string) {
	for _, f := range profiles() {
		names = append(names, f.name)
	}
	return names
}

// e2e reports whether f is a profile of AUTOSAR E2E.
func (f *profile) e2e() bool { return f.ids != noID }

// has reports whether f has the fields of a class, the tag of in ProtectionSpec.
func (f *profile) has(class string) bool {
	crc := f.algorithm == CRC
	open := f.poly == 0 && f.fold == NoFold && f.algorithm != NoChecksum // parameters are free
	return map[string]bool{
		"":         true,
		"checksum": f.algorithm != NoChecksum,
		"open":     open,
		"open crc": open && crc,
		"open sum": open && f.algorithm == Sum,
		"e2e":      f.e2e(),
		"data id":  f.e2e() || crc && f.width == 8,
		"nibble":   f.ids == idNibble,
		"length":   f.length != "",
		"classic":  f.classic,
	}[class]
}

// NewProtection compiles a specification for message m.
func NewProtection(spec ProtectionSpec, m *messages.Message) (p Protection, err error) {
	err = try(func() { p = newProtection(spec, m) })
	return p, err
}

func newProtection(spec ProtectionSpec, m *messages.Message) Protection {
	list := profiles()
	i, near := findByName(list, spec.Profile, func(f *profile) string { return f.name })
	if i < 0 {
		refuse("protection: profile %q; %s", spec.Profile, near)
	}
	c := protectionCompiler{spec: spec, f: list[i], m: m, p: Protection{Profile: spec.Profile}}
	steps := []func(){
		c.checkKeys, c.setRange, c.compilePlaces, c.setLength, c.setCounter, c.checkDataIDs,
		c.setChecksum, c.listTerms, c.setSequence, c.setWindow,
	}
	for _, step := range steps {
		inContext("protection "+spec.Profile, step)
	}
	return c.p
}

// checkKeys refuses fields that the profile does not have.
func (c *protectionCompiler) checkKeys() {
	for field, v := range reflect.ValueOf(c.spec).Fields() {
		given := !v.IsZero() && v.Interface() != IncludeIDs()[0]
		if given && !c.f.has(field.Tag.Get("of")) {
			keys := strings.Split(field.Tag.Get("key"), ",")
			refuse("%s: the profile does not have this key", strings.ReplaceAll(keys[len(keys)-1], "_", " "))
		}
	}
}

// part is a number of a protection.
type part struct {
	name string
	at   *Split
}

// parts returns the numbers of a protection with their names in errors.
func (p *Protection) parts() [5]part {
	return [5]part{
		{"checksum", &p.Checksum}, {"counter", &p.Counter}, {"nibble", &p.Nibble}, {"data id", &p.ID}, {"length", &p.Length},
	}
}

// bits returns the bits of the frame that s takes.
func (s *Split) bits() (bits messages.Bits) {
	var data [64]byte
	s.Store(&data, s.Mask())
	for i, b := range data {
		bits[i/8] |= uint64(b) << (i % 8 * 8)
	}
	return bits
}

// Carries returns the part of the protection that signal s overlaps: "counter", "checksum",
// "data id", "length", or "" for none.
func (p *Protection) Carries(s *messages.Signal) string {
	at, _ := s.Bits()
	for _, part := range p.parts() {
		if bits := part.at.bits(); bits.Overlaps(&at) {
			return strings.Replace(part.name, "nibble", "data id", 1)
		}
	}

	return ""
}

// findPosition returns the signal and the bits of a place: the name of a signal of m, or a
// position as in a DBC, "start|length", which is Intel unless "@0" follows.
func findPosition(m *messages.Message, place string) (s *messages.Signal, bits messages.Bits) {
	if at, length, ok := strings.Cut(place, "|"); ok {
		length, order, given := strings.Cut(length, "@")
		start, err1 := strconv.Atoi(at)
		size, err2 := strconv.Atoi(length)
		if err := errors.Join(err1, err2); err != nil || given && order != "0" && order != "1" {
			refuse("%q is not a position: "+
				"expected start|length, start|length@1 (Intel) or start|length@0 (Motorola)", place)
		}

		s = &messages.Signal{Name: place, Start: start, Len: size, BigEndian: order == "0"}
	} else {
		i, near := findByName(m.Signals, place, signalName)
		if i < 0 {
			refuse("the message has no signal %q; %s", place, near)
		}
		s = &m.Signals[i]
	}

	bits, ok := s.Bits()
	if !ok || bits.Bytes() > m.Len {
		refuse("%s (%d|%d) does not fit the message's %d bytes", place, s.Start, s.Len, m.Len)
	}
	return s, bits
}

// compileSplit compiles a number in one or two places of m and returns the bits that it
// takes.
func compileSplit(m *messages.Message, places []string) (s Split, taken messages.Bits) {
	if len(places) > len(s.Part) {
		refuse("%d places: a number is in one or two, its lower bits in the first", len(places))
	}
	total := 0
	for i, place := range places {
		sig, at := findPosition(m, place)
		switch {
		case sig.Float:
			refuse("signal %s is a floating-point number", place)
		case rawField(sig).Ninth > 0:
			refuse("%s: %d bits from bit %d on need nine bytes", place, sig.Len, sig.Start)
		case sig.MuxedBy != "":
			refuse("signal %s is not in every frame: it is multiplexed by %s", place, sig.MuxedBy)
		case at.Overlaps(&taken):
			refuse("%s and %s share bits", places[0], place)
		}

		total += sig.Len
		taken.Add(&at)
		f := rawField(sig)
		s.Part[i] = BitRange{f.At, f.Shift, f.Len, f.Big}
		s.N++
	}

	if total > 64 {
		refuse("%s: %d bits; 1 to 64 are possible", strings.Join(places, " and "), total)
	}
	return s, taken
}
