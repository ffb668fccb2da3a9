package diagnosis

// Parts of the answers of service 19.
const (
	availableStatus = 0xFF // all status bits are supported
	formatISO14229  = 1    // DTCFormatIdentifier

	everyRecord = 0xFF
	allGroups   = 0xFFFFFF

	occurrenceRecord = 1 // extended data: occurrence counter
	agingRecord      = 2 // aging counter, in operation cycles
	detectionRecord  = 3 // fault detection counter, two's complement
)

// clear is service 14, for all codes or one.
func (s *Server) clear(request []byte) reply {
	if len(request) != 4 {
		return refuse(wrongLength)
	}
	group := threeBytes(request[1:])
	if group != allGroups && s.Memory.find(group) == nil {
		return refuse(RequestOutOfRange)
	}
	s.Memory.Clear(func(c Code) bool { return group == allGroups || c.Number == group })
	return reply{data: []byte{}}
}

// readTroubleCodes is service 19.
func (s *Server) readTroubleCodes(request []byte) reply {
	lengths := map[byte]int{0x01: 3, 0x02: 3, 0x04: 6, 0x06: 6, 0x0A: 2}
	sub := request[1]
	n, ok := lengths[sub]
	switch {
	case !ok:
		return refuse(subFunctionNotSupported)
	case len(request) != n:
		return refuse(wrongLength)
	}
	switch sub {
	case 0x01:
		count := len(s.Memory.Numbers(request[2]))
		return reply{data: []byte{sub, availableStatus, formatISO14229, byte(count >> 8), byte(count)}}
	case 0x02, 0x0A:
		data := []byte{sub, availableStatus}
		for _, e := range s.Memory.list {
			if sub == 0x0A || e.status&request[2] != 0 {
				data = append(appendNumber(data, e.Number), e.status)
			}
		}
		return reply{data: data}
	}
	e := s.Memory.find(threeBytes(request[2:]))
	if e == nil {
		return refuse(RequestOutOfRange)
	}
	data := append(appendNumber([]byte{sub}, e.Number), e.status)
	if sub == 0x04 {
		return s.appendSnapshots(data, e, request[5])
	}
	return appendExtended(data, e, request[5])
}

// appendSnapshots appends the snapshots of a code: record 1 is the first failure, record 2 the last one.
func (s *Server) appendSnapshots(data []byte, e *entry, record byte) reply {
	if record != everyRecord && record != 1 && record != 2 {
		return refuse(RequestOutOfRange)
	}
	for i, values := range [][]byte{e.first, e.last} {
		if n := byte(i + 1); values != nil && (record == n || record == everyRecord) {
			data = append(data, n, byte(len(s.Snapshot)))
			data = append(data, values...)
		}
	}
	return reply{data: data}
}

// appendExtended appends the extended data of a code.
func appendExtended(data []byte, e *entry, record byte) reply {
	if record != everyRecord && (record < occurrenceRecord || record > detectionRecord) {
		return refuse(RequestOutOfRange)
	}
	if e.status&FailedSinceClear == 0 && record == everyRecord {
		return reply{data: data}
	}
	values := []byte{byte(e.occurrences), byte(e.aged), byte(e.detection())}
	for i, v := range values {
		if n := byte(i + occurrenceRecord); record == n || record == everyRecord {
			data = append(data, n, v)
		}
	}
	return reply{data: data}
}

// controlSetting is service 85.
func (s *Server) controlSetting(request []byte) reply {
	sub := request[1]
	switch {
	case sub != 1 && sub != 2:
		return refuse(subFunctionNotSupported)
	case len(request) != 2:
		return refuse(wrongLength)
	}
	s.Memory.frozen = sub == 2
	return reply{data: []byte{sub}}
}

// snapshot returns the identifiers of Config.Snapshot with their values.
func (s *Server) snapshot() (data []byte) {
	for _, id := range s.Snapshot {
		data = append(data, byte(id>>8), byte(id))
		data = append(data, s.identifier(id).Read()...)
	}
	return data
}

// threeBytes reads a trouble code.
func threeBytes(b []byte) uint32 { return uint32(b[0])<<16 | uint32(b[1])<<8 | uint32(b[2]) }

func appendNumber(data []byte, number uint32) []byte {
	return append(data, byte(number>>16), byte(number>>8), byte(number))
}
