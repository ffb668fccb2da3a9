package control

import (
	"math"
	"net/http"

	"lockstep/io/can"
	"lockstep/io/messages"
	"lockstep/io/sigmap"
	"lockstep/rt/bench"
	"lockstep/rt/report"
)

// Buses is the answer to GET /buses: the messages that the bench sends and receives. It does not change
// during a run.
type Buses struct {
	Buses    []Bus      `json:"buses"`
	Messages []*Message `json:"messages"` // bus after bus, the received ones first
}

// Bus is a bus of the bench.
type Bus struct {
	Name      string  `json:"name"`
	Interface string  `json:"interface"`             // interface of the host, "pair", or "file:" and the log that it plays
	BitRate   float64 `json:"bit_rate,omitempty"`    // of the bench file, bit/s; 0: not given
	DataRate  float64 `json:"data_rate,omitempty"`   // of the data phase of CAN FD, bit/s; 0: not given
	Log       bool    `json:"plays_a_log,omitempty"` // the frames received come from a log
}

// Message is a message with the layout of its frames.
type Message struct {
	Name       string          `json:"name"` // with several buses, "NAME on BUS"
	Bus        string          `json:"bus"`
	Direction  string          `json:"direction"`            // "in": received; "out": sent by the bench
	ID         uint32          `json:"id"`                   // identifier without the extended flag
	Extended   bool            `json:"extended,omitempty"`   // 29-bit identifier
	FD         bool            `json:"fd,omitempty"`         // CAN FD
	Length     int             `json:"length"`               // bytes of a frame; of a longer message those that are read
	Senders    []string        `json:"senders"`              // nodes that send it, by the database
	Cycle      float64         `json:"cycle_s,omitempty"`    // wanted time between two frames, s
	Timeout    float64         `json:"timeout_s,omitempty"`  // longest time without a valid frame, s
	Protection []string        `json:"protection,omitempty"` // profiles of its counters and checksums
	About      string          `json:"about,omitempty"`
	Signals    []MessageSignal `json:"signals"`

	of *messages.Message
}

// MessageSignal is a signal of a message and its bits. Bit b of byte B is 8·B+b.
type MessageSignal struct {
	Name      string     `json:"name"` // within the message
	Signal    string     `json:"signal,omitempty"`
	Start     int        `json:"start"`  // its lowest bit, or with BigEndian its highest
	Length    int        `json:"length"` // bits
	BigEndian bool       `json:"big_endian,omitempty"`
	Unit      string     `json:"unit"`
	Carries   string     `json:"carries,omitempty"`  // "counter of PROFILE", "checksum of PROFILE"
	Selector  bool       `json:"selector,omitempty"` // its value selects other signals
	MuxedBy   string     `json:"muxed_by,omitempty"` // signal whose value selects it; "" in every frame
	Ranges    [][]uint64 `json:"ranges,omitempty"`   // raw values of that signal, lowest and highest
}

// addBus adds a bus to the answer to GET /buses.
func (d *Description) addBus(h *bench.Handover, bus int) {
	b := &h.Bench.Buses[bus]
	d.buses.Buses = append(d.buses.Buses, Bus{b.Name.Text, b.Interface.Text, b.BitRate, b.DataRate, bench.IsLog(b.Interface.Text)})
}

// addLayout adds the layout of a message to the answer to GET /buses.
func (d *Description) addLayout(h *bench.Handover, m *messages.Message, id busMessage, on string) {
	v := &Message{Name: m.Name + on, Bus: h.Bench.Buses[id.bus].Name.Text, Direction: "in", ID: m.ID & can.MaskEFF,
		Extended: m.ID&can.EFF != 0, FD: m.IsFD(), Length: min(m.Len, 64), Senders: []string{}, About: m.Comment,
		Signals: []MessageSignal{}, of: m}
	var protect []sigmap.Protection
	cycle, timeout := int64(0), int64(0)
	if id.sent {
		t := &h.Maps[id.bus].Tx[id.at]
		v.Direction, v.ID, protect = "out", t.ID&can.MaskEFF, t.Protect
		if t.Send != sigmap.OnChange {
			cycle = t.CycleTicks
		}
	} else {
		r := &h.Maps[id.bus].Rx[id.at]
		protect, cycle, timeout = r.Protect, r.CycleTicks, r.TimeoutTicks
	}
	v.Cycle, v.Timeout = float64(cycle*h.Tables.PeriodNs)/1e9, float64(timeout*h.Tables.PeriodNs)/1e9
	if m.Sender != "" {
		v.Senders = append(append(v.Senders, m.Sender), m.OtherSenders...)
	}
	for i := range protect {
		v.Protection = append(v.Protection, protect[i].Profile)
	}
	for i := range m.Signals {
		s := &m.Signals[i]
		of := MessageSignal{Name: s.Name, Start: s.Start, Length: s.Len, BigEndian: s.BigEndian, Unit: s.Unit,
			Carries: bench.ProtectionOf(s, protect, ""), Selector: m.Selects(s), MuxedBy: s.MuxedBy}
		for _, r := range s.Ranges {
			of.Ranges = append(of.Ranges, r[:])
		}
		if name := m.Name + "." + s.Name + on; d.byName[name] != nil {
			of.Signal = name
		}
		v.Signals = append(v.Signals, of)
	}
	d.layouts[id] = v
	d.buses.Messages = append(d.buses.Messages, v)
}

// decodeFrame returns the values of the signals of a frame, in the order of the message; NaN: the frame does
// not hold the signal.
func (m *Message) decodeFrame(f *can.Frame) Numbers {
	list := make(Numbers, len(m.of.Signals))
	for i := range m.of.Signals {
		s := &m.of.Signals[i]
		list[i] = math.NaN()
		if bits, ok := s.Bits(); ok && int(f.Len) >= bits.Bytes() && m.of.Present(s, &f.Data) {
			list[i] = s.Value(s.Raw(&f.Data))
		}
	}
	return list
}

// MessageStates is the answer to GET /messages: how the messages of the bench arrive and leave.
type MessageStates struct {
	Tick     int64          `json:"tick"`
	Time     float64        `json:"time_s"` // simulated time of Tick, s
	Buses    []BusTraffic   `json:"buses"`
	Messages []MessageState `json:"messages"` // in the order of GET /buses
}

// BusTraffic is the state of a bus.
type BusTraffic struct {
	Name   string   `json:"name"`
	Load   *float64 `json:"load,omitempty"` // largest share of the bus that frames of the bench took in the last second; nil: no bit rate is known
	Frames float64  `json:"frames_per_s"`   // of the bench, in the last second

	// of an interface of the host
	State       string `json:"state,omitempty"`        // "error-active", "bus-off", ...; "up" without a controller
	TxErrors    *int   `json:"tx_errors,omitempty"`    // last known transmit error counter
	RxErrors    *int   `json:"rx_errors,omitempty"`    // last known receive error counter
	ErrorFrames uint64 `json:"error_frames,omitempty"` // error frames so far
}

// MessageState is the state of a message.
type MessageState struct {
	Name     string        `json:"name"`
	Frames   uint64        `json:"frames"`             // received since the start, or sent since this supervisor runs
	Age      *float64      `json:"age_s,omitempty"`    // time since its last frame, s; nil: there was none
	Cycle    *report.Cycle `json:"cycle_ns,omitempty"` // of the last 64 times between two frames; nil: there were none
	Late     bool          `json:"late,omitempty"`     // its timeout has passed
	State    string        `json:"state,omitempty"`    // AUTOSAR E2E state of the last frame of a protected message
	Window   string        `json:"window,omitempty"`   // AUTOSAR E2E state of a protected message
	Problems []string      `json:"problems"`           // counts of faulty frames
	Last     *Frame        `json:"last,omitempty"`     // its last frame; nil: there was none
}

// serveMessages answers GET /messages.
func (c *Server) serveMessages(http.ResponseWriter, *http.Request) (any, error) {
	s := c.streams
	s.mu.Lock()
	defer s.mu.Unlock()
	a := &MessageStates{Tick: s.tick, Time: c.time(s.tick), Messages: []MessageState{}}
	states := c.busStates()
	for i, b := range s.description.buses.Buses {
		v := BusTraffic{Name: b.Name, Frames: s.traffic.buses[i].rate}
		if b.BitRate > 0 {
			v.Load = finite(s.traffic.buses[i].load)
		}
		if e := states[b.Name]; e != nil {
			v.State, v.TxErrors, v.RxErrors, v.ErrorFrames = e.State, e.TxErrors, e.RxErrors, e.ErrorFrames
		}
		a.Buses = append(a.Buses, v)
	}
	received, sent := c.ReceivedMessages(), 0
	at := 0
	for b, m := range c.Handover.Maps {
		for i := range m.Rx {
			r := &received[at]
			at++
			if l := s.description.layouts[busMessage{b, false, i}]; l != nil {
				v := s.messageState(l, busMessage{b, false, i})
				v.Frames, v.Late, v.State, v.Window = r.Frames, r.Late, r.State, r.Window
				v.Problems = append(v.Problems, r.Problems()...)
				a.Messages = append(a.Messages, v)
			}
		}
		for i := range m.Tx {
			if l := s.description.layouts[busMessage{b, true, i}]; l != nil {
				v := s.messageState(l, busMessage{b, true, i})
				v.Problems = append(v.Problems, c.SendProblems(sent)...)
				a.Messages = append(a.Messages, v)
			}
			sent++
		}
	}
	return a, nil
}

// messageState returns what the meter of a message has. The caller holds s.mu.
func (s *streams) messageState(l *Message, id busMessage) MessageState {
	v := MessageState{Name: l.Name, Problems: []string{}}
	if m := s.traffic.meters[id]; m != nil {
		v.Last = s.newFrame(&m.last, id)
	}
	if m := s.traffic.meters[id]; m != nil && m.frames > 0 {
		v.Frames, v.Cycle = m.frames, m.cycle()
		v.Age = finite(float64(max(0, s.tick-m.tick)*s.Handover.Tables.PeriodNs) / 1e9)
	}
	return v
}
