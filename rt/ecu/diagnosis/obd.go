package diagnosis

import (
	"encoding/binary"
	"hash/crc32"
)

// PID is a parameter of services 1 and 2, ISO 15031-5. Those of the server itself: 0, 20, 40, … list the
// parameters, 1 tells lamp and codes, 2 is the code of the freeze frame.
type PID struct {
	ID     byte
	Read   func() []byte
	Frozen uint16                    // identifier of the snapshot with the same value; 0: not in the freeze frame
	Shown  func(value []byte) []byte // converts the value of the snapshot
}

const (
	mostPIDs = 6 // parameters of one request of service 1
	obdOfISO = 6 // OBD standard: EOBD
	lampIsOn = 0x80
)

// serveOBD handles services 1 to 0A; ok is false for others. A unit does not answer what it does not have.
func (s *Server) serveOBD(request []byte, functional bool) (r reply, ok bool) {
	parameters := request[1:]
	switch mode := request[0]; {
	case mode == 1 && len(parameters) >= 1 && len(parameters) <= mostPIDs:
		for _, pid := range parameters {
			if v := s.currentData(pid); v != nil {
				r.data = append(append(r.data, pid), v...)
			}
		}
	case mode == 2 && len(parameters) == 2 && parameters[1] == 0:
		if v := s.frozenData(parameters[0]); v != nil {
			r.data = append([]byte{parameters[0], 0}, v...)
		}
	case mode == 3 && len(parameters) == 0:
		r.data = s.twoByteCodes(func(e *entry) bool { return e.status&Confirmed != 0 })
	case mode == 7 && len(parameters) == 0:
		r.data = s.twoByteCodes(func(e *entry) bool { return e.status&Pending != 0 })
	case mode == 0x0A && len(parameters) == 0:
		r.data = s.twoByteCodes(func(e *entry) bool { return e.permanent })
	case mode == 4 && len(parameters) == 0:
		s.Memory.Clear(func(Code) bool { return true })
		r.data = []byte{}
	case mode == 9 && len(parameters) == 1:
		if v := s.information(parameters[0]); v != nil {
			r.data = append([]byte{parameters[0]}, v...)
		}
	case mode == 0 || mode > 0x0A || mode == 5 || mode == 6 || mode == 8:
		return r, false
	case !functional:
		r = refuse(wrongLength)
	}
	return r, true
}

// list returns the four bytes that tell which of the 32 parameters after base the unit has.
func list(base byte, has func(id byte) bool) []byte {
	data := make([]byte, 4)
	for i := range 32 {
		if has(base + byte(i) + 1) {
			data[i/8] |= 0x80 >> (i % 8)
		}
	}
	return data
}

// has reports whether the unit has a parameter of service 1, or lists those above it.
func (s *Server) has(id byte) bool {
	if id == 1 || id == 2 || id == 0x1C {
		return true
	}
	for _, p := range s.PIDs {
		if p.ID == id || id%0x20 == 0 && p.ID > id {
			return true
		}
	}
	return false
}

// currentData returns a parameter of service 1; nil if the unit does not have it.
func (s *Server) currentData(pid byte) []byte {
	switch {
	case pid == 0 || pid%0x20 == 0 && s.has(pid):
		return list(pid, s.has)
	case pid == 1:
		codes, lamp := len(s.Memory.Numbers(Confirmed)), byte(0)
		if len(s.Memory.Numbers(WarningLamp)) > 0 {
			lamp = lampIsOn
		}
		return []byte{lamp | byte(min(codes, 127)), 0, 0, 0}
	case pid == 0x1C:
		return []byte{obdOfISO}
	}
	for _, p := range s.PIDs {
		if p.ID == pid {
			return p.Read()
		}
	}
	return nil
}

// frozenData returns a parameter of the freeze frame, the first snapshot in the memory; nil if there is none.
func (s *Server) frozenData(pid byte) []byte {
	var e *entry
	for i := range s.Memory.list {
		if s.Memory.list[i].first != nil && e == nil {
			e = &s.Memory.list[i]
		}
	}
	has := func(id byte) bool {
		for _, p := range s.PIDs {
			if p.Frozen != 0 && (p.ID == id || id%0x20 == 0 && p.ID > id) {
				return true
			}
		}
		return id == 2
	}
	switch {
	case pid == 0 || pid%0x20 == 0 && has(pid):
		return list(pid, has)
	case pid == 2 && e == nil:
		return []byte{0, 0}
	case pid == 2:
		return []byte{byte(e.Number >> 16), byte(e.Number >> 8)}
	case e == nil:
		return nil
	}
	for _, p := range s.PIDs {
		if p.ID == pid && p.Frozen != 0 {
			return p.Shown(s.valueIn(e.first, p.Frozen))
		}
	}
	return nil
}

// valueIn returns the value of an identifier in a snapshot.
func (s *Server) valueIn(data []byte, id uint16) []byte {
	for _, other := range s.Snapshot {
		n := len(s.identifier(other).Read())
		if other == id {
			return data[2 : 2+n]
		}
		data = data[2+n:]
	}
	return nil
}

// twoByteCodes returns the number of codes for which match holds, and their two bytes of SAE J2012.
func (s *Server) twoByteCodes(match func(e *entry) bool) []byte {
	data := []byte{0}
	for i := range s.Memory.list {
		if e := &s.Memory.list[i]; match(e) {
			data[0]++
			data = append(data, byte(e.Number>>16), byte(e.Number>>8))
		}
	}
	return data
}

// information returns a parameter of service 9: the vehicle's identification number (2), the software (4), its
// checksum (6) and the name (0A); nil if the unit does not have it.
func (s *Server) information(id byte) []byte {
	padded := func(text string, n int) []byte {
		return append([]byte{1}, append([]byte(text), make([]byte, n)...)[:n]...)
	}
	switch id {
	case 0:
		return list(0, func(id byte) bool { return id == 2 || id == 4 || id == 6 || id == 0x0A })
	case 2:
		return padded(s.VIN, 17)
	case 4:
		return padded(s.Software, 16)
	case 6:
		return binary.BigEndian.AppendUint32([]byte{1}, crc32.ChecksumIEEE([]byte(s.Software)))
	case 0x0A:
		return padded("TCM\x00-"+s.Name, 20)
	}
	return nil
}
