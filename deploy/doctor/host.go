package doctor

import (
	"errors"
	"io/fs"
	"slices"

	"lockstep/deploy/hostinfo"
	"lockstep/sched"
)

// host is what several checks need of a host, and what changes it.
type host struct {
	*hostinfo.Host
	ask   Ask
	hands hands
	claim string // of who changes its settings

	irqbalance bool              // the daemon runs
	limits     map[string]uint64 // soft ones of this process
	threads    []thread          // with a real-time policy, or the kernel's own of a CPU

	interrupts []interrupt
	canIRQs    map[string][]string // interrupt of a CAN card: its interfaces
}

func newHost(root string, ask Ask) *host {
	h := &host{Host: hostinfo.Read(root, ask.CPU), ask: ask, hands: hands{write: write}, claim: sched.HostSettings}
	if h.Live() {
		h.hands = running()
	}
	h.limits = readLimits(h.Text("proc/self/limits"))
	h.threads = h.findThreads()
	h.interrupts = h.findInterrupts()
	h.canIRQs = h.findCANIRQs()
	return h
}

// refused says that a file is there, as far as can be told, and not for us.
func refused(err error) bool { return err != nil && !errors.Is(err, fs.ErrNotExist) }

// housekeeping are the CPUs for everything but loops: not this one's, nor another
// isolated one, which is another loop's, nor one that shares its core with this
// one's; what comes after is taken where nothing else is left.
func (h *host) housekeeping() []int {
	others := slices.DeleteFunc(slices.Clone(h.Online), func(c int) bool { return c == h.CPU })
	for _, kept := range [][]int{h.Isolated, h.Siblings()} {
		if rest := hostinfo.CPUsWithout(others, kept); len(rest) > 0 {
			others = rest
		}
	}
	return others
}

// rest is housekeeping as the kernel writes it.
func (h *host) rest() string { return hostinfo.FormatCPUs(h.housekeeping()) }
