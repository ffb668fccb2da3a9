package cost

import (
	"testing"

	"golang.org/x/sys/unix"

	"lockstep/hil_test/lab"
	"lockstep/io/can"
)

// A bench with many messages has a filter for each, and the kernel compares every frame of the interface with
// all of them. The frames here pass none: the difference is the cost of the filters alone.
//
// filtersBound is the largest CPU time of a frame on an interface with a socket of 200 filters, over that
// with a socket of 4. A user-mode kernel spends most of it on the system call.
const filtersBound = 3

func TestLabFiltersOfManyMessagesCostAFrameLittle(t *testing.T) {
	if !lab.InVCAN(t) {
		return
	}
	const few, many, rounds, frames = 4, 200, 6, 4000
	cost := map[int]int64{}
	for range rounds {
		for _, n := range []int{few, many} {
			ns := filterCost(t, n, frames)
			if best, known := cost[n]; !known || ns < best {
				cost[n] = ns
			}
		}
	}
	ratio := float64(cost[many]) / float64(cost[few])
	t.Logf("a frame takes %d ns of the CPU with %d filters and %d ns with %d: ratio %.2f, %.1f ns for a filter",
		cost[few]/frames, few, cost[many]/frames, many, ratio, float64(cost[many]-cost[few])/frames/(many-few))
	if !(ratio < filtersBound) {
		t.Errorf("%d filters cost a frame %.2f times as much as %d, want less than %d times", many, ratio, few, filtersBound)
	}
}

// filterCost returns the CPU time, ns, of sending frames to an interface on which a socket has n filters, as
// those of a bench: a number of 29 bits, in each format.
func filterCost(t *testing.T, n, frames int) int64 {
	t.Helper()
	var filters []can.Filter
	for i := range n {
		filters = append(filters, can.Filter{ID: uint32(0x100 + i), Mask: can.MaskEFF})
	}
	receiver, err := can.Dial("vcan0", filters)
	if err != nil {
		t.Fatal(err)
	}
	defer receiver.Close()
	sender, err := can.Dial("vcan0", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer sender.Close()
	f := can.Frame{ID: 0x7FF, Len: 8}
	before := cpuTime(t)
	for range frames {
		if !sender.Send(&f) {
			t.Fatal("the bus does not take a frame")
		}
	}
	return cpuTime(t) - before
}

// cpuTime returns the CPU time of the process, ns.
func cpuTime(t *testing.T) int64 {
	t.Helper()
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &ts); err != nil {
		t.Fatal(err)
	}
	return ts.Nano()
}
