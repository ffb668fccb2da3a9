package recorder

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"lockstep/io/can"
	"lockstep/io/record"
	"lockstep/rt"
	"lockstep/rt/bench"
	"lockstep/rt/host"
	"lockstep/rt/port"
	"lockstep/rt/report"
	"lockstep/sched"
)

// Bounds of the monitor. It polls every pollInterval, during which a bus at 1 Mbit/s carries up to
// a hundred frames, and queues at most maxMonitored of them for the recorder; further ones are
// counted.
const (
	pollInterval   = 5 * time.Millisecond
	pollTimeout    = 100 * time.Millisecond // longest wait for a frame
	rebindInterval = time.Second            // interval between checks for interfaces that were made again
	maxMonitored   = 1 << 15                // 3 MiB
	maxReads       = 1 << 9                 // reads of 32 frames from a bus at once
	maxSent        = 1 << 12                // frames of a bus that the target has sent and that did not come back yet

	settleTime = time.Second // time after which the loop's own frames are in the ring
)

// monitor receives, for the record, the frames on host interfaces that the loop's filters reject.
// It uses sockets and a goroutine of the supervisor, on CPUs other than the loop's.
type monitor struct {
	status *rt.StatusBlock
	buses  []*monitoredBus
	stop   func() // stops the goroutine of listen; nil: it does not run

	mu    sync.Mutex       // guards the fields below and the marked fields of monitoredBus
	queue []monitoredFrame // at most maxMonitored frames, by time
	until int64            // earlier frames are in the queue, ns since 1970
}

// monitoredBus is a bus with a monitor socket.
type monitoredBus struct {
	bus     *bench.Bus
	index   int // index of the bus
	filters []can.Filter
	on      *can.Bus // guarded by mu
	early   uint64   // guarded by mu: frames lost before the first tick
	lost    uint64   // guarded by mu: frames that found no room in the queue

	// sent by the target and not come back yet; this and the rest belong to the recorder's
	// goroutine
	sent         []can.Frame
	sentByPort   []can.Frame // sent by the port of the bus and not come back yet
	recorded     uint64      // frames in the record
	reportedLost uint64      // lost frames that the record reports
}

// monitoredFrame is a frame of the queue.
type monitoredFrame struct {
	can.MonitoredFrame
	from *monitoredBus
	port bool  // the port of the bus has sent the frame
	at   int64 // best estimate of its arrival, ns since 1970
}

// open opens the monitor sockets of a run. In virtual time every bus is a pair, and there is
// nothing to monitor.
func (o *monitor) open(r report.View) (err error) {
	o.status = r.Status
	if r.Handover.Loop.Virtual {
		return nil
	}
	for i := range r.Handover.Bench.Buses {
		bus := &r.Handover.Bench.Buses[i]
		if !bench.IsHostInterface(bus.Interface.Text) {
			continue
		}
		w := &monitoredBus{bus: bus, index: i, filters: r.Handover.Maps[i].Filters()}
		if w.on, err = can.DialMonitor(bus.Interface.Text, w.filters); err != nil {
			o.close()
			return fmt.Errorf("run: record: bus %s: %w", bus.Name.Text, err)
		}

		o.buses = append(o.buses, w)
	}

	return nil
}

// listen reads frames until close.
func (o *monitor) listen() {
	if len(o.buses) == 0 {
		return
	}
	var fds []unix.PollFd
	for _, w := range o.buses {
		fds = append(fds, unix.PollFd{Fd: int32(w.on.Fd()), Events: unix.POLLIN})
	}
	checked := time.Now()
	o.stop = host.Repeat(pollInterval, func(now time.Time) {
		_, _ = unix.Poll(fds, int(pollTimeout.Milliseconds()))
		o.mu.Lock()
		defer o.mu.Unlock()
		o.readFrames()
		if now.Sub(checked) >= rebindInterval {
			checked = now
			for _, w := range o.buses { // an interface may have been made again, or not exist yet
				if !w.on.Bound() {
					_ = w.on.Rebind(w.bus.Interface.Text, w.filters)
				}
			}
		}
	})
}

// readFrames moves waiting frames to the queue, sorted by time. Frames from before the start of the
// grid belong to no run and are dropped.
func (o *monitor) readFrames() {
	var frames [32]can.MonitoredFrame
	early := o.status.StartNs.Load() == 0
	for _, w := range o.buses {
		for range maxReads {
			n := w.on.RecvMonitored(frames[:])
			if n == 0 {
				break
			}
			for i := range frames[:n] {
				switch f := &frames[i]; {
				case early:
				case len(o.queue) == maxMonitored:
					w.lost++
				default:
					o.queue = append(o.queue, monitoredFrame{*f, w, false, cmp.Or(f.Soft, sched.Realtime())})
				}
			}
		}

		if early {
			w.early = w.on.Stats.RxOverflow
		}
	}

	byTime := func(a, b monitoredFrame) int { return cmp.Compare(a.at, b.at) }
	if !slices.IsSortedFunc(o.queue, byTime) { // frames of one bus are sorted already
		slices.SortStableFunc(o.queue, byTime)
	}
}

// takeUntil removes and returns the frames of the queue that came in until an instant, ns since
// 1970, by time.
func (o *monitor) takeUntil(until int64) []monitoredFrame {
	o.mu.Lock()
	defer o.mu.Unlock()
	if until >= o.until {
		o.until = sched.Realtime()
		o.readFrames()
	}

	n := sort.Search(len(o.queue), func(i int) bool { return o.queue[i].at > until })
	list := o.queue[:n:n]
	o.queue = o.queue[n:]
	return list
}

// countLosses reads the last frames, and the count of frames lost after them.
func (o *monitor) countLosses() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.readFrames()
	for _, w := range o.buses {
		w.on.CountDrops()
	}
}

// noteSentByPorts notes frames that the ports have sent. The monitor will receive those of an interface;
// others go to the queue. offset is CLOCK_REALTIME minus the clock of the ports, ns. In virtual time the
// frames get the time of their grid point.
func (o *monitor) noteSentByPorts(list []port.Sent, offset int64, virtual bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, s := range list {
		if w := o.find(s.Bus); w != nil {
			w.sentByPort = appendBounded(w.sentByPort, asReceived(s.Frame))
			continue
		}
		f := can.MonitoredFrame{Frame: asReceived(s.Frame)}
		if !virtual {
			f.Soft = s.At + offset
		}
		if len(o.queue) < maxMonitored {
			o.queue = append(o.queue, monitoredFrame{f, &monitoredBus{index: s.Bus}, true, s.At + offset})
		}
	}
}

// appendBounded appends a frame to a list of maxSent frames at most; the oldest goes.
func appendBounded(list []can.Frame, f can.Frame) []can.Frame {
	if len(list) == maxSent {
		list = slices.Delete(list, 0, 1)
	}
	return append(list, f)
}

// take removes a frame from a list; false: the list does not have it.
func take(list *[]can.Frame, f *can.Frame) bool {
	i := slices.Index(*list, asReceived(*f))
	if i < 0 {
		return false
	}
	*list = slices.Delete(*list, i, i+1)
	return true
}

// find returns the bus of an index, nil if it has no monitor.
func (o *monitor) find(bus int) *monitoredBus {
	i := slices.IndexFunc(o.buses, func(w *monitoredBus) bool { return w.index == bus })
	if i < 0 {
		return nil
	}
	return o.buses[i]
}

// noteSent notes a frame that the target has sent on a bus: the monitor will receive it too.
func (o *monitor) noteSent(bus int, f *can.Frame) {
	w := o.find(bus)
	if w == nil {
		return
	}
	w.sent = appendBounded(w.sent, asReceived(*f))
}

// sentByTarget reports whether a frame of this host was sent by the target, and is in the record
// already. The kernel only marks frames of this host's sockets: they may also be those of another
// program, or of the supervisor, which claims addresses and sends safe values for a dead target.
func (w *monitoredBus) sentByTarget(f *can.Frame) bool { return take(&w.sent, f) }

// asReceived returns a frame in the form in which the bus returns it.
func asReceived(f can.Frame) can.Frame {
	f.Res0, f.Res1 = 0, 0
	if f.FD() {
		f.Flags |= can.FlagFDF
	} else {
		f.Flags = 0
	}

	return f
}

// writeMonitored writes the monitored frames until an instant, ns since 1970, so that the record is
// sorted by time.
func (c *Recorder) writeMonitored(until int64) {
	for _, f := range c.monitor.takeUntil(until) {
		if f.at < c.start {
			c.followClock() // a frame may be stamped after a step that the recorder has not noticed yet
		}
		if f.at < c.start || f.Local && f.from.sentByTarget(&f.Frame) {
			continue
		}
		f.from.recorded++
		ours := f.port || f.Local && take(&f.from.sentByPort, &f.Frame)
		c.noteFirstError(c.w.Frame(&record.Frame{Other: true, Sent: ours, Bus: uint8(f.from.index), Tick: c.tick.Index, Time: f.Soft,
			Hard: f.Hard, Frame: f.Frame}))
	}
}

// writeMonitorLosses writes how many monitored frames were lost.
func (c *Recorder) writeMonitorLosses() {
	c.monitor.mu.Lock()
	defer c.monitor.mu.Unlock()
	for _, w := range c.monitor.buses {
		if n := w.lost + w.on.Stats.RxOverflow - w.early; n > w.reportedLost {
			c.noteFirstError(c.w.Event(&record.Event{
				Kind: record.MonitorLost, Tick: c.tick.Index, Time: sched.Realtime(), Count: n - w.reportedLost,
				Text: fmt.Sprintf("bus %s: monitored frames came faster than the supervisor could read them", w.bus.Name.Text),
			}))
			w.reportedLost = n
		}
	}
}

// report returns the counts of monitored frames, after the end of the record.
func (o *monitor) report() (list []report.MonitoredBus) {
	if o == nil {
		return nil
	}
	for _, w := range o.buses {
		list = append(list, report.MonitoredBus{Bus: w.bus.Name.Text, Frames: w.recorded, Lost: w.reportedLost})
	}
	return list
}

// close stops the monitor and closes its sockets.
func (o *monitor) close() {
	if o == nil {
		return
	}
	if o.stop != nil {
		o.stop()
	}
	for _, w := range o.buses {
		w.on.Close() // closing twice is harmless
	}
}
