package control

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"lockstep/model/kernel"
	"lockstep/rt"
	"lockstep/rt/bench"
	"lockstep/rt/diagnosis"
	"lockstep/rt/fault"
	"lockstep/rt/graph"
	"lockstep/rt/network"
	"lockstep/rt/recorder"
	"lockstep/rt/report"
	"lockstep/rt/scenario"
)

// Server is the door of a run: it answers the HTTP requests of `lockstep ctl` and of other programs on a
// socket that only its own user can open. A change crosses the status block and takes effect at one
// tick; changes are applied one after the other.
type Server struct {
	report.View
	target        int // process id
	door          *doorListener
	http          *http.Server
	path          string
	stop          chan<- os.Signal
	stopRequested atomic.Bool // a stop was requested
	streams       *streams
	streamTimeout time.Duration // longest time that the client of a stream may read nothing

	plantOnce sync.Once    // makes plant
	plant     *graph.Plant // answer to GET /plant
	plantErr  error

	reportReady    chan struct{} // closed when ended is valid
	ended          Answer
	waitingClients atomic.Int64 // clients that wait for ended

	changing sync.Mutex // held while a change is applied
	batch    uint64     // last batch posted
	commands *scenario.Commands
	after    atomic.Pointer[scenario.Commands] // commands as they are after the last change
	record   *recorder.EventLog                // keeps the lines of changes
	recorder *recorder.Recorder
	standing *standing // of a run in virtual time; nil: the run is in real time

	parameters *parameters

	sources  atomic.Pointer[Sources]
	desk     atomic.Pointer[diagnosis.Desk] // nil: nobody takes commands of the diagnosis
	hostMu   sync.Mutex                     // guards the fields below
	host     []HostCheck                    // last answer to GET /host
	hostRead time.Time
}

// The bounds of the door.
const (
	maxClients   = 32               // at once
	maxStops     = 32               // further ones, which may only stop the run
	maxBody      = 64 << 10         // of a request, bytes; also of its header
	idleTimeout  = time.Minute      // longest time between two requests of a connection
	writeTimeout = 5 * time.Second  // longest time that a client may take to send a request or to read an answer
	takeTimeout  = 2 * time.Second  // longest time, beyond two periods, until the loop takes a change
	slowStream   = 30 * time.Second // Server.streamTimeout
)

// Answer is the answer to a request.
type Answer struct {
	Bench   string  `json:"bench,omitempty"`
	Process int     `json:"process,omitempty"` // process id of the supervisor
	Tick    int64   `json:"tick"`              // first tick of a change's effect; for other requests the present tick
	Time    float64 `json:"time_s"`            // simulated time of Tick, s

	Slots  []int        `json:"slots,omitempty"`  // slots of the faults that the request has set or cleared
	Faults []FaultState `json:"faults,omitempty"` // of `faults`, and of `fault` the new one

	Run   *ListedRun `json:"run,omitempty"`   // of `status`: the row of lockstep ps
	Ended string     `json:"ended,omitempty"` // of `stop wait`: why the run has ended
	Clean bool       `json:"clean,omitempty"` // of `stop wait`: no policy was broken

	State      string             `json:"state,omitempty"`       // of `status`: "running", or the fault
	BestEffort []string           `json:"best_effort,omitempty"` // of `status`: what the run lacks for real time
	Missed     uint64             `json:"missed,omitempty"`
	LateTicks  uint64             `json:"late_ticks,omitempty"`
	Outputs    map[string]float64 `json:"outputs,omitempty"` // outputs by NAME[UNIT], in the declared unit; finite ones only
	Set        map[string]string  `json:"set,omitempty"`     // of `status`: inputs and signals that are set, as in `set`

	// Of `status` and `param`: the values that changes so far have given to parameters, as in `param`.
	Parameters map[string]string `json:"parameters,omitempty"`
	Superseded bool              `json:"superseded,omitempty"`         // of `param`: a later request has replaced a value before it had effect
	Changes    uint64            `json:"parameter_changes,omitempty"`  // of `status`: changes of parameters so far
	Refusals   uint64            `json:"parameter_refusals,omitempty"` // of `status`: changes that the plant has refused so far

	Snapshots []SnapshotState `json:"snapshots,omitempty"`      // of `status`: stored states of the plant
	Resets    uint64          `json:"resets,omitempty"`         // of `status`: resets so far
	Ignition  string          `json:"ignition,omitempty"`       // of `status`: state of the ignition
	Record    string          `json:"record,omitempty"`         // of `status` and `record`: full name of the file of the running record
	Refused   string          `json:"record_refused,omitempty"` // of `status`: file of the last record that was to start and did not, and why
	Carried   bool            `json:"carried,omitempty"`        // of `reset`: parameters have changed since the snapshot; its state was carried over by name
}

// SnapshotState is a stored state of the plant in the answer to `status`.
type SnapshotState struct {
	Name string  `json:"name"`
	Tick int64   `json:"tick"`   // first tick after the state
	Time float64 `json:"time_s"` // simulated time of Tick, s
}

// FaultState is a fault in the answer to `faults`.
type FaultState struct {
	Slot  int    `json:"slot"`
	Name  string `json:"name"`
	Spec  string `json:"spec"`
	State string `json:"state"`
	Since *int64 `json:"since_tick,omitempty"` // first tick in which it acted; nil: it has not acted yet
	Count uint64 `json:"count"`                // ticks, or frames, disturbed so far
}

// Open opens the door of a run. The door reads the signals from the recorder, which also keeps the lines
// of changes. Requests may end the run through stop.
func Open(dir string, r report.View, target int, record *recorder.Recorder, stop chan<- os.Signal) (*Server, error) {
	d, err := Describe(r)
	if err != nil {
		return nil, err
	}
	c := newServer(r, d)
	c.target = target
	return c.open(dir, record, stop)
}

// open starts to answer on the socket of the run.
func (c *Server) open(dir string, record *recorder.Recorder, stop chan<- os.Signal) (*Server, error) {
	c.recorder, c.record, c.stop = record, record.EventLog(), stop
	c.parameters.record = c.record
	listener, path, err := listenControl(dir, c.Handover.Bench.Name)
	if err != nil {
		return nil, err
	}
	record.SetTap(c.streams.entry)
	c.door, c.path, c.http = &doorListener{UnixListener: listener}, path, c.newHTTPServer()
	go c.http.Serve(c.door) // until the listener is closed
	return c, nil
}

// newServer returns a server without a listener.
func newServer(r report.View, d *Description) *Server {
	c := &Server{View: r, streams: newStreams(r, d), streamTimeout: slowStream, reportReady: make(chan struct{}), host: []HostCheck{},
		commands: scenario.NewCommands(r.Handover)}
	for slot, name := range r.Handover.Snapshots { // before a status shows one
		r.Status.NameSnapshot(slot, name)
	}
	c.streams.overridden = c.overridden
	c.commands.Restore(r.Status)
	c.parameters = newParameters(c.streams)
	c.publishChange()
	return c
}

// NameFaults completes the named faults of a run taken over from another supervisor: its live
// faults are known by their slots only.
func NameFaults(r report.View) {
	list := make([]bench.NamedFault, fault.Max)
	copy(list, r.Handover.Named)
	r.Handover.Named = list
	for slot := range list {
		f := &list[slot]
		switch state, _ := r.Status.FaultState(slot); {
		case state == fault.Free:
			*f = bench.NamedFault{}
		case f.Name == "":
			*f = bench.NamedFault{Name: fmt.Sprintf("slot%d", slot), Spec: "from before lockstep attach"}
		}
	}
}

// Clients returns the number of connected clients; each has a descriptor of this process.
func (c *Server) Clients() int64 {
	if c.door == nil {
		return 0
	}
	return c.door.count()
}

// CloseListener removes the socket: no further client can connect. Clients that are connected stay.
func (c *Server) CloseListener() {
	if c.door != nil {
		c.door.UnixListener.Close() // may be called twice
	}
}

// Close removes the socket and disconnects all clients.
func (c *Server) Close() {
	if c.door != nil {
		c.CloseListener()
		c.http.Close() // the listener is closed already
	}
}

// AnswerWaiting answers the clients that wait for the end of the run or watch it, and gives them time to
// read the answer. Call it when the ring is read to its end.
func (c *Server) AnswerWaiting(v *report.Report) {
	if c.door == nil {
		return // no client could ask
	}
	c.ended = Answer{Bench: v.Bench, Process: os.Getpid(), Tick: int64(v.Ticks), Time: v.SimTime,
		Missed: v.Missed, LateTicks: v.LateTicks,
		Ended: v.Ended, Clean: v.Clean}
	close(c.reportReady)
	for end := time.Now().Add(writeTimeout); c.waitingClients.Load() > 0 && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
}

// StopNow is the signal to kill the target.
const StopNow = "stop now"

// requestStop asks the supervisor to end the run; now kills the target.
func (c *Server) requestStop(now bool) {
	switch {
	case now && c.standing == nil:
		c.stop <- Request(StopNow)
	case !c.stopRequested.Swap(true): // a second request would kill the target
		c.stop <- Request("ctl")
	}
}

// Request is a request of a client, in the form of a signal.
type Request string

func (Request) Signal()          {}
func (a Request) String() string { return string(a) }

// newAnswer returns an answer with the present tick.
func (c *Server) newAnswer() *Answer {
	tick := int64(c.Status.Ticks.Load())
	return &Answer{Bench: c.Handover.Bench.Name, Process: os.Getpid(), Tick: tick, Time: c.time(tick)}
}

// time returns the simulated time of a tick, s.
func (c *Server) time(tick int64) float64 { return float64(tick*c.Handover.Tables.PeriodNs) / 1e9 }

func (c *Server) faultState(slot int, f bench.NamedFault) FaultState {
	state, count := c.Status.FaultState(slot)
	s := FaultState{Slot: slot, Name: f.Name, Spec: f.Spec, State: state.String(), Count: count}
	if tick, began := c.Status.FaultBegan(slot); began {
		s.Since = &tick
	}
	return s
}

// overridden reports whether a fault acts on an input of the plant, or a live value sets it.
func (c *Server) overridden(input int) bool {
	name, after := c.Handover.Tables.Inputs[input].Name, c.after.Load()
	for _, v := range after.Set {
		if v.Name == name {
			return true
		}
	}
	for slot, f := range after.Slots {
		if state, _ := c.Status.FaultState(slot); state == fault.Active && slices.Contains(strings.Fields(f.Spec), "input="+name) {
			return true
		}
	}
	return false
}

func (c *Server) answerFaults(a *Answer) {
	a.Faults = []FaultState{}
	for slot, f := range c.after.Load().Slots {
		if f.Name != "" {
			a.Faults = append(a.Faults, c.faultState(slot, f))
		}
	}
}

func (c *Server) answerStatus(a *Answer) {
	for _, v := range c.after.Load().Set {
		if a.Set == nil {
			a.Set = map[string]string{}
		}
		a.Set[v.Name] = v.Value
	}
	a.Parameters = texts(c.parameters.inEffect())
	a.Changes, a.Refusals = c.Status.ParameterChanges()
	a.Resets, a.Record, a.Refused = c.Status.Resets(), c.recorder.Path(), c.recorder.Refused()
	if n := c.Status.Ignition.Load(); n > 0 {
		a.Ignition = network.State(n - 1).String()
	}
	for _, s := range c.Status.Snapshots() {
		if s.Tick != 0 {
			a.Snapshots = append(a.Snapshots, SnapshotState{s.Name, s.Tick, c.time(s.Tick)})
		}
	}
	p, outputs := c.Status, c.Handover.Tables.Outputs
	a.Run = newListedRun(c.View, c.target)
	if s := c.sources.Load(); s != nil {
		a.Run.Page = s.Page
	}
	if c.standing != nil { // one process, on any CPU
		a.Run.Supervisor, a.Run.Target, a.Run.CPU, a.Run.Shared = c.target, 0, -1, false
	}
	a.State, a.Missed, a.LateTicks = a.Run.State, a.Run.Missed, p.LateCount()
	for _, m := range c.Handover.Missing {
		a.BestEffort = append(a.BestEffort, m.What)
	}
	y := make([]float64, len(outputs))
	if _, ok := p.Outputs(y); !ok {
		return
	}
	a.Outputs = map[string]float64{}
	for i, o := range outputs {
		if !math.IsNaN(y[i]) && !math.IsInf(y[i], 0) { // JSON has no NaN and no infinity
			unit := o.DeclaredUnit()
			a.Outputs[o.Name+"["+unit.Spelled+"]"] = unit.FromSI(y[i])
		}
	}
}

// applyChange posts the change of a line to the loop and waits until it has effect.
func (c *Server) applyChange(line string) (*Answer, error) {
	if _, err := scenario.ParseRequest(line); err != nil {
		return nil, err
	}
	c.changing.Lock()
	defer c.changing.Unlock()
	p := c.Status
	if rt.Reason(p.Reason.Load()) != rt.NotEnded {
		return nil, refused{http.StatusConflict, errors.New("the run has ended")}
	}
	before := *c.commands
	list, err := c.commands.Translate(line)
	if err != nil {
		return nil, err
	}
	taken, _ := p.Taken() // an earlier supervisor may have posted
	batch := max(c.batch, taken) + 1
	for i := range list {
		if list[i].Op == fault.TakeSnapshot {
			p.NameSnapshot(list[i].Slot, c.commands.Snapshots[list[i].Slot])
		}
	}
	c.record.KeepLine(batch, line) // before the loop can take the batch
	if err := c.post(batch, list); err != nil {
		c.record.DropLine(batch)
		*c.commands = before
		return nil, err
	}

	c.batch = batch
	c.publishChange()
	tick, err := c.awaitEffect()
	if err != nil {
		return nil, err
	}
	a := &Answer{Tick: tick, Time: c.time(tick)}
	var obstacle int
	if a.Carried, obstacle = p.TakenOutcome(); obstacle != 0 {
		why := "the parameters have changed since the snapshot, and " + c.Handover.Tables.Describe(kernel.Obstacle(obstacle))
		if kernel.Obstacle(obstacle) == kernel.NoSnapshot {
			why = "the scenario stores this snapshot at a later tick"
		}
		return nil, refused{http.StatusConflict, fmt.Errorf("reset: refused at tick %d: %s", tick, why)}
	}
	for i := range list {
		if list[i].Op == fault.Put || list[i].Op == fault.Clear {
			a.Slots = append(a.Slots, list[i].Slot)
		}
		if list[i].Op == fault.Put {
			a.Faults = append(a.Faults, c.faultState(list[i].Slot, c.after.Load().Slots[list[i].Slot]))
		}
	}

	return a, nil
}

// post hands a change to the loop.
func (c *Server) post(batch uint64, list []fault.Command) error {
	err := error(refused{http.StatusConflict, errors.New("the loop has not taken the last change yet: ask again when it goes on")})
	post := func() {
		if c.Status.Post(batch, list) {
			err = nil
		}
	}
	if c.standing == nil {
		post()
		return err
	}
	restores := slices.ContainsFunc(list, func(d fault.Command) bool { return d.Op == fault.Restore })
	stood := c.whenStanding(func(*rt.Loop) {
		if restores && c.parameters.changesNext() { // possible in the state at hand, perhaps in no other
			err = refused{http.StatusConflict, errors.New("reset: a change of parameters takes effect at the next tick: advance first")}
			return
		}
		post()
	})
	if !stood {
		return refused{http.StatusConflict, errors.New("the run has ended")}
	}
	return err
}

// awaitEffect waits for the effect of the last change and returns its first tick.
func (c *Server) awaitEffect() (tick int64, err error) {
	if c.standing != nil {
		if !c.whenStanding(func(l *rt.Loop) { l.TakeCommands(); c.recorder.WriteStanding() }) {
			return 0, refused{http.StatusConflict, errors.New("the run ended before the change had effect")}
		}
		_, tick = c.Status.Taken()
		return tick, nil
	}
	period := time.Duration(c.Handover.Tables.PeriodNs)
	for end := time.Now().Add(takeTimeout + 2*period); time.Now().Before(end); time.Sleep(min(period/4, 5*time.Millisecond)) {
		// Wait for the end of that tick: until then the status block shows the state before.
		if batch, tick := c.Status.Taken(); batch == c.batch && int64(c.Status.Ticks.Load()) >= tick {
			return tick, nil
		}
		if rt.State(c.Status.State.Load()) == rt.Ended {
			return 0, refused{http.StatusConflict, errors.New("the run ended before the change had effect")}
		}
	}

	return 0, refused{http.StatusGatewayTimeout, fmt.Errorf("the loop has not taken the change within %v; "+
		"the change has effect when the loop goes on", takeTimeout+2*period)}
}

// publishChange makes the last change visible to requests that only read it.
func (c *Server) publishChange() {
	now := *c.commands
	c.after.Store(&now)
}
