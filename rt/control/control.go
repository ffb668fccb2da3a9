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
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"lockstep/model/units"
	"lockstep/rt"
	"lockstep/rt/bench"
	"lockstep/rt/fault"
	"lockstep/rt/recorder"
	"lockstep/rt/report"
	"lockstep/rt/scenario"
)

// Server is the supervisor's ear for `lockstep ctl`: a socket in the file system that
// only its own user can open. A request is a line of words as the shell quotes them, the
// answer one line of JSON, see Answer. What changes the run goes through the page and
// takes effect at one tick; one change waits for the one before it.
type Server struct {
	report.View
	target   int // process id
	listener *net.UnixListener
	path     string
	stop     chan<- os.Signal
	stopping atomic.Bool   // it was asked for
	room     chan struct{} // one for each client that fits

	over    chan struct{} // closed when the report is there: ended
	ended   Answer
	waiting atomic.Int64 // clients that want it

	changing sync.Mutex // one change at a time
	batch    uint64     // the last one posted
	commands *scenario.Commands
	slots    atomic.Pointer[scenario.FaultSlots] // those of the last change
	record   *recorder.EventLog                  // nil: nobody records
}

// The bounds of a control socket.
const (
	maxClients = 32              // at once
	maxLine    = 64 << 10        // of a request, bytes
	listening  = time.Minute     // that a client may say nothing
	answering  = 5 * time.Second // that it may take to read an answer
	uptake     = 2 * time.Second // that the loop may take beyond two periods to take a change
)

// Answer is what a request gets.
type Answer struct {
	OK    bool   `json:"ok"`
	Error string `json:"error,omitempty"` // why not

	Bench   string  `json:"bench,omitempty"`
	Process int     `json:"process,omitempty"` // of the supervisor
	Tick    int64   `json:"tick"`              // from which on a change has effect; of others the present one
	Time    float64 `json:"time_s"`            // the same, simulated time

	Slots  []int        `json:"slots,omitempty"`  // of the faults that the request has put or cleared
	Faults []FaultState `json:"faults,omitempty"` // of `faults`, and the one of `fault`

	Run   *Listed `json:"run,omitempty"`   // of `status`: the run as lockstep ps lists it
	Ended string  `json:"ended,omitempty"` // of `stop wait`: why the run has ended
	Clean bool    `json:"clean,omitempty"` // likewise: no policy was broken

	State     string             `json:"state,omitempty"` // of `status`: "running", or what is wrong
	Missed    uint64             `json:"missed,omitempty"`
	LateTicks uint64             `json:"late_ticks,omitempty"`
	Outputs   map[string]float64 `json:"outputs,omitempty"` // of the plant, SI; one that is not finite is left out
}

// FaultState is a fault as `faults` tells it.
type FaultState struct {
	Slot  int    `json:"slot"`
	Name  string `json:"name"`
	Spec  string `json:"spec"`
	State string `json:"state"`
	Count uint64 `json:"count"` // ticks that it has disturbed so far, or frames
}

// Open listens for the requests of `lockstep ctl` to a run: they may end it by stop,
// and the record, nil where there is none, keeps the lines of the changes.
func Open(dir string, r report.View, target int, record *recorder.EventLog, stop chan<- os.Signal) (*Server, error) {
	c := &Server{View: r, target: target, record: record, stop: stop, room: make(chan struct{}, maxClients), over: make(chan struct{})}
	var err error
	if c.listener, c.path, err = listenControl(dir, r.Handover.Bench.Name); err != nil {
		return nil, err
	}
	c.commands = scenario.NewCommands(r.Handover)
	c.publish()
	go c.serve()
	return c, nil
}

// NameFaults completes the faults of a run that was another supervisor's: the live
// changes of that one are known by their slots only.
func NameFaults(r report.View) {
	list := make([]bench.NamedFault, fault.Max)
	copy(list, r.Handover.Named)
	r.Handover.Named = list
	for slot := range list {
		f := &list[slot]
		switch state, _ := r.Page.FaultState(slot); {
		case state == fault.Free:
			*f = bench.NamedFault{}
		case f.Name == "":
			*f = bench.NamedFault{Name: fmt.Sprintf("slot%d", slot), Spec: "from before lockstep attach"}
		}
	}
}

// Clients is how many are there: each has a descriptor of this process.
func (c *Server) Clients() int64 {
	if c == nil {
		return 0
	}
	return int64(len(c.room))
}

// Close ends it; the socket's file goes, too.
func (c *Server) Close() {
	if c != nil {
		c.listener.Close()
	}
}

// Conclude tells those who wait for the end of the run how it was, and gives them the
// time to hear it.
func (c *Server) Conclude(v *report.Report) {
	if c == nil {
		return
	}
	c.ended = Answer{OK: true, Bench: v.Bench, Process: os.Getpid(), Tick: int64(v.Ticks), Time: v.SimTime, Missed: v.Missed, LateTicks: v.LateTicks,
		Ended: v.Ended, Clean: v.Clean}
	close(c.over)
	for end := time.Now().Add(answering); c.waiting.Load() > 0 && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
}

// stopAndWait does what a request to stop says, and answers when the run is over.
func (c *Server) stopAndWait(conn *net.UnixConn, request string) {
	c.waiting.Add(1) // before anything can end the run
	defer c.waiting.Add(-1)
	a := c.answer(request)
	if a.OK {
		<-c.over
		a = &c.ended
	}
	reply(conn, a)
}

// serve lets clients in until the run is over.
func (c *Server) serve() {
	for {
		conn, err := c.listener.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // no descriptor is left; a client that goes gives one back
			time.Sleep(100 * time.Millisecond)
			continue
		}
		select {
		case c.room <- struct{}{}:
			go func() {
				c.client(conn)
				<-c.room
			}()
		default:
			reply(conn, &Answer{Error: fmt.Sprintf("%d clients are there already", maxClients)})
			conn.Close()
		}
	}
}

// client answers one client until it leaves, says nothing for too long or too much at
// once.
func (c *Server) client(conn *net.UnixConn) {
	defer conn.Close()
	lines := bufio.NewReaderSize(conn, maxLine)
	for {
		_ = conn.SetReadDeadline(time.Now().Add(listening))
		line, err := lines.ReadSlice('\n')
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			reply(conn, &Answer{Error: fmt.Sprintf("the request is longer than %d bytes", maxLine)})
			return
		case err != nil && !(errors.Is(err, io.EOF) && len(line) > 0):
			return
		}
		request := strings.TrimSpace(string(line))
		if stop, waits := strings.CutSuffix(request, " wait"); waits && strings.HasPrefix(request, "stop ") {
			c.stopAndWait(conn, stop)
			return
		}
		if !reply(conn, c.answer(request)) || err != nil {
			return
		}
	}
}

// reply writes an answer; false: the client does not take it.
func reply(conn *net.UnixConn, a *Answer) bool {
	text, err := json.Marshal(a)
	if err != nil {
		return false
	}
	_ = conn.SetWriteDeadline(time.Now().Add(answering))
	_, err = conn.Write(append(text, '\n'))
	return err == nil
}

// requests lists what a request can begin with.
var requests = []string{"status", "faults", "fault", "clear", "set", "release", "stop"}

// answer does what a line asks for.
func (c *Server) answer(line string) *Answer {
	a, err := &Answer{}, error(nil)
	words, err := scenario.ParseRequest(line)
	switch {
	case err != nil:
	case len(words) == 0 || !slices.Contains(requests, words[0]):
		word := ""
		if len(words) > 0 {
			word = words[0]
		}
		err = fmt.Errorf("unknown request %.60q%s; known are %s", word, units.Meant(word, requests), strings.Join(requests, ", "))
	case words[0] != "status" && words[0] != "faults" && words[0] != "stop":
		err = c.change(line, a)
	case words[0] == "stop" && len(words) == 2 && words[1] == "now":
		c.tell(StopNow, a)
	case len(words) > 1:
		err = fmt.Errorf("%s takes no further words", words[0])
	default:
		c.tell(words[0], a)
	}
	if err != nil {
		return &Answer{Error: err.Error()}
	}
	a.OK = true
	a.Time = float64(a.Tick*c.Handover.Tables.PeriodNs) / 1e9
	return a
}

// tell answers what changes no value.
func (c *Server) tell(what string, a *Answer) {
	p := c.Page
	a.Bench, a.Process, a.Tick = c.Handover.Bench.Name, os.Getpid(), int64(p.Ticks.Load())
	switch what {
	case "stop":
		if !c.stopping.Swap(true) { // a second wish would be one to kill
			c.stop <- Request("ctl")
		}
	case StopNow:
		c.stop <- Request(StopNow)
	case "faults":
		a.Faults = []FaultState{}
		for slot, f := range c.slots.Load() {
			if f.Name != "" {
				a.Faults = append(a.Faults, c.fault(slot, f.NamedFault))
			}
		}
	case "status":
		c.status(a)
	}
}

// StopNow is the wish to kill the target.
const StopNow = "stop now"

// Request is the wish of a client, in the place of a signal.
type Request string

func (Request) Signal()          {}
func (a Request) String() string { return string(a) }

func (c *Server) fault(slot int, f bench.NamedFault) FaultState {
	state, count := c.Page.FaultState(slot)
	return FaultState{Slot: slot, Name: f.Name, Spec: f.Spec, State: state.String(), Count: count}
}

func (c *Server) status(a *Answer) {
	p, outputs := c.Page, c.Handover.Tables.Outputs
	a.Run = listed(c.View, c.target)
	a.State, a.Missed, a.LateTicks = a.Run.State, a.Run.Missed, p.LateTicks()
	y := make([]float64, len(outputs))
	if _, ok := p.Outputs(y); !ok {
		return
	}
	a.Outputs = map[string]float64{}
	for i, o := range outputs {
		if !math.IsNaN(y[i]) && !math.IsInf(y[i], 0) { // JSON has none
			a.Outputs[o.Name+"["+o.Unit+"]"] = y[i]
		}
	}
}

// change hands a change to the loop and waits until it has effect.
func (c *Server) change(line string, a *Answer) error {
	c.changing.Lock()
	defer c.changing.Unlock()
	p := c.Page
	if rt.Reason(p.Reason.Load()) != rt.NotEnded {
		return errors.New("the run is over")
	}
	before := c.commands.Slots
	list, err := c.commands.Translate(line)
	if err != nil {
		return err
	}
	taken, _ := p.Taken() // a supervisor before this one may have posted
	batch := max(c.batch, taken) + 1
	c.record.Note(batch, line) // before the loop can have taken it
	if !p.Post(batch, list) {
		c.record.Forget(batch)
		c.commands.Slots = before
		return errors.New("the loop has not taken the last change yet")
	}
	c.batch = batch
	c.publish()
	if a.Tick, err = c.await(); err != nil {
		return err
	}
	for i := range list {
		if list[i].Op == fault.Put || list[i].Op == fault.Clear {
			a.Slots = append(a.Slots, list[i].Slot)
		}
		if list[i].Op == fault.Put {
			a.Faults = append(a.Faults, c.fault(list[i].Slot, c.slots.Load()[list[i].Slot].NamedFault))
		}
	}
	return nil
}

// await returns the tick from which on the last change has effect.
func (c *Server) await() (tick int64, err error) {
	period := time.Duration(c.Handover.Tables.PeriodNs)
	for end := time.Now().Add(uptake + 2*period); time.Now().Before(end); time.Sleep(min(period/4, 5*time.Millisecond)) {
		// The tick itself must be over, too: until then the page tells of what was before.
		if batch, tick := c.Page.Taken(); batch == c.batch && int64(c.Page.Ticks.Load()) >= tick {
			return tick, nil
		}
		if rt.State(c.Page.State.Load()) == rt.Ended {
			return 0, errors.New("the run ended before the change had effect")
		}
	}
	return 0, fmt.Errorf("the loop has not taken the change within %v; it has effect when the loop goes on", uptake+2*period)
}

// publish makes the slots known to the requests that only read them.
func (c *Server) publish() {
	slots := c.commands.Slots
	c.slots.Store(&slots)
}
