package can

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unsafe"
)

// pair returns a bus and the unit's end of its pair.
func pair(t *testing.T) (*Bus, *os.File) {
	t.Helper()
	target, unit, err := Pair()
	if err != nil {
		t.Fatal(err)
	}
	b, err := Inherit(target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		b.Close()
		unit.Close()
	})
	return b, unit
}

// frameBytes returns the bytes of a frame on a socket.
func frameBytes(f Frame) []byte {
	size := sizeClassic
	if f.FD() {
		size = sizeFD
	}
	all := *(*[sizeFD]byte)(unsafe.Pointer(&f))
	return all[:size]
}

// writeRaw writes raw bytes from the unit's end.
func writeRaw(t *testing.T, unit *os.File, data []byte) {
	t.Helper()
	if _, err := unit.Write(data); err != nil {
		t.Fatal(err)
	}
}

// frameOf returns a frame with n different data bytes.
func frameOf(id uint32, n, flags uint8) Frame {
	f := Frame{ID: id, Len: n, Flags: flags}
	for i := range n {
		f.Data[i] = 0xFF - i
	}
	return f
}

func TestFrameHasTheLayoutOfCanfdFrame(t *testing.T) {
	f := Frame{ID: 0x123 | EFF, Len: 3, Flags: FlagBRS | FlagFDF}
	copy(f.Data[:], "abc")
	got := frameBytes(f)
	id := *(*uint32)(unsafe.Pointer(&got[0]))
	if len(got) != 72 || id != 0x80000123 || got[4] != 3 || got[5] != 5 || got[6] != 0 || string(got[8:11]) != "abc" {
		t.Errorf("frame % X is not a canfd_frame", got)
	}
}

func TestFramesCrossThePairUnchanged(t *testing.T) {
	b, unit := pair(t)
	for _, f := range []Frame{
		{},
		frameOf(0x7FF, 8, 0),
		frameOf(0x1FFFFFFF|EFF, 5, 0),
		{ID: 0x12 | RTR, Len: 4},
		frameOf(0x10, 8, FlagFDF),
		frameOf(0x11, 64, FlagFDF|FlagBRS|FlagESI),
	} {
		writeRaw(t, unit, frameBytes(f))
		var got [2]Frame
		if n := b.Recv(got[:]); n != 1 || got[0] != f {
			t.Errorf("received %d frames, first %+v, want %+v", n, got[0], f)
		}
		if !b.Send(&f) {
			t.Errorf("%+v is not sent: %+v", f, b.Stats)
		}
		buf := make([]byte, 100)
		n, err := unit.Read(buf)
		if err != nil || string(buf[:n]) != string(frameBytes(f)) {
			t.Errorf("unit reads % X, %v, want % X", buf[:n], err, frameBytes(f))
		}
	}
	if want := (Stats{Rx: 6, Tx: 6}); b.Stats != want {
		t.Errorf("stats %+v, want %+v", b.Stats, want)
	}
}

func TestFrameLongerThan8BytesIsSentAsFD(t *testing.T) {
	b, unit := pair(t)
	f := frameOf(1, 12, 0)
	b.Send(&f)
	buf := make([]byte, 100)
	if n, _ := unit.Read(buf); n != 72 || buf[5] != FlagFDF {
		t.Errorf("%d bytes with flags %d, want 72 with %d", n, buf[5], FlagFDF)
	}
}

func TestClassicFrameIsSentWithoutFlags(t *testing.T) {
	b, unit := pair(t)
	f := Frame{ID: 1, Len: 1, Flags: FlagBRS, Res0: 7, Res1: 9}
	b.Send(&f)
	buf := make([]byte, 100)
	if n, _ := unit.Read(buf); n != 16 || buf[5]|buf[6]|buf[7] != 0 {
		t.Errorf("% X, want 16 bytes with zeros at 5 to 7", buf[:n])
	}
}

func TestReceivedFrameIsZeroBeyondItsLength(t *testing.T) {
	b, unit := pair(t)
	writeRaw(t, unit, frameBytes(frameOf(1, 64, FlagFDF)))
	dirty := frameOf(2, 8, 0)
	dirty.Len, dirty.Flags, dirty.Res1 = 3, 0xFF, 0xFF
	raw := *(*[sizeFD]byte)(unsafe.Pointer(&dirty))
	writeRaw(t, unit, raw[:sizeClassic])
	got := make([]Frame, 1)
	b.Recv(got)
	if n := b.Recv(got); n != 1 || got[0] != frameOf(2, 3, 0) {
		t.Errorf("received %d, %+v, want %+v", n, got[0], frameOf(2, 3, 0))
	}
}

func TestRecvReadsAtMostLenDstFrames(t *testing.T) {
	b, unit := pair(t)
	for i := range 100 {
		writeRaw(t, unit, frameBytes(Frame{ID: uint32(i)}))
	}
	next := uint32(0)
	for _, room := range []int{0, 1, 31, 32, 33, 10} {
		dst := make([]Frame, room)
		want := min(room, 100-int(next))
		if n := b.Recv(dst); n != want {
			t.Fatalf("%d frames into room for %d, want %d", n, room, want)
		}
		for _, f := range dst[:want] {
			if f.ID != next {
				t.Fatalf("frame %d, want %d", f.ID, next)
			}
			next++
		}
	}
	if b.Stats.Rx != 100 {
		t.Errorf("%d frames counted, want 100", b.Stats.Rx)
	}
}

func TestFloodIsReceivedInBoundedBatches(t *testing.T) {
	b, unit := pair(t)
	const frames = 20000
	go func() {
		data := frameBytes(Frame{ID: 0x555, Len: 8})
		for range frames {
			if _, err := unit.Write(data); err != nil {
				return
			}
		}
	}()
	dst := make([]Frame, 256)
	deadline := time.Now().Add(time.Minute)
	total := 0
	for total < frames && time.Now().Before(deadline) {
		n := b.Recv(dst)
		total += n
		if n < len(dst) {
			time.Sleep(100 * time.Microsecond)
		}
	}
	if want := (Stats{Rx: frames}); total != frames || b.Stats != want {
		t.Errorf("%d frames, stats %+v, want %+v", total, b.Stats, want)
	}
}

func TestRecvDoesNotAllocate(t *testing.T) {
	b, unit := pair(t)
	data := frameBytes(frameOf(1, 8, 0))
	dst := make([]Frame, 64)
	check := func(what string, act func()) {
		if got := testing.AllocsPerRun(100, act); got != 0 {
			t.Errorf("%s: %g allocations, want 0", what, got)
		}
	}
	check("frames", func() {
		for range 40 {
			unit.Write(data)
		}
		b.Recv(dst)
	})
	check("nothing", func() { b.Recv(dst) })
	check("garbage", func() {
		unit.Write(data[:5])
		b.Recv(dst)
	})
	unit.Close()
	check("closed", func() { b.Recv(dst) })
	if b.Stats.Rx < 4000 || b.Stats.BadSize < 100 || b.Stats.Down < 100 {
		t.Errorf("stats %+v: the cases were not reached", b.Stats)
	}
}

func TestSendDoesNotAllocate(t *testing.T) {
	b, unit := pair(t)
	f := frameOf(1, 64, FlagFDF)
	if got := testing.AllocsPerRun(3000, func() { b.Send(&f) }); got != 0 {
		t.Errorf("%g allocations, want 0", got)
	}
	unit.Close()
	if got := testing.AllocsPerRun(100, func() { b.Send(&f) }); got != 0 {
		t.Errorf("closed: %g allocations, want 0", got)
	}
	if b.Stats.Tx == 0 || b.Stats.TxDropped < 200 || b.Stats.Down < 100 {
		t.Errorf("stats %+v: the cases were not reached", b.Stats)
	}
}

func TestCloseOfTheUnitsEndEndsItsPendingRead(t *testing.T) {
	_, unit := pair(t)
	done := make(chan error, 1)
	go func() {
		_, err := unit.Read(make([]byte, 100))
		done <- err
	}()
	time.Sleep(10 * time.Millisecond)
	unit.Close()
	select {
	case err := <-done:
		if !errors.Is(err, os.ErrClosed) {
			t.Errorf("read ends with %v, want %v", err, os.ErrClosed)
		}
	case <-time.After(time.Minute):
		t.Error("the read goes on after Close")
	}
}

func TestInterfacesListsOnlyCANInterfaces(t *testing.T) {
	dir := t.TempDir()
	for name, kind := range map[string]string{"lo": "772\n", "can0": "280\n", "vcan3": "280\n", "eth0": "1\n"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name, "type"), []byte(kind), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got := strings.Join(Interfaces(dir), " "); got != "can0 vcan3" {
		t.Errorf("interfaces %q, want %q", got, "can0 vcan3")
	}
	if got := Interfaces(filepath.Join(dir, "missing")); got != nil {
		t.Errorf("interfaces %q of nothing", got)
	}
}
