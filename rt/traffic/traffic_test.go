package traffic

import (
	"slices"
	"sync"
	"testing"

	"gonum.org/v1/gonum/floats/scalar"

	"lockstep/io/can"
	"lockstep/io/sigmap"
	"lockstep/rt"
	"lockstep/rt/bench"
	"lockstep/rt/bench/benchtest"
	"lockstep/rt/report"
)

// openTraffic returns the traffic of the bench of benchtest.OpenFile, and its sent message Speeds.
func openTraffic(t *testing.T) (*Traffic, Key) {
	t.Helper()
	b, err := bench.Load(benchtest.OpenFile(t))
	if err != nil {
		t.Fatal(err)
	}
	h, err := bench.Prepare(b)
	if err != nil {
		t.Fatal(err)
	}
	buses, err := NewBuses(h)
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(h.Maps[0].Tx, func(m sigmap.Tx) bool { return m.Name == "Speeds" })
	return New(report.View{Handover: h, Status: new(rt.StatusBlock)}, buses), Key{0, true, at}
}

// mustOpen opens a stream.
func (t *Traffic) mustOpen(test *testing.T, messages []string, every int64) *Stream {
	test.Helper()
	c, err := t.Open(messages, every)
	if err != nil {
		test.Fatal(err)
	}
	return c
}

// tickWith gives a tick with frames of Speeds to the traffic; stamps are those of the frames, ns. lost is the number of
// ticks lost before it.
func (t *Traffic) tickWith(k, lost int64, key Key, stamps ...int64) {
	t.BeginTick(k)
	for _, at := range stamps {
		t.AddFrame(&rt.Entry{Kind: rt.KindFrame, Tick: k, Bus: key.Bus, Fate: rt.Sent, Message: key.At, Stamp: can.Stamp{Soft: at},
			Frame: can.Frame{ID: 0x123, Len: 8, Data: [64]byte{byte(k), 0, 0xA0}}})
	}
	t.EndTick(lost)
}

func TestStreamOfFramesHasEachFrameOfItsMessages(t *testing.T) {
	x, key := openTraffic(t)
	all, none := x.mustOpen(t, nil, 0), x.mustOpen(t, []string{"Status"}, 0)
	x.tickWith(7, 0, key, 1e6)
	f, ok := all.Next(false)
	if !ok || f.Message != "Speeds" || f.Direction != "out" || f.ID != 0x123 || f.Data != "0700a00000000000" || f.Tick != 7 || f.Count != 1 {
		t.Errorf("%v %+v", ok, f)
	}
	if n := len(x.buses.byKey[key].Signals); len(f.Values) != n {
		t.Errorf("%d values of %d signals", len(f.Values), n)
	}
	if _, ok := none.Next(false); ok {
		t.Error("a frame of another message")
	}
	short := rt.Entry{Kind: rt.KindFrame, Tick: 8, Fate: rt.Received, Message: -1, Frame: can.Frame{ID: 0x18F00400 | can.EFF, Len: 2}}
	x.AddFrame(&short)
	if f, ok = all.Next(false); !ok || f.Message != "" || f.ID != 0x18F00400 || !f.Extended || f.Data != "0000" || f.Values != nil {
		t.Errorf("frame of no message of the bench: %+v", f)
	}
}

func TestIntervalHasTheLastFrameOfEachMessage(t *testing.T) {
	x, key := openTraffic(t)
	c := x.mustOpen(t, nil, 10)
	for k := int64(1); k <= 10; k++ {
		x.tickWith(k, 0, key, k*5e6, k*5e6+1e6)
	}
	f, ok := c.Next(false)
	if !ok || f.Tick != 10 || f.Count != 20 || f.Lost != 0 {
		t.Errorf("%+v", f)
	}
	if _, more := c.Next(false); more {
		t.Error("a further frame")
	}
	for k := int64(11); k <= 13; k++ {
		x.tickWith(k, 0, key, k*5e6)
	}
	if f, ok := c.Next(true); !ok || f.Count != 3 || f.Tick != 13 {
		t.Errorf("at the end of the run: %+v", f)
	}
	for i := range uint32(maxForeign + len(x.buses.Messages) + 5) {
		x.AddFrame(&rt.Entry{Kind: rt.KindFrame, Tick: 14, Fate: rt.Received, Message: -1, Frame: can.Frame{ID: i}})
	}
	if c.flush(); len(c.queue) != maxForeign+len(x.buses.Messages) || c.queue[0].Lost != 5 {
		t.Errorf("%d frames of unknown messages, lost %d", len(c.queue), c.queue[0].Lost)
	}
}

// A client that does not read holds at most MaxFrames frames, and learns how many it lacks.
func TestSlowReaderOfFramesLearnsWhatItLacks(t *testing.T) {
	x, key := openTraffic(t)
	c := x.mustOpen(t, nil, 0)
	x.tickWith(1, 0, key, 1e6)
	x.tickWith(5, 3, key, 25e6) // the ring has lost the ticks 2 to 4
	for k := int64(6); k < MaxFrames+10; k++ {
		x.tickWith(k, 0, key, k*5e6)
	}
	if len(c.queue) != MaxFrames {
		t.Fatalf("%d frames are queued", len(c.queue))
	}
	lost, read, lostTicks := int64(0), int64(0), int64(0)
	for f, ok := c.Next(false); ok; f, ok = c.Next(false) {
		lost, read, lostTicks = lost+f.Lost, read+1, lostTicks+f.LostTicks
	}
	if lost != 6 || read+lost != MaxFrames+6 || lostTicks != 3 {
		t.Errorf("%d frames and %d ticks are lost, %d read", lost, lostTicks, read)
	}
}

func TestCycleJitterAgeAndLoadAreThoseOfTheFrames(t *testing.T) {
	x, key := openTraffic(t)
	x.Handover.Bench.Buses[0].BitRate = 500e3
	gaps := []int64{9e6, 11e6}
	at, k := int64(1e9), int64(0)
	for range 200 {
		at += gaps[k/2%2]
		k += 2
		x.tickWith(k-1, 0, key)
		x.tickWith(k, 0, key, at)
	}
	x.tickWith(k+1, 0, key)
	v := x.messageState(x.buses.byKey[key])
	if v.Frames != 200 || *v.Age != 0.005 || *v.Cycle != (report.Cycle{Min: 9e6, Mean: 10e6, Max: 11e6, Jitter: 1e6}) {
		t.Errorf("%+v %+v", v, v.Cycle)
	}
	bits := sigmap.Tx{Len: 8}
	want := 100 * float64(bits.MaxBits()) / 500e3
	if b := x.loads[0]; b.rate != 100 || !scalar.EqualWithinAbs(b.load, want, 1e-9) {
		t.Errorf("%g frames per second, load %g, want 100 and %g", b.rate, b.load, want)
	}
}

func TestStreamOfAnUnknownMessageIsRefused(t *testing.T) {
	x, _ := openTraffic(t)
	if _, err := x.Open([]string{"Speeds", "Nothing"}, 0); err == nil || err.Error() != `there is no message "Nothing"; GET /buses names all` || len(x.streams) != 0 {
		t.Errorf("%v, %d streams", err, len(x.streams))
	}
}

// Clients read frames and states while another goroutine reads the ring.
func TestClientsShareTheTraffic(t *testing.T) {
	x, key := openTraffic(t)
	const ticks = 2000
	c := x.mustOpen(t, []string{"Speeds"}, 2)
	var reader sync.WaitGroup
	reader.Go(func() {
		for k := int64(1); k <= ticks; k++ {
			x.tickWith(k, 0, key, k*5e6)
		}
	})
	count := int64(0)
	for count < ticks {
		<-c.Wake
		for f, ok := c.Next(false); ok; f, ok = c.Next(false) {
			count += f.Count + f.Lost
		}
		x.mustOpen(t, nil, 0).Close()
		if a := x.States(nil); a.Tick < count || a.Tick > ticks {
			t.Errorf("tick %d after %d frames", a.Tick, count)
		}
	}
	reader.Wait()
	if count != ticks || len(x.streams) != 1 {
		t.Errorf("%d frames of %d, %d streams", count, ticks, len(x.streams))
	}
}
