package soak

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"lockstep/io/sigmap"
	"lockstep/rt"
	"lockstep/rt/bench"
	"lockstep/rt/supervisor"
	"lockstep/sched"
)

// Soak makes a long proof of a run: with its virtual control unit, on a named bus
// too, under a load, and with a verdict at the end.
type Soak struct {
	Options supervisor.Options // of the run, or of each segment; For is the whole length

	// Load starts the load on these CPUs and says what it is; stop ends it and says if
	// it had ended before. nil: there is none.
	Load    func(cpus []int) (what string, stop func() error, err error)
	UnitBus string // interface of the unit where it is not the bench's first bus; ""

	// Of RunSegments, which makes legs of it:
	Leg       time.Duration // the longest leg, but for the last one
	Scenarios []string      // in rotation between the plain legs, files or embedded; nil: those that are listed for the bench
	NoFaults  bool          // no leg with one fault of every kind
	State     string        // file that holds the sums, so that it goes on after a cut; "" none
	Fresh     bool          // start anew, whatever is in there
	Keep      int           // records in the folder Options.Record: the latest, and as many of broken legs
}

// soak is what a soak sees of its run while it lasts: the Observer of the run.
type soak struct {
	what *Soak
	r    *supervisor.Session // from begin on
	load string              // what it is
	stop func() error
	over error // what stopping the load said

	entries uint64 // of the overrun ledger, read or overwritten before
	gone    uint64 // of them overwritten
	lost    int64  // grid points lost, by the entries
	most    int64  // of them at once
	unsent  int64  // frames due at these
	ahead   int64  // looks that found more ticks than the clock allows
	level   int64  // the latest tick that was seen with no lag; 0: none was

	y           []float64
	first, last [2]footprint // after the first tenth, and the latest: of the supervisor, of the target
	samples     int
	next        time.Time
	trouble     error // with the latest

	leg  *leg              // of RunSegments; nil: the run stands alone
	beat func(ticks int64) // is told at every look how far the leg is
	busy func() bool       // tells whether this process writes a file just now
}

// Shortest is the shortest soak: what grows is looked for from its first tenth on.
const Shortest = 10 * time.Second

// RunWhole runs a bench once, as a soak, and reports, with the verdict.
func (s *Soak) RunWhole(b *bench.Bench) error {
	o := s.Options
	o.Observer, o.Priority = &soak{what: s}, true
	return supervisor.Run(b, o)
}

// Begin starts the load, then the unit.
func (s *soak) Begin(r *supervisor.Session) (err error) {
	s.r = r
	s.y = make([]float64, len(s.r.Handover.Tables.Outputs))
	s.load = "none"
	if start := s.what.Load; start != nil {
		cpus := besides(s.r.Handover.Thread.CPU, s.r.Reservations.OtherLoops())
		if s.load, s.stop, err = start(cpus); err != nil {
			return fmt.Errorf("soak: %w", err)
		}
		s.load = fmt.Sprintf("%s on CPU %s", s.load, strings.Trim(fmt.Sprint(cpus), "[]"))
	}
	bus := s.what.UnitBus
	if bus == "" && len(r.Bench.Buses) > 0 {
		bus = r.Bench.Buses[0].Interface.Text
	}
	if err := r.StartNamedUnit(bus); err != nil {
		return fmt.Errorf("soak: %w", err)
	}
	return nil
}

// Head says what the run is besides; of a leg that follows another one, only that.
func (s *soak) Head(announcement string) string {
	if s.leg == nil {
		return fmt.Sprintf("soak of %v; load: %s\n", s.r.Options.For, s.load) + announcement
	}
	text := fmt.Sprintf("leg %d, %s, for %v; load: %s\n", s.leg.number, s.leg.kind, s.r.Options.For, s.load)
	if s.leg.first {
		text += announcement
	}
	return text
}

// besides lists the CPUs of this process but one, and but those of other loops; where
// there is no other, that one.
func besides(cpu int, loops []int) (list []int) {
	var set unix.CPUSet
	_ = unix.SchedGetaffinity(0, &set) // cannot fail for the thread itself
	for i := range 8 * int(unsafe.Sizeof(set)) {
		if i != cpu && set.IsSet(i) && !slices.Contains(loops, i) {
			list = append(list, i)
		}
	}
	if list == nil {
		return []int{cpu}
	}
	return list
}

// Look takes in what has happened since the last call.
func (s *soak) Look(now time.Time) {
	p, h := s.r.Page, s.r.Handover
	s.read()
	ticks, start := int64(p.Ticks.Load()), int64(p.StartNs.Load())
	if start == 0 {
		return
	}
	if ticks > (sched.Now()-start)/h.Tables.PeriodNs {
		s.ahead++
	}
	if tick, ok := p.Outputs(s.y); ok && (h.Loop.Watch.Lag < 0 || s.y[h.Loop.Watch.Lag] == 0) {
		s.level = tick
	}
	if s.beat != nil {
		s.beat(ticks)
	}
	length := s.r.Options.For
	if ticks*h.Tables.PeriodNs >= int64(length/10) && now.After(s.next) && (s.busy == nil || !s.busy()) {
		s.next = now.Add(min(time.Minute, length/20))
		s.sample()
	}
}

// read reads the new entries of the overrun ledger.
func (s *soak) read() {
	var e rt.Late
	for p := s.r.Page; s.entries < p.LateTicks(); s.entries++ {
		if !p.ReadLate(s.entries, &e) {
			s.gone++
			continue
		}
		s.lost += e.Lost
		s.most = max(s.most, e.Lost)
		s.unsent += framesDue(s.r.Handover, e.Tick, e.Tick+e.Lost-1)
	}
}

// framesDue is how many frames are due from grid point first to last, by their cycles
// and phases.
func framesDue(h *bench.Handover, first, last int64) (n int64) {
	for _, m := range h.Maps {
		for i := range m.Tx {
			if m.Tx[i].Send == sigmap.OnChange {
				continue
			}
			n += occurrences(&m.Tx[i], last) - occurrences(&m.Tx[i], first-1)
		}
	}
	return n
}

// occurrences is how often t is due from grid point 1 to k.
func occurrences(t *sigmap.Tx, k int64) int64 {
	first := t.PhaseTicks
	if first == 0 {
		first = t.CycleTicks
	}
	if k < first {
		return 0
	}
	return (k-first)/t.CycleTicks + 1
}

// sample measures the two processes. The supervisor first gives back what it does
// not need: what is left is what it keeps. A target that ends just then holds
// nothing any more.
func (s *soak) sample() {
	debug.FreeOSMemory()
	clients := s.r.Control.Clients()
	supervisor, err := measureProcess("/", os.Getpid())
	supervisor.Files -= clients // lockstep ps and ctl come and go
	if s.r.Control.Clients() != clients {
		return
	}
	target, failed := measureProcess("/", s.r.Target.PID)
	if rt.State(s.r.Page.State.Load()) == rt.Ended || s.r.Target.WaitEnded(0) {
		return
	}
	if s.trouble = cmp.Or(err, failed); s.trouble != nil {
		return
	}
	s.last = [2]footprint{supervisor, target}
	if s.samples++; s.samples == 1 {
		s.first = s.last
	}
}

// footprint is what a process holds.
type footprint struct {
	KB      int64 // resident memory, kB
	Threads int64
	Files   int64 // open descriptors
}

// measureProcess reads the footprint of a process from /proc below root.
func measureProcess(root string, pid int) (f footprint, err error) {
	dir := filepath.Join(root, "proc", strconv.Itoa(pid))
	status, err := os.ReadFile(filepath.Join(dir, "status"))
	if err != nil {
		return f, err
	}
	for key, dst := range map[string]*int64{"VmRSS": &f.KB, "Threads": &f.Threads, "FDSize": &f.Files} {
		_, rest, _ := strings.Cut(string(status), "\n"+key+":")
		if _, err := fmt.Sscan(rest, dst); err != nil {
			return f, fmt.Errorf("%s/status has no %s", dir, key)
		}
	}
	// The folder of a process with capabilities of its own is closed to others. Then
	// FDSize, the room for descriptors, grows with them by powers of two.
	if files, err := os.ReadDir(filepath.Join(dir, "fd")); err == nil {
		f.Files = int64(len(files))
	}
	return f, nil
}

// End ends the load, and asks the unit to end, which on a bus with a name sees no
// end of it.
func (s *soak) End() {
	if s.stop != nil {
		s.over, s.stop = s.stop(), nil
	}
	s.read()
	if s.r.Unit != nil {
		s.r.Unit.Signal(unix.SIGINT)
	}
}
