package rt

import (
	"fmt"
	"time"

	"lockstep/rt/fault"
)

// Policy says what happens when ticks were missed.
type Policy int

// The policies. Missed ticks are counted under each of them, and simulated time
// follows the clock under each of them that goes on.
const (
	Stop    Policy = iota // the run ends
	Safe                  // the safe state: the plant is stepped over the lost points, the bus carries the safe values from then on
	Skip                  // the plant is stepped over the lost points, their frames are not sent
	CatchUp               // the plant is stepped over the lost points, their frames are sent late, as far as the bus takes them
)

// maxOverrun bounds how many grid points one wake-up steps over: more is a host
// that was stopped, not one that was late, and the steps would make the next
// ticks late too.
const maxOverrun = 1000

// Overrun is the policy for missed ticks. More than Max lost grid points at once
// are the safe state.
//
// CatchUp sends all late frames at one wake-up, faster than a bus carries them:
// the send buffer of package can is the kernel's smallest and takes about 25
// frames, what is more is dropped and counted in Page.TxDropped. A gap of 3 s
// loses most of its frames; what CatchUp can bridge is a gap of a few ticks.
type Overrun struct {
	Policy Policy
	Max    int // 1 to 1000; 0 under Stop and Safe
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

func (o Overrun) validate() error {
	counted := o.Policy == Skip || o.Policy == CatchUp
	switch {
	case o.Policy < Stop || o.Policy > CatchUp:
		return fmt.Errorf("rt: overrun policy %d is unknown: use stop, safe, skip or catchup", o.Policy)
	case counted && (o.Max < 1 || o.Max > maxOverrun):
		return fmt.Errorf("rt: overrun %q: the number of grid points is not between 1 and %d", o, maxOverrun)
	}
	return nil
}

// Watch names outputs of the plant that the loop reads, as indices in y; -1
// where the plant has none.
type Watch struct {
	Events      int // running count of events
	Transitions int // running count of transitions of friction elements
	Lag         int // grid time minus plant time, s
	Fault       int // 0: fine; 1 + index of the state that is no longer finite
}

// Farewell is what the bus carries when the plant may not or will not speak.
type Farewell struct {
	Values []float64 // p, the outputs in their place; nil: the bus falls silent
	Ticks  int64     // grid points for which a run that has ended sends them on; > 0 where there are Values
	On     uint64    // bit r: they follow an end for Reason r; the others fall silent
}

// follows says that the values follow an end for reason r.
//
//go:nosplit
func (f *Farewell) follows(r Reason) bool { return f.Values != nil && f.On>>r&1 == 1 }

// Loss is what the loop does some time after something it needs has gone.
type Loss struct {
	Action  Action
	AfterNs int64 // ns; >= 0
}

// Action is what follows a loss.
type Action int

// The actions.
const (
	GoOn   Action = iota // nothing: the run goes on
	GoSafe               // the safe state
	GoEnd                // the run ends
)

// Config is what a run is asked to be.
type Config struct {
	Period  time.Duration // of the grid; > 0
	Ticks   int64         // grid points to serve; 0: until Page.Stop
	Overrun Overrun
	Budget  time.Duration // a tick whose frames are out later than this after it was due is late; 0: half the period
	Watch   Watch
	Start   []float64 // m, the inputs before the first frame
	Warmup  int       // steps before the first tick, only of a plant that can be Reset
	Virtual bool      // the ticker's time is not the clock's: what a tick's parts take is not measured, and none is late
	Safe    Farewell
	Faults  fault.Plan // what disturbs values and frames on purpose

	Supervisor Loss // when the process that Page.Supervisor names has ended
	Bus        Loss // when a bus is down or off; AfterNs is 0
}
