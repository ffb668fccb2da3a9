package diagnosis

import (
	"fmt"
	"testing"
	"time"
)

// The identifiers and bytes are built by hand from SAE J1939-73 and -21.
func TestMessagesOfJ1939(t *testing.T) {
	const output, input = 191<<5 | 19, 161<<5 | 2 // SPN, FMI
	memory := NewMemory([]Code{
		{Number: output, Fail: time.Second, Pass: time.Second, Trips: 1}, {Number: input, Fail: time.Second, Pass: time.Second, Trips: 1},
	}, time.Hour)
	memory.Capture = func() []byte { return []byte{1, 2, 3} }
	var got []string
	now := time.Duration(0)
	m := &Messages{Address: 3, Memory: memory, Send: func(id uint32, data []byte) error {
		got = append(got, fmt.Sprintf("%v %08X %X", now, id, data))
		return nil
	}}
	run := func(d time.Duration) {
		for end := now + d; now < end; now += 10 * time.Millisecond {
			if err := m.Advance(now); err != nil {
				t.Fatal(err)
			}
		}
	}
	expect := func(what string, want ...string) {
		t.Helper()
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s:\n%q, want\n%q", what, got, want)
		}
		got = nil
	}
	run(3 * time.Second)
	expect("no code")
	memory.Report(output, true, time.Second)
	run(1010 * time.Millisecond)
	expect("one code, every second", "3s 98FECA03 04FFBF001301FFFF", "4s 98FECA03 04FFBF001301FFFF")
	memory.Report(input, true, time.Second)
	run(200 * time.Millisecond)
	expect("two codes",
		"4.01s 9CECFF03 200A0002FFCAFE00", "4.06s 9CEBFF03 0104FFBF001301A1", "4.11s 9CEBFF03 02000201FFFFFFFF")
	memory.Report(input, false, 2*time.Second)
	run(20 * time.Millisecond)
	expect("one of them passed", "4.21s 98FECA03 04FFBF001301FFFF")
	if !m.Request(previousCodes, 0x21, false, now) || !m.Request(freezeFrames, 0x21, false, now) {
		t.Error("DM2 or DM4 is not answered")
	}
	run(200 * time.Millisecond)
	expect("DM2 and DM4", "4.23s 98FECB03 04FFA1000201FFFF", "4.23s 9CECFF03 20100003FFCDFE00",
		"4.28s 9CEBFF03 0107BF0013010102", "4.33s 9CEBFF03 020307A100020101", "4.38s 9CEBFF03 030203FFFFFFFFFF")
	m.Request(clearPrevious, 0x21, false, now)
	run(10 * time.Millisecond)
	expect("DM3", "4.43s 98E8FF03 00FFFFFF21CCFE00")
	if memory.Status(input) != untested || memory.Status(output)&TestFailed == 0 {
		t.Error("DM3 does not clear the previously active codes alone")
	}
	m.Request(clearActive, 0x21, true, now)
	run(10 * time.Millisecond)
	expect("DM11 to all: no acknowledgement; no code is active", "4.44s 98FECA03 00FF00000000FFFF")
	m.Request(previousCodes, 0x21, true, now)
	m.Request(freezeFrames, 0x21, true, now)
	run(10 * time.Millisecond)
	expect("nothing stored", "4.45s 98FECB03 00FF00000000FFFF", "4.45s 98FECD03 0000000000FFFFFF")
	if m.Request(0xFEEC, 0x21, true, now) {
		t.Error("a request for another group is taken")
	}
}
