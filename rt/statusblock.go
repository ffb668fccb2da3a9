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
	statusMagic   = 0x6c6f636b73746570 // "lockstep"
	statusVersion = 22                 // of the layout of StatusBlock; a change of a field changes it

	// MaxOutputs is how many outputs of a plant fit: a train of 40 cars has 1599. A tick writes only
	// those that the plant has.
	MaxOutputs = 2048
	// MaxRx is how many received messages fit, over all buses.
	MaxRx = 256
	// MaxBuses is how many buses a run can have.
	MaxBuses = 16
)

// State is the state of a run.
type State uint64

// The states of a run, in order.
const (
	Preparing State = iota
	Running
	Ended
)

// Reason is why a run has ended.
type Reason uint64

// The reasons. Done, Stopped and Shutdown are clean ends; the others break the policy.
const (
	NotEnded       Reason = iota
	Done                  // the ticks asked for are served
	Stopped               // StatusBlock.Stop was StopPlanned
	Shutdown              // StatusBlock.Stop was StopShutdown
	MissedTick            // a tick was missed under the policy Stop or Safe
	MissedLimit           // more ticks were missed at once than the policy allows
	NonFinite             // a state of the plant is no longer a number: StatusBlock.BrokenState
	TimerFailed           // the ticker gave an error
	SupervisorGone        // the supervisor has ended
	BusLost               // a bus was down or off
	MessageLate           // a received message was late, and its timeout leads to the safe state
	MessageWrong          // the protection of a received message failed for too long
	AddressLost           // StatusBlock.Stop was StopSafe: another node has taken a J1939 address
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

// Clean reports whether the run ended as requested.
func (r Reason) Clean() bool { return r == Done || r == Stopped || r == Shutdown }

// Values of StatusBlock.Stop.
const (
	StopPlanned  = 1
	StopShutdown = 2
	StopSafe     = 3 // go to the safe state, without an end
)

// Identity identifies a process, apart from a later process with the same id. The lower half is its
// id. The upper half is its start in clock ticks since boot, as in /proc/PID/stat, modulo 2^32 (497
// days); 0: not known.
func Identity(pid int, began uint32) uint64 { return uint64(began)<<32 | uint64(uint32(pid)) }

// SplitIdentity returns the process id and the start time of an identity.
func SplitIdentity(identity uint64) (pid int, began uint32) {
	return int(uint32(identity)), uint32(identity >> 32)
}

// StatusBlock is the state of the loop for other processes: a fixed layout of 8-byte words in
// shared memory. The loop writes it; other processes read it with atomic loads and write only Stop,
// Supervisor and the commands of Post. A run without a second process uses new(StatusBlock).
type StatusBlock struct {
	magic, version, size uint64

	Stop       atomic.Uint64 // 0: go on; StopPlanned, StopShutdown: end after this tick; StopSafe
	Supervisor atomic.Uint64 // Identity of the supervisor; 0: none

	// bit i: bus i sends nothing more, not even safe values, because an address of the bench is lost
	Muted atomic.Uint64

	BusOff  atomic.Uint64 // bit i: the controller of bus i has reported bus-off
	BusOffs atomic.Uint64 // bus-off reports of all buses

	State  atomic.Uint64 // State of the run
	Reason atomic.Uint64 // Reason of the end; the safe values may follow it for some ticks

	SafeReason atomic.Uint64 // Reason for the safe state; 0: the run is not in it
	SafeTick   atomic.Uint64 // grid point at which the safe state began

	Ignition atomic.Uint64 // 1 + network.State; 0: the bench has no ignition
	supply   supplyQueue   // see NextSupply

	Process atomic.Uint64           // process id of the target
	Thread  atomic.Uint64           // thread id of the loop
	CPU     atomic.Uint64           // 1 + the CPU that the loop asked for; 0: none
	Pinned  atomic.Uint64           // 1: the loop's thread started on that CPU alone
	BusFD   [MaxBuses]atomic.Uint64 // descriptors of the buses in the target

	ThreadExit atomic.Uint64    // futex of the loop's thread: RegisterThreadExit, WaitThreadExit
	robustList [3]atomic.Uint64 // struct robust_list_head: next, offset, pending; addresses in the target

	BrokenState atomic.Uint64 // index of the state that became non-finite; valid under NonFinite

	StartNs atomic.Uint64 // grid point 0, ns on CLOCK_MONOTONIC; 0: the grid has not started
	Ticks   atomic.Uint64 // index of the last grid point served, missed ones included
	Missed  atomic.Uint64 // grid points whose tick came after the next one was due

	// grid points passed but not stepped over yet; 0 except after a long stop in the safe state
	Behind atomic.Uint64

	SimNs       atomic.Uint64 // simulated time: Ticks · period, ns
	LagBits     atomic.Uint64 // largest lag, float64 bits: LagMax
	Events      atomic.Uint64 // events of the plant, running count: Watch
	Transitions atomic.Uint64 // transitions of friction elements, running count: Watch

	RxFrames   atomic.Uint64 // frames read
	RxUnknown  atomic.Uint64 // frames read that are not in the map, without those of TxConflicts
	RxShort    atomic.Uint64 // frames read that are shorter than their message
	RxFormat   atomic.Uint64 // frames read that are of the wrong format: classic for CAN FD, remote, ...
	RxRange    atomic.Uint64 // frames read with a signal out of range, which kept its last value
	RxInvalid  atomic.Uint64 // frames read with a signal marked invalid, which kept its last value
	RxBad      atomic.Uint64 // frames read that failed their protection; not decoded
	RxBadSize  atomic.Uint64 // datagrams that are not a frame
	RxOverflow atomic.Uint64 // frames the kernel dropped because its buffer was full
	RxBound    atomic.Uint64 // ticks that left frames unread because they had read MaxRecv
	// With InputPlan.AtArrival: valid frames whose stamp is not between the last grid point and its
	// reading, which act at the nearest instant; valid frames without a stamp, which act from the
	// start of their step; and instants beyond MaxPlaces in a step.
	InputsMoved, InputsUnstamped, InputsMerged atomic.Uint64

	RxStale   atomic.Uint64 // frames from before the first tick, discarded
	TxFrames  atomic.Uint64 // frames sent
	TxDropped atomic.Uint64 // frames the bus did not take
	TxAgain   atomic.Uint64 // frames that the bus did not take, sent at the next tick with its values
	TxLost    atomic.Uint64 // frames due at missed grid points, not sent
	TxRefused atomic.Uint64 // frames not sent because a signal was NaN
	Saturated atomic.Uint64 // signals sent at the limit of their range
	BusDown   atomic.Uint64 // ticks that found a bus down
	BusErrors atomic.Uint64 // calls that failed to read or write a bus for another reason

	wire [len(wireWords{})]atomic.Uint64 // sums over the buses by wire: WireCounts

	Allocs      atomic.Uint64 // allocations of the process between first and last tick
	GCCycles    atomic.Uint64 // garbage collections between first and last tick
	MinorFaults atomic.Uint64 // minor page faults between first and last tick
	MajorFaults atomic.Uint64 // major page faults between first and last tick
	Voluntary   atomic.Uint64 // voluntary context switches of the loop's thread between first and last tick
	Involuntary atomic.Uint64 // involuntary context switches of the loop's thread between first and last tick

	TxCount [MaxTx]atomic.Uint64 // per message of Map.Tx, bus after bus: the next counters, sigmap.Tx.Counts
	TxDrops [MaxTx]atomic.Uint64 // per message of Map.Tx, bus after bus: frames the bus did not take

	// per message of Map.Tx, bus after bus: the first tick at which the ignition and the network management let it be
	// sent, see network.Machine.First, and its phase in ticks, which a switch-on moves; both are an int64
	TxFirst, TxPhase [MaxTx]atomic.Uint64

	// per message of Map.Tx, bus after bus: frames of other nodes with its identifier
	TxConflicts [MaxTx]TxConflict

	// per message of Map.Rx, bus after bus: the last tick that read a frame of full length; 0: none
	LastRx [MaxRx]atomic.Uint64

	Rx [MaxRx]RxWords // per message of Map.Rx, bus after bus

	// wake-up latency of each grid point passed, missed ones included, ns
	Late sched.Histogram

	Work sched.Histogram // tick time: from the wake-up to the return of the last send, ns

	// from the arrival of a decoded frame, by the kernel's stamp, until the frames of its tick were
	// out, ns
	Response sched.Histogram

	ledger ledger // see ReadLedger
	ring   ring   // see NextEntry
	mail   mail   // see Post

	ports portQueues // see PortFrame

	seq   atomic.Uint64 // odd while the outputs are being written
	yTick uint64
	p     uint64
	y     [MaxOutputs]uint64 // float64 bits
}

const statusSize = int(unsafe.Sizeof(StatusBlock{}))

// CreateStatusBlock returns a new status block and the memfd that holds it, for a child to inherit.
// Both live until the process ends.
func CreateStatusBlock() (*os.File, *StatusBlock, error) {
	// Sealed: truncating the file would raise SIGBUS in both processes.
	f, err := SealedFile("lockstep-page", 0, func(f *os.File) error { return f.Truncate(int64(statusSize)) })
	if err != nil {
		return nil, nil, fmt.Errorf("rt: status block of %d bytes: %w", statusSize, err)
	}
	p, err := mapStatusBlock(f)
	if err != nil {
		f.Close()
		return nil, nil, err
	}

	p.magic, p.version, p.size = statusMagic, statusVersion, uint64(statusSize)
	return f, p, nil
}

// SealedFile makes a file in memory for a child to inherit. fill writes it; after that its size
// cannot change. seals are further seals, such as unix.F_SEAL_WRITE.
func SealedFile(name string, seals int, fill func(*os.File) error) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	f := os.NewFile(uintptr(fd), name)
	if err = fill(f); err == nil {
		seals |= unix.F_SEAL_SEAL | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW
		_, err = unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, seals)
		err = os.NewSyscallError("fcntl(F_ADD_SEALS)", err)
	}

	if err != nil {
		f.Close()
		return nil, err
	}

	return f, nil
}

// MapStatusBlock maps the status block in f, which the process has inherited.
func MapStatusBlock(f *os.File) (*StatusBlock, error) {
	if err := checkStatusSize(f); err != nil {
		return nil, err
	}
	p, err := mapStatusBlock(f)
	if err != nil {
		return nil, err
	}
	if err := p.checkMark(f); err != nil {
		_ = unix.Munmap(p.bytes())
		return nil, err
	}

	return p, nil
}

// CopyStatusBlock returns a copy of the status block in f, for a process that only reads it once. A
// copy takes no memory of f, whose owner may be any user.
func CopyStatusBlock(f *os.File) (*StatusBlock, error) {
	if err := checkStatusSize(f); err != nil {
		return nil, err
	}
	p := new(StatusBlock)
	if _, err := f.ReadAt(p.bytes(), 0); err != nil {
		return nil, fmt.Errorf("rt: status block: %w", err)
	}
	return p, p.checkMark(f)
}

// bytes returns the memory of a status block.
func (p *StatusBlock) bytes() []byte { return unsafe.Slice((*byte)(unsafe.Pointer(p)), statusSize) }

// checkStatusSize refuses a file that is not of the size of a status block.
func checkStatusSize(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("rt: status block: %w", err)
	}
	if info.Size() < int64(unsafe.Offsetof(StatusBlock{}.Stop)) {
		return fmt.Errorf("rt: status block %q has %d bytes: lockstep did not write it", f.Name(), info.Size())
	}
	if info.Size() != int64(statusSize) {
		return fmt.Errorf("rt: status block %q has %d bytes, this version's has %d: start both processes from one binary",
			f.Name(), info.Size(), statusSize)
	}

	return nil
}

// checkMark refuses a status block of another version.
func (p *StatusBlock) checkMark(f *os.File) error {
	if p.magic == statusMagic && p.version == statusVersion && p.size == uint64(statusSize) {
		return nil
	}
	return fmt.Errorf("rt: status block %q is marked %#x, version %d; want %#x, version %d: start both processes from one binary",
		f.Name(), p.magic, p.version, uint64(statusMagic), statusVersion)
}

func mapStatusBlock(f *os.File) (*StatusBlock, error) {
	mem, err := unix.Mmap(int(f.Fd()), 0, statusSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("rt: status block of %d bytes: %w", statusSize, os.NewSyscallError("mmap", err))
	}
	_ = unix.Madvise(mem, unix.MADV_POPULATE_WRITE) // no page fault later; Linux 5.14
	return (*StatusBlock)(unsafe.Pointer(&mem[0])), nil
}

// Discard frees the memory of a status block that no run uses any more. Its addresses stay mapped:
// a late reader reads zeros.
func (p *StatusBlock) Discard() {
	// on an error it is freed with the process
	_ = unix.Madvise(p.bytes(), unix.MADV_REMOVE)
}

// LagMax returns the largest lag so far, s.
//
//go:nosplit
func (p *StatusBlock) LagMax() float64 { return math.Float64frombits(p.LagBits.Load()) }

// publish writes the outputs of a tick.
//
//go:nosplit
func (p *StatusBlock) publish(tick int64, y []float64) {
	p.seq.Add(1)
	atomic.StoreUint64(&p.yTick, uint64(tick))
	atomic.StoreUint64(&p.p, uint64(len(y)))
	for i, v := range y[:min(len(y), MaxOutputs)] {
		atomic.StoreUint64(&p.y[i], math.Float64bits(v))
	}
	p.seq.Add(1)
}

// outputTries bounds the retries of Outputs. A writer needs about 1 µs per tick, so the second try
// succeeds unless the writer was stopped half-way; then all fail.
const outputTries = 16

// Outputs copies the outputs of the last tick to dst, as many as fit, and returns their tick. It
// returns 0 and ok false, and dst is undefined, if there are none yet or the writer was stopped half-way.
func (p *StatusBlock) Outputs(dst []float64) (tick int64, ok bool) {
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
