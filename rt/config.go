package rt

import (
	"fmt"
	"time"

	"lockstep/io/can"
	"lockstep/rt/fault"
	"lockstep/rt/network"
)

// Policy is the reaction to missed ticks.
type Policy int

// The policies. Each of them counts missed ticks. Under Safe, Skip and CatchUp simulated time
// follows the clock.
const (
	Stop Policy = iota // the run ends

	// safe state: the plant is stepped over the missed points, the bus carries the safe values from
	// then on
	Safe

	Skip // the plant is stepped over the missed points, their frames are not sent

	// the plant is stepped over the missed points, their frames are sent late, as far as the bus
	// takes them
	CatchUp
)

// maxOverrun bounds how many grid points one wake-up makes up for. A longer gap means a host that
// was stopped; stepping over all of it at once would make the next ticks late too.
const maxOverrun = 1000

// Overrun is the policy for missed ticks. More than Max points missed at once lead to the safe
// state.
//
// CatchUp sends all late frames at one wake-up, faster than a bus carries them: the send buffer of
// package can is the kernel's smallest and takes about 25 frames. Further frames are dropped and
// counted in StatusBlock.TxDropped. CatchUp bridges a gap of a few ticks; a gap of 3 s loses most
// of its frames.
type Overrun struct {
	Policy Policy
	Max    int // largest gap tolerated, points: 1 to 1000; 0 under Stop and Safe
}

// String returns the policy as a bench file writes it: "stop", "skip 20".
func (o Overrun) String() string {
	switch o.Policy {
	case Stop:
		return "stop"
	case Safe:
		return "safe"
	case Skip:
		return fmt.Sprintf("skip %d", o.Max)
	case CatchUp:
		return fmt.Sprintf("catchup %d", o.Max)
	}

	return fmt.Sprintf("policy %d", o.Policy)
}

// Watch names outputs of the plant that the loop reads, as indices in y; -1 means that the plant
// has no such output.
type Watch struct {
	Events      int // running count of events
	Transitions int // running count of transitions of friction elements
	Lag         int // grid time minus plant time, s
	Fault       int // value 0: fine; else 1 + index of the state that is no longer finite
}

// SafeValues is what the bus carries in the safe state and after the end of a run.
type SafeValues struct {
	Values []float64 // p, in place of the outputs; nil: the bus falls silent
	Ticks  int64     // grid points after the end at which they are sent; > 0 if Values is not nil
	Ends   uint64    // bit r: they follow an end for Reason r; after other ends the bus falls silent
}

// appliesTo reports whether the values follow an end for reason r.
//
//go:nosplit
func (f *SafeValues) appliesTo(r Reason) bool { return f.Values != nil && f.Ends>>r&1 == 1 }

// Loss is the reaction to the loss of the supervisor or of a bus.
type Loss struct {
	Action  Action
	AfterNs int64 // time from the loss to the reaction, ns; >= 0
}

// Action is what the loop does after a loss.
type Action int

// The actions.
const (
	GoOn   Action = iota // the run goes on
	GoSafe               // the bus goes to the safe state
	GoEnd                // the run ends
)

// Config holds the settings of a run.
type Config struct {
	Period  time.Duration // period of the grid; > 0
	Ticks   int64         // grid points to serve; 0: until StatusBlock.Stop is set
	Overrun Overrun
	// a tick is late when its frames are out later than this after its due time; 0: half the period
	Budget  time.Duration
	Watch   Watch
	Start   []float64 // m, inputs before the first frame
	Inputs  InputPlan // when the values of received frames act
	Warmup  int       // steps before the first tick; only for a plant with Reset
	Virtual bool      // the ticker runs in virtual time: phases are not measured, and no tick is late

	// Unpaused says that nothing happens between two ticks of a simulation: one reading of the clock is the end of
	// a tick and the start of the next one.
	Unpaused bool

	Untimed bool // the time of the ticks of a simulation is not measured

	Safe   SafeValues
	Faults fault.Plan // planned faults of values and frames

	Network *network.Plan  // ignition and network management; nil: every frame is sent all the time
	Ports   uint64         // bit i: frames on bus i that are not the plant's go to its port
	Taken   [][]can.Filter // by bus: of these frames, those that its port takes; empty: all
	Tested  [][]can.Filter // by bus: frames of the unit for its tester; those of the plant go to the port, too

	Wires []string // by bus: name of a bus by wire, see can.Dial; "": the bus carries frames; nil: all buses do

	Supervisor Loss // reaction to the end of the process that StatusBlock.Supervisor names
	Bus        Loss // reaction to a bus that is down or off; AfterNs is 0
}
