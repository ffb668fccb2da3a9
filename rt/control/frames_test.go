package control

import (
	"slices"
	"testing"

	"gonum.org/v1/gonum/floats/scalar"

	"lockstep/io/can"
	"lockstep/io/sigmap"
	"lockstep/rt"
	"lockstep/rt/report"
)

// openStreams returns the streams of the bench of openControlled, and the sent message Speeds.
func openStreams(t *testing.T) (*streams, busMessage) {
	t.Helper()
	r := report.View{Handover: openControlled(t), Status: new(rt.StatusBlock)}
	d, err := Describe(r)
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(r.Handover.Maps[0].Tx, func(m sigmap.Tx) bool { return m.Name == "Speeds" })
	return newStreams(r, d), busMessage{0, true, at}
}

// tickWith gives a tick with frames of Speeds to the streams; stamps are those of the frames, ns.
func (s *streams) tickWith(k int64, id busMessage, stamps ...int64) {
	s.entry(&rt.Entry{Kind: rt.KindStep, Tick: k, U: s.u, Y: s.y})
	for _, at := range stamps {
		s.entry(&rt.Entry{Kind: rt.KindFrame, Tick: k, Bus: id.bus, Fate: rt.Sent, Message: id.at, Stamp: can.Stamp{Soft: at},
			Frame: can.Frame{ID: 0x123, Len: 8, Data: [64]byte{byte(k), 0, 0xA0}}})
	}
	s.entry(&rt.Entry{Kind: rt.KindTiming, Tick: k})
}

func TestStreamOfFramesHasEachFrameWithItsValues(t *testing.T) {
	s, id := openStreams(t)
	all, none := s.addFrames(nil, 0), s.addFrames([]string{"Status"}, 0)
	s.tickWith(7, id, 1e6)
	f, ok := s.nextFrame(all, false)
	if !ok || f.Message != "Speeds" || f.Direction != "out" || f.ID != 0x123 || f.Data != "0700a00000000000" || f.Tick != 7 || f.Count != 1 {
		t.Errorf("%v %+v", ok, f)
	}
	layout := s.description.layouts[id]
	for i, m := range layout.Signals {
		if sig := s.description.byName[m.Signal]; sig == nil || sig.value(s) != f.Values[i] {
			t.Errorf("%s is %g in the frame", m.Name, f.Values[i])
		}
	}
	if _, ok := s.nextFrame(none, false); ok {
		t.Error("a frame of another message")
	}
	short := rt.Entry{Kind: rt.KindFrame, Tick: 8, Fate: rt.Received, Message: -1, Frame: can.Frame{ID: 0x18F00400 | can.EFF, Len: 2}}
	s.entry(&short)
	if f, ok = s.nextFrame(all, false); !ok || f.Message != "" || f.ID != 0x18F00400 || !f.Extended || f.Data != "0000" || f.Values != nil {
		t.Errorf("frame of no message of the bench: %+v", f)
	}
}

func TestIntervalHasTheLastFrameOfEachMessage(t *testing.T) {
	s, id := openStreams(t)
	c := s.addFrames(nil, 10)
	for k := int64(1); k <= 10; k++ {
		s.tickWith(k, id, k*5e6, k*5e6+1e6)
	}
	f, ok := s.nextFrame(c, false)
	if !ok || f.Tick != 10 || f.Count != 20 || f.Lost != 0 {
		t.Errorf("%+v", f)
	}
	if _, more := s.nextFrame(c, false); more {
		t.Error("a further frame")
	}
	for k := int64(11); k <= 13; k++ {
		s.tickWith(k, id, k*5e6)
	}
	if f, ok := s.nextFrame(c, true); !ok || f.Count != 3 || f.Tick != 13 {
		t.Errorf("at the end of the run: %+v", f)
	}
	for i := range uint32(maxForeign + len(s.description.layouts) + 5) {
		s.entry(&rt.Entry{Kind: rt.KindFrame, Tick: 14, Fate: rt.Received, Message: -1, Frame: can.Frame{ID: i}})
	}
	if c.flush(); len(c.queue) != maxForeign+len(s.description.layouts) || c.queue[0].Lost != 5 {
		t.Errorf("%d frames of unknown messages, lost %d", len(c.queue), c.queue[0].Lost)
	}
}

// A client that does not read holds at most maxFrames frames, and learns how many it lacks.
func TestSlowReaderOfFramesLearnsWhatItLacks(t *testing.T) {
	s, id := openStreams(t)
	c := s.addFrames(nil, 0)
	s.tickWith(1, id, 1e6)
	for k := int64(5); k < maxFrames+10; k++ { // the ring has lost the ticks 2 to 4
		s.tickWith(k, id, k*5e6)
	}
	if len(c.queue) != maxFrames {
		t.Fatalf("%d frames are queued", len(c.queue))
	}
	lost, read, lostTicks := int64(0), int64(0), int64(0)
	for f, ok := s.nextFrame(c, false); ok; f, ok = s.nextFrame(c, false) {
		lost, read, lostTicks = lost+f.Lost, read+1, lostTicks+f.LostTicks
	}
	if lost != 6 || read+lost != maxFrames+6 || lostTicks != 3 {
		t.Errorf("%d frames and %d ticks are lost, %d read", lost, lostTicks, read)
	}
}

func TestCycleJitterAgeAndLoadAreThoseOfTheFrames(t *testing.T) {
	s, id := openStreams(t)
	s.Handover.Bench.Buses[0].BitRate = 500e3
	gaps := []int64{9e6, 11e6}
	at, k := int64(1e9), int64(0)
	for range 200 {
		at += gaps[k/2%2]
		k += 2
		s.tickWith(k-1, id)
		s.tickWith(k, id, at)
	}
	s.tickWith(k+1, id)
	v := s.messageState(s.description.layouts[id], id)
	if v.Frames != 200 || *v.Age != 0.005 || *v.Cycle != (report.Cycle{Min: 9e6, Mean: 10e6, Max: 11e6, Jitter: 1e6}) {
		t.Errorf("%+v %+v", v, v.Cycle)
	}
	bits := sigmap.Tx{Len: 8}
	want := 100 * float64(bits.MaxBits()) / 500e3
	if b := s.traffic.buses[0]; b.rate != 100 || !scalar.EqualWithinAbs(b.load, want, 1e-9) {
		t.Errorf("%g frames per second, load %g, want 100 and %g", b.rate, b.load, want)
	}
}

// What the supervisor knows reaches the answers.
func TestAnswersHaveWhatTheSupervisorKnows(t *testing.T) {
	s := newServer(report.View{Handover: openControlled(t), Status: new(rt.StatusBlock)}, mustDescribe(t))
	n := 0
	s.SetSources(Sources{Buses: func() []report.BusState {
		return []report.BusState{{Bus: s.Handover.Bench.Buses[0].Name.Text, State: "bus-off", ErrorFrames: 3}}
	}, Examine: func() ([]HostCheck, error) { n++; return []HostCheck{{Name: "kernel"}}, nil }})
	a, err := s.serveMessages(nil, nil)
	if err != nil || a.(*MessageStates).Buses[0].State != "bus-off" || a.(*MessageStates).Buses[0].ErrorFrames != 3 {
		t.Errorf("%+v, %v", a, err)
	}
	for range 2 {
		if a, err := s.serveHost(nil, nil); err != nil || a.(*Host).Checks[0].Name != "kernel" || n != 1 {
			t.Errorf("%+v, %v; the host was read %d times", a, err, n)
		}
	}
}

func mustDescribe(t *testing.T) *Description {
	t.Helper()
	s, _ := openStreams(t)
	return s.description
}
