package uds

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Status is the status byte of a trouble code: ISO 14229-1, D.2.
type Status uint8

// The bits of a status.
const (
	TestFailed Status = 1 << iota
	TestFailedThisCycle
	Pending
	Confirmed
	NotCompletedSinceClear
	FailedSinceClear
	NotCompletedThisCycle
	WarningIndicator
)

// StatusNames are the names of the bits of a status, from bit 0.
var StatusNames = [8]string{"test_failed", "failed_this_cycle", "pending", "confirmed", "not_completed_since_clear",
	"failed_since_clear", "not_completed_this_cycle", "warning_indicator"}

// String returns the names of the bits that are set.
func (s Status) String() string {
	var list []string
	for i, name := range StatusNames {
		if s>>i&1 == 1 {
			list = append(list, name)
		}
	}
	if list == nil {
		return "none"
	}
	return strings.Join(list, ", ")
}

// ParseStatus returns the bit of a name of StatusNames; false: there is no such name.
func ParseStatus(name string) (Status, bool) {
	i := slices.Index(StatusNames[:], name)
	return 1 << max(i, 0), i >= 0
}

// AllDTCs is the group of all trouble codes.
const AllDTCs = 0xFFFFFF

// DTC is a trouble code with its status.
type DTC struct {
	Code   uint32 // 24 bits: the code of SAE J2012 and the failure type
	Status Status
}

// FormatDTC returns the name of a trouble code: P0730, and with a failure type P0730-1A.
func FormatDTC(dtc uint32) string {
	name := fmt.Sprintf("%c%04X", "PCBU"[dtc>>22&3], dtc>>8&0x3FFF)
	if dtc&0xFF != 0 {
		name += fmt.Sprintf("-%02X", dtc&0xFF)
	}
	return name
}

// ParseDTC returns the trouble code of a name like P0730 or P0730-1A; false: the text is no such name.
func ParseDTC(name string) (dtc uint32, ok bool) {
	if len(name) != 5 && (len(name) != 8 || name[5] != '-') {
		return 0, false
	}
	group := strings.IndexByte("PCBU", name[0])
	number, err := strconv.ParseUint(name[1:5], 16, 14)
	failure := uint64(0)
	if err == nil && len(name) == 8 {
		failure, err = strconv.ParseUint(name[6:], 16, 8)
	}
	return uint32(max(group, 0))<<22 | uint32(number)<<8 | uint32(failure), group >= 0 && err == nil
}

// Record is a freeze frame of a trouble code.
type Record struct {
	Number byte
	Values []RecordValue
	Rest   []byte // bytes that are not divided, since the size of an identifier is not known
}

// RecordValue is the value of a data identifier in a freeze frame.
type RecordValue struct {
	ID   uint16
	Data []byte
}

// code returns the three bytes of a trouble code.
func code(dtc uint32) []byte { return []byte{byte(dtc >> 16), byte(dtc >> 8), byte(dtc)} }

// parseCode returns the trouble code of three bytes.
func parseCode(b []byte) uint32 { return uint32(b[0])<<16 | uint32(b[1])<<8 | uint32(b[2]) }

// ParseDTCs returns the trouble codes of an answer to 0x19 02 and 0A.
func ParseDTCs(a []byte) ([]DTC, error) {
	if (len(a)-3)%4 != 0 {
		return nil, fmt.Errorf("answer %s has %d bytes, want 3 and 4 for each trouble code", Bytes(a), len(a))
	}
	var list []DTC
	for b := a[3:]; len(b) > 0; b = b[4:] {
		list = append(list, DTC{parseCode(b), Status(b[3])})
	}
	return list, nil
}

// parseDTCRecord returns the trouble code of an answer to 0x19 04 and 06, and the bytes of its records.
func parseDTCRecord(a []byte, dtc uint32) (DTC, []byte, error) {
	switch {
	case len(a) < 6:
		return DTC{}, nil, fmt.Errorf("answer %s has %d bytes, want at least 6", Bytes(a), len(a))
	case parseCode(a[2:]) != dtc:
		return DTC{}, nil, fmt.Errorf("answer %s has the trouble code %s, want %s", Bytes(a), FormatDTC(parseCode(a[2:])), FormatDTC(dtc))
	}
	return DTC{dtc, Status(a[5])}, a[6:], nil
}

// parseSnapshots returns the freeze frames of an answer to 0x19 04.
func parseSnapshots(a []byte, dtc uint32, size func(id uint16) int) (DTC, []Record, error) {
	d, b, err := parseDTCRecord(a, dtc)
	if err != nil {
		return DTC{}, nil, err
	}
	var list []Record
	for len(b) > 0 {
		if len(b) < 2 {
			return d, nil, fmt.Errorf("answer %s ends within a record", Bytes(a))
		}
		r, n := Record{Number: b[0]}, int(b[1])
		for b = b[2:]; n > 0; n-- {
			if len(b) < 2 {
				return d, nil, fmt.Errorf("answer %s ends within record %d", Bytes(a), r.Number)
			}
			id := binary.BigEndian.Uint16(b)
			length := size(id)
			if length <= 0 {
				r.Rest = b
				return d, append(list, r), nil
			}
			if len(b) < 2+length {
				return d, nil, fmt.Errorf("answer %s ends within 0x%04X of record %d", Bytes(a), id, r.Number)
			}
			r.Values = append(r.Values, RecordValue{id, b[2 : 2+length]})
			b = b[2+length:]
		}
		list = append(list, r)
	}
	return d, list, nil
}
