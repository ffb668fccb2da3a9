package control

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"
	"time"

	"lockstep/io/can"
	"lockstep/io/sigmap"
	"lockstep/rt"
	"lockstep/rt/bench"
	"lockstep/rt/report"
)

// Bounds of streams of frames.
const (
	maxFrames  = 1 << 12 // frames that the queue of a stream holds
	maxForeign = 256     // frames of messages that the bench does not have, in an interval of a stream
	maxGaps    = 64      // times between two frames of a message that its cycle is taken from
)

// traffic measures the frames on the buses and passes them to the streams of frames. The mutex of streams
// guards it.
type traffic struct {
	meters map[busMessage]*frameMeter
	buses  []busMeter
	list   []*frameStream
}

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

// newTraffic returns the meters of the buses of a bench.
func newTraffic(h *bench.Handover) traffic {
	return traffic{meters: map[busMessage]*frameMeter{}, buses: make([]busMeter, len(h.Maps))}
}

// frame takes a frame of the ring. The caller holds s.mu.
func (s *streams) frame(e *rt.Entry) {
	if e.Fate == rt.Unsent || e.Fate == rt.Refused {
		return // no frame was made
	}
	id := busMessage{e.Bus, e.Fate != rt.Received, e.Message}
	if e.Message >= 0 {
		if s.traffic.meters[id] == nil {
			s.traffic.meters[id] = &frameMeter{}
		}
		s.traffic.meters[id].last = rt.Entry{Tick: e.Tick, Bus: e.Bus, Fate: e.Fate, Withheld: e.Withheld, Copy: e.Copy, Safe: e.Safe, Frame: e.Frame}
	}
	if onBus(e) {
		at := e.Stamp.Soft
		if at == 0 || s.Handover.Loop.Virtual {
			at = e.Tick * s.Handover.Tables.PeriodNs
		}
		if e.Message >= 0 {
			s.traffic.meters[id].add(e.Tick, at)
		}
		s.traffic.buses[e.Bus].frames++
		s.traffic.buses[e.Bus].busy += s.timeOnBus(e, id)
	}
	if len(s.traffic.list) == 0 {
		return
	}
	f := s.newFrame(e, id)
	for _, c := range s.traffic.list {
		c.take(s, f, id)
	}
}

// onBus reports whether a frame was on its bus.
func onBus(e *rt.Entry) bool {
	return e.Fate == rt.Sent && !e.Withheld || e.Fate == rt.Received && !e.Copy
}

// timeOnBus returns the longest time that a frame takes on its bus, s; 0 without a bit rate.
func (s *streams) timeOnBus(e *rt.Entry, id busMessage) float64 {
	b := &s.Handover.Bench.Buses[e.Bus]
	if !(b.BitRate > 0) {
		return 0
	}
	t := sigmap.Tx{ID: e.Frame.ID, Len: int(e.Frame.Len), Flags: e.Frame.Flags}
	if e.Frame.Flags&can.FlagLong != 0 && e.Message >= 0 {
		if m := s.Handover.Maps[e.Bus]; id.sent {
			t.Excerpt = m.Tx[e.Message].Excerpt
		} else {
			t.Excerpt = m.Rx[e.Message].Excerpt
		}
	}
	if slow, fast := t.MaxBitsFD(); e.Frame.Flags&can.FlagBRS != 0 && b.DataRate > 0 {
		return float64(slow)/b.BitRate + float64(fast)/b.DataRate
	}
	return float64(t.MaxBits()) / b.BitRate
}

// endTick ends a tick of the streams of frames, and the second of the meters. The caller holds s.mu.
func (s *streams) endTick() {
	for _, c := range s.traffic.list {
		if c.lostTicks += s.lost; c.every > 0 && s.tick%c.every == 0 {
			c.flush()
		}
	}
	if second := max(1, int64(time.Second)/s.Handover.Tables.PeriodNs); s.tick%second == 0 {
		seconds := float64(second*s.Handover.Tables.PeriodNs) / 1e9
		for i := range s.traffic.buses {
			b := &s.traffic.buses[i]
			*b = busMeter{rate: float64(b.frames) / seconds, load: b.busy / seconds}
		}
	}
}

// frameStream is the stream of frames of one client. The mutex of streams guards it.
type frameStream struct {
	messages  []string // names of the messages wanted; nil: all frames
	every     int64    // ticks of an interval, with the last frame of each message; 0: every frame
	open      map[frameKey]*Frame
	order     []frameKey
	queue     []Frame
	lost      int64 // frames that the next one lacks before it
	lostTicks int64
	wake      chan struct{} // holds a token when the queue has frames
}

// frameKey identifies frames: an interval keeps the last frame of each key.
type frameKey struct {
	busMessage
	id uint32 // of a frame without a message
}

// Frame is a line of a stream of frames.
type Frame struct {
	Tick      int64   `json:"tick"`   // tick that sent or read the frame
	Time      float64 `json:"time_s"` // simulated time of Tick, s
	Bus       string  `json:"bus"`
	Message   string  `json:"message,omitempty"`    // "": the bench has no such message
	Direction string  `json:"direction"`            // "in": received; "out": sent
	ID        uint32  `json:"id"`                   // identifier without the extended flag
	Extended  bool    `json:"extended,omitempty"`   // 29-bit identifier
	FD        bool    `json:"fd,omitempty"`         // CAN FD
	Data      string  `json:"data"`                 // bytes in hexadecimal
	Values    Numbers `json:"values,omitempty"`     // of the signals of the message, in the order of GET /buses; null: not in this frame
	Dropped   bool    `json:"dropped,omitempty"`    // the bus did not take it
	Withheld  bool    `json:"withheld,omitempty"`   // a fault kept it from the bus, or from the plant
	Again     bool    `json:"again,omitempty"`      // a fault sent or read it late or again
	Safe      bool    `json:"safe,omitempty"`       // with the safe values
	Count     int64   `json:"count"`                // frames of this message in the interval
	Lost      int64   `json:"lost,omitempty"`       // frames before this one that the client did not read in time
	LostTicks int64   `json:"lost_ticks,omitempty"` // ticks before this frame that the ring had no room for
}

// FrameStart is the first line of a stream of frames.
type FrameStart struct {
	Messages []string `json:"messages"` // messages wanted; none: all frames
	Period   float64  `json:"period_s"` // of the grid, s
	Every    int64    `json:"every"`    // ticks of an interval
}

// newFrame returns the line of a frame.
func (s *streams) newFrame(e *rt.Entry, id busMessage) *Frame {
	f := &Frame{
		Tick: e.Tick, Time: float64(e.Tick*s.Handover.Tables.PeriodNs) / 1e9, Bus: s.Handover.Bench.Buses[e.Bus].Name.Text,
		Direction: "in", ID: e.Frame.ID & can.MaskEFF, Extended: e.Frame.ID&can.EFF != 0, FD: e.Frame.FD(),
		Data:    hex.EncodeToString(e.Frame.Data[:min(int(e.Frame.Len), len(e.Frame.Data))]),
		Dropped: e.Fate == rt.Dropped, Withheld: e.Withheld, Again: e.Copy, Safe: e.Safe, Count: 1,
	}
	if id.sent {
		f.Direction = "out"
	}
	if l := s.description.layouts[id]; l != nil {
		f.Message, f.Values = l.Name, l.decodeFrame(&e.Frame)
	}
	return f
}

// take takes a frame of the buses.
func (c *frameStream) take(s *streams, f *Frame, id busMessage) {
	if c.messages != nil && !slices.Contains(c.messages, f.Message) {
		return
	}
	if c.every == 0 {
		c.enqueue(*f)
		return
	}
	key := frameKey{busMessage: id}
	if id.at < 0 {
		key.id = f.ID
	}
	old := c.open[key]
	if old == nil && len(c.order) >= maxForeign+len(s.description.layouts) {
		c.lost++
		return
	}
	own := *f
	if old == nil {
		c.order = append(c.order, key)
	} else {
		own.Count += old.Count
	}
	c.open[key] = &own
}

// flush queues the frames of an interval.
func (c *frameStream) flush() {
	for _, key := range c.order {
		c.enqueue(*c.open[key])
	}
	clear(c.open)
	c.order = c.order[:0]
}

// enqueue queues a frame. A full queue drops its oldest frame, which the next one reports as lost.
func (c *frameStream) enqueue(f Frame) {
	f.Lost, f.LostTicks, c.lost, c.lostTicks = c.lost, c.lostTicks, 0, 0
	if c.queue = append(c.queue, f); len(c.queue) > maxFrames {
		c.queue[1].Lost += c.queue[0].Lost + c.queue[0].Count
		c.queue[1].LostTicks += c.queue[0].LostTicks
		c.queue = c.queue[1:]
	}
	select {
	case c.wake <- struct{}{}:
	default: // it is awake
	}
}

// addFrames adds a stream of frames.
func (s *streams) addFrames(messages []string, every int64) *frameStream {
	c := &frameStream{messages: messages, every: every, open: map[frameKey]*Frame{}, wake: make(chan struct{}, 1)}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.traffic.list = append(s.traffic.list, c)
	return c
}

// removeFrames removes a stream of frames.
func (s *streams) removeFrames(c *frameStream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.traffic.list = slices.DeleteFunc(s.traffic.list, func(o *frameStream) bool { return o == c })
}

// nextFrame takes the oldest frame from the queue of a stream.
func (s *streams) nextFrame(c *frameStream, end bool) (f Frame, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if end {
		c.flush()
	}
	if len(c.queue) == 0 {
		return f, false
	}
	f, c.queue = c.queue[0], c.queue[1:]
	return f, true
}

// serveFrames writes a stream of frames as lines of JSON until the client leaves, reads nothing for
// streamTimeout, or the run has ended.
func (c *Server) serveFrames(w http.ResponseWriter, r *http.Request) (any, error) {
	every, err := parseEvery(r.URL.Query().Get("every"), c.Handover.Tables.PeriodNs)
	if err != nil {
		return nil, err
	}
	names := r.URL.Query()["message"]
	for _, name := range names {
		if !slices.ContainsFunc(c.streams.description.buses.Messages, func(m *Message) bool { return m.Name == name }) {
			return nil, fmt.Errorf("there is no message %.60q; GET /buses names all", name)
		}
	}
	frames := c.streams.addFrames(names, every)
	defer c.streams.removeFrames(frames)
	start := FrameStart{Messages: append([]string{}, names...), Period: c.streams.description.Period, Every: max(1, every)}
	c.writeLines(w, r, start, frames.wake, func(end bool) (any, bool) { return c.streams.nextFrame(frames, end) })
	return nil, nil
}

// writeLines writes a stream: start, then the lines that next returns each time that wake holds a token, and
// at the end of the run a StreamEnd. end: the ring is read to its end.
func (c *Server) writeLines(w http.ResponseWriter, r *http.Request, start any, wake <-chan struct{}, next func(end bool) (any, bool)) {
	c.waitingClients.Add(1)
	defer c.waitingClients.Add(-1)
	w.Header().Set("Content-Type", "application/x-ndjson")
	lines, conn, timeout := json.NewEncoder(w), http.NewResponseController(w), c.streamTimeout
	write := func(line any) bool {
		_ = conn.SetWriteDeadline(time.Now().Add(timeout))
		return lines.Encode(line) == nil
	}
	ended := false
	for ok := write(start); ok; {
		for ok {
			line, more := next(ended)
			if !more {
				break
			}
			ok = write(line)
		}
		if ended && ok {
			write(StreamEnd{c.ended.Ended, c.ended.Clean, c.ended.Tick, c.ended.Time})
			_ = conn.Flush() // before the connections are closed
			return
		}
		if !ok || conn.Flush() != nil {
			return
		}
		select {
		case <-wake:
		case <-r.Context().Done():
			return
		case <-c.reportReady: // the ring is read to its end
			ended = true
		}
	}
}
