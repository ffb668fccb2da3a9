package rt

import (
	"math"
	"os"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"lockstep/io/can"
	"lockstep/io/messages"
	"lockstep/io/sigmap"
	"lockstep/sched"
)

// The gaps are 3, 2 and 5 ticks.
func TestCyclesOfAMessageAreMeasuredFromFrameToFrame(t *testing.T) {
	b := newBench(t, Overrun{})
	for k := 1; k <= 12; k++ {
		if k == 1 || k == 4 || k == 6 || k == 11 {
			b.command(t, 5)
		}
		b.turn(1)
	}
	const h = uint64(period)
	w := &b.page.Rx[0]
	if w.Cycles.Load() != 3 || w.CycleMin.Load() != 2*h || w.CycleMax.Load() != 5*h || w.CycleSum.Load() != 10*h {
		t.Errorf("%d cycles of %d to %d ns, %d ns together; want 3 of 2 to 5 periods, 10", w.Cycles.Load(), w.CycleMin.Load(), w.CycleMax.Load(), w.CycleSum.Load())
	}
	if got, want := math.Float64frombits(w.CycleSquare.Load()), float64(9+4+25)*float64(h)*float64(h); got != want {
		t.Errorf("the squares sum up to %g ns², want %g", got, want)
	}
	if w.AgeMax.Load() != 4*h { // at tick 10, before the frame at 11
		t.Errorf("the age is at most %d ns, want 4 periods", w.AgeMax.Load())
	}
}

// The age of a frame with the kernel's stamp is measured on the clock of the stamp, CLOCK_REALTIME.
func TestAgeOfAStampedFrameCountsFromItsStamp(t *testing.T) {
	const age = int64(50 * time.Millisecond)
	b := newBench(t, Overrun{})
	b.superviseMessages(1)
	if got := b.page.Rx[0].AgeMax.Load(); got != 0 {
		t.Errorf("before the first frame the age is %d ns", got)
	}
	before := sched.Realtime()
	b.recordArrival(0, 1, before-age, true)
	b.recordArrival(0, 1, before-1, false) // not valid: the last valid frame is older
	b.superviseMessages(1)
	got, most := int64(b.page.Rx[0].AgeMax.Load()), age+sched.Realtime()-before
	if !(got >= age && got <= most) {
		t.Errorf("the age is %d ns, want %d to %d", got, age, most)
	}
	b.recordArrival(0, 2, sched.Realtime(), true)
	b.superviseMessages(2)
	if again := int64(b.page.Rx[0].AgeMax.Load()); again < got {
		t.Errorf("the largest age falls from %d ns to %d", got, again)
	}
}

func TestStateOfAMessageIsPublishedWithItsProtection(t *testing.T) {
	msg := messages.Message{Name: "Command", Len: 4, Signals: []messages.Signal{{Name: "sum", Start: 24, Len: 8, Factor: 1}, {Name: "n", Start: 16, Len: 4, Factor: 1}}}
	spec := sigmap.ProtectionSpec{Profile: "crc8", Poly: 0x2F, Counter: []string{"n"}, Checksum: []string{"sum"}}
	p, err := sigmap.NewProtection(spec, &msg)
	if err != nil {
		t.Fatal(err)
	}
	for _, protected := range []bool{false, true} {
		b := newBench(t, Overrun{})
		send := p
		if protected {
			b.maps[0].Rx[0].Protect = []sigmap.Protection{p}
		}
		for k := range 8 {
			f := can.Frame{ID: 0x110, Len: 4}
			send.Protect(&f.Data, 4, 0x110)
			wrong := k == 7
			if wrong {
				f.Data[0] ^= 1
			}
			b.unit.Send(&f)
			b.turn(1)
			rx := &b.maps[0].Rx[0]
			want := RxStatus{Frame: rx.Frame, Window: rx.Window, Protected: protected}
			if got := b.page.Rx[0].Load(); got != want {
				t.Errorf("protected %t, frame %d: %+v, want %+v", protected, k, got, want)
			}
			if bad := b.page.RxBad.Load(); (bad == 1) != (protected && wrong) {
				t.Errorf("protected %t, frame %d: %d frames with a wrong protection", protected, k, bad)
			}
			if rx.Frame == sigmap.FrameError != (protected && wrong) {
				t.Errorf("protected %t, frame %d: the frame has the state %v", protected, k, rx.Frame)
			}
		}
	}
}

// newBuses returns the loop of a plant on n buses, and the units at their other ends.
func newBuses(t *testing.T, n int, change func(*Config)) (l *Loop, units []*can.Bus) {
	t.Helper()
	cfg := Config{Period: period, Start: []float64{0}, Watch: unwatched()}
	if change != nil {
		change(&cfg)
	}
	var buses []*can.Bus
	var maps []*sigmap.Map
	for range n {
		target, unit := pair(t)
		buses, units, maps = append(buses, target), append(units, unit), append(maps, database(t))
	}
	l, err := New(cfg, &integrator{h: period.Seconds()}, buses, maps, sched.NewVirtual(period), new(StatusBlock))
	if err != nil {
		t.Fatal(err)
	}
	return l, units
}

func TestBusOffIsCountedAndNamesItsBus(t *testing.T) {
	l, units := newBuses(t, 3, nil)
	for i, c := range []struct {
		bus       int // -1: no report
		class     uint32
		off, offs uint64
	}{
		{2, unix.CAN_ERR_BUSOFF, 0b100, 1}, {-1, 0, 0b100, 1}, {0, unix.CAN_ERR_BUSOFF, 0b101, 2}, {2, unix.CAN_ERR_RESTARTED, 0b001, 2},
		{2, unix.CAN_ERR_BUSOFF, 0b101, 3}, {0, unix.CAN_ERR_RESTARTED, 0b100, 3}, {2, unix.CAN_ERR_RESTARTED, 0, 3},
	} {
		if c.bus >= 0 {
			units[c.bus].Send(&can.Frame{ID: can.ERR | c.class, Len: 8})
		}
		l.Tick(1)
		if p := l.status; p.BusOff.Load() != c.off || p.BusOffs.Load() != c.offs || p.Reason.Load() != 0 {
			t.Errorf("tick %d: buses off %03b, %d reports; want %03b, %d", i+1, p.BusOff.Load(), p.BusOffs.Load(), c.off, c.offs)
		}
	}
}

// The controller was off before the run: the report says so, too.
func TestBusOffBeforeTheFirstTickIsCounted(t *testing.T) {
	l, units := newBuses(t, 2, func(cfg *Config) { cfg.Ticks = 3 })
	units[1].Send(&can.Frame{ID: can.ERR | unix.CAN_ERR_BUSOFF, Len: 8})
	if err := l.Run(); err != nil {
		t.Fatal(err)
	}
	if p := l.status; p.BusOff.Load() != 2 || p.BusOffs.Load() != 1 {
		t.Errorf("buses off %02b, %d reports; want 10, 1", p.BusOff.Load(), p.BusOffs.Load())
	}
}

func TestMessagesOfSeveralBusesAreCountedApart(t *testing.T) {
	l, units := newBuses(t, 3, nil)
	l.Tick(1)
	for i := range 4 { // 1 on bus 1, 3 on bus 2
		bus := min(i, 1) + 1
		units[bus].Send(&can.Frame{ID: 0x110, Len: 4})
	}
	l.Tick(1)
	_ = units[2].Close()
	l.Tick(1)
	p := l.status
	for bus, want := range []uint64{0, 1, 3} {
		if w := &p.Rx[bus]; w.Counts().Frames != want || (p.LastRx[bus].Load() == 2) != (want > 0) {
			t.Errorf("bus %d: %d frames, the last before tick %d; want %d", bus, w.Counts().Frames, p.LastRx[bus].Load(), want)
		}
	}
	for i, want := range []uint64{0, 0, 0, 0, 1, 0} { // State and Slow of each bus
		if got := p.TxDrops[i].Load(); got != want {
			t.Errorf("sent message %d: %d frames dropped, want %d", i, got, want)
		}
	}
	if p.RxFrames.Load() != 4 || p.TxDropped.Load() != 1 || p.BusDown.Load() != 1 {
		t.Errorf("%d frames in, %d dropped, %d ticks with a bus down; want 4, 1, 1", p.RxFrames.Load(), p.TxDropped.Load(), p.BusDown.Load())
	}
}

// "page faults 0" of a report holds only if faults are counted: the plant writes to fresh memory.
func TestPageFaultsOfATickAreCountedInTheRunAndTheLedger(t *testing.T) {
	runtime.LockOSThread() // whose faults are counted
	defer runtime.UnlockOSThread()
	const pages = 100
	b := newBench(t, Overrun{}, func(cfg *Config, p *integrator) {
		cfg.Ticks, cfg.Budget = 8, 1 // every tick is late
		p.during = func(step int) {
			if step == 6 {
				writeFresh(t, pages)
			}
		}
	})
	if err := b.Run(); err != nil {
		t.Fatal(err)
	}
	if n := b.page.MinorFaults.Load(); n < pages || n > 1<<20 {
		t.Errorf("%d minor page faults, want those of %d fresh pages", n, pages)
	}
	var next uint64
	b.page.ReadLedger(&next, func(e *LateTick) {
		if (e.Minor >= pages) != (e.Tick == 6) {
			t.Errorf("tick %d has %d minor page faults; tick 6 has touched %d fresh pages", e.Tick, e.Minor, pages)
		}
	})
	if next != 8 {
		t.Errorf("%d late ticks, want 8", next)
	}
}

// writeFresh writes to fresh pages, a fault each.
func writeFresh(t *testing.T, pages int) {
	mem, err := unix.Mmap(-1, 0, pages*os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Error(err)
		return
	}
	_ = unix.Madvise(mem, unix.MADV_NOHUGEPAGE)
	for i := 0; i < len(mem); i += os.Getpagesize() {
		mem[i] = 1
	}
	_ = unix.Munmap(mem)
}
