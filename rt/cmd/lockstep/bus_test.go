package main

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"lockstep/io/can"
)

// frame returns a classic CAN frame as SocketCAN delivers it, 16 bytes.
func frame(id uint32, data ...byte) []byte {
	b := make([]byte, 16)
	binary.NativeEndian.PutUint32(b, id)
	b[4] = byte(len(data))
	copy(b[8:], data)
	return b
}

// openPair returns both ends of a bus; the run gets its end as fd:3.
func openPair(t *testing.T) (theirs, ours *os.File) {
	t.Helper()
	theirs, ours, err := can.Pair()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { theirs.Close(); ours.Close() })
	return theirs, ours
}

// countFrames reads frames until the bus is closed and counts them by identifier.
func countFrames(bus *os.File) <-chan map[uint32]int {
	result := make(chan map[uint32]int, 1)
	go func() {
		count, b := map[uint32]int{}, make([]byte, 72)
		for {
			n, err := bus.Read(b)
			if n < 16 || err != nil {
				result <- count
				return
			}
			count[binary.NativeEndian.Uint32(b)]++
		}
	}()
	return result
}

// TestGarbageOnTheBusDoesNotStopTheLoop sends 20,000 wrong frames/s of four kinds and one valid
// frame.
func TestGarbageOnTheBusDoesNotStopTheLoop(t *testing.T) {
	theirs, ours := openPair(t)
	file := filepath.Join(t.TempDir(), "r.json")
	s := begin(t, []*os.File{theirs}, "run", patientBench(t), "-bus", "fd:3", "-besteffort", "-for", "2s", "-report", file)
	theirs.Close()
	count := countFrames(ours)
	bad := [][]byte{
		frame(0x123, 1, 2, 3, 4, 5, 6, 7, 8),                         // unknown identifier
		frame(0x110, 1, 2, 3),                                        // too short for its signals
		frame(0x111, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff), // 40.95 bar: out of range
		{1, 2, 3, 4, 5},                                              // not a frame
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for { // 40 frames per 2 ms, until the run closes its end
			for i := range 40 {
				ours.SetWriteDeadline(time.Now().Add(time.Minute)) // the run may take this long to begin
				if _, err := ours.Write(bad[i%len(bad)]); err != nil {
					return
				}
			}
			if _, err := ours.Write(frame(0x110, 0, 0, 0, 0, 0, 0, 0, 0)); err != nil {
				return
			}
			time.Sleep(2 * time.Millisecond)
		}
	}()
	code := s.end()
	r := readReport(t, file)
	if code != 0 || r.Ticks != 400 || r.Allocs != 0 {
		t.Errorf("code %d, %d ticks, %d allocations; want 0, 400, 0\n%s", code, r.Ticks, r.Allocs, s.errors.String())
	}
	if r.RxUnknown == 0 || r.RxShort == 0 || r.RxRange == 0 || r.RxBadSize == 0 || r.RxFrames <= r.RxUnknown+r.RxShort+r.RxRange {
		t.Errorf("in %d, unknown %d, short %d, out of range %d, of no size %d; want some of each",
			r.RxFrames, r.RxUnknown, r.RxShort, r.RxRange, r.RxBadSize)
	}
	if len(r.Silent) != 0 {
		t.Errorf("silent %+v; want none: TCU_Pressure_2 came, out of range", r.Silent)
	}
	if got := <-count; got[0x200] == 0 || got[0x201] == 0 || got[0x202] == 0 {
		t.Errorf("frames out by identifier: %v; want 0x200, 0x201, 0x202", got)
	}
	<-done
}

// TestFramesGoOutOnTheirGridOnSeveralBuses runs a bench with two buses.
func TestFramesGoOutOnTheirGridOnSeveralBuses(t *testing.T) {
	first, one := openPair(t)
	second, two := openPair(t)
	file := filepath.Join(t.TempDir(), "r.json")
	text := patientBench(t, "  drive:", "  extra:\n    interface: vcan7\n    database: powershift.dbc\n    frames:\n"+
		"      Torque: {cycle: 20 ms, counter: counter_T}\n    send:\n      - tau_load -> Torque.tau_load\n  drive:")
	s := begin(t, []*os.File{first, second}, "run", text, "-bus", "drive=fd:3", "-bus", "extra=fd:4",
		"-besteffort", "-for", "1s", "-report", file)
	first.Close()
	second.Close()
	drive, extra := countFrames(one), countFrames(two)
	code := s.end()
	r := readReport(t, file)
	d, e := <-drive, <-extra
	if code != 0 || r.Ticks != 200 {
		t.Fatalf("code %d, %d ticks, %s", code, r.Ticks, s.errors.String())
	}
	// Every due frame was sent, except at missed ticks and with a full buffer.
	sent := uint64(d[0x200] + d[0x201] + d[0x202] + e[0x201])
	if sent != r.TxFrames || sent+r.TxLost+r.TxDropped-r.TxAgain != 200+100+100+50 {
		t.Errorf("read %d frames, sent %d, lost %d, dropped %d, tried again %d; want 450 in all", sent, r.TxFrames, r.TxLost, r.TxDropped, r.TxAgain)
	}
	if e[0x200] != 0 || e[0x202] != 0 || e[0x201] > 50 || d[0x201] > 100 {
		t.Errorf("bus drive %v, bus extra %v; want every 20 ms only 0x201 on the second", d, e)
	}
}

// TestRealBusWithoutTheRightsIsRefused removes one right that every host grants: a process with one
// CPU cannot reserve a CPU for the loop.
func TestRealBusWithoutTheRightsIsRefused(t *testing.T) {
	var before, one unix.CPUSet
	runtime.LockOSThread() // a child has the affinity of the thread that starts it
	defer runtime.UnlockOSThread()
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		t.Fatal(err)
	}
	for cpu := 0; one.Count() == 0; cpu++ {
		if before.IsSet(cpu) {
			one.Set(cpu)
		}
	}
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		t.Fatal(err)
	}
	defer unix.SchedSetaffinity(0, &before)

	theirs, _ := openPair(t)
	var s *session
	var code int
	var got string
	for begun := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		s = begin(t, []*os.File{theirs}, "run", "-bus", "fd:3", "-for", "100ms")
		code, got = s.end(), s.errors.String()
		if !has(got, "held by a loop") || time.Since(begun) > time.Minute { // of a run of another package's test
			break
		}
	}
	if code != 3 || s.out.Len() != 0 || !has(got, "taskset", "-besteffort") {
		t.Errorf("code %d, %q; want 3, what is missing and the command that helps", code, got)
	}
	for _, line := range strings.Split(strings.TrimSpace(got), "\n") {
		if !strings.HasPrefix(line, "lockstep: run: ") {
			t.Errorf("a line of the refusal is %q", line)
		}
	}
}
