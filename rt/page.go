package rt

import (
	"fmt"
	"math"
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"lockstep/sched"
)

const (
	pageMagic   = 0x6c6f636b73746570 // "lockstep"
	pageVersion = 10                 // of the layout of Page; a change of a field changes it

	// MaxOutputs is how many outputs of a plant the page shows: a train of 20 cars has
	// 800, of which 300 are those of its friction elements.
	MaxOutputs = 1024
	// MaxRx is how many received messages the page follows, over all buses.
	MaxRx = 256
	// MaxBuses is how many buses a run can have.
	MaxBuses = 16
)

// State says where a run is.
type State uint64

// The states of a run, in order.
const (
	Preparing State = iota
	Running
	Ended
)

// Reason says why a run has ended.
type Reason uint64

// The reasons. Done, Stopped and Shutdown are clean ends, the others break the
// policy.
const (
	NotEnded       Reason = iota
	Done                  // the ticks asked for are served
	Stopped               // Page.Stop was StopPlanned
	Shutdown              // Page.Stop was StopShutdown
	MissedTick            // a tick was missed under the policy Stop or Safe
	MissedLimit           // more ticks were missed at once than the policy allows
	NonFinite             // a state of the plant is no longer a number: Page.BrokenState
	TimerFailed           // the ticker gave an error
	SupervisorGone        // the supervisor has ended
	BusLost               // a bus was down or off
	MessageLate           // a received message was late whose reaction is the safe state
	MessageWrong          // the protection of one said so for too long
	AddressLost           // Page.Stop was StopSafe: another node has taken an address
)

// String returns the reason as the end of a sentence.
func (r Reason) String() string {
	names := [...]string{"the run has not ended", "done", "stopped", "stopped: the host shuts down", "a tick was missed",
		"more ticks were missed at once than the policy allows", "a state is no longer finite", "the timer failed",
		"the supervisor has ended", "a bus was down or off", "a received message was late", "the protection of a received message failed", "an address on a bus was lost"}
	if r < Reason(len(names)) {
		return names[r]
	}
	return fmt.Sprintf("reason %d", uint64(r))
}

// Clean says that the run ended as it was asked to.
func (r Reason) Clean() bool { return r == Done || r == Stopped || r == Shutdown }

// What Page.Stop asks for.
const (
	StopPlanned  = 1
	StopShutdown = 2
	StopSafe     = 3 // the safe state, and no end
)

// Identity names a process so that a later one with the same id is another: its id in the
// lower half; in the upper one when it began, in clock ticks since the boot as
// /proc/PID/stat has it, modulo 2^32 (497 days), or 0: not known.
func Identity(pid int, began uint32) uint64 { return uint64(began)<<32 | uint64(uint32(pid)) }

// Process takes an identity apart.
func Process(identity uint64) (pid int, began uint32) {
	return int(uint32(identity)), uint32(identity >> 32)
}

// Page is what the loop tells the world: a fixed layout of 8-byte words in
// memory that two processes share. The loop writes it, anyone reads it, with
// atomic loads; only Stop, Supervisor and what Post hands over go the other way. A run
// without a second process uses new(Page).
type Page struct {
	magic, version, size uint64

	Stop       atomic.Uint64 // not 0: end after this tick, StopPlanned or StopShutdown; or StopSafe
	Supervisor atomic.Uint64 // Identity of the supervisor; 0: there is none

	BusOff  atomic.Uint64 // bit i: the controller of bus i has said that it is off the bus
	BusOffs atomic.Uint64 // how often one has, over all buses

	State  atomic.Uint64 // a State
	Reason atomic.Uint64 // a Reason; the safe values may follow it for some ticks

	SafeReason atomic.Uint64 // the Reason for the safe state; 0: the run is not in it
	SafeTick   atomic.Uint64 // the grid point at which it began

	Process atomic.Uint64           // process id of the target
	Thread  atomic.Uint64           // thread id of the loop
	CPU     atomic.Uint64           // 1 + the CPU it has asked for; 0: none
	BusFD   [MaxBuses]atomic.Uint64 // descriptors of the buses in the target

	Life atomic.Uint64    // of the loop's thread; see Bequeath and Died
	will [3]atomic.Uint64 // struct robust_list_head: next, offset, pending; in addresses of the target

	BrokenState atomic.Uint64 // index of the state that became non-finite; valid under NonFinite

	StartNs     atomic.Uint64 // grid point 0, ns on CLOCK_MONOTONIC; 0: the grid is not placed yet
	Ticks       atomic.Uint64 // grid points served, lost ones included: the index of the last
	Missed      atomic.Uint64 // grid points whose tick came after the next one was due
	Behind      atomic.Uint64 // grid points passed that the plant has not been stepped over yet; 0 but after a long stop in the safe state
	SimNs       atomic.Uint64 // simulated time: Ticks · period, ns
	LagBits     atomic.Uint64 // see LagMax
	Events      atomic.Uint64 // of the plant, running count; see Watch
	Transitions atomic.Uint64 // transitions of friction elements, running count; see Watch

	RxFrames   atomic.Uint64 // frames read
	RxUnknown  atomic.Uint64 // of them: not in the map
	RxShort    atomic.Uint64 // of them: shorter than the message
	RxRange    atomic.Uint64 // of them: a signal out of range kept its last value
	RxInvalid  atomic.Uint64 // of them: a signal that said it has no value kept its last one
	RxBad      atomic.Uint64 // of them: not decoded for their protection
	RxBadSize  atomic.Uint64 // datagrams that are no frame
	RxOverflow atomic.Uint64 // frames the kernel dropped because its buffer was full
	RxBound    atomic.Uint64 // ticks that left frames unread because they had read MaxRecv
	RxStale    atomic.Uint64 // frames from before the first tick, thrown away
	TxFrames   atomic.Uint64 // frames sent
	TxDropped  atomic.Uint64 // frames the bus did not take
	TxAgain    atomic.Uint64 // frames tried again at the next tick, with its values, because the bus did not take them
	TxLost     atomic.Uint64 // frames that were due at lost grid points and not sent
	TxRefused  atomic.Uint64 // frames not sent because a signal was no number
	Saturated  atomic.Uint64 // signals sent at the border of their range
	BusDown    atomic.Uint64 // ticks that found a bus down
	BusErrors  atomic.Uint64 // calls that failed to read or write a bus for another reason

	Allocs      atomic.Uint64 // allocations of the process between first and last tick
	GCCycles    atomic.Uint64 // collections, likewise
	MinorFaults atomic.Uint64 // page faults, likewise
	MajorFaults atomic.Uint64
	Voluntary   atomic.Uint64 // switches of the loop's thread, likewise: it slept
	Involuntary atomic.Uint64 // and: something else was given its CPU

	TxCount [MaxTx]atomic.Uint64 // per message of Map.Tx, bus after bus: what its counters say next, sigmap.Tx.Counts
	TxDrops [MaxTx]atomic.Uint64 // likewise: frames the bus did not take

	LastRx [MaxRx]atomic.Uint64 // per message of Map.Rx, bus after bus: the tick that last read one of full length; 0: none

	Rx [MaxRx]RxWords // likewise

	Late sched.Histogram // of each grid point passed: from its due time to the wake-up, ns; one entry per tick, missed ones included
	Work sched.Histogram // from the wake-up to the return of the last send, ns

	Response sched.Histogram // from the arrival of a frame that was decoded, by the kernel's stamp, until the frames of its tick were out, ns

	ledger ledger // see ReadLate
	ring   ring   // see Next
	mail   mail   // see Post

	seq   atomic.Uint64 // odd while the outputs are being written
	yTick uint64
	p     uint64
	y     [MaxOutputs]uint64 // float64 bits
}

const pageSize = int(unsafe.Sizeof(Page{}))

// CreatePage returns a new page and the memfd that holds it, for a child to
// inherit. Both live until the process ends.
func CreatePage() (*os.File, *Page, error) {
	fd, err := unix.MemfdCreate("lockstep-page", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, nil, fmt.Errorf("rt: page: %w", os.NewSyscallError("memfd_create", err))
	}
	f := os.NewFile(uintptr(fd), "lockstep-page")
	if err := f.Truncate(int64(pageSize)); err != nil {
		f.Close()
		return nil, nil, fmt.Errorf("rt: page of %d bytes: %w", pageSize, err)
	}
	// A page that somebody cuts short is SIGBUS in both processes.
	if _, err := unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, unix.F_SEAL_SEAL|unix.F_SEAL_SHRINK|unix.F_SEAL_GROW); err != nil {
		f.Close()
		return nil, nil, fmt.Errorf("rt: page: %w", os.NewSyscallError("fcntl(F_ADD_SEALS)", err))
	}
	p, err := mapPage(f)
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	p.magic, p.version, p.size = pageMagic, pageVersion, uint64(pageSize)
	return f, p, nil
}

// MapPage maps the page in f, which the process has inherited.
func MapPage(f *os.File) (*Page, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("rt: page: %w", err)
	}
	if info.Size() < int64(unsafe.Offsetof(Page{}.Stop)) {
		return nil, fmt.Errorf("rt: page %q has %d bytes: it is not a page of lockstep", f.Name(), info.Size())
	}
	if info.Size() != int64(pageSize) {
		return nil, fmt.Errorf("rt: page %q has %d bytes, this version's has %d: start both processes from one binary", f.Name(), info.Size(), pageSize)
	}
	p, err := mapPage(f)
	if err != nil {
		return nil, err
	}
	if p.magic != pageMagic || p.version != pageVersion || p.size != uint64(pageSize) {
		err = fmt.Errorf("rt: page %q is marked %#x, version %d; wanted %#x, version %d: start both processes from one binary",
			f.Name(), p.magic, p.version, uint64(pageMagic), pageVersion)
		_ = unix.Munmap(unsafe.Slice((*byte)(unsafe.Pointer(p)), pageSize))
		return nil, err
	}
	return p, nil
}

func mapPage(f *os.File) (*Page, error) {
	mem, err := unix.Mmap(int(f.Fd()), 0, pageSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("rt: page of %d bytes: %w", pageSize, os.NewSyscallError("mmap", err))
	}
	_ = unix.Madvise(mem, unix.MADV_POPULATE_WRITE) // no page fault later; Linux 5.14
	return (*Page)(unsafe.Pointer(&mem[0])), nil
}

// Discard gives back the memory of a page that no run uses any more. Its addresses
// stay: who still reads it, late, reads zeros.
func (p *Page) Discard() {
	_ = unix.Madvise(unsafe.Slice((*byte)(unsafe.Pointer(p)), pageSize), unix.MADV_REMOVE) // else it goes with the process
}

// LagMax returns the largest lag so far, s.
//
//go:nosplit
func (p *Page) LagMax() float64 { return math.Float64frombits(p.LagBits.Load()) }

// publish writes the outputs of a tick.
//
//go:nosplit
func (p *Page) publish(tick int64, y []float64) {
	p.seq.Add(1)
	atomic.StoreUint64(&p.yTick, uint64(tick))
	atomic.StoreUint64(&p.p, uint64(len(y)))
	for i, v := range y[:min(len(y), MaxOutputs)] {
		atomic.StoreUint64(&p.y[i], math.Float64bits(v))
	}
	p.seq.Add(1)
}

// outputTries bounds how often Outputs starts again: a writer needs about 1 µs
// per tick, so that the second try succeeds unless the writer was stopped
// half-way; then none does.
const outputTries = 16

// Outputs copies the outputs of the last tick to dst, as many as there are and
// fit, and returns the tick they belong to. ok is false if there is none yet or
// a writer was stopped half-way; dst is then not meaningful.
func (p *Page) Outputs(dst []float64) (tick int64, ok bool) {
	for range outputTries {
		before := p.seq.Load()
		if before == 0 || before%2 == 1 {
			continue
		}
		tick = int64(atomic.LoadUint64(&p.yTick))
		n := min(int(atomic.LoadUint64(&p.p)), MaxOutputs, len(dst))
		for i := range dst[:n] {
			dst[i] = math.Float64frombits(atomic.LoadUint64(&p.y[i]))
		}
		if p.seq.Load() == before {
			return tick, true
		}
	}
	return 0, false
}
