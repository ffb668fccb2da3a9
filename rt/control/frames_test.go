package control

import (
	"slices"
	"testing"

	"lockstep/io/can"
	"lockstep/io/sigmap"
	"lockstep/rt"
	"lockstep/rt/report"
	"lockstep/rt/traffic"
)

// openStreams returns the streams of the bench of openControlled, and the sent message Speeds.
func openStreams(t *testing.T) (*streams, traffic.Key) {
	t.Helper()
	r := report.View{Handover: openControlled(t), Status: new(rt.StatusBlock)}
	d, err := Describe(r)
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(r.Handover.Maps[0].Tx, func(m sigmap.Tx) bool { return m.Name == "Speeds" })
	return newStreams(r, d), traffic.Key{Bus: 0, Sent: true, At: at}
}

// tickWith gives a tick with a frame of Speeds to the streams.
func (s *streams) tickWith(k int64, key traffic.Key) {
	s.entry(&rt.Entry{Kind: rt.KindStep, Tick: k, U: s.u, Y: s.y})
	s.entry(&rt.Entry{Kind: rt.KindFrame, Tick: k, Bus: key.Bus, Fate: rt.Sent, Message: key.At, Stamp: can.Stamp{Soft: k * 5e6},
		Frame: can.Frame{ID: 0x123, Len: 8, Data: [64]byte{byte(k), 0, 0xA0}}})
	s.entry(&rt.Entry{Kind: rt.KindTiming, Tick: k})
}

func TestFramesHaveTheValuesOfTheSignalsOfTheRun(t *testing.T) {
	s, key := openStreams(t)
	frames, err := s.traffic.Open([]string{"Speeds"}, 0)
	if err != nil {
		t.Fatal(err)
	}
	s.tickWith(7, key)
	f, ok := frames.Next(false)
	if !ok || f.Tick != 7 || len(f.Values) == 0 {
		t.Fatalf("%v %+v", ok, f)
	}
	layout := s.description.buses.Messages[slices.IndexFunc(s.description.buses.Messages, func(m *traffic.Message) bool { return m.Key == key })]
	for i, m := range layout.Signals {
		if sig := s.description.byName[m.Signal]; sig == nil || sig.value(s) != f.Values[i] {
			t.Errorf("%s is %g in the frame", m.Name, f.Values[i])
		}
	}
}

func TestTrafficHasTheTicksOfTheRing(t *testing.T) {
	s, key := openStreams(t)
	frames, err := s.traffic.Open(nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	s.tickWith(1, key)
	s.tickWith(5, key) // the ring has lost the ticks 2 to 4
	s.tickWith(6, key)
	s.entry(&rt.Entry{Kind: rt.KindStep, Tick: 7, U: s.u, Y: s.y}) // begun, not ended
	lost := []int64{}
	for f, ok := frames.Next(false); ok; f, ok = frames.Next(false) {
		lost = append(lost, f.LostTicks)
	}
	if !slices.Equal(lost, []int64{0, 0, 3}) {
		t.Errorf("ticks lost before the frames %v", lost)
	}
	if a := s.traffic.States(nil); a.Tick != 7 || a.Messages[slices.IndexFunc(a.Messages, func(m traffic.MessageState) bool { return m.Name == "Speeds" })].Frames != 3 {
		t.Errorf("%+v", a)
	}
}

// What the supervisor knows reaches the answers.
func TestAnswersHaveWhatTheSupervisorKnows(t *testing.T) {
	s := newServer(report.View{Handover: openControlled(t), Status: new(rt.StatusBlock)}, mustDescribe(t))
	n := 0
	s.SetSources(Sources{Buses: func() []report.BusState {
		return []report.BusState{{Bus: s.Handover.Bench.Buses[0].Name.Text, State: "bus-off", ErrorFrames: 3}}
	}, Examine: func() ([]HostCheck, error) { n++; return []HostCheck{{Name: "kernel"}}, nil }})
	if b := s.streams.traffic.States(s.busStates()).Buses[0]; b.State != "bus-off" || b.ErrorFrames != 3 {
		t.Errorf("%+v", b)
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
