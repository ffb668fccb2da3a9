package can

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"lockstep/io/wire"
)

// box is the other end of a bus by wire over UDP.
type box struct {
	*net.UDPConn
	lockstep netip.AddrPort
}

// dialBox returns a bus by wire and its box, which has got the first image.
func dialBox(t *testing.T, at string) (*Bus, *box) {
	t.Helper()
	end, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.MustParseAddrPort(at)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { end.Close() })
	b, err := Dial("udp:"+end.LocalAddr().String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	f := Frame{ID: wire.Digital, Len: 8, Data: [64]byte{5}}
	if !b.Send(&f) || !b.Flush(7e9, 3) {
		t.Fatalf("not sent: %+v", b.Stats)
	}
	x := &box{UDPConn: end}
	m := x.receive(t)
	if m.Counter != 7e6 || m.Tick != 7e9 || m.Age != 3 || m.Digital != 5 {
		t.Errorf("the box got %+v", m)
	}
	return b, x
}

func (x *box) receive(t *testing.T) (m wire.Image) {
	t.Helper()
	var data [2 * wire.Size]byte
	x.SetReadDeadline(time.Now().Add(10 * time.Second))
	n, from, err := x.ReadFromUDPAddrPort(data[:])
	if err != nil || !m.Decode(data[:n]) {
		t.Fatalf("%d bytes, %v", n, err)
	}
	x.lockstep = from
	return m
}

func (x *box) send(t *testing.T, m *wire.Image) {
	t.Helper()
	var data [wire.Size]byte
	m.Encode(&data)
	if _, err := x.WriteToUDPAddrPort(data[:], x.lockstep); err != nil {
		t.Fatal(err)
	}
}

func TestImagesGoBothWaysOverUDP(t *testing.T) {
	for _, at := range []string{"127.0.0.1:0", "[::1]:0"} {
		if end, err := net.ListenPacket("udp", at); err != nil && at != "127.0.0.1:0" {
			t.Logf("%s: %v", at, err) // a host without IPv6
			continue
		} else if err == nil {
			end.Close()
		}
		b, x := dialBox(t, at)
		m := wire.Image{Tick: 1000, Age: 400, Digital: 2}
		m.PWM[4].Duty = 0.5
		m.Analog[31] = 9
		// An emulator stamps no image, and a kernel not the first ones.
		stamped := unix.SetsockoptInt(b.fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPING, imageStamps) == nil
		var frames [maxFrames]Frame
		var stamps [maxFrames]Stamp
		n := 0
		for until := time.Now().Add(10 * time.Second); (n == 0 || stamped && stamps[0].Soft == 0) && time.Now().Before(until); {
			m.Counter++
			x.send(t, &m)
			for n = 0; n == 0 && time.Now().Before(until); {
				n = b.RecvAt(frames[:], stamps[:])
			}
		}
		if n != len(wire.Received) {
			t.Fatalf("%s: %d messages, want %d", at, n, len(wire.Received))
		}
		for i, id := range wire.Received {
			var want [64]byte
			if size := m.Message(id, &want); frames[i].ID != id || frames[i].Len != size || frames[i].Data != want {
				t.Errorf("%s: message 0x%X is %+v", at, id, frames[i])
			}
			if stamps[i].Hard != 600 || stamped && stamps[i].Soft == 0 {
				t.Errorf("%s: stamp %+v, want the time of the sample in the box's time", at, stamps[i])
			}
		}
		if n := b.Recv(frames[:]); n != 0 {
			t.Errorf("%s: %d messages without an image", at, n)
		}
	}
}

// maxFrames is room for the messages of an image.
const maxFrames = 64

func TestBusByWireReceivesTheMessagesThatItsMapReads(t *testing.T) {
	b, x := dialBox(t, "127.0.0.1:0")
	if err := b.UseWire("udp:"+x.LocalAddr().String(), []Filter{{wire.Box + wire.PWMs4, MaskSFF}}, 1e6); err != nil {
		t.Fatal(err)
	}
	for n := range uint64(3) { // the newest image counts
		m := wire.Image{Counter: n}
		m.PWM[0].Duty = float64(n)
		x.send(t, &m)
	}
	var frames [maxFrames]Frame
	got := 0
	for until := time.Now().Add(10 * time.Second); b.WireCounts().Received < 3 && time.Now().Before(until); {
		if n := b.Recv(frames[:]); n > 0 {
			got = n
		}
	}
	want := wire.Image{Counter: 2}
	want.PWM[0].Duty = 2
	var data [64]byte
	if want.Message(wire.Box+wire.PWMs4, &data); got != 1 || frames[0].Data != data {
		t.Errorf("%d messages, the first %+v", got, frames[0])
	}
	if b.Send(&Frame{ID: 0x7FF, Len: 8}) {
		t.Error("a frame that is no message of an image is sent")
	}
}

// A box at 10 kHz sends 100 images in a tick of 10 ms. The queue must not stay full of old ones.
func TestNewestOfManyImagesCounts(t *testing.T) {
	b, x := dialBox(t, "127.0.0.1:0")
	if err := unix.SetsockoptInt(b.fd, unix.SOL_SOCKET, unix.SO_RCVBUF, 1<<20); err != nil {
		t.Fatal(err)
	}
	const many = batch + 8
	for n := range uint64(many) {
		x.send(t, &wire.Image{Counter: n, Digital: n})
	}
	time.Sleep(50 * time.Millisecond) // all are in the queue
	var frames [maxFrames]Frame
	if n := b.Recv(frames[:]); n != len(wire.Received) || frames[1].Data[0] != many-1 {
		t.Errorf("%d messages of image %d, want those of the last, %d: %+v", n, frames[1].Data[0], many-1, *b.WireCounts())
	}
}

func TestForeignDatagramsAreDroppedAndCounted(t *testing.T) {
	b, x := dialBox(t, "127.0.0.1:0")
	other := &box{lockstep: x.lockstep}
	var err error
	if other.UDPConn, err = net.ListenUDP("udp", nil); err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	other.send(t, new(wire.Image))
	var data [wire.Size + 1]byte
	for _, n := range []int{0, 8, wire.Size, wire.Size + 1} {
		if _, err := x.WriteToUDPAddrPort(data[:n], x.lockstep); err != nil {
			t.Fatal(err)
		}
	}
	x.send(t, new(wire.Image))
	var frames [maxFrames]Frame
	got := 0
	for until := time.Now().Add(10 * time.Second); b.WireCounts().Received == 0 && time.Now().Before(until); {
		got += b.Recv(frames[:])
	}
	if c := b.WireCounts(); c.Foreign != 5 || c.Received != 1 || got != len(wire.Received) {
		t.Errorf("%+v, %d messages", *c, got)
	}
}

// sharedBox returns a bus by wire in a new shared memory.
func sharedBox(t *testing.T) (*Bus, string) {
	t.Helper()
	name := fmt.Sprintf("lockstep-test-%d-%d", os.Getpid(), time.Now().UnixNano())
	b, err := Dial("shm:"+name, nil)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(sharedFolder, name)
	t.Cleanup(func() { os.Remove(path); b.Close() })
	return b, path
}

func TestImagesGoBothWaysOverSharedMemory(t *testing.T) {
	b, path := sharedBox(t)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	driver, err := Inherit(f)
	if err != nil {
		t.Fatal(err)
	}
	s := driver.wire.shared
	var out [wire.Size]byte
	var m wire.Image
	b.Send(&Frame{ID: wire.Digital, Len: 8, Data: [64]byte{9}})
	if b.Flush(5e6, 0); !s.out.read(&out, 2) || !m.Decode(out[:]) || m.Digital != 9 || m.Tick != 5e6 || m.Counter != 5000 {
		t.Errorf("the driver reads %+v", m)
	}
	m = wire.Image{Counter: 3, Digital: 6}
	m.Encode(&out)
	var frames [maxFrames]Frame
	if n := b.Recv(frames[:]); n != 0 {
		t.Errorf("%d messages before the driver has written", n)
	}
	s.in.write(&out)
	if n := b.Recv(frames[:]); n != len(wire.Received) || frames[1].ID != wire.Box+wire.Digital || frames[1].Data[0] != 6 {
		t.Errorf("%d messages: %+v", n, frames[1])
	}
	s.in.sequence |= 1 // the driver has died while it wrote
	if n := b.Recv(frames[:]); n != 0 {
		t.Errorf("%d messages of an image that is being written", n)
	}
	s.in.write(&out)
	if n := b.Recv(frames[:]); n != 0 || b.WireCounts().Duplicate != 1 {
		t.Errorf("%d messages of an image written twice: %+v", n, *b.WireCounts())
	}
	if err := driver.Close(); err != nil {
		t.Fatal(err)
	}
}

// A file of another size belongs to another program.
func TestFilesThatAreNoMemoryOfABoxAreLeftAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "box")
	for _, c := range []struct {
		make func() error
		want string
	}{
		{func() error { return os.WriteFile(path, []byte("other"), 0o600) }, "has 5 bytes, the memory of a box has 4096: remove the file"},
		{func() error { return os.WriteFile(path, make([]byte, 2*sharedSize), 0o600) }, "has 8192 bytes"},
		{func() error { return os.Symlink("/dev/null", path) }, "is a symbolic link"},
		{func() error { return unix.Mkfifo(path, 0o600) }, "is not a regular file"},
		{func() error { return os.WriteFile(path, nil, 0o600) }, ""},
		{func() error { return nil }, ""},
	} {
		os.Remove(path)
		if err := c.make(); err != nil {
			t.Fatal(err)
		}
		before, _ := os.Lstat(path)
		fd, err := openShared(path)
		if c.want == "" {
			var st unix.Stat_t
			if err != nil || unix.Fstat(fd, &st) != nil || st.Size != sharedSize {
				t.Errorf("size %d, %v", st.Size, err)
			}
			unix.Close(fd)
			continue
		}
		if after, _ := os.Lstat(path); err == nil || !strings.Contains(err.Error(), c.want) || after.Size() != before.Size() {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}

// A driver that truncates the memory takes its pages away: an access would end the process.
func TestTruncatedSharedMemoryIsABusThatIsDown(t *testing.T) {
	b, path := sharedBox(t)
	f := Frame{ID: wire.Digital, Len: 8}
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	var frames [8]Frame
	b.Send(&f)
	if b.Flush(1e6, 0) || b.Recv(frames[:]) != 0 || b.Stats.Down != 2 || b.Stats.TxDropped != 1 {
		t.Errorf("%+v", b.Stats)
	}
	if err := os.Truncate(path, sharedSize); err != nil {
		t.Fatal(err)
	}
	b.Send(&f)
	if !b.Flush(2e6, 0) || b.Stats.Down != 2 {
		t.Errorf("with its size again: %+v", b.Stats)
	}
}

func TestNewSharedMemoryIsOpenToTheGroupOfTheDriver(t *testing.T) {
	defer unix.Umask(unix.Umask(0o077))
	path := filepath.Join(t.TempDir(), "box")
	fd, err := openShared(path)
	if err != nil {
		t.Fatal(err)
	}
	unix.Close(fd)
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != sharedMode {
		t.Errorf("mode %v, %v", st.Mode(), err)
	}
}

func TestUnreachableBoxIsABusThatIsDown(t *testing.T) {
	var b Bus
	for _, errno := range []unix.Errno{unix.EHOSTUNREACH, unix.ENETUNREACH} {
		b.countFailure(errno)
	}
	if b.Stats.Down != 2 || b.Stats.Errors != 0 {
		t.Errorf("%+v", b.Stats)
	}
}

func TestBoxHasOneName(t *testing.T) {
	for name, want := range map[string]string{
		"udp:[fd00:0:0::7]:5005": "udp:[fd00::7]:5005", "udp:[::ffff:192.0.2.7]:5005": "udp:192.0.2.7:5005",
		"udp:192.0.2.7:05005": "udp:192.0.2.7:5005", "shm:box": "shm:box", "pair": "pair", "udp:x": "udp:x",
	} {
		if got := WireName(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

func TestBusByWireDoesNotAllocate(t *testing.T) {
	b, x := dialBox(t, "127.0.0.1:0")
	s, _ := sharedBox(t)
	var frames [maxFrames]Frame
	var stamps [maxFrames]Stamp
	var data [wire.Size]byte
	m, f := wire.Image{}, Frame{ID: wire.Tone, Len: 48}
	n := testing.AllocsPerRun(100, func() {
		for _, bus := range []*Bus{b, s} {
			bus.Send(&f)
			bus.Flush(1e6, 0)
			bus.RecvAt(frames[:], stamps[:])
		}
		m.Counter++
		m.Encode(&data)
		s.wire.shared.in.write(&data)
		if _, err := x.WriteToUDPAddrPort(data[:], x.lockstep); err != nil {
			t.Fatal(err)
		}
	})
	if n != 0 || b.WireCounts().Sent < 100 || s.WireCounts().Received < 100 {
		t.Errorf("%g allocations, %+v, %+v", n, *b.WireCounts(), *s.WireCounts())
	}
}

func TestNamesOfBusesByWireAreChecked(t *testing.T) {
	for name, good := range map[string]bool{
		"udp:192.0.2.7:5005": true, "udp:[fd00::7]:5005": true, "udp:192.0.2.7": false, "udp:192.0.2.7:0": false,
		"udp:224.0.0.1:5005": false, "udp:255.255.255.255:5005": false, "udp:[ff02::1]:5005": false, "udp:[::ffff:192.0.2.7]:5005": true,
		"udp:0.0.0.0:5005": false, "udp:box:5005": false, "udp:[fe80::1%lo]:5": false,
		"shm:brake-box": true, "shm:a-name-of-more-than-fifteen-letters": true, "shm:": false, "shm:../x": false, "shm:a b": false,
	} {
		if err := CheckWire(name); (err == nil) != good {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Dial("shm:../etc/passwd", nil); err == nil {
		t.Error("a file outside of /dev/shm is opened")
	}
	if b, err := wrapFD(int(os.Stdin.Fd())); err == nil {
		t.Errorf("standard input is a bus: %+v", b.Stats)
	}
}
