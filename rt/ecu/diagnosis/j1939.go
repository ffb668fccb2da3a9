package diagnosis

import (
	"encoding/binary"
	"time"
)

// Parameter groups of SAE J1939-73 and -21.
const (
	activeCodes     = 0xFECA // DM1
	previousCodes   = 0xFECB // DM2
	clearPrevious   = 0xFECC // DM3
	freezeFrames    = 0xFECD // DM4
	clearActive     = 0xFED3 // DM11
	acknowledgement = 0xE800
	announcement    = 0xEC00 // TP.CM: BAM
	dataTransfer    = 0xEB00 // TP.DT

	extended   = 1 << 31 // frame with an identifier of 29 bits
	toAll      = 0xFF
	dmPriority = 6

	updateTime = time.Second           // between two DM1
	packetTime = 50 * time.Millisecond // between two frames of a message of several frames
)

// Messages sends the diagnostic messages of a unit with an address on SAE J1939. Codes of its memory are
// SPN<<5 | FMI.
type Messages struct {
	Address byte
	Memory  *Memory
	Send    func(id uint32, data []byte) error

	queue  []message
	due    time.Duration // instant of the next frame of the queue
	update time.Duration // instant of the next DM1
	active int           // codes in the last DM1
}

// message is a frame to send.
type message struct {
	id   uint32
	data []byte
	wait time.Duration // time to the next frame
}

// Request handles a request for a parameter group, and reports whether it is one of the diagnosis. A group that
// clears is acknowledged if the request was to the unit alone.
func (m *Messages) Request(pgn uint32, from byte, all bool, now time.Duration) bool {
	switch pgn {
	case activeCodes:
		m.publish(pgn, m.codes(TestFailed))
	case previousCodes:
		m.publish(pgn, m.codes(previous))
	case freezeFrames:
		m.publish(pgn, m.freezeFrames())
	case clearPrevious, clearActive:
		mask := byte(TestFailed)
		m.Memory.Clear(func(c Code) bool { return (m.Memory.Status(c.Number)&mask != 0) == (pgn == clearActive) })
		if !all {
			m.add(dmPriority<<26|acknowledgement<<8|toAll<<8, []byte{0, 0xFF, 0xFF, 0xFF, from, byte(pgn), byte(pgn >> 8), byte(pgn >> 16)}, 0)
		}
	default:
		return false
	}
	m.due = max(m.due, now)
	return true
}

// previous selects codes that are confirmed and not active.
const previous = Confirmed

// codes returns the lamps and the active codes, or the previously active ones.
func (m *Messages) codes(mask byte) []byte {
	lamp := byte(0)
	data := []byte{0, 0xFF}
	for _, e := range m.Memory.list {
		if e.status&WarningLamp != 0 {
			lamp = 1 << 2 // amber warning lamp
		}
		if mask == TestFailed && e.status&TestFailed == 0 || mask == previous && e.status&(TestFailed|Confirmed) != Confirmed {
			continue
		}
		data = append(data, fourBytes(e.Number, e.occurrences)...)
	}
	data[0] = lamp
	if len(data) == 2 {
		data = append(data, 0, 0, 0, 0)
	}
	return pad(data)
}

// fourBytes returns SPN, FMI and occurrences in the form of conversion method 0.
func fourBytes(number uint32, occurrences int) []byte {
	spn := number >> 5
	return []byte{byte(spn), byte(spn >> 8), byte(spn>>16)<<5 | byte(number&31), byte(min(occurrences, 126))}
}

// freezeFrames returns DM4: the length of each frame, its code and the values of the first snapshot.
func (m *Messages) freezeFrames() (data []byte) {
	for _, e := range m.Memory.list {
		if e.first != nil {
			data = append(data, byte(4+len(e.first)))
			data = append(append(data, fourBytes(e.Number, e.occurrences)...), e.first...)
		}
	}
	if data == nil {
		data = []byte{0, 0, 0, 0, 0}
	}
	return pad(data)
}

// pad fills a message up to 8 bytes.
func pad(data []byte) []byte {
	for len(data) < 8 {
		data = append(data, 0xFF)
	}
	return data
}

// publish queues a group to all: one frame, or a broadcast announcement (BAM) with its packets.
func (m *Messages) publish(pgn uint32, data []byte) {
	if len(data) <= 8 {
		m.add(dmPriority<<26|pgn<<8, data, 0)
		return
	}
	packets := (len(data) + 6) / 7
	head := binary.LittleEndian.AppendUint16([]byte{32}, uint16(len(data)))
	m.add(7<<26|announcement<<8|toAll<<8, append(head, byte(packets), 0xFF, byte(pgn), byte(pgn>>8), byte(pgn>>16)), packetTime)
	for n := 1; len(data) > 0; n++ {
		size := min(7, len(data))
		m.add(7<<26|dataTransfer<<8|toAll<<8, pad(append([]byte{byte(n)}, data[:size]...)), packetTime)
		data = data[size:]
	}
}

func (m *Messages) add(id uint32, data []byte, wait time.Duration) {
	m.queue = append(m.queue, message{extended | id | uint32(m.Address), data, wait})
}

// Advance sends what is due: DM1 every second while a code is active and once when the last one is not, and
// the answers to requests. The error is that of Send.
func (m *Messages) Advance(now time.Duration) error {
	active := len(m.Memory.Numbers(TestFailed))
	if (active > 0 && now >= m.update || active != m.active) && len(m.queue) == 0 {
		m.publish(activeCodes, m.codes(TestFailed))
		m.update, m.active = now+updateTime, active
	}
	for len(m.queue) > 0 && now >= m.due {
		next := m.queue[0]
		m.queue = m.queue[1:]
		m.due = now + next.wait
		if err := m.Send(next.id, next.data); err != nil {
			return err
		}
	}
	return nil
}
