package can

import (
	"slices"
	"testing"
	"time"
)

// dialMonitor opens a bus monitor on vcan0 for the frames that the filters leave out.
func dialMonitor(t *testing.T, filters ...Filter) *Bus {
	t.Helper()
	b, err := DialMonitor("vcan0", filters)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

// recvMonitored returns n frames and any that come with them.
func recvMonitored(b *Bus, n int) (list []MonitoredFrame) {
	for range 1000 {
		var dst [8]MonitoredFrame
		got := dst[:b.RecvMonitored(dst[:])]
		if list = append(list, got...); len(got) == 0 && len(list) >= n {
			break
		}
		time.Sleep(time.Millisecond)
	}
	return list
}

func TestMonitorReceivesExactlyWhatTheFiltersLeaveOut(t *testing.T) {
	sender := dialOrSkip(t, "vcan0")
	sent := []uint32{0x122, 0x123, 0x124, 0x123 | EFF, 0x123 | RTR, 0x1FFFFFFF | EFF}
	long := Filter{ID: 0x123 | EFF, Mask: MaskEFF | EFF | RTR}
	for _, filters := range [][]Filter{nil, {exact(0x123)}, {exact(0x123), exact(0x124)}, {exact(0x122), long, exact(0x7FF)}, {{}}} {
		read, monitor := dialOrSkip(t, "vcan0", filters...), dialMonitor(t, filters...)
		send(t, sender, sent...)
		got := recvAtLeast(read, 0)
		for _, f := range recvMonitored(monitor, len(sent)-len(got)) {
			if !f.Local || f.Soft == 0 {
				t.Errorf("%+v: want Local and a stamp", f)
			}
			got = append(got, f.ID)
		}
		slices.Sort(got)
		if want := slices.Sorted(slices.Values(sent)); !slices.Equal(got, want) {
			t.Errorf("%+v: both have received %X, want %X", filters, got, want)
		}
		if monitor.Stats.BadSize+monitor.Stats.Errors+monitor.Stats.RxOverflow != 0 {
			t.Errorf("%+v", monitor.Stats)
		}
	}
}

// The kernel's gateway forwards frames as a controller would: without a sender's socket.
func TestMonitorMarksFramesOfThisHost(t *testing.T) {
	here, there := dialOrSkip(t, "vcan0"), dialOrSkip(t, "vcan1")
	command(t, "cangw", "-A", "-s", "vcan1", "-d", "vcan0", "-e")
	t.Cleanup(func() { command(t, "cangw", "-F") })
	monitor := dialMonitor(t)
	send(t, here, 0x100)
	send(t, there, 0x100)
	got := recvMonitored(monitor, 2)
	if len(got) != 2 || got[0].ID != 0x100 || got[1].ID != 0x100 || !got[0].Local || got[1].Local {
		t.Errorf("%+v; want Local on the first frame only", got)
	}
}

// Equal stamps identify a frame that two sockets received.
func TestFrameHasEqualStampsOnEverySocket(t *testing.T) {
	sender := dialOrSkip(t, "vcan0")
	a, b := dialMonitor(t), dialMonitor(t)
	for range 50 {
		send(t, sender, 0x55)
		x, y := recvMonitored(a, 1), recvMonitored(b, 1)
		if len(x) != 1 || len(y) != 1 || x[0] != y[0] || x[0].Soft == 0 {
			t.Fatalf("%+v and %+v", x, y)
		}
	}
}
