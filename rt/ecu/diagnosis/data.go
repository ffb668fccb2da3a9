package diagnosis

import (
	"slices"
	"time"
)

// Identifier is a data identifier of a unit. A value is big-endian.
type Identifier struct {
	ID      uint16
	Read    func() []byte
	Size    int                     // bytes of a written or controlled value
	Write   func(value []byte) byte // returns a negative response code, or 0; nil: not writable
	Control func(value []byte) byte // takes the value from the tester; nil value: back to the unit; nil: not controllable
	Secure  bool                    // writing and controlling need an unlocked unit
}

// Routine is a routine of a unit.
type Routine struct {
	ID       uint16
	Takes    time.Duration                                // time to the answer of a start
	Start    func(option []byte) (status []byte, no byte) // no: negative response code, or 0
	Stop     func() (status []byte, no byte)              // nil: it cannot be stopped
	Results  func() (status []byte, no byte)              // nil: it has no results
	Secure   bool                                         // it needs an unlocked unit
	Sessions []byte                                       // sessions in which it runs; nil: every one but the default one
}

// identifier returns a data identifier; nil if the unit does not have it.
func (s *Server) identifier(id uint16) *Identifier {
	i := slices.IndexFunc(s.Identifiers, func(d Identifier) bool { return d.ID == id })
	if i < 0 {
		return nil
	}
	return &s.Identifiers[i]
}

// own returns the identifiers that the server itself has.
func (s *Server) own() []Identifier {
	return []Identifier{
		{ID: 0xF186, Read: func() []byte { return []byte{s.session} }},
		{ID: 0xF190, Read: func() []byte { return []byte(s.VIN) }, Size: 17, Secure: true, Write: func(v []byte) byte {
			if slices.ContainsFunc(v, func(c byte) bool { return c < '0' || c > '9' && c < 'A' || c > 'Z' }) {
				return RequestOutOfRange
			}
			s.VIN = string(v)
			return 0
		}},
		{ID: 0xF195, Read: func() []byte { return []byte(s.Software) }},
		{ID: 0xF197, Read: func() []byte { return []byte(s.Name) }},
	}
}

// readData is service 22. An identifier that the unit does not have is left out; if it has none of them, the
// request is refused.
func (s *Server) readData(request []byte) reply {
	if len(request)%2 != 1 {
		return refuse(wrongLength)
	}
	var data []byte
	for at := 1; at < len(request); at += 2 {
		if d := s.identifier(uint16(request[at])<<8 | uint16(request[at+1])); d != nil {
			data = append(append(data, request[at], request[at+1]), d.Read()...)
		}
	}
	if data == nil {
		return refuse(RequestOutOfRange)
	}
	return reply{data: data}
}

// writeData is service 2E.
func (s *Server) writeData(request []byte) reply {
	d := s.identifier(uint16(request[1])<<8 | uint16(request[2]))
	switch {
	case d == nil || d.Write == nil:
		return refuse(RequestOutOfRange)
	case len(request) != 3+d.Size:
		return refuse(wrongLength)
	case d.Secure && !s.access.open:
		return refuse(securityAccessDenied)
	}
	if no := d.Write(request[3:]); no != 0 {
		return refuse(no)
	}
	return reply{data: request[1:3]}
}

// controlOutput is service 2F: return to the unit (0), default (1, the same), freeze (2) or a value of the
// tester (3).
func (s *Server) controlOutput(request []byte) reply {
	id := uint16(request[1])<<8 | uint16(request[2])
	d, how := s.identifier(id), request[3]
	switch {
	case d == nil || d.Control == nil || how > 3 || s.session != extendedSession:
		return refuse(RequestOutOfRange)
	case how < 3 && len(request) != 4 || how == 3 && len(request) != 4+d.Size:
		return refuse(wrongLength)
	case d.Secure && !s.access.open:
		return refuse(securityAccessDenied)
	}
	var value []byte
	switch how {
	case 2:
		value = d.Read()
	case 3:
		value = request[4:]
	}
	if no := d.Control(value); no != 0 {
		return refuse(no)
	}
	s.controlled[id] = value != nil
	return reply{data: append(append([]byte{}, request[1:4]...), d.Read()...)}
}

// returnControl gives all identifiers back to the unit.
func (s *Server) returnControl() {
	for _, d := range s.Identifiers {
		if s.controlled[d.ID] {
			d.Control(nil)
		}
	}
	clear(s.controlled)
}

// routine is service 31: start (1), stop (2), results (3).
func (s *Server) routine(request []byte) reply {
	what, id := request[1], uint16(request[2])<<8|uint16(request[3])
	i := slices.IndexFunc(s.Routines, func(r Routine) bool { return r.ID == id })
	switch {
	case what < 1 || what > 3:
		return refuse(subFunctionNotSupported)
	case i < 0:
		return refuse(RequestOutOfRange)
	}
	r := s.Routines[i]
	call := map[byte]func() ([]byte, byte){2: r.Stop, 3: r.Results}[what]
	switch {
	case r.Sessions != nil && !slices.Contains(r.Sessions, s.session):
		return refuse(RequestOutOfRange)
	case r.Secure && !s.access.open:
		return refuse(securityAccessDenied)
	case what == 1:
		call = func() ([]byte, byte) { return r.Start(request[4:]) }
	case call == nil:
		return refuse(subFunctionNotSupported)
	case len(request) != 4:
		return refuse(wrongLength)
	case !s.finished[id]:
		return refuse(requestSequenceError)
	}
	run := func() ([]byte, byte) {
		status, no := call()
		if no == 0 && what == 1 {
			s.finished[id] = true
		}
		return append([]byte{what, request[2], request[3]}, status...), no
	}
	if what == 1 && r.Takes > 0 {
		return s.later(r.Takes, run)
	}
	data, no := run()
	return reply{data, no}
}
