package diagnosis

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"
)

const (
	request    = 0x7E1
	response   = 0x7E9
	functional = 0x7DF

	codeA = 0x073000 // confirmed at the first failure, limp-home
	codeB = 0x089400 // confirmed in the second cycle
	codeC = 0xC10000
)

// tester is the other end of the connection: it packs and reads frames by hand.
type tester struct {
	t      *testing.T
	s      *Server
	m      *Memory
	now    time.Duration
	frames [][8]byte       // frames of the server
	at     []time.Duration // their instants
	moving bool
	resets []byte
	value  byte // of identifier 0x2001
	fail   error
}

func newTester(t *testing.T) *tester {
	t.Helper()
	g := &tester{t: t}
	g.m = NewMemory([]Code{
		{Number: codeA, Text: "A", Fail: 500 * time.Millisecond, Pass: time.Second, Trips: 1, Limp: true},
		{Number: codeB, Text: "B", Fail: time.Second, Pass: time.Second, Trips: 2},
		{Number: codeC, Text: "C", Fail: time.Second, Pass: time.Second, Trips: 1},
	}, time.Hour)
	g.s = New(Config{
		Request: request, Response: response, Functional: functional,
		Send: func(id uint32, data [8]byte) error {
			if id != response {
				t.Errorf("the server sends 0x%X", id)
			}
			g.frames, g.at = append(g.frames, data), append(g.at, g.now)
			return g.fail
		},
		Memory: g.m, Snapshot: []uint16{0x2001, 0x2002},
		Identifiers: []Identifier{
			{ID: 0x2001, Size: 1, Read: func() []byte { return []byte{g.value} },
				Write: func(v []byte) byte { g.value = v[0]; return 0 }, Secure: true,
				Control: func(v []byte) byte {
					if g.value = 0; v != nil {
						g.value = v[0]
					}
					return 0
				}},
			{ID: 0x2002, Read: func() []byte { return []byte{0x12, 0x34} }},
			{ID: 0x2003, Read: func() []byte { return make([]byte, 4000) }},
		},
		Routines: []Routine{{ID: 0x0300,
			Start:   func([]byte) ([]byte, byte) { return []byte{1}, 0 },
			Results: func() ([]byte, byte) { return []byte{0}, 0 }}},
		PIDs: []PID{
			{ID: 0x0C, Read: func() []byte { return []byte{0x0B, 0xB8} }, Frozen: 0x2002, Shown: func(v []byte) []byte { return v }},
			{ID: 0x49, Read: func() []byte { return []byte{0x80} }},
		},
		VIN: "WLS00000000000001", Software: "software 1", Name: "test",
		Standstill: func() bool { return !g.moving },
		Reset:      func(kind byte) { g.resets = append(g.resets, kind) },
	})
	return g
}

// wait lets time pass, and the server send.
func (g *tester) wait(d time.Duration) {
	g.t.Helper()
	for end := g.now + d; ; {
		due := g.s.Due()
		if due > end {
			g.now = end
			return
		}
		g.now = max(g.now, due)
		if err := g.s.Advance(g.now); err != nil && err != g.fail {
			g.t.Fatal(err)
		}
	}
}

// put sends one frame, "03 22 F1 90", to the server.
func (g *tester) put(id uint32, text string) {
	g.t.Helper()
	if !g.s.Receive(id, octets(g.t, text), g.now) {
		g.t.Fatalf("identifier 0x%X is not the server's", id)
	}
}

// octets reads "22 F1 90".
func octets(t *testing.T, text string) (b []byte) {
	t.Helper()
	for _, word := range strings.Fields(text) {
		var v byte
		if _, err := fmt.Sscanf(word, "%02X", &v); err != nil {
			t.Fatalf("%q: %v", word, err)
		}
		b = append(b, v)
	}
	return b
}

// transmit sends a message, in several frames if it is long.
func (g *tester) transmit(id uint32, message []byte) {
	g.t.Helper()
	if len(message) < 8 {
		g.s.Receive(id, append([]byte{byte(len(message))}, message...), g.now)
		return
	}
	g.s.Receive(id, append([]byte{0x10 | byte(len(message)>>8), byte(len(message))}, message[:6]...), g.now)
	message = message[6:]
	room := 0
	for n := byte(1); len(message) > 0; n++ {
		if room == 0 {
			before := len(g.frames)
			g.wait(5 * time.Millisecond)
			if len(g.frames) != before+1 || g.frames[before][0] != 0x30 {
				g.t.Fatalf("no flow control before frame %d: % X", n, g.frames[before:])
			}
			room = int(g.frames[before][1])
		}
		size := min(7, len(message))
		g.s.Receive(id, append([]byte{0x20 | n&15}, message[:size]...), g.now)
		message = message[size:]
		room--
	}
}

// receive waits for the server's message; nil if none comes within the time.
func (g *tester) receive(from int, within time.Duration) []byte {
	g.t.Helper()
	g.wait(within)
	if len(g.frames) == from {
		return nil
	}
	f := g.frames[from]
	if f[0]>>4 == 0 {
		return append([]byte{}, f[1:f[0]+1]...)
	}
	n := int(f[0]&15)<<8 | int(f[1])
	message := append([]byte{}, f[2:]...)
	g.put(request, "30 00 00")
	g.wait(10 * time.Millisecond)
	for i, f := range g.frames[from+1:] {
		if f[0] != 0x20|byte(i+1)&15 {
			g.t.Fatalf("consecutive frame %d begins with %02X", i+1, f[0])
		}
		message = append(message, f[1:]...)
	}
	if len(message) < n {
		g.t.Fatalf("%d bytes of %d", len(message), n)
	}
	return message[:n]
}

// ask sends a request and returns the response in hexadecimal; "" if none comes in 20 ms.
func (g *tester) ask(text string) string {
	g.t.Helper()
	return g.askAt(request, text)
}

func (g *tester) askAt(id uint32, text string) string {
	g.t.Helper()
	g.transmit(id, octets(g.t, text))
	return hex(g.receive(len(g.frames), 20*time.Millisecond))
}

func hex(b []byte) string { return fmt.Sprintf("% X", b) }

// expect asks and compares the response.
func (g *tester) expect(ask, want string) {
	g.t.Helper()
	if got := g.ask(ask); got != want {
		g.t.Errorf("%s: response %q, want %q", ask, got, want)
	}
}

// unlock enters a session and unlocks the unit.
func (g *tester) unlock(session byte) {
	g.t.Helper()
	g.expect("10 03", "50 03 00 32 01 F4")
	if session == programmingSession {
		g.expect("10 02", "50 02 00 32 01 F4")
	}
	seed := octets(g.t, g.ask("27 01"))
	if len(seed) != 6 {
		g.t.Fatalf("seed % X", seed)
	}
	key := Key(uint32(seed[2])<<24 | uint32(seed[3])<<16 | uint32(seed[4])<<8 | uint32(seed[5]))
	g.expect(fmt.Sprintf("27 02 %02X %02X %02X %02X", byte(key>>24), byte(key>>16), byte(key>>8), byte(key)), "67 02")
}

// report lets a code fail or pass for a time.
func (g *tester) report(code uint32, failed bool, d time.Duration) {
	for ; d > 0; d -= 10 * time.Millisecond {
		g.m.Report(code, failed, 10*time.Millisecond)
	}
}

// build makes a request from parts.
func build(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
