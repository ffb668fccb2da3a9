package control

import (
	"net/http"
	"time"

	"lockstep/rt/report"
	"lockstep/rt/scenario"
)

// Sources are what the supervisor knows beside the status block. A nil function or ledger means that it does not
// know that.
type Sources struct {
	Buses    func() []report.BusState // states of the buses on interfaces of the host
	Ledger   *report.Ledger           // late ticks
	Progress func() []scenario.Progress
	Examine  func() ([]HostCheck, error) // judges the host for the loop
	Page     string                      // address of the live page with its token; "": there is none
}

// hostInterval is the time for which a judgement of the host counts as the present one.
const hostInterval = 10 * time.Second

// SetSources sets what the supervisor knows. Requests before it see none of that.
func (c *Server) SetSources(s Sources) { c.sources.Store(&s) }

// busStates returns the states of the buses by name.
func (c *Server) busStates() map[string]*report.BusState {
	states := map[string]*report.BusState{}
	if s := c.sources.Load(); s != nil && s.Buses != nil {
		for _, b := range s.Buses() {
			states[b.Bus] = &b
		}
	}
	return states
}

// Ledger is the answer to GET /ledger.
type Ledger struct {
	Late    uint64     `json:"late_ticks"` // late ticks so far
	Entries []LateTick `json:"entries"`    // the last 100, the latest first
}

// LateTick is a late tick.
type LateTick struct {
	Tick   int64   `json:"tick"`    // grid point; the first one if several were lost
	Time   float64 `json:"time_s"`  // simulated time of Tick, s
	LateNs int64   `json:"late_ns"` // wake-up latency, ns
	Lost   int64   `json:"lost"`    // grid points missed before the wake-up
	Phase  string  `json:"phase"`   // phase that took the most time
	Text   string  `json:"text"`    // the entry with its causes, as far as the host records them
}

// serveLedger answers GET /ledger.
func (c *Server) serveLedger(http.ResponseWriter, *http.Request) (any, error) {
	a := &Ledger{Late: c.Status.LateCount(), Entries: []LateTick{}}
	if s := c.sources.Load(); s != nil && s.Ledger != nil {
		for _, e := range s.Ledger.Recent() {
			a.Entries = append(a.Entries, LateTick{e.Tick, e.Time, e.LateNs, e.Lost, e.Phase, e.String()})
		}
	}
	return a, nil
}

// Scenario is the answer to GET /scenario.
type Scenario struct {
	Tick         int64               `json:"tick"`
	Time         float64             `json:"time_s"` // simulated time of Tick, s
	Expectations []scenario.Progress `json:"expectations"`
}

// serveScenario answers GET /scenario.
func (c *Server) serveScenario(http.ResponseWriter, *http.Request) (any, error) {
	tick := int64(c.Status.Ticks.Load())
	a := &Scenario{Tick: tick, Time: c.time(tick), Expectations: []scenario.Progress{}}
	if s := c.sources.Load(); s != nil && s.Progress != nil {
		a.Expectations = append(a.Expectations, s.Progress()...)
	}
	return a, nil
}

// Host is the answer to GET /host.
type Host struct {
	Checks []HostCheck `json:"checks"` // as lockstep doctor lists them; none: the run does not judge its host
}

// HostCheck is the judgement of one property of the host.
type HostCheck struct {
	Name    string `json:"name"`
	Level   string `json:"level"`             // "must", "should" or "info"
	Verdict string `json:"verdict"`           // "ok", "wrong" or "unknown"
	Found   string `json:"found"`             // what the host has
	Wanted  string `json:"wanted"`            // what a loop in real time needs
	Why     string `json:"why"`               // effect of the property
	Command string `json:"command,omitempty"` // command that changes it
}

// serveHost answers GET /host. It reads the host at most once per hostInterval.
func (c *Server) serveHost(http.ResponseWriter, *http.Request) (any, error) {
	c.hostMu.Lock()
	defer c.hostMu.Unlock()
	if s := c.sources.Load(); s != nil && s.Examine != nil && time.Since(c.hostRead) > hostInterval {
		list, err := s.Examine()
		if err != nil {
			return nil, err
		}
		c.host, c.hostRead = append([]HostCheck{}, list...), time.Now()
	}
	return &Host{c.host}, nil
}

// Runs is the answer to GET /runs: the runs of this host, as lockstep ps lists them.
type Runs struct {
	Runs []ListedRun `json:"runs"`
}

// serveRuns answers GET /runs.
func serveRuns(*Server, http.ResponseWriter, *http.Request) (any, error) { return &Runs{List()}, nil }
