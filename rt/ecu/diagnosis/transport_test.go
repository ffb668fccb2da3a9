package diagnosis

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestFramesArePaddedAndSingle(t *testing.T) {
	g := newTester(t)
	g.put(request, "02 3E 00")
	g.wait(5 * time.Millisecond)
	if want := [8]byte{2, 0x7E, 0, 0xCC, 0xCC, 0xCC, 0xCC, 0xCC}; len(g.frames) != 1 || g.frames[0] != want {
		t.Errorf("% X, want % X", g.frames, want)
	}
	if g.s.Receive(0x123, []byte{2, 0x3E, 0}, g.now) {
		t.Error("a frame of another node is taken")
	}
	for _, text := range []string{"", "00", "08 3E 00 00 00 00 00 00", "03 3E 00", "40 00", "21 00", "30 00 00", "F0"} {
		g.s.Receive(request, octets(t, text), g.now)
		g.wait(5 * time.Millisecond)
	}
	if len(g.frames) != 1 {
		t.Errorf("malformed frames are answered: % X", g.frames[1:])
	}
}

func TestLongAnswerWaitsForFlowControl(t *testing.T) {
	g := newTester(t)
	g.put(request, "03 22 F1 90")
	g.wait(50 * time.Millisecond)
	if len(g.frames) != 1 || hex(g.frames[0][:]) != "10 14 62 F1 90 57 4C 53" {
		t.Fatalf("first frame % X", g.frames)
	}
	g.put(request, "31 00 00") // wait
	g.wait(900 * time.Millisecond)
	g.put(request, "30 01 0A") // one frame
	g.wait(100 * time.Millisecond)
	if len(g.frames) != 2 || g.frames[1][0] != 0x21 {
		t.Fatalf("block size 1: % X", g.frames)
	}
	g.put(request, "30 00 00")
	g.wait(5 * time.Millisecond)
	if len(g.frames) != 3 || hex(g.frames[2][:]) != "22 30 30 30 30 30 30 31" {
		t.Fatalf("last frame % X", g.frames)
	}
}

func TestSeparationTimeIsKept(t *testing.T) {
	for raw, want := range map[string]time.Duration{
		"05": 5 * time.Millisecond, "7F": 127 * time.Millisecond, "F1": 100 * time.Microsecond, "F9": 900 * time.Microsecond,
		"80": 127 * time.Millisecond, "FA": 127 * time.Millisecond, "00": 0,
	} {
		g := newTester(t)
		g.put(request, "03 22 F1 90")
		g.wait(5 * time.Millisecond)
		g.put(request, "30 00 "+raw)
		g.wait(time.Second)
		if len(g.frames) != 3 || g.at[2]-g.at[1] != want {
			t.Errorf("STmin %s: frames at %v", raw, g.at)
		}
	}
}

// Each way in which a flow control ends a transmission: none in 1 s, overflow, an invalid state, too many waits.
func TestTransmissionEndsWithoutAValidFlowControl(t *testing.T) {
	waits := strings.Repeat("31 00 00,", 11)
	for _, controls := range []string{"", "32 00 00", "33 00 00", waits[:len(waits)-1]} {
		g := newTester(t)
		g.put(request, "03 22 F1 90")
		g.wait(5 * time.Millisecond)
		if controls != "" {
			for _, f := range strings.Split(controls, ",") {
				g.put(request, f)
			}
		} else {
			g.wait(995 * time.Millisecond)
			g.put(request, "02 3E 00")
			g.wait(5 * time.Millisecond)
			if len(g.frames) != 1 {
				t.Errorf("a request is answered while an answer is under way: % X", g.frames)
			}
		}
		g.put(request, "30 00 00")
		g.wait(5 * time.Millisecond)
		if len(g.frames) != 1 {
			t.Errorf("after %q: % X", controls, g.frames)
		}
		g.expect("3E 00", "7E 00")
	}
}

func TestLongRequestIsCollectedInBlocks(t *testing.T) {
	g := newTester(t)
	g.unlock(extendedSession)
	vin := "2E F1 90 41 42 43 44 45 46 47 48 49 4A 4B 4C 4D 4E 4F 50 51"
	g.expect(vin, "6E F1 90")
	g.expect("22 F1 90", "62 F1 90 41 42 43 44 45 46 47 48 49 4A 4B 4C 4D 4E 4F 50 51")
	from := len(g.frames)
	g.transmit(request, append(octets(t, "22"), make([]byte, 200)...))
	g.wait(5 * time.Millisecond)
	if n := len(g.frames) - from; n != 4+1 { // 28 consecutive frames in blocks of 8; one answer
		t.Errorf("%d frames, want 4 flow controls and an answer", n)
	}
}

func TestReceptionEnds(t *testing.T) {
	long := "10 14 2E F1 90 41 42 43"
	for name, c := range map[string]struct {
		frames string
		wait   time.Duration // before the last frame
	}{
		"wrong sequence number": {long + ",21 44 45 46 47 48 49 4A,23 4B 4C 4D 4E 4F 50 51", 0},
		"short frame":           {long + ",21 44 45,22 4B 4C 4D 4E 4F 50 51", 0},
		"N_Cr":                  {long + ",21 44 45 46 47 48 49 4A,22 4B 4C 4D 4E 4F 50 51", 1100 * time.Millisecond},
		"another request":       {long + ",02 3E 80,21 44 45 46 47 48 49 4A,22 4B 4C 4D 4E 4F 50 51", 0},
		"no first frame":        {"21 44 45 46 47 48 49 4A,22 4B 4C 4D 4E 4F 50 51", 0},
		"length below 8":        {"10 07 2E F1 90 41 42 43,21 44", 0},
		"short first frame":     {"10 14 2E F1 90 41 42,21 43 44 45 46 47 48 49,22 4A 4B 4C 4D 4E 4F 50", 0},
	} {
		g := newTester(t)
		g.unlock(extendedSession)
		list := strings.Split(c.frames, ",")
		for i, f := range list {
			if i == len(list)-1 {
				g.wait(c.wait)
			}
			g.put(request, f)
			g.wait(2 * time.Millisecond)
		}
		g.wait(50 * time.Millisecond)
		for _, f := range g.frames {
			if f[0] == 3 && f[1] == 0x6E {
				t.Errorf("%s: the request is served", name)
			}
		}
		g.expect("3E 00", "7E 00")
	}
}

func TestTooLongRequestIsAnsweredByOverflow(t *testing.T) {
	g := newTester(t)
	g.put(request, "10 00 00 00 10 00 36 01") // 4096 bytes
	g.wait(5 * time.Millisecond)
	if len(g.frames) != 1 || g.frames[0][0] != 0x32 {
		t.Fatalf("% X, want a flow control with overflow", g.frames)
	}
	g.put(functional, "10 14 2E F1 90 41 42 43")
	g.wait(5 * time.Millisecond)
	if len(g.frames) != 1 {
		t.Errorf("a functional first frame is answered: % X", g.frames)
	}
}

func TestLongestMessagesPassBothWays(t *testing.T) {
	g := newTester(t)
	g.transmit(request, append(octets(t, "22"), make([]byte, 4094)...))
	from := len(g.frames)
	if got := hex(g.receive(from, 5*time.Millisecond)); got != "7F 22 31" {
		t.Errorf("4095 bytes: %q", got)
	}
	if got := octets(t, g.ask("22 20 03")); len(got) != 4003 {
		t.Errorf("%d bytes, want 4003", len(got))
	}
	g.expect("22 20 03 20 03", "7F 22 14")
}

func TestErrorsOfTheBusReachTheUnit(t *testing.T) {
	g := newTester(t)
	g.fail = errors.New("bus")
	g.put(request, "02 3E 00")
	if err := g.s.Advance(5 * time.Millisecond); err != g.fail {
		t.Error(err)
	}
	g.put(request, "10 14 2E F1 90 41 42 43")
	if err := g.s.Advance(10 * time.Millisecond); err != g.fail {
		t.Error(err)
	}
}

// Any frames: the server does not fail, and answers after them.
func FuzzFrames(f *testing.F) {
	for _, text := range []string{"02 3E 00", "10 14 2E F1 90 41 42 43|21 44", "03 22 F1 90|30 00 00|31|32", "04 31 01 FF 00", "02 09 02"} {
		f.Add(fmt.Sprintf("%s|02 10 03", text))
	}
	f.Fuzz(func(t *testing.T, text string) {
		g := newTester(t)
		for i, frame := range strings.Split(text, "|") {
			var b []byte
			for _, word := range strings.Fields(frame) {
				var v byte
				if _, err := fmt.Sscanf(word, "%02X", &v); err != nil {
					return
				}
				b = append(b, v)
			}
			g.s.Receive([]uint32{request, functional}[i%2], b[:min(len(b), 8)], g.now)
			g.wait(3 * time.Millisecond)
		}
		g.wait(12 * time.Second)
		g.expect("3E 00", "7E 00")
	})
}
