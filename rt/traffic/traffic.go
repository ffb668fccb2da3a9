package traffic

import (
	"math"
	"slices"
	"sync"
	"time"

	"lockstep/io/can"
	"lockstep/io/sigmap"
	"lockstep/io/strictjson"
	"lockstep/rt"
	"lockstep/rt/report"
)

// maxGaps is the number of times between two frames of a message that its cycle is taken from.
const maxGaps = 64

// Traffic measures the frames on the buses of a run and passes them to the streams of clients. The reader of the ring
// calls BeginTick, AddFrame and EndTick; other goroutines may call the other methods at the same time.
type Traffic struct {
	report.View
	buses *Buses

	mu      sync.Mutex
	tick    int64 // last tick begun; 0: none
	meters  map[Key]*frameMeter
	loads   []busMeter // of the buses
	streams []*Stream
}

// New returns the traffic of a run, whose buses are those of NewBuses.
func New(r report.View, b *Buses) *Traffic {
	return &Traffic{View: r, buses: b, meters: map[Key]*frameMeter{}, loads: make([]busMeter, len(b.Buses))}
}

// time returns the simulated time of a tick, s.
func (t *Traffic) time(tick int64) float64 { return float64(tick*t.Handover.Tables.PeriodNs) / 1e9 }

// busMeter measures the load of a bus in each second of simulated time.
type busMeter struct {
	rate   float64 // frames per second, in the last second
	load   float64 // share of the bus that they took, in the last second; 0 without a bit rate
	frames int     // in this second
	busy   float64 // time of these on the bus, s
}

// frameMeter measures the frames of a message.
type frameMeter struct {
	last   rt.Entry       // frame that was made last, on the bus or not
	frames uint64         // on the bus
	tick   int64          // of the last one
	at     int64          // of the last one, ns: its stamp, or its grid point in virtual time
	gaps   [maxGaps]int64 // times between two frames, ns
	n      int            // times so far
}

// add adds a frame.
func (m *frameMeter) add(tick, at int64) {
	if gap := at - m.at; m.frames > 0 && gap >= 0 { // a step of the clock may make it negative
		m.gaps[m.n%maxGaps] = gap
		m.n++
	}
	m.frames++
	m.tick, m.at = tick, at
}

// cycle returns the spread of the last times between two frames; nil: there are none.
func (m *frameMeter) cycle() *report.Cycle {
	list := m.gaps[:min(m.n, maxGaps)]
	if len(list) == 0 {
		return nil
	}
	n, mean, square := float64(len(list)), 0.0, 0.0
	for _, g := range list {
		mean += float64(g) / n
	}
	for _, g := range list {
		square += (float64(g) - mean) * (float64(g) - mean) / n
	}
	return &report.Cycle{Min: slices.Min(list), Mean: int64(math.Round(mean)), Max: slices.Max(list), Jitter: int64(math.Round(math.Sqrt(square)))}
}

// BeginTick begins a tick. The frames that follow belong to it.
func (t *Traffic) BeginTick(tick int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tick = tick
}

// AddFrame adds a frame of the ring.
func (t *Traffic) AddFrame(e *rt.Entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e.Fate == rt.Unsent || e.Fate == rt.Refused {
		return // no frame was made
	}
	key := KeyOf(e)
	if e.Message >= 0 {
		if t.meters[key] == nil {
			t.meters[key] = &frameMeter{}
		}
		t.meters[key].last = rt.Entry{Tick: e.Tick, Bus: e.Bus, Fate: e.Fate, Withheld: e.Withheld, Copy: e.Copy, Safe: e.Safe, Frame: e.Frame}
	}
	if OnBus(e) {
		at := e.Stamp.Soft
		if at == 0 || t.Handover.Loop.Virtual {
			at = e.Tick * t.Handover.Tables.PeriodNs
		}
		if e.Message >= 0 {
			t.meters[key].add(e.Tick, at)
		}
		t.loads[e.Bus].frames++
		t.loads[e.Bus].busy += t.timeOnBus(e)
	}
	if len(t.streams) == 0 {
		return
	}
	f := t.newFrame(e, key)
	for _, c := range t.streams {
		c.take(f, key)
	}
}

// OnBus reports whether a frame was on its bus.
func OnBus(e *rt.Entry) bool {
	return e.Fate == rt.Sent && !e.Withheld || e.Fate == rt.Received && !e.Copy
}

// timeOnBus returns the longest time that a frame takes on its bus, s; 0 without a bit rate.
func (t *Traffic) timeOnBus(e *rt.Entry) float64 {
	b := &t.Handover.Bench.Buses[e.Bus]
	if !(b.BitRate > 0) {
		return 0
	}
	x := sigmap.Tx{ID: e.Frame.ID, Len: int(e.Frame.Len), Flags: e.Frame.Flags}
	if e.Frame.Flags&can.FlagLong != 0 && e.Message >= 0 {
		if m := t.Handover.Maps[e.Bus]; KeyOf(e).Sent {
			x.Excerpt = m.Tx[e.Message].Excerpt
		} else {
			x.Excerpt = m.Rx[e.Message].Excerpt
		}
	}
	if slow, fast := x.MaxBitsFD(); e.Frame.Flags&can.FlagBRS != 0 && b.DataRate > 0 {
		return float64(slow)/b.BitRate + float64(fast)/b.DataRate
	}
	return float64(x.MaxBits()) / b.BitRate
}

// EndTick ends the tick. lost is the number of ticks before it that the ring had no room for.
func (t *Traffic) EndTick(lost int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range t.streams {
		if c.lostTicks += lost; c.every > 0 && t.tick%c.every == 0 {
			c.flush()
		}
	}
	if second := max(1, int64(time.Second)/t.Handover.Tables.PeriodNs); t.tick%second == 0 {
		seconds := float64(second*t.Handover.Tables.PeriodNs) / 1e9
		for i := range t.loads {
			b := &t.loads[i]
			*b = busMeter{rate: float64(b.frames) / seconds, load: b.busy / seconds}
		}
	}
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

// States returns the states of all buses and messages. interfaces are the states of the interfaces of the host, by the
// name of the bus; nil: not known.
func (t *Traffic) States(interfaces map[string]*report.BusState) *MessageStates {
	t.mu.Lock()
	defer t.mu.Unlock()
	a := &MessageStates{Tick: t.tick, Time: t.time(t.tick), Messages: []MessageState{}}
	for i, b := range t.buses.Buses {
		v := BusTraffic{Name: b.Name, Frames: t.loads[i].rate}
		if b.BitRate > 0 {
			v.Load = strictjson.Finite(t.loads[i].load)
		}
		if e := interfaces[b.Name]; e != nil {
			v.State, v.TxErrors, v.RxErrors, v.ErrorFrames = e.State, e.TxErrors, e.RxErrors, e.ErrorFrames
		}
		a.Buses = append(a.Buses, v)
	}
	received, sent := t.ReceivedMessages(), 0
	at := 0
	for b, m := range t.Handover.Maps {
		for i := range m.Rx {
			r := &received[at]
			at++
			if l := t.buses.byKey[Key{b, false, i}]; l != nil {
				v := t.messageState(l)
				v.Frames, v.Late, v.State, v.Window = r.Frames, r.Late, r.State, r.Window
				v.Problems = append(v.Problems, r.Problems()...)
				a.Messages = append(a.Messages, v)
			}
		}
		for i := range m.Tx {
			if l := t.buses.byKey[Key{b, true, i}]; l != nil {
				v := t.messageState(l)
				v.Problems = append(v.Problems, t.SendProblems(sent)...)
				a.Messages = append(a.Messages, v)
			}
			sent++
		}
	}
	return a
}

// messageState returns what the meter of a message has. The caller holds t.mu.
func (t *Traffic) messageState(l *Message) MessageState {
	v := MessageState{Name: l.Name, Problems: []string{}}
	m := t.meters[l.Key]
	if m == nil {
		return v
	}
	if v.Last = t.newFrame(&m.last, l.Key); m.frames > 0 {
		v.Frames, v.Cycle = m.frames, m.cycle()
		v.Age = strictjson.Finite(float64(max(0, t.tick-m.tick)*t.Handover.Tables.PeriodNs) / 1e9)
	}
	return v
}
