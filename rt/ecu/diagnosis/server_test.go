package diagnosis

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"strings"
	"testing"
	"time"
)

// Each row is a request in a new unit, after requests that must succeed.
func TestServicesAndTheirNegativeResponses(t *testing.T) {
	extended, programming := "10 03", "10 03,10 02"
	for _, c := range []struct{ before, ask, want string }{
		{"", "10 01", "50 01 00 32 01 F4"}, {"", "10 03", "50 03 00 32 01 F4"}, {extended, "10 02", "50 02 00 32 01 F4"},
		{"", "10 02", "7F 10 7E"}, {"", "10 04", "7F 10 12"}, {"", "10", "7F 10 13"}, {"", "10 01 00", "7F 10 13"}, {"", "10 83", ""},
		{"", "11 01", "51 01"}, {"", "11 02", "51 02"}, {"", "11 03", "51 03"}, {"", "11 04", "7F 11 12"}, {"", "11", "7F 11 13"}, {"", "11 01 00", "7F 11 13"},
		{"", "14 FF FF FF", "54"}, {"", "14 07 30 00", "54"}, {"", "14 12 34 56", "7F 14 31"}, {"", "14 FF FF", "7F 14 13"}, {"", "14 FF FF FF 00", "7F 14 13"},
		{"", "19 01 FF", "59 01 FF 01 00 03"}, {"", "19 01 08", "59 01 FF 01 00 00"}, {"", "19 02 40", "59 02 FF 07 30 00 50 08 94 00 50 C1 00 00 50"},
		{"", "19 02 01", "59 02 FF"}, {"", "19 0A", "59 0A FF 07 30 00 50 08 94 00 50 C1 00 00 50"},
		{"", "19 04 07 30 00 FF", "59 04 07 30 00 50"}, {"", "19 04 07 30 00 05", "7F 19 31"}, {"", "19 04 12 34 56 FF", "7F 19 31"},
		{"", "19 06 07 30 00 FF", "59 06 07 30 00 50"}, {"", "19 06 07 30 00 03", "59 06 07 30 00 50 03 00"}, {"", "19 06 07 30 00 04", "7F 19 31"},
		{"", "19 03", "7F 19 12"}, {"", "19 01", "7F 19 13"}, {"", "19 0A 00", "7F 19 13"}, {"", "19", "7F 19 13"},
		{"", "22 20 02", "62 20 02 12 34"}, {"", "22 20 02 20 01", "62 20 02 12 34 20 01 00"}, {"", "22 20 02 99 99", "62 20 02 12 34"},
		{"", "22 99 99", "7F 22 31"}, {"", "22 20", "7F 22 13"}, {"", "22 20 02 20", "7F 22 13"},
		{"", "22 F1 86", "62 F1 86 01"}, {extended, "22 F1 86", "62 F1 86 03"}, {"", "22 F1 95", "62 F1 95 73 6F 66 74 77 61 72 65 20 31"},
		{"", "27 01", "7F 27 7F"}, {extended, "27 01", "67 01 3C 6E F3 5F"}, {extended, "27 03", "7F 27 12"}, {extended, "27 01 00", "7F 27 13"},
		{extended, "27 02 00 00 00 00", "7F 27 24"}, {extended + ",27 01", "27 02 00 00 00 00", "7F 27 35"}, {extended, "27 02 00", "7F 27 13"},
		{"", "28 03 01", "7F 28 7F"}, {extended, "28 03 01", "68 03"}, {extended, "28 04 01", "7F 28 12"}, {extended, "28 00 04", "7F 28 31"}, {extended, "28 00", "7F 28 13"},
		{"", "2E 20 01 05", "7F 2E 7F"}, {extended, "2E 20 01 05", "7F 2E 33"}, {extended, "2E 20 02 05", "7F 2E 31"}, {extended, "2E 20 01 05 06", "7F 2E 13"}, {extended, "2E 20 01", "7F 2E 13"},
		{"", "2F 20 01 03 05", "7F 2F 7F"}, {extended, "2F 20 01 03 05", "7F 2F 33"}, {extended, "2F 20 02 03 05", "7F 2F 31"}, {extended, "2F 20 01 03", "7F 2F 13"},
		{extended, "2F 20 01 00 05", "7F 2F 13"}, {extended, "2F 20 01 04", "7F 2F 31"}, {programming, "2F 20 01 03 05", "7F 2F 31"},
		{"", "31 01 03 00", "7F 31 7F"}, {extended, "31 01 03 00", "71 01 03 00 01"}, {extended + ",31 01 03 00", "31 03 03 00", "71 03 03 00 00"},
		{extended, "31 03 03 00", "7F 31 24"}, {extended, "31 02 03 00", "7F 31 12"}, {extended, "31 04 03 00", "7F 31 12"}, {extended, "31 01 99 99", "7F 31 31"},
		{extended, "31 01 FF 00", "7F 31 31"}, {programming, "31 01 FF 00", "7F 31 33"}, {extended, "31 01 03", "7F 31 13"}, {extended + ",31 01 03 00", "31 03 03 00 00", "7F 31 13"},
		{"", "34 00 44 00 08 00 00 00 00 00 10", "7F 34 7F"}, {extended, "34 00 44 00 08 00 00 00 00 00 10", "7F 34 7F"}, {programming, "34 00 44 00 08 00 00 00 00 00 10", "7F 34 33"},
		{programming, "34 11 44 00 08 00 00 00 00 00 10", "7F 34 31"}, {programming, "34 00 33 00 08 00 00 00 10", "7F 34 31"}, {programming, "34 00 44 00", "7F 34 13"},
		{programming, "36 01 00", "7F 36 24"}, {extended, "36 01 00", "7F 36 7F"}, {programming, "37", "7F 37 24"}, {extended, "37", "7F 37 7F"}, {programming, "37 00", "7F 37 13"},
		{"", "3E 00", "7E 00"}, {"", "3E 80", ""}, {"", "3E 01", "7F 3E 12"}, {"", "3E", "7F 3E 13"}, {"", "3E 00 00", "7F 3E 13"},
		{"", "85 02", "7F 85 7F"}, {extended, "85 02", "C5 02"}, {extended, "85 01", "C5 01"}, {extended, "85 03", "7F 85 12"}, {extended, "85 02 00", "7F 85 13"},
		{"", "23 44", "7F 23 11"}, {"", "BA 00", "7F BA 11"},
	} {
		g := newTester(t)
		if c.before != "" {
			for _, b := range strings.Split(c.before, ",") {
				if r := g.ask(b); strings.HasPrefix(r, "7F") {
					t.Fatalf("%s: %s", b, r)
				}
			}
		}
		if got := g.ask(c.ask); got != c.want {
			t.Errorf("after %q, %s: response %q, want %q", c.before, c.ask, got, c.want)
		}
	}
}

func TestFunctionalRequestsAreNotRefusedForWhatTheUnitLacks(t *testing.T) {
	for ask, want := range map[string]string{
		"3E 00": "7E 00", "3E 80": "", "10 03": "50 03 00 32 01 F4", "22 20 02": "62 20 02 12 34",
		"22 99 99": "", "23 00": "", "10 05": "", "10 02": "", "85 02": "", "22 20": "7F 22 13",
	} {
		if got := newTester(t).askAt(functional, ask); got != want {
			t.Errorf("%s: response %q, want %q", ask, got, want)
		}
	}
}

func TestMovingCarRefusesProgrammingAndReset(t *testing.T) {
	g := newTester(t)
	g.moving = true
	g.ask("10 03")
	g.expect("10 02", "7F 10 88")
	g.expect("11 01", "7F 11 88")
	g.moving = false
	g.expect("10 02", "50 02 00 32 01 F4")
}

func TestResetRestartsTheUnit(t *testing.T) {
	g := newTester(t)
	g.ask("10 03")
	g.expect("11 03", "51 03")
	if hex(g.resets) != "03" {
		t.Errorf("resets % X", g.resets)
	}
	g.expect("3E 00", "") // it boots
	g.wait(boot)
	g.expect("22 F1 86", "62 F1 86 01")
}

func TestSessionEndsAfterS3(t *testing.T) {
	g := newTester(t)
	g.unlock(extendedSession)
	g.expect("2F 20 01 03 05", "6F 20 01 03 05")
	g.expect("28 03 01", "68 03")
	g.expect("85 02", "C5 02")
	for range 4 {
		g.wait(4900 * time.Millisecond)
		g.put(functional, "02 3E 80")
	}
	if !g.s.InSession() || !g.s.Silent(NormalMessages) || g.s.Silent(NetworkManagement) || !g.s.Deaf(NormalMessages) || g.value != 5 {
		t.Error("tester present does not keep the session")
	}
	g.wait(5100 * time.Millisecond)
	g.s.Receive(functional, []byte{0x30, 0, 0}, g.now)
	if g.s.InSession() || g.s.Silent(NormalMessages) || g.s.Deaf(NormalMessages) || g.value != 0 || g.m.frozen {
		t.Error("after S3 the session, or what the tester has set, is still there")
	}
	g.expect("2E 20 01 05", "7F 2E 7F")
}

func TestThreeWrongKeysBlockTheAccess(t *testing.T) {
	g := newTester(t)
	g.ask("10 03")
	for _, want := range []string{"7F 27 35", "7F 27 35", "7F 27 36"} {
		g.ask("27 01")
		g.expect("27 02 01 02 03 04", want)
	}
	g.expect("27 01", "7F 27 37")
	for range 3 {
		g.wait(3 * time.Second)
		g.expect("3E 00", "7E 00")
	}
	g.expect("27 01", "7F 27 37")
	g.wait(time.Second)
	g.unlock(extendedSession)
	g.expect("27 01", "67 01 00 00 00 00")
	g.expect("2E 20 01 07", "6E 20 01")
	g.expect("22 20 01", "62 20 01 07")
	g.ask("10 03")
	g.expect("2E 20 01 07", "7F 2E 33")
}

func TestInputOutputControlReturnsToTheUnit(t *testing.T) {
	g := newTester(t)
	g.unlock(extendedSession)
	g.expect("2F 20 01 03 2A", "6F 20 01 03 2A")
	g.expect("2F 20 01 02", "6F 20 01 02 2A")
	g.expect("2F 20 01 00", "6F 20 01 00 00")
	g.ask("2F 20 01 03 2A")
	g.ask("10 01")
	if g.value != 0 {
		t.Error("the default session does not end the control")
	}
}

func TestDownloadIsWrittenAndItsChecksumReported(t *testing.T) {
	g := newTester(t)
	data := make([]byte, 1300)
	for i := range data {
		data[i] = byte(i * 7)
	}
	g.unlock(programmingSession)
	g.expect("34 00 44 00 07 FF FF 00 00 05 14", "7F 34 31")
	g.expect("34 00 44 00 08 FF FF 00 00 05 14", "7F 34 31")
	g.expect("34 00 44 00 08 01 00 00 00 05 14", "74 20 02 02")
	g.expect("34 00 44 00 08 01 00 00 00 05 14", "7F 34 22")
	send := func(block byte, part []byte) string {
		g.transmit(request, build([]byte{0x36, block}, part))
		return hex(g.receive(len(g.frames), 5*time.Millisecond))
	}
	for _, c := range []struct {
		block byte
		part  []byte
		want  string
	}{
		{2, data[:512], "7F 36 73"}, {0, data[:512], "7F 36 73"}, {1, data[:513], "7F 36 13"}, {1, data[:512], "76 01"},
		{1, data[:512], "76 01"}, {2, data[512:1024], "76 02"}, {3, data[:300], "7F 36 71"},
	} {
		if got := send(c.block, c.part); got != c.want {
			t.Errorf("block %d of %d bytes: %q, want %q", c.block, len(c.part), got, c.want)
		}
	}
	g.expect("37", "7F 37 24")
	if got := send(3, data[1024:]); got != "76 03" {
		t.Errorf("last block: %q", got)
	}
	g.expect("37", "77")
	sum := binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE(data))
	g.expect("31 01 02 02 00 08 01 00 00 00 05 14", "71 01 02 02 00 "+hex(sum))
	g.expect("31 01 02 02 00 08 01 00 00 00", "7F 31 13")
	g.expect("34 00 44 00 08 01 00 00 00 05 14", "7F 34 22") // not erased

	from := len(g.frames)
	g.put(request, "04 31 01 FF 00")
	g.wait(100 * time.Millisecond)
	g.put(request, "02 3E 00")
	g.wait(1600 * time.Millisecond)
	var got []string
	for _, f := range g.frames[from:] {
		got = append(got, hex(f[1:f[0]+1]))
	}
	if want := "[7F 31 78 7F 3E 21 71 01 FF 00 00]"; fmt.Sprint(got) != want {
		t.Errorf("an erasure of 1.5 s answers %v, want %s", got, want)
	}
	if d := g.at[from] - (g.at[len(g.at)-1] - eraseTime); d > p2 {
		t.Errorf("response pending after %v", d)
	}
	g.expect("34 00 44 00 08 01 00 00 00 05 14", "74 20 02 02")
}

func TestBlockCounterWrapsToZero(t *testing.T) {
	g := newTester(t)
	g.unlock(programmingSession)
	g.expect("34 00 44 00 08 00 00 00 00 01 04", "74 20 02 02")
	for n := range 260 {
		want := fmt.Sprintf("76 %02X", byte(n+1))
		if got := g.ask(fmt.Sprintf("36 %02X AA", byte(n+1))); got != want {
			t.Fatalf("block %d: %q", n+1, got)
		}
	}
	g.expect("37", "77")
}

func TestEmissionRelatedServices(t *testing.T) {
	g := newTester(t)
	for _, c := range [][2]string{
		{"01 00", "41 00 C0 10 00 11"}, {"01 20", "41 20 00 00 00 01"}, {"01 40", "41 40 00 80 00 00"}, {"01 60", ""},
		{"01 01", "41 01 00 00 00 00"}, {"01 0C", "41 0C 0B B8"}, {"01 0C 49 99", "41 0C 0B B8 49 80"}, {"01 1C", "41 1C 06"},
		{"02 00 00", "42 00 00 40 10 00 00"}, {"02 02 00", "42 02 00 00 00"}, {"02 0C 00", ""},
		{"03", "43 00"}, {"07", "47 00"}, {"0A", "4A 00"}, {"09 00", "49 00 54 40 00 00"},
		{"09 02", "49 02 01 57 4C 53 30 30 30 30 30 30 30 30 30 30 30 30 30 31"}, {"09 99", ""}, {"05 00", ""}, {"03 00", ""},
	} {
		if got := g.askAt(functional, c[0]); got != c[1] {
			t.Errorf("%s: response %q, want %q", c[0], got, c[1])
		}
	}
	g.m.BeginCycle()
	g.report(codeA, true, time.Second)
	g.report(codeB, true, time.Second)
	for _, c := range [][2]string{
		{"01 01", "41 01 81 00 00 00"}, {"02 02 00", "42 02 00 07 30"}, {"02 0C 00", "42 0C 00 12 34"}, {"02 00 00", "42 00 00 40 10 00 00"},
		{"03", "43 01 07 30"}, {"07", "47 02 07 30 08 94"}, {"0A", "4A 01 07 30"}, {"04", "44"}, {"03", "43 00"}, {"07", "47 00"}, {"0A", "4A 01 07 30"},
	} {
		if got := g.askAt(functional, c[0]); got != c[1] {
			t.Errorf("with codes, %s: response %q, want %q", c[0], got, c[1])
		}
	}
	g.expect("03 00", "7F 03 13")
	g.m.BeginCycle()
	g.report(codeA, false, time.Second)
	g.m.BeginCycle()
	g.expect("0A", "4A 00")
}
