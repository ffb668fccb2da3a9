package isotp

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"lockstep/io/can"
)

// wire connects links in virtual time. A frame takes 100 µs to all links.
type wire struct {
	now   int64
	links []*Link
	queue []onWire
	seen  []onWire                      // frames sent, with the instant at which the bus took them
	alter func(n int, f *can.Frame) int // copies of sent frame n that arrive; nil: one
}

type onWire struct {
	at    int64
	frame can.Frame
}

const frameTime = 100e3 // ns

func newLink(t testing.TB, cfg Config) *Link {
	t.Helper()
	l, err := NewLink(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// flush takes the frames that are due.
func (w *wire) flush() {
	for _, l := range w.links {
		for f, ok := l.Next(w.now); ok; f, ok = l.Next(w.now) {
			l.Sent(w.now)
			copies := 1
			if w.alter != nil {
				copies = w.alter(len(w.seen), &f)
			}
			w.seen = append(w.seen, onWire{w.now, f})
			for range copies {
				w.queue = append(w.queue, onWire{w.now + frameTime, f})
			}
		}
	}
}

// run advances the time until nothing more happens or to an instant.
func (w *wire) run(t testing.TB, until int64) {
	t.Helper()
	for n := 0; ; n++ {
		if n > 1e6 {
			t.Fatal("the links never come to an end")
		}
		w.flush()
		next := Never
		for _, l := range w.links {
			next = min(next, l.Deadline())
		}
		if len(w.queue) > 0 {
			next = min(next, w.queue[0].at)
		}
		if next > until {
			return
		}
		w.now = max(next, w.now)
		for len(w.queue) > 0 && w.queue[0].at <= w.now {
			f := w.queue[0].frame
			w.queue = w.queue[1:]
			for _, l := range w.links {
				l.Receive(&f, w.now)
			}
		}
	}
}

const soon = int64(time.Hour)

func message(n int) []byte {
	data := make([]byte, n)
	for i := range data {
		data[i] = byte(i*7 + i>>8)
	}
	return data
}

// results returns the events as text: kinds, results and lengths.
func results(events []Event) string {
	var list []string
	for _, e := range events {
		text := []string{"received", "started", "receive failed", "sent", "send failed"}[e.Kind]
		if e.Result != OK {
			_, name, _ := strings.Cut(e.Result.String(), "(")
			text += " " + strings.TrimSuffix(name, ")")
		}
		if n := max(e.Size, len(e.Data)); n > 0 {
			text += fmt.Sprintf(" %d", n)
		}
		list = append(list, text)
	}
	return strings.Join(list, ", ")
}

var addressings = map[string]Address{
	"normal":       Normal(0x7E1, 0x7E9),
	"normal 29":    Normal(0x1ABCDEF0|can.EFF, 0x1ABCDEF1|can.EFF),
	"extended":     Extended(0x6F1, 0x612, 0x12, 0xF1),
	"mixed":        Mixed(0x700, 0x701, 0x55),
	"normal fixed": NormalFixed(0x10, 0xF1),
	"mixed fixed":  MixedFixed(0x10, 0xF1, 0x55),
}

// Every addressing, kind of frame and length about the limits of the formats; blocks, separation and padding vary.
func TestMessageArrivesInEveryAddressingAndFrameLength(t *testing.T) {
	random := rand.New(rand.NewPCG(15765, 2))
	for name, a := range addressings {
		for _, length := range []uint8{8, 12, 16, 20, 24, 32, 48, 64} {
			for _, fd := range []bool{false, true} {
				if !fd && length > 8 {
					continue
				}
				l := int(length)
				for _, n := range []int{1, 5, 6, 7, 8, 9, 10, 11, l - 3, l - 2, l - 1, l, l + 1, 2*l - 3, 2*l - 2, 2 * l, 100, 15*l + 2, 16*l + 9, 17 * l, 4094, 4095, 4096, 9000} {
					c := Config{Address: a, FD: fd, Length: length, Pad: random.IntN(2) == 1, PadByte: 0x55, BlockSize: uint8(random.IntN(9)), STmin: []uint8{0, 1, 0xF3}[random.IntN(3)], MaxMessage: 1 << 20}
					p := c
					p.Address = a.Peer()
					w := &wire{links: []*Link{newLink(t, c), newLink(t, p)}}
					if err := w.links[0].Send(message(n), 0); err != nil {
						t.Fatal(err)
					}
					w.run(t, soon)
					events := w.links[1].Take()
					if len(events) == 0 || events[len(events)-1].Kind != Received || !bytes.Equal(events[len(events)-1].Data, message(n)) {
						t.Fatalf("%s, frames of %d bytes, FD %t, %d bytes: %s", name, length, fd, n, results(events))
					}
					if got := results(w.links[0].Take()); got != "sent" {
						t.Fatalf("%s, %d bytes: the sender reports %s", name, n, got)
					}
					checkFrames(t, w, c, n)
				}
			}
		}
	}
}

// checkFrames checks lengths, padding, blocks and separation of the frames of a message of n bytes.
func checkFrames(t *testing.T, w *wire, c Config, n int) {
	t.Helper()
	last, block := int64(-1), 0
	for _, s := range w.seen {
		f := s.frame
		if c.Pad && f.Len < 8 || f.Len > c.Length || !slices.Contains(can.Lengths[:], f.Len) || (f.Flags&can.FlagFDF != 0) != c.FD {
			t.Fatalf("%d bytes: frame %+v", n, f)
		}
		switch f.Data[c.Tx.offset()] >> 4 {
		case pciFlow:
			last, block = -1, 0
		case pciConsecutive:
			if gap := SeparationTime(c.STmin).Nanoseconds(); last >= 0 && s.at-last < gap {
				t.Fatalf("%d ns between two consecutive frames, STmin %d ns", s.at-last, gap)
			}
			last = s.at
			if block++; c.BlockSize > 0 && block > int(c.BlockSize) {
				t.Fatalf("%d frames in a block of %d", block, c.BlockSize)
			}
		}
	}
}

// The bytes follow the tables of ISO 15765-2, 9.6.
func TestFramesHaveTheBytesOfTheStandard(t *testing.T) {
	fd := Config{Address: Normal(1, 2), FD: true, Length: 64, PadByte: 0xCC}
	classic := Config{Address: Normal(1, 2), Length: 8, Pad: true, PadByte: 0xCC}
	extended := Config{Address: Extended(1, 2, 0x12, 0xF1), Length: 8}
	frame := func(f can.Frame, _ int) can.Frame { return f }
	single := func(c Config, data []byte) can.Frame { f, _ := c.single(data); return f }
	for _, c := range []struct {
		name string
		got  can.Frame
		want string
	}{
		{"single", single(classic, []byte{0x3E, 0x80}), "02 3E 80 CC CC CC CC CC"},
		{"single, extended", single(extended, []byte{0x3E, 0x80}), "12 02 3E 80"},
		{"single, escape", single(fd, message(9)), "00 09 00 07 0E 15 1C 23 2A 31 38 CC"},
		{"first", frame(classic.first(message(300))), "11 2C 00 07 0E 15 1C 23"},
		{"first, 4096", frame(classic.first(message(4096))), "10 00 00 00 10 00 00 07"},
		{"first, extended", frame(extended.first(message(300))), "12 11 2C 00 07 0E 15 1C"},
		{"consecutive", frame(classic.consecutive(18, []byte{1, 2})), "22 01 02 CC CC CC CC CC"},
		{"flow", func() can.Frame { c := classic; c.BlockSize, c.STmin = 8, 0xF1; return c.flow(flowContinue) }(), "30 08 F1 CC CC CC CC CC"},
		{"flow, FD", fd.flow(flowOverflow), "32 00 00"},
	} {
		if got := fmt.Sprintf("% X", c.got.Data[:c.got.Len]); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestSeparationTimeFollowsTheCodes(t *testing.T) {
	for code, want := range map[uint8]time.Duration{0: 0, 1: time.Millisecond, 0x7F: 127 * time.Millisecond, 0xF1: 100 * time.Microsecond,
		0xF9: 900 * time.Microsecond, 0x80: 127 * time.Millisecond, 0xF0: 127 * time.Millisecond, 0xFA: 127 * time.Millisecond, 0xFF: 127 * time.Millisecond} {
		if got := SeparationTime(code); got != want {
			t.Errorf("0x%02X: %v, want %v", code, got, want)
		}
		if back := SeparationTime(SeparationCode(want)); back != want {
			t.Errorf("%v becomes %v", want, back)
		}
	}
	if SeparationCode(150*time.Microsecond) != 0xF2 || SeparationCode(950*time.Microsecond) != 1 || SeparationCode(time.Second) != 127 {
		t.Error("a separation time is not rounded up to a code")
	}
}

// Sender A sends 100 bytes to B: frame 0 is the first frame, 1 the flow control, 2 to 15 the consecutive ones.
func TestEachFaultOfTheBusEndsWithItsResult(t *testing.T) {
	drop := func(from, to int) func(int, *can.Frame) int {
		return func(n int, f *can.Frame) int {
			if n >= from && n <= to {
				return 0
			}
			return 1
		}
	}
	set := func(at, index int, value byte) func(int, *can.Frame) int {
		return func(n int, f *can.Frame) int {
			if n == at {
				f.Data[index] = value
			}
			return 1
		}
	}
	for _, c := range []struct {
		name             string
		alter            func(int, *can.Frame) int
		sender, receiver string
		end              int64 // instant of the last result of the sender, ns; 0: any
	}{
		{"nothing", nil, "sent", "started 100, received 100", 0},
		{"first frame lost", drop(0, 0), "send failed N_TIMEOUT_Bs", "", 1e9},
		{"flow control lost", drop(1, 1), "send failed N_TIMEOUT_Bs", "started 100, receive failed N_TIMEOUT_Cr", 1e9},
		{"consecutive frame lost", drop(4, 4), "sent", "started 100, receive failed N_WRONG_SN", 0},
		{"last frame lost", drop(15, 15), "sent", "started 100, receive failed N_TIMEOUT_Cr", 0},
		{"all but the first lost", drop(2, 99), "sent", "started 100, receive failed N_TIMEOUT_Cr", 0},
		{"consecutive frame twice", func(n int, _ *can.Frame) int { return 1 + b2i(n == 5) }, "sent", "started 100, receive failed N_WRONG_SN", 0},
		{"wrong sequence number", set(7, 0, 0x2E), "sent", "started 100, receive failed N_WRONG_SN", 0},
		{"flow status 3", set(1, 0, 0x33), "send failed N_INVALID_FS", "started 100, receive failed N_TIMEOUT_Cr", 2 * frameTime},
		{"flow status overflow", set(1, 0, 0x32), "send failed N_BUFFER_OVFLW", "started 100, receive failed N_TIMEOUT_Cr", 2 * frameTime},
		{"flow status wait", set(1, 0, 0x31), "send failed N_WFT_OVRN", "started 100, receive failed N_TIMEOUT_Cr", 2 * frameTime},
		{"first frame instead of a consecutive one", func(n int, f *can.Frame) int {
			if n == 6 {
				f.Data = [64]byte{0x10, 20, 1, 2, 3, 4, 5, 6}
			}
			return 1
		}, "sent", "started 100, receive failed N_UNEXP_PDU, started 20, receive failed N_TIMEOUT_Cr", 0},
		{"single frame instead of a consecutive one", func(n int, f *can.Frame) int {
			if n == 6 {
				f.Data = [64]byte{2, 1, 2}
			}
			return 1
		}, "sent", "started 100, receive failed N_UNEXP_PDU, received 2", 0},
	} {
		w := &wire{links: []*Link{newLink(t, Config{Address: Normal(1, 2)}), newLink(t, Config{Address: Normal(2, 1)})}, alter: c.alter}
		_ = w.links[0].Send(message(100), 0)
		w.run(t, soon)
		sender, receiver := w.links[0].Take(), w.links[1].Take()
		if results(sender) != c.sender || results(receiver) != c.receiver {
			t.Errorf("%s: sender: %s; receiver: %s", c.name, results(sender), results(receiver))
		} else if c.end != 0 && sender[len(sender)-1].At != c.end {
			t.Errorf("%s: the sender ends at %d ns, want %d", c.name, sender[len(sender)-1].At, c.end)
		}
		if w.links[0].Sending() || w.links[1].Receiving() {
			t.Errorf("%s: a message is still open", c.name)
		}
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

func TestFrameThatTheBusDoesNotTakeEndsTheMessage(t *testing.T) {
	l := newLink(t, Config{Address: Normal(1, 2), As: 30e6})
	for _, n := range []int{3, 50} {
		_ = l.Send(message(n), 5e6)
		if _, ok := l.Next(34e6); !ok || l.Deadline() != 35e6 {
			t.Fatalf("deadline %d", l.Deadline())
		}
		if _, ok := l.Next(35e6); ok || results(l.Take()) != "send failed N_TIMEOUT_A" {
			t.Error("a frame is still due")
		}
	}
	l.Receive(&can.Frame{ID: 2, Len: 8, Data: [64]byte{0x10, 20}}, 40e6)
	l.Poll(70e6)
	if got := results(l.Take()); got != "started 20, receive failed N_TIMEOUT_A" {
		t.Error(got)
	}
}

func TestMessageWithoutRoomIsRefusedBeforeItComes(t *testing.T) {
	w := &wire{links: []*Link{newLink(t, Config{Address: Normal(1, 2)}), newLink(t, Config{Address: Normal(2, 1), MaxMessage: 99})}}
	_ = w.links[0].Send(message(100), 0)
	w.run(t, soon)
	if a, b := results(w.links[0].Take()), results(w.links[1].Take()); a != "send failed N_BUFFER_OVFLW" || b != "receive failed N_BUFFER_OVFLW" || len(w.seen) != 2 {
		t.Errorf("sender: %s; receiver: %s; %d frames", a, b, len(w.seen))
	}
}

func TestHeldReceiverSendsWaitFramesUpToTheLimit(t *testing.T) {
	for _, c := range []struct {
		release   int64
		a, b      string
		waits     int
		maxWaits  int
		maxToSend int
	}{
		{450e6, "sent", "started 100, received 100", 3, 3, 5},
		{soon, "send failed N_WFT_OVRN", "started 100, receive failed N_WFT_OVRN", 5, 4, 5},
		{soon, "send failed N_TIMEOUT_Bs", "started 100, receive failed N_WFT_OVRN", 5, 9, 5},
	} {
		w := &wire{links: []*Link{newLink(t, Config{Address: Normal(1, 2), MaxWaits: c.maxWaits}), newLink(t, Config{Address: Normal(2, 1), MaxWaits: c.maxToSend})}}
		w.links[1].Hold(true)
		_ = w.links[0].Send(message(100), 0)
		w.run(t, c.release)
		w.links[1].Hold(false)
		w.run(t, soon)
		waits := 0
		for _, s := range w.seen {
			waits += b2i(s.frame.ID == 2 && s.frame.Data[0] == 0x31)
		}
		if a, b := results(w.links[0].Take()), results(w.links[1].Take()); a != c.a || b != c.b || waits != c.waits {
			t.Errorf("released at %d ms: sender: %s; receiver: %s; %d wait frames", c.release/1e6, a, b, waits)
		}
	}
}

func TestFunctionalLinkCarriesSingleFramesOnly(t *testing.T) {
	to := Config{Address: FunctionalFixed(0x33, 0xF1), Functional: true, Pad: true}
	at := Config{Address: to.Address.Peer(), Functional: true}
	w := &wire{links: []*Link{newLink(t, to), newLink(t, at), newLink(t, at)}}
	if err := w.links[0].Send(message(8), 0); err == nil {
		t.Error("a functional request of two frames is sent")
	}
	_ = w.links[0].Send([]byte{1, 0}, 0)
	w.run(t, soon)
	for _, l := range w.links[1:] {
		if got := results(l.Take()); got != "received 2" {
			t.Error(got)
		}
	}
	if w.seen[0].frame.ID != 0x18DB33F1|can.EFF {
		t.Errorf("identifier %s", can.FormatID(w.seen[0].frame.ID))
	}
	w.links[1].Receive(&can.Frame{ID: 0x18DB33F1 | can.EFF, Len: 8, Data: [64]byte{0x10, 20}}, w.now)
	if w.links[1].Receiving() || w.links[1].Counts.Ignored != 1 {
		t.Error("a first frame to all begins a message")
	}
}

// Invalid frames are ignored, as ISO 15765-2 says, and neither end a message nor begin one.
func TestInvalidFramesAreIgnoredAndCounted(t *testing.T) {
	frames := []can.Frame{
		{Len: 0}, {Len: 1, Data: [64]byte{0x00}}, {Len: 8, Data: [64]byte{0x08}}, {Len: 3, Data: [64]byte{0x05, 1, 2}}, {Len: 8, Data: [64]byte{0x40}},
		{Len: 7, Data: [64]byte{0x10, 20}}, {Len: 8, Data: [64]byte{0x10, 7}}, {Len: 8, Data: [64]byte{0x10, 0, 0, 0, 0x0F, 0xFF}},
		{Len: 12, Data: [64]byte{0x03, 1, 2, 3}}, {Len: 12, Data: [64]byte{0x00, 11}}, {Len: 64, Data: [64]byte{0x10, 62}},
		{Len: 8, Data: [64]byte{0x21}}, {Len: 8, Data: [64]byte{0x30}},
	}
	l := newLink(t, Config{Address: Normal(1, 2)})
	for i := range frames {
		frames[i].ID = 2
		if !l.Receive(&frames[i], 0) || l.Counts.Ignored != uint64(i+1) || l.Receiving() || len(l.Take()) != 0 {
			t.Errorf("frame % X is not ignored", frames[i].Data[:frames[i].Len])
		}
	}
	for _, f := range []can.Frame{{ID: 3, Len: 8}, {ID: 2 | can.RTR, Len: 8}, {ID: 2 | can.EFF, Len: 8}} {
		if l.Receive(&f, 0) {
			t.Errorf("frame of %s is of the link", can.FormatID(f.ID))
		}
	}
}

// Two units send to one tester while it sends to both; the messages do not disturb each other.
func TestSessionsRunSideBySide(t *testing.T) {
	w := &wire{}
	for _, a := range []Address{Normal(0x7E0, 0x7E8), Normal(0x7E1, 0x7E9), Extended(0x6F1, 0x612, 0x12, 0xF1), Extended(0x6F1, 0x613, 0x13, 0xF1)} {
		w.links = append(w.links, newLink(t, Config{Address: a, BlockSize: 3}), newLink(t, Config{Address: a.Peer(), STmin: 0xF2}))
	}
	for i, l := range w.links {
		if err := l.Send(message(200+i), 0); err != nil {
			t.Fatal(err)
		}
		if l.Send(message(1), 0) != ErrBusy {
			t.Error("a second message is sent at once")
		}
	}
	w.run(t, soon)
	for i, l := range w.links {
		want := fmt.Sprintf("started %d, received %[1]d", 200+(i^1))
		if got := strings.ReplaceAll(strings.ReplaceAll(results(l.Take()), "sent, ", ""), ", sent", ""); got != want {
			t.Errorf("link %d: %s, want %s", i, got, want)
		}
	}
}

func TestLateConsecutiveFramesAreCounted(t *testing.T) {
	l := newLink(t, Config{Address: Normal(1, 2), Cs: 10e6})
	_ = l.Send(message(20), 0)
	l.Next(0)
	l.Sent(0)
	l.Receive(&can.Frame{ID: 2, Len: 3, Data: [64]byte{0x30}}, 1e6)
	l.Next(11e6)
	l.Sent(11e6)
	if l.Counts.Late != 0 {
		t.Error("a frame within N_Cs is late")
	}
	if l.Next(22e6); l.Counts.Late != 1 {
		t.Errorf("%d late frames, want 1", l.Counts.Late)
	}
}

func TestWrongConfigurationIsNamed(t *testing.T) {
	for want, c := range map[string]Config{
		"frames of 9 bytes; use 8": {Length: 9, FD: true}, "frames of 12 bytes need CAN FD": {Length: 12},
		"messages of -1 bytes": {MaxMessage: -1}, "-1 wait frames": {MaxWaits: -1}, "-5 ns is negative": {Bs: -5},
	} {
		if _, err := NewLink(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	l := newLink(t, Config{})
	if l.Send(nil, 0) == nil {
		t.Error("an empty message is sent")
	}
}

// Random losses, repetitions and swaps never deliver a message that was not sent, and never leave a link open.
func TestUnreliableBusNeverDeliversAnotherMessage(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	arrived, failed := 0, 0
	for range 2000 {
		c := Config{Address: Normal(1, 2), FD: random.IntN(2) == 1, BlockSize: uint8(random.IntN(5))}
		p := c
		p.Address = c.Address.Peer()
		w := &wire{links: []*Link{newLink(t, c), newLink(t, p)}}
		w.alter = func(int, *can.Frame) int {
			if len(w.queue) > 1 && random.IntN(40) == 0 {
				i := len(w.queue) - 1
				w.queue[i].frame, w.queue[i-1].frame = w.queue[i-1].frame, w.queue[i].frame
			}
			return []int{1, 0, 2}[max(0, random.IntN(60)-57)]
		}
		data := message(9 + random.IntN(300))
		_ = w.links[0].Send(data, 0)
		w.run(t, soon)
		for _, e := range w.links[1].Take() {
			switch e.Kind {
			case Received:
				if arrived++; !bytes.Equal(e.Data, data) {
					t.Fatalf("% X received, % X sent", e.Data, data)
				}
			case ReceiveFailed:
				failed++
			}
		}
		if w.links[0].Sending() || w.links[1].Receiving() {
			t.Fatal("a message is still open after an hour")
		}
	}
	if arrived < 500 || failed < 100 {
		t.Errorf("%d messages arrived, %d failed", arrived, failed)
	}
}

// FuzzLink gives a link any frames at any times. It never panics, keeps no message longer than its limit, and
// ends every message.
func FuzzLink(f *testing.F) {
	f.Add([]byte{0, 8, 0x10, 20, 1, 2, 3, 4, 5, 6, 5, 8, 0x21, 1, 2, 3, 4, 5, 6, 7})
	f.Add([]byte{0, 3, 0x30, 2, 0xF1, 9, 3, 0x31, 0, 0, 255, 3, 0x32, 0, 0})
	f.Add([]byte{0, 64, 0x10, 0, 0, 1, 0, 0, 1, 1, 1, 12, 0, 9, 1, 1, 1, 1})
	f.Fuzz(func(t *testing.T, script []byte) {
		l := newLink(t, Config{Address: Extended(1, 2, 0x10, 0xF1), MaxMessage: 300, MaxWaits: 2, BlockSize: 2, FD: len(script)%2 == 1})
		now := int64(0)
		_ = l.Send(message(100), now)
		for len(script) >= 2 {
			now += int64(script[0]) * 5e6
			fr := can.Frame{ID: 2, Len: script[1] % 65, Data: [64]byte{0xF1}}
			l.Hold(script[0]%16 == 7)
			script = script[2:]
			script = script[copy(fr.Data[1:max(fr.Len, 1)], script):]
			l.Receive(&fr, now)
			for n, ok := l.Next(now); ok; n, ok = l.Next(now) {
				if !slices.Contains(can.Lengths[:], n.Len) || n.Data[0] != 0x10 {
					t.Fatalf("frame %+v", n)
				}
				l.Sent(now)
			}
			for _, e := range l.Take() {
				if len(e.Data) > 300 || e.Size > 300 || e.Kind == Received && len(e.Data) == 0 {
					t.Fatalf("event %+v", e)
				}
			}
			if !l.Sending() {
				_ = l.Send(message(50), now)
			}
		}
		l.Hold(false)
		for range 200 {
			if now = max(now, min(l.Deadline(), now+soon)); !l.Sending() && !l.Receiving() {
				return
			}
			if l.Poll(now); !l.Sending() && !l.Receiving() {
				return
			}
			if _, ok := l.Next(now); ok {
				l.Sent(now)
			}
		}
		t.Fatal("a message never ends")
	})
}
