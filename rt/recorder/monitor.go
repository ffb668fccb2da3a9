package recorder

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"lockstep/io/can"
	"lockstep/io/record"
	"lockstep/rt"
	"lockstep/rt/bench"
	"lockstep/rt/report"
	"lockstep/sched"
)

// What listening beside the loop costs at most: the supervisor looks every breath, when
// a bus at 1 Mbit/s has carried some hundred frames, and keeps so many for the recorder;
// what comes beyond is counted.
const (
	breath    = 5 * time.Millisecond
	awaiting  = 100 * time.Millisecond // for a frame to come
	rebinding = time.Second            // between two looks for interfaces that were made again
	maxOthers = 1 << 15                // 3 MiB
	maxReads  = 1 << 9                 // of 32 frames, from a bus at once
	maxSent   = 1 << 12                // frames of a bus that the target has sent and that were not heard yet

	settling = time.Second // by which the loop has told of what it did
)

// monitor listens for the record on the buses that are interfaces of this host, to what
// the loop's filters keep from it. It is the supervisor's: sockets of its own, a
// goroutine of its own, on the CPUs that are not the loop's.
type monitor struct {
	page *rt.Page
	wire []*monitoredBus
	stop chan struct{}
	done chan struct{} // nil: nobody follows

	mu    sync.Mutex       // of what follows, and of what is said so of an other
	queue []monitoredFrame // at most maxOthers
	until int64            // what came before is in the queue, ns since 1970
}

// monitoredBus is one of these buses.
type monitoredBus struct {
	bus     *bench.Bus
	index   int // of it
	filters []can.Filter
	on      *can.Bus // of mu
	early   uint64   // of mu: frames lost before the first tick
	lost    uint64   // of mu: frames that found no room in the queue

	sent  []can.Frame // by the target, and not heard yet: of the recorder alone, as what follows
	heard uint64      // frames in the record
	told  uint64      // frames that the record says are missing
}

// monitoredFrame is a frame of the queue.
type monitoredFrame struct {
	can.Heard
	from *monitoredBus
	at   int64 // when it came in, as well as is known, ns since 1970
}

// newMonitor begins to listen on the buses of a run; nil: there is none to listen on, as in
// virtual time, where each is a pair.
func newMonitor(r report.View) (*monitor, error) {
	if r.Handover.Loop.Virtual {
		return nil, nil
	}
	o := &monitor{page: r.Page, stop: make(chan struct{})}
	for i := range r.Handover.Bench.Buses {
		bus := &r.Handover.Bench.Buses[i]
		if !bench.IsHostInterface(bus.Interface.Text) {
			continue
		}
		w := &monitoredBus{bus: bus, index: i, filters: r.Handover.Maps[i].Filters()}
		var err error
		if w.on, err = can.DialOthers(bus.Interface.Text, w.filters); err != nil {
			o.close()
			return nil, fmt.Errorf("run: record: bus %s: %w", bus.Name.Text, err)
		}
		o.wire = append(o.wire, w)
	}
	if o.wire == nil {
		return nil, nil
	}
	return o, nil
}

// follow listens until close.
func (o *monitor) follow() {
	if o == nil {
		return
	}
	o.done = make(chan struct{})
	var fds []unix.PollFd
	for _, w := range o.wire {
		fds = append(fds, unix.PollFd{Fd: int32(w.on.Fd()), Events: unix.POLLIN})
	}
	go func() {
		defer close(o.done)
		for asked := time.Now(); ; {
			_, _ = unix.Poll(fds, int(awaiting.Milliseconds()))
			now := time.Now()
			o.mu.Lock()
			o.read()
			if now.Sub(asked) >= rebinding {
				asked = now
				o.rebind()
			}
			o.mu.Unlock()
			select {
			case <-o.stop:
				return
			case <-time.After(breath):
			}
		}
	}()
}

// rebind takes up an interface that has been made again.
func (o *monitor) rebind() {
	for _, w := range o.wire {
		if !w.on.Bound() {
			_ = w.on.Rebind(w.bus.Interface.Text, w.filters) // it may not be there yet
		}
	}
}

// read takes what waits into the queue, which is in the order of time. Before the grid is placed there is no run that
// it could belong to.
func (o *monitor) read() {
	var frames [32]can.Heard
	early := o.page.StartNs.Load() == 0
	for _, w := range o.wire {
		for range maxReads {
			n := w.on.Hear(frames[:])
			if n == 0 {
				break
			}
			for i := range frames[:n] {
				switch f := &frames[i]; {
				case early:
				case len(o.queue) == maxOthers:
					w.lost++
				default:
					o.queue = append(o.queue, monitoredFrame{*f, w, cmp.Or(f.Soft, sched.Realtime())})
				}
			}
		}
		if early {
			w.early = w.on.Stats.RxOverflow
		}
	}
	byTime := func(a, b monitoredFrame) int { return cmp.Compare(a.at, b.at) }
	if !slices.IsSortedFunc(o.queue, byTime) { // of one bus it is
		slices.SortStableFunc(o.queue, byTime)
	}
}

// take takes from the queue, in the order of time, what came in until an instant, ns
// since 1970.
func (o *monitor) take(until int64) []monitoredFrame {
	o.mu.Lock()
	defer o.mu.Unlock()
	if until >= o.until {
		o.until = sched.Realtime()
		o.read()
	}
	n, _ := slices.BinarySearchFunc(o.queue, until, func(f monitoredFrame, until int64) int {
		if f.at <= until {
			return -1
		}
		return 1
	})
	list := o.queue[:n:n]
	o.queue = o.queue[n:]
	return list
}

// losses is how many frames of each bus were not heard, or not kept.
func (o *monitor) losses() []uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	list := make([]uint64, len(o.wire))
	for i, w := range o.wire {
		list[i] = w.lost + w.on.Stats.RxOverflow - w.early
	}
	return list
}

// settle takes the last frames, and counts what was lost after them.
func (o *monitor) settle() {
	if o == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.read()
	for _, w := range o.wire {
		w.on.Settle()
	}
}

// sends notes a frame that the target has sent on a bus: it comes back.
func (o *monitor) sends(bus int, f *can.Frame) {
	if o == nil {
		return
	}
	i := slices.IndexFunc(o.wire, func(w *monitoredBus) bool { return w.index == bus })
	if i < 0 {
		return
	}
	w := o.wire[i]
	if len(w.sent) == maxSent {
		w.sent = slices.Delete(w.sent, 0, 1)
	}
	w.sent = append(w.sent, onWire(*f))
}

// own says that a frame of this host is one that the target has sent, which is in the
// record by that. The kernel says only that some socket of this host has: it may be that
// of another program, or of the supervisor, which claims addresses and sends the safe
// values in a dead target's place.
func (w *monitoredBus) own(f *can.Frame) bool {
	i := slices.Index(w.sent, onWire(*f))
	if i < 0 {
		return false
	}
	w.sent = slices.Delete(w.sent, i, i+1)
	return true
}

// onWire is a frame as the bus gives it back.
func onWire(f can.Frame) can.Frame {
	f.Res0, f.Res1 = 0, 0
	if f.FD() {
		f.Flags |= can.FlagFDF
	} else {
		f.Flags = 0
	}
	return f
}

// beside writes what was heard beside the loop until an instant, ns since 1970: so that
// the record is in the order of time.
func (c *Recorder) beside(until int64) {
	if c.others == nil || c.w == nil {
		return
	}
	for _, f := range c.others.take(until) {
		if f.at < c.start || f.Local && f.from.own(&f.Frame) {
			continue
		}
		f.from.heard++
		c.put(c.w.Frame(&record.Frame{Other: true, Bus: uint8(f.from.index), Tick: c.tick.Index, Time: f.Soft, Hard: f.Hard, Frame: f.Frame}))
	}
}

// unheard writes what of it was lost.
func (c *Recorder) unheard() {
	o := c.others
	if o == nil || c.w == nil {
		return
	}
	for i, n := range o.losses() {
		if w := o.wire[i]; n > w.told {
			c.put(c.w.Event(&record.Event{Kind: record.Unheard, Tick: c.tick.Index, Time: sched.Realtime(), Count: n - w.told,
				Text: fmt.Sprintf("bus %s: more frames beside those of the bench than the supervisor could take", w.bus.Name.Text)}))
			w.told = n
		}
	}
}

// report is what became of it, after the end of the record.
func (o *monitor) report() (list []report.Overheard) {
	if o == nil {
		return nil
	}
	for _, w := range o.wire {
		list = append(list, report.Overheard{Bus: w.bus.Name.Text, Heard: w.heard, Lost: w.told})
	}
	return list
}

// close ends it.
func (o *monitor) close() {
	if o == nil {
		return
	}
	if o.done != nil {
		close(o.stop)
		<-o.done
		o.done = nil
	}
	for _, w := range o.wire {
		w.on.Close() // a second time is no harm
	}
}
