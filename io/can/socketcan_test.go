package can

import (
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

// exact returns a filter that passes the data frame with this 11-bit identifier.
func exact(id uint32) Filter { return Filter{ID: id, Mask: MaskSFF | EFF | RTR} }

// dialOrSkip opens a bus on SocketCAN, or skips and says what is missing.
func dialOrSkip(t *testing.T, name string, filters ...Filter) *Bus {
	t.Helper()
	b, err := Dial(name, filters)
	if errors.Is(err, ErrNoCAN) || name == "vcan0" && (errors.Is(err, ErrNoInterface) || errors.Is(err, ErrDown)) {
		t.Skip("needs vcan0: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

// addInterface makes a virtual interface with its own name and MTU, or skips.
func addInterface(t *testing.T, name, mtu string) {
	t.Helper()
	dialOrSkip(t, "vcan0")
	if os.Geteuid() != 0 {
		t.Skip("needs root to add " + name)
	}
	ip(t, "link", "add", "dev", name, "type", "vcan")
	t.Cleanup(func() { exec.Command("ip", "link", "del", name).Run() })
	ip(t, "link", "set", name, "mtu", mtu)
}

func ip(t *testing.T, args ...string) {
	t.Helper()
	command(t, "ip", args...)
}

// command runs a program that changes the network, or skips.
func command(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Skipf("needs a working %s %s: %v: %s", name, strings.Join(args, " "), err, out)
	}
}

// send sends frames with the given identifiers.
func send(t *testing.T, b *Bus, ids ...uint32) {
	t.Helper()
	for _, id := range ids {
		if !b.Send(&Frame{ID: id}) {
			t.Fatalf("0x%X is not sent: %+v", id, b.Stats)
		}
	}
}

// recvAll returns the identifiers of all frames that wait.
func recvAll(b *Bus) (ids []uint32) {
	dst := make([]Frame, 64)
	for n := b.Recv(dst); n > 0; n = b.Recv(dst) {
		for _, f := range dst[:n] {
			ids = append(ids, f.ID)
		}
	}
	return ids
}

// recvAtLeast returns the identifiers of at least n frames, or of fewer after 1 s. A busy kernel
// delivers frames later, in a separate thread.
func recvAtLeast(b *Bus, n int) (ids []uint32) {
	for range 1000 {
		ids = append(ids, recvAll(b)...)
		if len(ids) >= n {
			break
		}
		time.Sleep(time.Millisecond)
	}
	return ids
}

func TestSocketReceivesOnlyFramesThatPassItsFilters(t *testing.T) {
	none := dialOrSkip(t, "vcan0")
	one := dialOrSkip(t, "vcan0", exact(0x123))
	long := dialOrSkip(t, "vcan0", Filter{ID: 0x123 | EFF, Mask: MaskEFF | EFF | RTR})
	all := dialOrSkip(t, "vcan0", Filter{})
	sender := dialOrSkip(t, "vcan0")
	sent := []uint32{0x122, 0x123, 0x124, 0x123 | EFF, 0x123 | RTR, 0x1FFFFFFF | EFF}
	send(t, sender, sent...)
	for _, c := range []struct {
		name string
		bus  *Bus
		want []uint32
	}{
		{"all", all, sent},
		{"one", one, []uint32{0x123}},
		{"extended", long, []uint32{0x123 | EFF}},
		{"no filter", none, nil},
		{"the sender itself", sender, nil},
	} {
		if got := recvAtLeast(c.bus, len(c.want)); !slices.Equal(got, c.want) {
			t.Errorf("%s: received %X, want %X", c.name, got, c.want)
		}
	}
}

func TestFramesLoopBackToOtherSocketsOfTheHost(t *testing.T) {
	a, b := dialOrSkip(t, "vcan0", Filter{}), dialOrSkip(t, "vcan0", Filter{})
	dst := make([]Frame, 2)
	for _, f := range []Frame{frameOf(0x7FF, 8, 0), frameOf(0x1FFFFFFF|EFF, 0, 0), frameOf(1, 3, 0), frameOf(2, 64, FlagFDF|FlagBRS)} {
		for _, dir := range [][2]*Bus{{a, b}, {b, a}} {
			if !dir[0].Send(&f) {
				t.Fatalf("%+v is not sent: %+v", f, dir[0].Stats)
			}
			n := dir[1].Recv(dst)
			for range 1000 {
				if n > 0 {
					break
				}
				time.Sleep(time.Millisecond)
				n = dir[1].Recv(dst)
			}
			if n != 1 || dst[0] != f {
				t.Errorf("received %d, %+v, want %+v", n, dst[0], f)
			}
		}
	}
}

func TestOverflowCountIsExact(t *testing.T) {
	rx, tx := dialOrSkip(t, "vcan0", exact(0x321), exact(0x322)), dialOrSkip(t, "vcan0")
	const frames = 3000
	for i := range frames {
		tx.Send(&Frame{ID: 0x321, Len: 8})
		if i%500 == 0 {
			time.Sleep(time.Millisecond) // vcan has a short backlog
		}
	}
	time.Sleep(50 * time.Millisecond)
	held := len(recvAll(rx))
	send(t, tx, 0x322) // the count comes with the next frame
	if got := recvAtLeast(rx, 1); !slices.Equal(got, []uint32{0x322}) {
		t.Errorf("received %X after the overflow, want 322", got)
	}
	if held == 0 || held >= frames {
		t.Errorf("the queue held %d of %d frames: it did not overflow", held, frames)
	}
	if s := rx.Stats; s.RxOverflow == 0 || s.Rx+s.RxOverflow != tx.Stats.Tx {
		t.Errorf("%d received and %d dropped, want together the %d sent (%d dropped by the sender)",
			s.Rx, s.RxOverflow, tx.Stats.Tx, tx.Stats.TxDropped)
	}
}

func TestFDNeedsAnMTUOf72(t *testing.T) {
	addInterface(t, "vcan8", "16")
	ip(t, "link", "set", "vcan8", "up")
	classic := dialOrSkip(t, "vcan8", Filter{})
	if classic.FD {
		t.Error("a bus with MTU 16 claims to take CAN FD frames")
	}
	f := frameOf(1, 64, FlagFDF)
	if classic.Send(&f) || classic.Stats.TxDropped != 1 {
		t.Errorf("an FD frame on MTU 16: %+v", classic.Stats)
	}
	send(t, classic, 1)
	if !dialOrSkip(t, "vcan0").FD {
		t.Error("vcan0 does not take CAN FD frames: set its MTU to 72")
	}
}

func TestDialErrorListsTheInterfacesOfTheHost(t *testing.T) {
	dialOrSkip(t, "vcan0")
	before := descriptors(t)
	for _, name := range []string{"vcan77", "", "a-name-longer-than-fifteen"} {
		_, err := Dial(name, nil)
		if !errors.Is(err, ErrNoInterface) || !strings.Contains(err.Error(), "this host has ") || !strings.Contains(err.Error(), "vcan0") {
			t.Errorf("Dial %q gives %v, want %v with a list", name, err, ErrNoInterface)
		}
	}
	_, err := Dial("lo", nil)
	if !errors.Is(err, ErrNoInterface) || !strings.Contains(err.Error(), "lo is not a CAN interface") {
		t.Errorf("Dial lo gives %v", err)
	}
	if after := descriptors(t); after != before {
		t.Errorf("%d descriptors, %d before", after, before)
	}
}

func TestDialRefusesAnInterfaceThatIsDown(t *testing.T) {
	addInterface(t, "vcan9", "72")
	_, err := Dial("vcan9", nil)
	if !errors.Is(err, ErrDown) || !strings.Contains(err.Error(), "ip link set vcan9 up") {
		t.Errorf("Dial gives %v, want %v and the command", err, ErrDown)
	}
}

func TestInterfaceDownIsCountedAndBusWorksAgainWhenUp(t *testing.T) {
	addInterface(t, "vcan9", "72")
	ip(t, "link", "set", "vcan9", "up")
	a, b := dialOrSkip(t, "vcan9", Filter{}), dialOrSkip(t, "vcan9", Filter{})
	ip(t, "link", "set", "vcan9", "down")
	if a.Send(&Frame{}) || a.Stats.Down != 1 {
		t.Errorf("send on a downed interface: %+v", a.Stats)
	}
	b.Recv(make([]Frame, 4))
	if b.Stats.Down != 1 || b.Stats.Errors != 0 {
		t.Errorf("receive on a downed interface: %+v", b.Stats)
	}
	ip(t, "link", "set", "vcan9", "up")
	send(t, a, 5)
	got := recvAtLeast(b, 1)
	if !slices.Equal(got, []uint32{5}) {
		t.Errorf("received %X after the interface came back, want 5: %+v", got, b.Stats)
	}
	ip(t, "link", "del", "vcan9")
	for range 3 {
		if a.Send(&Frame{}) || b.Recv(make([]Frame, 4)) != 0 {
			t.Fatalf("a deleted interface carries frames: sender %+v, receiver %+v", a.Stats, b.Stats)
		}
	}
	if a.Stats.Down != 4 || a.Stats.Errors+b.Stats.Errors != 0 {
		t.Errorf("deleted interface: sender %+v, receiver %+v", a.Stats, b.Stats)
	}
}

// 200 kbit/s are about 1500 frames/s, and a burst of 160 bytes is 10 frames. The queue of the
// interface has room for all 200 frames; the socket's own queue has room for far fewer.
func TestSlowInterfaceDropsOnlyAtTheSender(t *testing.T) {
	addInterface(t, "vcan9", "72")
	ip(t, "link", "set", "vcan9", "up")
	command(t, "tc", "qdisc", "add", "dev", "vcan9", "root", "tbf", "rate", "200kbit", "burst", "160", "limit", "100000")
	rx, tx := dialOrSkip(t, "vcan9", Filter{}), dialOrSkip(t, "vcan9")
	begin := time.Now()
	for i := range 200 {
		tx.Send(&Frame{ID: uint32(i), Len: 8})
	}
	most := 60 + uint64(2000*time.Since(begin).Seconds()) // the queue and the frames sent in the meantime
	if s := tx.Stats; s.Tx == 0 || s.Tx > most || s.Tx+s.TxDropped != 200 || s.Errors+s.Down != 0 {
		t.Errorf("sender %+v: want a short queue and the rest of 200 frames dropped", s)
	}
	if got := recvAtLeast(rx, int(tx.Stats.Tx)); len(got) != int(tx.Stats.Tx) {
		t.Errorf("received %d frames of %d the kernel took", len(got), tx.Stats.Tx)
	}
	sent := false
	for range 1000 { // a frame leaves the sender's queue after the receiver has got it
		if sent = tx.Send(&Frame{ID: 0x7FF}); sent {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if !sent {
		t.Errorf("nothing is sent after the queue ran empty: %+v", tx.Stats)
	}
}

func TestInheritedSocketKeepsFilterAndFD(t *testing.T) {
	first, tx := dialOrSkip(t, "vcan0", exact(0x42)), dialOrSkip(t, "vcan0")
	f, err := first.File()
	if err != nil {
		t.Fatal(err)
	}
	second, err := Inherit(f)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	first.Close()
	send(t, tx, 0x41, 0x42)
	if got := recvAtLeast(second, 1); !slices.Equal(got, []uint32{0x42}) || !second.FD {
		t.Errorf("received %X with FD %v, want 42 with FD", got, second.FD)
	}
}

func TestSocketDoesNotAllocate(t *testing.T) {
	rx, tx := dialOrSkip(t, "vcan0", exact(0x42)), dialOrSkip(t, "vcan0")
	dst := make([]Frame, 64)
	f := Frame{ID: 0x42, Len: 8}
	got := testing.AllocsPerRun(100, func() {
		for range 400 { // more than the queue holds: with overflow reports
			tx.Send(&f)
		}
		for range 10 {
			rx.Recv(dst)
		}
	})
	if got != 0 || rx.Stats.Rx == 0 || rx.Stats.RxOverflow == 0 {
		t.Errorf("%g allocations, want 0; %+v", got, rx.Stats)
	}
}

// A polling receiver gets or counts every frame of a flood.
func TestFloodOnTheSocketIsReceivedOrCounted(t *testing.T) {
	rx, tx := dialOrSkip(t, "vcan0", exact(0x42), exact(0x700)), dialOrSkip(t, "vcan0")
	stop := make(chan struct{})
	go func() {
		defer close(stop)
		for i := range 20000 {
			tx.Send(&Frame{ID: 0x42 + uint32(i%4)})
			if i%500 == 0 {
				time.Sleep(time.Millisecond)
			}
		}
	}()
	dst := make([]Frame, 256)
	for running := true; running; {
		select {
		case <-stop:
			running = false
		default:
			time.Sleep(time.Millisecond)
		}
		rx.Recv(dst)
	}
	time.Sleep(50 * time.Millisecond)
	recvAll(rx)
	send(t, tx, 0x700)
	recvAtLeast(rx, 1)
	if s := rx.Stats; s.Rx+s.RxOverflow != 5001 || s.Errors+s.BadSize != 0 || tx.Stats.Tx != 20001 {
		t.Errorf("%+v: received and dropped are not together 5001 (sender %+v)", s, tx.Stats)
	}
}

func TestFramesHaveReceptionTimes(t *testing.T) {
	rx, tx := dialOrSkip(t, "vcan0", exact(0x321)), dialOrSkip(t, "vcan0")
	dst, at := make([]Frame, 64), make([]Stamp, 64)
	var last int64
	for i := range 20 {
		before := time.Now().UnixNano()
		send(t, tx, 0x321, 0x321)
		n := 0
		for tries := 0; n < 2 && tries < 1000; tries++ {
			if n += rx.RecvAt(dst[n:], at[n:]); n < 2 {
				time.Sleep(time.Millisecond)
			}
		}
		after := time.Now().UnixNano()
		if n != 2 {
			t.Fatalf("%d frames, want 2", n)
		}
		for _, s := range at[:n] {
			if s.Soft < before || s.Soft > after || s.Soft < last || s.Hard != 0 {
				t.Errorf("frame pair %d came in at %+v, sent and read between %d and %d; the one before at %d", i, s, before, after, last)
			}
			last = s.Soft
		}
	}
}
