package j1939

import (
	"encoding/binary"
	"fmt"
)

// Parameter groups of the diagnostic messages: SAE J1939-73.
const (
	PGNDM1  = 0xFECA // active trouble codes, once per second
	PGNDM2  = 0xFECB // previously active trouble codes, on request
	PGNDM3  = 0xFECC // a request: clear the previously active codes
	PGNDM4  = 0xFECD // freeze frames, on request
	PGNDM11 = 0xFED3 // a request: clear the active codes
)

// Lamp is the state of a warning lamp, and how it flashes.
type Lamp struct {
	On    uint8 // 0 off, 1 on, 2 error, 3 not available
	Flash uint8 // 0 slowly, 1 fast, 3 not at all
}

// TroubleCode is a diagnostic trouble code.
type TroubleCode struct {
	SPN         uint32 // suspect parameter number, 19 bits
	FMI         uint8  // failure mode identifier, 5 bits
	Occurrences uint8  // 0 to 126; 127: not available
	Old         bool   // conversion method bit: the SPN has the order of bits of version 1 to 3
}

// String returns "SPN 191 FMI 2, 3 times".
func (c TroubleCode) String() string {
	text := fmt.Sprintf("SPN %d FMI %d", c.SPN, c.FMI)
	if c.Occurrences != 127 {
		text += fmt.Sprintf(", %d times", c.Occurrences)
	}
	if c.Old {
		text += ", in the order of bits before version 4"
	}
	return text
}

// TroubleCodes are the content of DM1 and DM2.
type TroubleCodes struct {
	Malfunction, RedStop, AmberWarning, Protect Lamp
	Codes                                       []TroubleCode
}

// Lamps returns the lamps that are on: "amber warning lamp on".
func (d TroubleCodes) Lamps() (list []string) {
	for _, l := range []struct {
		name string
		lamp Lamp
	}{{"malfunction lamp on", d.Malfunction}, {"red stop lamp on", d.RedStop}, {"amber warning lamp on", d.AmberWarning}, {"protect lamp on", d.Protect}} {
		if l.lamp.On == 1 {
			list = append(list, l.name)
		}
	}
	return list
}

// FreezeFrame is a record of DM4.
type FreezeFrame struct {
	Code TroubleCode
	Data []byte // engine torque mode, boost, engine speed, ..., and data of the manufacturer: J1939-73, 5.7.4
}

// parseCode returns the trouble code of four bytes.
func parseCode(b []byte) TroubleCode {
	return TroubleCode{
		SPN: uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2]>>5)<<16, FMI: b[2] & 0x1F,
		Occurrences: b[3] & 0x7F, Old: b[3]>>7 == 1,
	}
}

// ParseTroubleCodes decodes the data of DM1 or DM2: the lamps, and four bytes for each code. A code of zeros, or of
// ones, says that there is none; bytes that fill a single frame are ones.
func ParseTroubleCodes(data []byte) (TroubleCodes, error) {
	if len(data) < 6 {
		return TroubleCodes{}, fmt.Errorf("j1939: trouble codes of %d bytes; at least 6", len(data))
	}
	lamp := func(shift int) Lamp { return Lamp{data[0] >> shift & 3, data[1] >> shift & 3} }
	d := TroubleCodes{Malfunction: lamp(6), RedStop: lamp(4), AmberWarning: lamp(2), Protect: lamp(0)}
	rest := data[2:]
	if len(data) == 8 {
		rest = data[2:6]
	}
	if len(rest)%4 != 0 {
		return TroubleCodes{}, fmt.Errorf("j1939: trouble codes of %d bytes; 2 and 4 for each code", len(data))
	}
	for ; len(rest) > 0; rest = rest[4:] {
		if v := binary.LittleEndian.Uint32(rest); v != 0 && v != 0xFFFFFFFF {
			d.Codes = append(d.Codes, parseCode(rest))
		}
	}
	return d, nil
}

// ParseFreezeFrames decodes the data of DM4: a length, a trouble code and data for each frame. No frames are zeros.
func ParseFreezeFrames(data []byte) (list []FreezeFrame, err error) {
	for b := data; len(b) > 0 && b[0] != 0 && b[0] != 0xFF; {
		n := int(b[0])
		if n < 4 || len(b) < 1+n {
			return nil, fmt.Errorf("j1939: a freeze frame of %d bytes; %d are there", n, len(b)-1)
		}
		list = append(list, FreezeFrame{parseCode(b[1:5]), b[5 : 1+n]})
		b = b[1+n:]
	}
	return list, nil
}
