package can

import (
	"slices"
	"testing"
	"time"
)

// dialOthers hears on vcan0 what these filters leave out.
func dialOthers(t *testing.T, filters ...Filter) *Bus {
	t.Helper()
	b, err := DialOthers("vcan0", filters)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

// listen returns n frames and any that come with them.
func listen(b *Bus, n int) (list []Heard) {
	for range 1000 {
		var dst [8]Heard
		got := dst[:b.Hear(dst[:])]
		if list = append(list, got...); len(got) == 0 && len(list) >= n {
			break
		}
		time.Sleep(time.Millisecond)
	}
	return list
}

func TestOthersAreExactlyWhatTheFiltersLeaveOut(t *testing.T) {
	sender := dial(t, "vcan0")
	sent := []uint32{0x122, 0x123, 0x124, 0x123 | EFF, 0x123 | RTR, 0x1FFFFFFF | EFF}
	long := Filter{ID: 0x123 | EFF, Mask: MaskEFF | EFF | RTR}
	for _, filters := range [][]Filter{nil, {exact(0x123)}, {exact(0x123), exact(0x124)}, {exact(0x122), long, exact(0x7FF)}, {{}}} {
		read, heard := dial(t, "vcan0", filters...), dialOthers(t, filters...)
		send(t, sender, sent...)
		got := await(read, 0)
		for _, f := range listen(heard, len(sent)-len(got)) {
			if !f.Local || f.Soft == 0 {
				t.Errorf("%+v: of this host it is, and stamped", f)
			}
			got = append(got, f.ID)
		}
		slices.Sort(got)
		if want := slices.Sorted(slices.Values(sent)); !slices.Equal(got, want) {
			t.Errorf("%+v: both have received %X, want %X", filters, got, want)
		}
		if heard.Stats.BadSize+heard.Stats.Errors+heard.Stats.RxOverflow != 0 {
			t.Errorf("%+v", heard.Stats)
		}
	}
}

// The kernel's gateway forwards frames as a controller would: without a sender's socket.
func TestOthersSayWhichFramesAreOfThisHost(t *testing.T) {
	here, there := dial(t, "vcan0"), dial(t, "vcan1")
	command(t, "cangw", "-A", "-s", "vcan1", "-d", "vcan0", "-e")
	t.Cleanup(func() { command(t, "cangw", "-F") })
	heard := dialOthers(t)
	send(t, here, 0x100)
	send(t, there, 0x100)
	got := listen(heard, 2)
	if len(got) != 2 || got[0].ID != 0x100 || got[1].ID != 0x100 || !got[0].Local || got[1].Local {
		t.Errorf("%+v; want the first of this host, the second not", got)
	}
}

// A frame on two sockets is one frame: its stamps are equal.
func TestStampsOfAFrameAreThoseOfEverySocket(t *testing.T) {
	sender := dial(t, "vcan0")
	a, b := dialOthers(t), dialOthers(t)
	for range 50 {
		send(t, sender, 0x55)
		x, y := listen(a, 1), listen(b, 1)
		if len(x) != 1 || len(y) != 1 || x[0] != y[0] || x[0].Soft == 0 {
			t.Fatalf("%+v and %+v", x, y)
		}
	}
}
