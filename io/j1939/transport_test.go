package j1939_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"lockstep/io/can"
	"lockstep/io/j1939"
)

// counting returns the bytes 1, 2, 3, ...
func counting(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i + 1)
	}
	return b
}

// frame returns a frame of 8 bytes.
func frame(id uint32, data ...byte) can.Frame {
	f := can.Frame{ID: id | can.EFF, Len: 8}
	copy(f.Data[:], data)
	return f
}

// own returns the function that reports whether an address is one of a list.
func own(list ...uint8) func(uint8) bool {
	return func(a uint8) bool { return slices.Contains(list, a) }
}

// expect compares the frames that a transport sends.
func expect(t *testing.T, what string, got []can.Frame, want ...can.Frame) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: sent\n%s\nwant\n%s", what, text(got), text(want))
	}
}

func text(list []can.Frame) (s string) {
	for _, f := range list {
		s += fmt.Sprintf("%08X % X\n", f.ID&^can.EFF, f.Data[:f.Len])
	}
	return s
}

// The frames are those of SAE J1939-21, appendix C: a message of 23 bytes, group 65249, from 0x21.
func TestMessageToAllIsReceivedFromItsPackets(t *testing.T) {
	v := j1939.Transport{}
	for i, f := range []can.Frame{
		frame(0x18ECFF21, 32, 23, 0, 4, 0xFF, 0xE1, 0xFE, 0),
		frame(0x18EBFF21, 1, 1, 2, 3, 4, 5, 6, 7), frame(0x18EBFF21, 2, 8, 9, 10, 11, 12, 13, 14),
		frame(0x18EBFF21, 2, 8, 9, 10, 11, 12, 13, 14), // again
		frame(0x18EBFF21, 3, 15, 16, 17, 18, 19, 20, 21), frame(0x18EBFF21, 4, 22, 23, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF),
	} {
		if v.Receive(&f, int64(i)*200*ms, own(0)); i < 5 && len(v.TakeMessages()) != 0 {
			t.Fatal("a message without its last packet")
		}
	}
	want := j1939.Message{ID: j1939.ID{Priority: 6, PGN: 65249, Destination: j1939.Global, Source: 0x21}, Data: counting(23)}
	if got := v.TakeMessages(); len(got) != 1 || got[0].ID != want.ID || !bytes.Equal(got[0].Data, want.Data) {
		t.Errorf("received %+v, want %+v", got, want)
	}
	expect(t, "a receiver", v.TakeFrames())
}

func TestMessageToAllIsLostWithAPacketOrAfterATimeout(t *testing.T) {
	announce, first := frame(0x18ECFF21, 32, 23, 0, 4, 0xFF, 0xE1, 0xFE, 0), frame(0x18EBFF21, 1)
	third, second := frame(0x18EBFF21, 3), frame(0x18EBFF21, 2)
	for name, c := range map[string]struct {
		list []can.Frame
		wait int64
	}{"a packet is lost": {[]can.Frame{announce, first, third}, 0}, "750 ms without a packet": {[]can.Frame{announce, first}, 750 * ms}} {
		v := j1939.Transport{}
		for _, f := range c.list {
			v.Receive(&f, 0, own())
		}
		v.Poll(c.wait)
		for _, f := range []can.Frame{second, third, frame(0x18EBFF21, 4)} {
			v.Receive(&f, c.wait, own())
		}
		if v.Counts != (j1939.TransportCounts{Broken: 1}) || len(v.TakeMessages()) != 0 {
			t.Errorf("%s: %+v", name, v.Counts)
		}
	}
}

func TestMessageToANodeIsRequestedInWindows(t *testing.T) {
	v, owns := j1939.Transport{}, own(0)
	step := func(what string, f can.Frame, want ...can.Frame) {
		t.Helper()
		v.Receive(&f, 0, owns)
		expect(t, what, v.TakeFrames(), want...)
	}
	const cm, dt, answer = 0x18EC0021, 0x18EB0021, 0x1CEC2100
	pgn := []byte{0xE1, 0xFE, 0}
	step("to another node", frame(0x18EC0521, 16, 23, 0, 4, 2, 0xE1, 0xFE, 0))
	step("request", frame(cm, 16, 23, 0, 4, 2, 0xE1, 0xFE, 0), frame(answer, append([]byte{17, 2, 1, 0xFF, 0xFF}, pgn...)...))
	step("another group", frame(cm, 16, 9, 0, 2, 2, 0xE2, 0xFE, 0), frame(answer, 255, 1, 0xFF, 0xFF, 0xFF, 0xE2, 0xFE, 0))
	step("packet 1", frame(dt, 1, 1, 2, 3, 4, 5, 6, 7))
	step("packet 2", frame(dt, 2, 8, 9, 10, 11, 12, 13, 14), frame(answer, append([]byte{17, 2, 3, 0xFF, 0xFF}, pgn...)...))
	step("packet 4, without 3", frame(dt, 4, 22, 23), frame(answer, append([]byte{17, 2, 3, 0xFF, 0xFF}, pgn...)...))
	step("packet 3", frame(dt, 3, 15, 16, 17, 18, 19, 20, 21))
	step("packet 4", frame(dt, 4, 22, 23, 255), frame(answer, append([]byte{19, 23, 0, 4, 0xFF}, pgn...)...))
	if got := v.TakeMessages(); len(got) != 1 || !bytes.Equal(got[0].Data, counting(23)) || got[0].ID.Source != 0x21 || v.Counts.Received != 1 {
		t.Errorf("received %+v", got)
	}
}

func TestReceiverAbortsAfterTwoRequestsForLostPackets(t *testing.T) {
	v, owns := j1939.Transport{}, own(0)
	f := frame(0x18EC0021, 16, 23, 0, 4, 0xFF, 0xE1, 0xFE, 0)
	v.Receive(&f, 0, owns)
	request := v.TakeFrames()
	for i := range int64(2) {
		if v.Poll((i+1)*1250*ms - 1); len(v.TakeFrames()) != 0 {
			t.Error("a request before its time")
		}
		v.Poll((i + 1) * 1250 * ms)
		expect(t, "again", v.TakeFrames(), request...)
	}
	v.Poll(3750 * ms)
	expect(t, "abort", v.TakeFrames(), frame(0x1CEC2100, 255, 3, 0xFF, 0xFF, 0xFF, 0xE1, 0xFE, 0))
	if v.Poll(1e12); len(v.TakeFrames()) != 0 || v.Counts.Broken != 1 {
		t.Error("after the abort", v.Counts)
	}
}

func TestPacketsToAllAre50To200MillisecondsApart(t *testing.T) {
	v := j1939.Transport{}
	if err := v.Send(j1939.Message{ID: j1939.ID{PGN: 65249, Destination: 255, Source: 3}, Data: counting(23)}, 0); err != nil {
		t.Fatal(err)
	}
	if err := v.Send(j1939.Message{ID: j1939.ID{PGN: 65250, Destination: 255, Source: 3}, Data: counting(9)}, 0); err != nil {
		t.Fatal(err)
	}
	var sent []can.Frame
	last, packets := int64(0), 0
	for now := int64(0); now < 1000*ms; now += 10 * ms {
		v.Poll(now)
		for _, f := range v.TakeFrames() {
			if sent = append(sent, f); j1939.ParseID(f.ID).PGN != j1939.PGNPacket {
				if now != last {
					t.Errorf("an announcement at %d ms within another message", now/ms)
				}
				continue
			}
			if gap := now - last; gap < 50*ms || gap > 200*ms {
				t.Errorf("%d ms before packet %d", gap/ms, f.Data[0])
			}
			last = now
			packets++
		}
	}
	if packets != 6 || v.Counts.Sent != 2 {
		t.Errorf("%d packets of two messages, %+v", packets, v.Counts)
	}
	expect(t, "the first message", sent[:5], frame(0x1CECFF03, 32, 23, 0, 4, 0xFF, 0xE1, 0xFE, 0),
		frame(0x1CEBFF03, 1, 1, 2, 3, 4, 5, 6, 7), frame(0x1CEBFF03, 2, 8, 9, 10, 11, 12, 13, 14),
		frame(0x1CEBFF03, 3, 15, 16, 17, 18, 19, 20, 21), frame(0x1CEBFF03, 4, 22, 23, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF))
}

func TestSenderFollowsTheReceiver(t *testing.T) {
	const cm = 0x1CEC0305 // from 5 to 3
	request := frame(0x1CEC0503, 16, 23, 0, 4, 16, 0, 0xEF, 0)
	for name, c := range map[string]struct {
		answers []can.Frame
		packets []byte // their numbers
		counts  j1939.TransportCounts
		abort   bool // by the sender, after its timeouts
	}{
		"in one window":       {[]can.Frame{frame(cm, 17, 4, 1, 255, 255, 0, 0xEF, 0), frame(cm, 19, 23, 0, 4, 255, 0, 0xEF, 0)}, []byte{1, 2, 3, 4}, j1939.TransportCounts{Sent: 1}, false},
		"again":               {[]can.Frame{frame(cm, 17, 4, 1, 255, 255, 0, 0xEF, 0), frame(cm, 17, 1, 3, 255, 255, 0, 0xEF, 0)}, []byte{1, 2, 3, 4, 3}, j1939.TransportCounts{Broken: 1}, true},
		"beyond the end":      {[]can.Frame{frame(cm, 17, 4, 5, 255, 255, 0, 0xEF, 0)}, nil, j1939.TransportCounts{Broken: 1}, true},
		"more than there are": {[]can.Frame{frame(cm, 17, 255, 3, 255, 255, 0, 0xEF, 0)}, []byte{3, 4}, j1939.TransportCounts{Broken: 1}, true},
		"hold":                {[]can.Frame{frame(cm, 17, 0, 255, 255, 255, 0, 0xEF, 0)}, nil, j1939.TransportCounts{Broken: 1}, true},
		"abort":               {[]can.Frame{frame(cm, 255, 1, 255, 255, 255, 0, 0xEF, 0)}, nil, j1939.TransportCounts{Broken: 1}, false},
		"abort of another":    {[]can.Frame{frame(cm, 255, 1, 255, 255, 255, 1, 0xEF, 0)}, nil, j1939.TransportCounts{Broken: 1}, true},
		"end before the last": {[]can.Frame{frame(cm, 19, 23, 0, 4, 255, 0, 0xEF, 0)}, nil, j1939.TransportCounts{Broken: 1}, true},
		"no answer":           {nil, nil, j1939.TransportCounts{Broken: 1}, true},
	} {
		v := j1939.Transport{}
		if err := v.Send(j1939.Message{ID: j1939.ID{PGN: 0xEF00, Destination: 5, Source: 3}, Data: counting(23)}, 0); err != nil {
			t.Fatal(err)
		}
		expect(t, name, v.TakeFrames(), request)
		var packets []byte
		for _, f := range c.answers {
			v.Receive(&f, 0, own(3))
			for _, p := range v.TakeFrames() {
				packets = append(packets, p.Data[0])
			}
		}
		v.Poll(1250 * ms)
		rest := v.TakeFrames()
		if aborts := len(rest) == 1 && rest[0].Data[0] == 255 && rest[0].Data[1] == 3; aborts != c.abort {
			t.Errorf("%s: the sender aborts %t, %s", name, aborts, text(rest))
		}
		if !bytes.Equal(packets, c.packets) || v.Counts != c.counts {
			t.Errorf("%s: packets %v, %+v, want %v, %+v", name, packets, v.Counts, c.packets, c.counts)
		}
	}
}

func TestMessagesOfOtherSizesAreRefused(t *testing.T) {
	v := j1939.Transport{}
	for _, n := range []int{0, 8, 1786} {
		if err := v.Send(j1939.Message{Data: make([]byte, n)}, 0); err == nil {
			t.Errorf("%d bytes are sent", n)
		}
	}
	for _, f := range []can.Frame{
		frame(0x18ECFF21, 32, 8, 0, 2, 0xFF, 0xE1, 0xFE, 0), frame(0x18ECFF21, 32, 0xFA, 6, 255, 0xFF, 0xE1, 0xFE, 0),
		frame(0x18ECFF21, 32, 23, 0, 3, 0xFF, 0xE1, 0xFE, 0),
	} {
		v.Receive(&f, 0, own())
	}
	if v.Counts.Broken != 3 {
		t.Error(v.Counts)
	}
}

// link carries frames between two transports with random delays and losses.
type link struct {
	ends [2]j1939.Transport
	way  [2][]delayed // frames on their way to an end
}

type delayed struct {
	f  can.Frame
	at int64
}

func (l *link) run(t *rapid.T, until, longest int64, loss int) (list []j1939.Message) {
	for now := int64(0); now < until; now += 5 * ms {
		for i := range l.ends {
			l.ends[i].Poll(now)
			for len(l.way[i]) > 0 && l.way[i][0].at <= now {
				l.ends[i].Receive(&l.way[i][0].f, now, own(uint8(10+i)))
				l.way[i] = l.way[i][1:]
			}
			for _, f := range l.ends[i].TakeFrames() {
				if loss > 0 && rapid.IntRange(0, 99).Draw(t, "loss") < loss {
					continue
				}
				at := now + rapid.Int64Range(0, longest).Draw(t, "delay")
				if n := len(l.way[1-i]); n > 0 {
					at = max(at, l.way[1-i][n-1].at) // a bus keeps the order
				}
				l.way[1-i] = append(l.way[1-i], delayed{f, at})
			}
			list = append(list, l.ends[i].TakeMessages()...)
		}
	}
	return list
}

// Without a loss each message arrives. With losses each message that arrives is intact, and no session
// stays open: after the losses another message arrives.
func TestMessagesArriveIntactOrNotAtAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := &link{}
		to := rapid.SampledFrom([]uint8{11, j1939.Global}).Draw(t, "to")
		data := rapid.SliceOfN(rapid.Byte(), 9, 200).Draw(t, "data")
		id := j1939.ID{Priority: 6, PGN: 0xEF00, Destination: to, Source: 10}
		loss := rapid.SampledFrom([]int{0, 10, 40}).Draw(t, "loss")
		for range 2 {
			if err := l.ends[0].Send(j1939.Message{ID: id, Data: data}, 0); err != nil {
				t.Fatal(err)
			}
		}
		got := l.run(t, 60e9, rapid.Int64Range(0, 100*ms).Draw(t, "longest"), loss)
		if len(got) > 2 || loss == 0 && len(got) != 2 {
			t.Fatalf("%d messages, want 2; %+v %+v", len(got), l.ends[0].Counts, l.ends[1].Counts)
		}
		for _, m := range got {
			if m.ID != id || !bytes.Equal(m.Data, data) {
				t.Fatalf("received %+v, sent %+v % X", m, id, data)
			}
		}
		next := &link{ends: l.ends}
		if err := next.ends[0].Send(j1939.Message{ID: id, Data: data}, 0); err != nil {
			t.Fatal(err)
		}
		if got := next.run(t, 60e9, 0, 0); len(got) != 1 {
			t.Fatalf("%d messages after the losses, want 1", len(got))
		}
	})
}

// No sequence of frames makes a transport fail or grow without a bound.
func FuzzTransportSurvivesAnyFrames(f *testing.F) {
	f.Add([]byte{0x18, 0xEC, 0xFF, 0x21, 32, 23, 0, 4, 0xFF, 0xE1, 0xFE, 0, 0x18, 0xEB, 0xFF, 0x21, 1, 1, 2, 3, 4, 5, 6, 7})
	f.Add([]byte{0x18, 0xEC, 0x00, 0x21, 16, 23, 0, 4, 0xFF, 0xE1, 0xFE, 0, 0x18, 0xEB, 0x00, 0x21, 4, 1, 2, 3, 4, 5, 6, 7})
	f.Add([]byte{0x1C, 0xEC, 0x00, 0x05, 17, 255, 1, 255, 255, 0, 0xEF, 0, 0x1C, 0xEC, 0x00, 0x05, 19, 23, 0, 4, 255, 0, 0xEF, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		v := j1939.Transport{}
		_ = v.Send(j1939.Message{ID: j1939.ID{PGN: 0xEF00, Destination: 5, Source: 0}, Data: counting(23)}, 0)
		_ = v.Send(j1939.Message{ID: j1939.ID{PGN: 65249, Destination: 255, Source: 0}, Data: counting(1785)}, 0)
		for now := int64(0); len(b) >= 12; now, b = now+100*ms, b[12:] {
			c := can.Frame{ID: uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3]) | can.EFF, Len: 8}
			copy(c.Data[:8], b[4:12])
			v.Receive(&c, now, own(0))
			v.Poll(now)
			if n := len(v.TakeFrames()); n > 100 {
				t.Fatalf("%d frames at once", n)
			}
			for _, m := range v.TakeMessages() {
				if len(m.Data) <= 8 || len(m.Data) > j1939.MaxMessage {
					t.Fatalf("a message of %d bytes", len(m.Data))
				}
			}
		}
		v.Poll(1e12)
		v.Poll(2e12)
	})
}
