package control

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"lockstep/rt"
	"lockstep/rt/bench"
	"lockstep/rt/fault"
	"lockstep/rt/recorder"
	"lockstep/rt/report"
	"lockstep/rt/scenario"
)

// Server answers `lockstep ctl` on a socket that only its own user can open. A request is a line of
// words as the shell quotes them, the answer one line of JSON, see Answer. A change crosses the
// status block and takes effect at one tick; changes are applied one after the other.
type Server struct {
	report.View
	target        int // process id
	listener      *net.UnixListener
	path          string
	stop          chan<- os.Signal
	stopRequested atomic.Bool   // a stop was requested
	clientSlots   chan struct{} // one entry per connected client
	stopSlots     chan struct{} // one entry per client that came when clientSlots was full; it may only stop the run

	reportReady    chan struct{} // closed when ended is valid
	ended          Answer
	waitingClients atomic.Int64 // clients that wait for ended

	changing sync.Mutex // held while a change is applied
	batch    uint64     // last batch posted
	commands *scenario.Commands
	after    atomic.Pointer[scenario.Commands] // commands as they are after the last change
	record   *recorder.EventLog                // nil: there is no record
}

// The bounds of a control socket.
const (
	maxClients   = 32              // at once
	maxStops     = 8               // further ones, which may only stop the run
	maxLine      = 64 << 10        // of a request, bytes
	idleTimeout  = time.Minute     // longest silence of a client
	writeTimeout = 5 * time.Second // longest time that a client may take to read an answer
	takeTimeout  = 2 * time.Second // longest time, beyond two periods, until the loop takes a change
)

// Answer is the answer to a request.
type Answer struct {
	OK    bool   `json:"ok"`
	Error string `json:"error,omitempty"` // reason of a refusal

	Bench   string  `json:"bench,omitempty"`
	Process int     `json:"process,omitempty"` // process id of the supervisor
	Tick    int64   `json:"tick"`              // first tick of a change's effect; for other requests the present tick
	Time    float64 `json:"time_s"`            // simulated time of Tick, s

	Slots  []int        `json:"slots,omitempty"`  // slots of the faults that the request has set or cleared
	Faults []FaultState `json:"faults,omitempty"` // of `faults`, and of `fault` the new one

	Run   *ListedRun `json:"run,omitempty"`   // of `status`: the row of lockstep ps
	Ended string     `json:"ended,omitempty"` // of `stop wait`: why the run has ended
	Clean bool       `json:"clean,omitempty"` // of `stop wait`: no policy was broken

	State     string             `json:"state,omitempty"` // of `status`: "running", or the fault
	Missed    uint64             `json:"missed,omitempty"`
	LateTicks uint64             `json:"late_ticks,omitempty"`
	Outputs   map[string]float64 `json:"outputs,omitempty"` // outputs by NAME[UNIT], in the declared unit; finite ones only
	Set       map[string]string  `json:"set,omitempty"`     // of `status`: inputs and signals that are set, as in `set`
}

// FaultState is a fault in the answer to `faults`.
type FaultState struct {
	Slot  int    `json:"slot"`
	Name  string `json:"name"`
	Spec  string `json:"spec"`
	State string `json:"state"`
	Count uint64 `json:"count"` // ticks, or frames, disturbed so far
}

// Open opens the control socket of a run. Requests may end the run through stop; record, nil if
// there is none, keeps the lines of changes.
func Open(dir string, r report.View, target int, record *recorder.EventLog, stop chan<- os.Signal) (*Server, error) {
	c := &Server{View: r, target: target, record: record, stop: stop, clientSlots: make(chan struct{}, maxClients),
		stopSlots: make(chan struct{}, maxStops), reportReady: make(chan struct{})}
	var err error
	if c.listener, c.path, err = listenControl(dir, r.Handover.Bench.Name); err != nil {
		return nil, err
	}
	c.commands = scenario.NewCommands(r.Handover)
	c.commands.Restore(r.Status.SetValues())
	c.publishChange()
	go c.acceptClients()
	return c, nil
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
	return int64(len(c.clientSlots) + len(c.stopSlots))
}

// Close closes the listener and removes the socket.
func (c *Server) Close() {
	c.listener.Close() // the error of closing nil does not matter
}

// AnswerWaiting answers the clients that wait for the end of the run, and gives them time to read
// the answer.
func (c *Server) AnswerWaiting(v *report.Report) {
	if c.listener == nil {
		return // no client could ask
	}
	c.ended = Answer{OK: true, Bench: v.Bench, Process: os.Getpid(), Tick: int64(v.Ticks), Time: v.SimTime,
		Missed: v.Missed, LateTicks: v.LateTicks,
		Ended: v.Ended, Clean: v.Clean}
	close(c.reportReady)
	for end := time.Now().Add(writeTimeout); c.waitingClients.Load() > 0 && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
}

// stopAndWait handles a stop request, and answers when the run has ended.
func (c *Server) stopAndWait(conn *net.UnixConn, request string) {
	c.waitingClients.Add(1) // before the run can end
	defer c.waitingClients.Add(-1)
	a := c.answer(request)
	if a.OK {
		<-c.reportReady
		a = &c.ended
	}

	writeAnswer(conn, a)
}

// acceptClients accepts clients until the listener is closed.
func (c *Server) acceptClients() {
	for {
		conn, err := c.listener.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // no descriptor is left; a client that disconnects frees one
			time.Sleep(100 * time.Millisecond)
			continue
		}

		select {
		case c.clientSlots <- struct{}{}:
			go func() {
				c.serveClient(conn)
				<-c.clientSlots
			}()
		default:
			c.stopSlots <- struct{}{} // waits writeTimeout at most, unless maxStops clients await the end
			go func() {
				c.serveStop(conn)
				<-c.stopSlots
			}()
		}
	}
}

// serveStop serves a client that came when all places were taken: it may stop the run, and has
// writeTimeout to say so.
func (c *Server) serveStop(conn *net.UnixConn) {
	defer conn.Close()
	_ = conn.SetReadDeadline(time.Now().Add(writeTimeout))
	line, err := bufio.NewReaderSize(conn, maxLine).ReadSlice('\n')
	if request := strings.TrimSpace(string(line)); err == nil && (request == "stop" || strings.HasPrefix(request, "stop ")) {
		c.serveRequest(conn, request)
		return
	}
	writeAnswer(conn, &Answer{Error: fmt.Sprintf("%d clients are connected already", maxClients)})
}

// serveClient answers one client until it disconnects, is silent for too long or sends too long a
// line.
func (c *Server) serveClient(conn *net.UnixConn) {
	defer conn.Close()
	lines := bufio.NewReaderSize(conn, maxLine)
	for {
		_ = conn.SetReadDeadline(time.Now().Add(idleTimeout))
		line, err := lines.ReadSlice('\n')
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			writeAnswer(conn, &Answer{Error: fmt.Sprintf("the request is longer than %d bytes", maxLine)})
			return
		case err != nil && !(errors.Is(err, io.EOF) && len(line) > 0):
			return
		}

		if !c.serveRequest(conn, strings.TrimSpace(string(line))) || err != nil {
			return
		}
	}
}

// serveRequest answers one request; false: the client makes no further one.
func (c *Server) serveRequest(conn *net.UnixConn, request string) bool {
	if stop, waits := strings.CutSuffix(request, " wait"); waits && strings.HasPrefix(request, "stop ") {
		c.stopAndWait(conn, stop)
		return false
	}
	return writeAnswer(conn, c.answer(request))
}

// writeAnswer writes an answer; false: the client does not take it.
func writeAnswer(conn *net.UnixConn, a *Answer) bool {
	text, err := json.Marshal(a)
	if err != nil {
		return false
	}
	_ = conn.SetWriteDeadline(time.Now().Add(writeTimeout))
	_, err = conn.Write(append(text, '\n'))
	return err == nil
}

// Request is a request of a client, in the form of a signal.
type Request string

func (Request) Signal()          {}
func (a Request) String() string { return string(a) }

func (c *Server) faultState(slot int, f bench.NamedFault) FaultState {
	state, count := c.Status.FaultState(slot)
	return FaultState{Slot: slot, Name: f.Name, Spec: f.Spec, State: state.String(), Count: count}
}

func (c *Server) answerFaults(_ string, a *Answer) error {
	a.Faults = []FaultState{}
	for slot, f := range c.after.Load().Slots {
		if f.Name != "" {
			a.Faults = append(a.Faults, c.faultState(slot, f))
		}
	}

	return nil
}

func (c *Server) answerStatus(_ string, a *Answer) error {
	for _, v := range c.after.Load().Set {
		if a.Set == nil {
			a.Set = map[string]string{}
		}
		a.Set[v.Name] = v.Value
	}
	p, outputs := c.Status, c.Handover.Tables.Outputs
	a.Run = newListedRun(c.View, c.target)
	a.State, a.Missed, a.LateTicks = a.Run.State, a.Run.Missed, p.LateCount()
	y := make([]float64, len(outputs))
	if _, ok := p.Outputs(y); !ok {
		return nil
	}
	a.Outputs = map[string]float64{}
	for i, o := range outputs {
		if !math.IsNaN(y[i]) && !math.IsInf(y[i], 0) { // JSON has no NaN and no infinity
			unit := o.DeclaredUnit()
			a.Outputs[o.Name+"["+unit.Spelled+"]"] = unit.FromSI(y[i])
		}
	}

	return nil
}

// applyChange posts a change to the loop and waits until it has effect.
func (c *Server) applyChange(line string, a *Answer) error {
	c.changing.Lock()
	defer c.changing.Unlock()
	p := c.Status
	if rt.Reason(p.Reason.Load()) != rt.NotEnded {
		return errors.New("the run has ended")
	}
	before := *c.commands
	list, err := c.commands.Translate(line)
	if err != nil {
		return err
	}
	taken, _ := p.Taken() // an earlier supervisor may have posted
	batch := max(c.batch, taken) + 1
	c.record.KeepLine(batch, line) // before the loop can take the batch
	if !p.Post(batch, list) {
		c.record.DropLine(batch)
		*c.commands = before
		return errors.New("the loop has not taken the last change yet")
	}

	c.batch = batch
	c.publishChange()
	if a.Tick, err = c.awaitEffect(); err != nil {
		return err
	}
	for i := range list {
		if list[i].Op == fault.Put || list[i].Op == fault.Clear {
			a.Slots = append(a.Slots, list[i].Slot)
		}
		if list[i].Op == fault.Put {
			a.Faults = append(a.Faults, c.faultState(list[i].Slot, c.after.Load().Slots[list[i].Slot]))
		}
	}

	return nil
}

// awaitEffect waits for the effect of the last change and returns its first tick.
func (c *Server) awaitEffect() (tick int64, err error) {
	period := time.Duration(c.Handover.Tables.PeriodNs)
	for end := time.Now().Add(takeTimeout + 2*period); time.Now().Before(end); time.Sleep(min(period/4, 5*time.Millisecond)) {
		// Wait for the end of that tick: until then the status block shows the state before.
		if batch, tick := c.Status.Taken(); batch == c.batch && int64(c.Status.Ticks.Load()) >= tick {
			return tick, nil
		}
		if rt.State(c.Status.State.Load()) == rt.Ended {
			return 0, errors.New("the run ended before the change had effect")
		}
	}

	return 0, fmt.Errorf("the loop has not taken the change within %v; it has effect when the loop goes on",
		takeTimeout+2*period)
}

// publishChange makes the last change visible to requests that only read it.
func (c *Server) publishChange() {
	now := *c.commands
	c.after.Store(&now)
}
