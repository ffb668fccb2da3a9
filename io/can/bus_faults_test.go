package can

import (
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

func TestWrongSizesAreCounted(t *testing.T) {
	b, unit := pair(t)
	for _, n := range []int{1, 8, 15, 17, 71, 73, 500} {
		writeRaw(t, unit, make([]byte, n))
	}
	long := Frame{Len: 9}
	raw := *(*[sizeFD]byte)(unsafe.Pointer(&long))
	writeRaw(t, unit, raw[:sizeClassic])
	writeRaw(t, unit, frameBytes(Frame{Len: 65, Flags: FlagFDF}))
	writeRaw(t, unit, frameBytes(Frame{ID: 5}))
	dst := make([]Frame, 64)
	if n := b.Recv(dst); n != 1 || dst[0].ID != 5 {
		t.Errorf("%d frames, first %+v, want the one with identifier 5", n, dst[0])
	}
	if want := (Stats{Rx: 1, BadSize: 9}); b.Stats != want {
		t.Errorf("stats %+v, want %+v", b.Stats, want)
	}
}

func TestBadMessagesCountAgainstTheLimitOfRecv(t *testing.T) {
	b, unit := pair(t)
	for range 100 {
		writeRaw(t, unit, []byte{1})
	}
	if n := b.Recv(make([]Frame, 40)); n != 0 || b.Stats.BadSize != 40 {
		t.Errorf("%d frames, %d bad messages read, want 0 and 40", n, b.Stats.BadSize)
	}
}

func TestEmptyMessageIsNotAClosedEnd(t *testing.T) {
	b, unit := pair(t)
	fd := int(unit.Fd())
	for range 3 {
		if err := unix.Send(fd, nil, 0); err != nil {
			t.Fatal(err)
		}
		b.Recv(make([]Frame, 1))
	}
	writeRaw(t, unit, frameBytes(Frame{ID: 7}))
	dst := make([]Frame, 4)
	if n := b.Recv(dst); n != 1 || dst[0].ID != 7 {
		t.Errorf("%d frames, want the one after the empty messages", n)
	}
	if want := (Stats{Rx: 1, BadSize: 3}); b.Stats != want {
		t.Errorf("stats %+v, want %+v", b.Stats, want)
	}
}

func TestClosedEndIsCountedOncePerCall(t *testing.T) {
	b, unit := pair(t)
	writeRaw(t, unit, frameBytes(Frame{ID: 7}))
	unit.Close()
	dst := make([]Frame, 256)
	if n := b.Recv(dst); n != 1 || dst[0].ID != 7 {
		t.Errorf("%d frames, want the one sent before the end was closed", n)
	}
	before := b.Stats
	for range 10 {
		if n := b.Recv(dst); n != 0 {
			t.Fatalf("%d frames from a closed end", n)
		}
		if b.Send(&Frame{}) {
			t.Fatal("a frame was sent to a closed end")
		}
	}
	want := before
	want.Down += 20
	want.TxDropped += 10
	if b.Stats != want || before.BadSize+before.Errors != 0 {
		t.Errorf("stats %+v, want %+v", b.Stats, want)
	}
}

func TestEndClosedWithUnreadFramesIsDownNotAnError(t *testing.T) {
	b, unit := pair(t)
	b.Send(&Frame{})
	unit.Close()
	b.Recv(make([]Frame, 4))
	b.Recv(make([]Frame, 4))
	b.Send(&Frame{})
	if want := (Stats{Tx: 1, TxDropped: 1, Down: 3}); b.Stats != want {
		t.Errorf("stats %+v, want %+v", b.Stats, want)
	}
}

func TestFullQueueDropsFramesAndKeepsTheirOrder(t *testing.T) {
	b, unit := pair(t)
	for i := range 3000 {
		b.Send(&Frame{ID: uint32(i)})
	}
	s := b.Stats
	if s.TxDropped == 0 || s.Tx == 0 || s.Tx+s.TxDropped != 3000 || s.Errors+s.Down != 0 {
		t.Errorf("stats %+v, want sent and dropped frames, together 3000", s)
	}
	buf := make([]byte, 100)
	for i := range uint32(s.Tx) {
		if _, err := unit.Read(buf); err != nil || *(*uint32)(unsafe.Pointer(&buf[0])) != i {
			t.Fatalf("frame %d reads % X, %v", i, buf[:4], err)
		}
	}
	if !b.Send(&Frame{}) {
		t.Error("nothing is sent after the queue was read")
	}
}

func TestFrameLongerThan64BytesIsNotSent(t *testing.T) {
	b, _ := pair(t)
	if b.Send(&Frame{Len: 65}) {
		t.Error("a frame of 65 bytes was sent")
	}
	if want := (Stats{TxDropped: 1, Errors: 1}); b.Stats != want {
		t.Errorf("stats %+v, want %+v", b.Stats, want)
	}
}

func TestOverflowCountWraps(t *testing.T) {
	b, _ := pair(t)
	for _, drops := range []uint32{5, 5, 1<<32 - 2, 3} {
		b.control[0] = [11]uint64{}
		h := (*unix.Cmsghdr)(unsafe.Pointer(&b.control[0]))
		h.Level, h.Type = unix.SOL_SOCKET, unix.SO_RXQ_OVFL
		h.SetLen(unix.CmsgLen(4))
		*(*uint32)(unsafe.Add(unsafe.Pointer(&b.control[0]), unix.CmsgLen(0))) = drops
		b.msgs[0].Hdr.SetControllen(unix.CmsgSpace(4))
		b.readControl(0)
	}
	if want := uint64(1<<32 + 3); b.Stats.RxOverflow != want {
		t.Errorf("overflow %d, want %d", b.Stats.RxOverflow, want)
	}
}

// A UDP socket counts drops as a CAN socket does and works on every host.
func TestDropsAfterTheLastFrameAreCounted(t *testing.T) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	b := newBus(fd)
	t.Cleanup(func() { b.Close() })
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	for option, value := range map[int]int{unix.SO_RCVBUF: 1, unix.SO_RXQ_OVFL: 1} {
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, option, value); err != nil {
			t.Fatal(err)
		}
	}
	at, err := unix.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	f := Frame{ID: 5}
	for range 500 {
		if err := unix.Sendto(fd, frameBytes(f), 0, at); err != nil {
			t.Fatal(err)
		}
	}
	dst := make([]Frame, 512)
	b.Recv(dst)
	before := b.Stats.RxOverflow
	for range 2 { // the second time there is nothing new
		b.CountDrops()
		if s := b.Stats; s.Rx+s.RxOverflow != 500 || s.RxOverflow <= before {
			t.Errorf("received %d, lost %d, %d of them reported with a frame; want 500 in total, some from CountDrops", s.Rx, s.RxOverflow, before)
		}
	}
	if n := testing.AllocsPerRun(10, b.CountDrops); n != 0 {
		t.Errorf("CountDrops allocates %v times", n)
	}
}

func TestClosedBusCountsErrors(t *testing.T) {
	b, _ := pair(t)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	b.Recv(make([]Frame, 1))
	b.Send(&Frame{})
	if want := (Stats{TxDropped: 1, Errors: 2}); b.Stats != want {
		t.Errorf("stats %+v, want %+v", b.Stats, want)
	}
	if b.Close() == nil {
		t.Error("the second Close is no error")
	}
	if f, err := b.File(); err == nil {
		f.Close()
		t.Error("a closed bus gives a file")
	}
}
