package diagnosis

import (
	"errors"
	"fmt"
	"sync"

	"lockstep/io/can"
	"lockstep/io/isotp"
	"lockstep/io/j1939"
	"lockstep/io/uds"
)

// Station runs the jobs of a tester on one bus, one after the other. Use NewStation. Add may be called by any
// goroutine, all other methods by one at a time.
type Station struct {
	Spec *Spec

	client   *uds.Client     // nil: the file is of a unit on SAE J1939
	group    *uds.Group      // the same
	inquirer *j1939.Inquirer // nil: the file is of a unit with UDS
	claim    *claim          // of the tester's address; nil: no other node could have it
	job      *Job
	task     *uds.Task // nil: the job asks all units, or for a group, or there is none
	lines    []string  // answer of the procedure
	start    int64

	outcomes []Outcome

	mu    sync.Mutex
	queue []Job
}

// maxJobs bounds the jobs that wait, and the outcomes that nobody takes.
const maxJobs = 1000

// ErrBusy says that too many jobs wait.
var ErrBusy = errors.New("too many requests wait for the unit")

// NewStation returns a station for the unit of a diagnosis file.
func NewStation(s *Spec) (*Station, error) {
	if n := s.Node; n != nil {
		return &Station{Spec: s, inquirer: &j1939.Inquirer{Address: n.Tester, Node: n.Address}}, nil
	}
	client, err := uds.NewClient(s.Transport, s.Timing)
	if err != nil {
		return nil, err
	}
	group, err := uds.NewGroup(s.OBD, s.Transport, s.Timing)
	if err != nil {
		return nil, err
	}
	return &Station{Spec: s, client: client, group: group}, nil
}

// Add adds a job behind those that wait.
func (s *Station) Add(j Job) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) >= maxJobs {
		return ErrBusy
	}
	s.queue = append(s.queue, j)
	return nil
}

// next removes the first job that waits.
func (s *Station) next() (j Job, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) == 0 {
		return j, false
	}
	j, s.queue = s.queue[0], s.queue[1:]
	return j, true
}

// Busy reports whether a job runs or waits.
func (s *Station) Busy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.job != nil || len(s.queue) > 0
}

// Receive processes a frame of the bus at an instant, ns; false: it is not of the unit alone.
func (s *Station) Receive(f *can.Frame, now int64) bool {
	switch {
	case s.inquirer != nil:
		if s.claim != nil {
			s.claim.receive(f, now)
		}
		if s.holdsAddress() {
			s.inquirer.Receive(f, now)
		}
		return false // the bench may receive the group, too
	case s.job != nil && s.job.All != nil: // the unit answers to all at the same identifier
		return s.group.Receive(f, now)
	}
	return s.client.Receive(f, now)
}

// Owns reports whether an address of SAE J1939 is the tester's.
func (s *Station) Owns(address uint8) bool { return s.inquirer != nil && s.inquirer.Owns(address) }

// holdsAddress reports whether the tester may send from its address, and be sent to.
func (s *Station) holdsAddress() bool { return s.claim == nil || s.claim.State == j1939.Held }

// sender is what makes the frames of a station.
type sender interface {
	Next(now int64) (can.Frame, bool)
	Sent(now int64)
}

// senders returns what makes the frames, in the order in which their frames are sent.
func (s *Station) senders() []sender {
	switch {
	case !s.holdsAddress():
		return []sender{s.claim}
	case s.claim != nil:
		return []sender{s.claim, s.inquirer}
	case s.inquirer != nil:
		return []sender{s.inquirer}
	}
	return []sender{s.client, s.group}
}

// Next returns the frame that is to be sent now: isotp.Link.Next.
func (s *Station) Next(now int64) (can.Frame, bool) {
	for _, p := range s.senders() {
		if f, ok := p.Next(now); ok {
			return f, true
		}
	}
	return can.Frame{}, false
}

// Sent confirms that the bus has taken the frame of Next.
func (s *Station) Sent(now int64) {
	for _, p := range s.senders() {
		if _, ok := p.Next(now); ok {
			p.Sent(now)
			return
		}
	}
}

// Deadline returns the instant, ns, at which Step has work; isotp.Never: none.
func (s *Station) Deadline() int64 {
	if s.inquirer != nil {
		if at, ok := s.inquirer.Deadline(); ok {
			return at
		}
		return isotp.Never
	}
	next := min(s.client.Deadline(), s.group.Deadline())
	if s.task != nil {
		next = min(next, s.task.Deadline())
	}
	return next
}

// Step serves the times, continues the running job and begins the next one. The caller then sends the frames of Next.
func (s *Station) Step(now int64) {
	if s.inquirer != nil {
		if s.claim != nil {
			if s.claim.queue(s.claim.Poll(now)); s.claim.State == j1939.Lost {
				s.Stop(now, s.claim.err())
			}
		}
		s.inquirer.Poll(now)
		for _, r := range s.inquirer.Strays() {
			s.finish(Outcome{Label: "an answer without a request", Unasked: true, Err: r.Err,
				Exchanges: []uds.Exchange{{Request: r.Data[5:], Answer: r.Data, Start: r.At, End: r.At, Err: r.Err}}, Start: r.At, End: r.At})
		}
	} else {
		s.client.Poll(now)
		s.group.Poll(now)
		for _, e := range s.client.Strays() {
			s.finish(Outcome{Label: "an answer without a request", Unasked: true, Err: e.Err, Exchanges: []uds.Exchange{e}, Start: e.Start, End: e.End})
		}
	}
	for {
		switch {
		case s.job == nil:
			if !s.begin(now) {
				return
			}
		case s.task != nil:
			done, err := s.task.Step(now)
			if !done {
				return
			}
			s.task.End()
			if err != nil {
				s.lines = nil
			}
			s.complete(Outcome{Lines: s.lines, Err: err, Exchanges: s.task.Exchanges, End: now})
		case s.job.Group != nil:
			r, done := s.inquirer.Done()
			if !done {
				return
			}
			s.complete(s.ofReply(r))
		default:
			list, done := s.group.Done(now)
			if !done {
				return
			}
			s.complete(s.ofGroup(list, now))
		}
	}
}

// begin begins the next job; false: there is none, or the client is not ready.
func (s *Station) begin(now int64) bool {
	switch {
	case s.client != nil && !s.client.Idle(): // "tester present" is being sent
		return false
	case !s.holdsAddress():
		return false
	}
	j, ok := s.next()
	if !ok {
		return false
	}
	s.job, s.task, s.lines, s.start = &j, nil, nil, now
	switch {
	case j.Group != nil:
		s.inquirer.Request(j.Group.PGN, j.Group.Clears, now)
	case j.All == nil:
		s.task = uds.Begin(s.client, func(t *uds.Tester) (err error) {
			s.lines, err = j.Do(t)
			return err
		})
	default:
		if err := s.group.Request(j.All, now); err != nil {
			s.complete(Outcome{Err: err, End: now})
		}
	}
	return true
}

// ofReply returns the outcome of a request for a group.
func (s *Station) ofReply(r j1939.Reply) (o Outcome) {
	o = Outcome{Err: r.Err, End: r.At}
	if r.Err == nil {
		o.Lines, o.Err = s.job.Group.Lines(r.Data)
	}
	pgn := s.job.Group.PGN
	o.Exchanges = []uds.Exchange{{Request: []byte{byte(pgn), byte(pgn >> 8), byte(pgn >> 16)}, Answer: r.Data, Start: s.start, End: r.At, Err: o.Err}}
	return o
}

// ofGroup returns the outcome of a request to all units.
func (s *Station) ofGroup(list []uds.UnitAnswer, now int64) Outcome {
	o := Outcome{End: now}
	for _, a := range list {
		text, err := "", a.Err
		if err == nil {
			text, err = uds.DescribeOBD(a.Data)
		}
		if err != nil {
			o.Err = errors.Join(o.Err, fmt.Errorf("%s: %w", can.FormatID(a.ID), err))
		} else {
			o.Lines = append(o.Lines, can.FormatID(a.ID)+" "+text)
		}
		o.Exchanges = append(o.Exchanges, uds.Exchange{Request: s.job.All, Answer: a.Data, Start: s.start, End: a.At, Err: err})
	}
	if len(list) == 0 {
		o.Err = fmt.Errorf("%w: no unit answers request %s at %s", uds.ErrSilent, uds.Bytes(s.job.All), can.FormatID(s.Spec.OBD))
	}
	return o
}

// complete ends the running job.
func (s *Station) complete(o Outcome) {
	o.Label, o.Item, o.Start = s.job.Label, s.job.Item, s.start
	done := s.job.Done
	s.job, s.task = nil, nil
	s.finish(o)
	if done != nil {
		done(o)
	}
}

// finish keeps an outcome.
func (s *Station) finish(o Outcome) {
	if len(s.outcomes) < maxJobs {
		s.outcomes = append(s.outcomes, o)
	}
}

// Take removes and returns the outcomes since the last call, in their order.
func (s *Station) Take() []Outcome {
	list := s.outcomes
	s.outcomes = nil
	return list
}

// Stop ends the running job and those that wait; each outcome has the error why.
func (s *Station) Stop(now int64, why error) {
	for {
		if s.job == nil {
			j, ok := s.next()
			if !ok {
				return
			}
			s.job, s.start = &j, now
		}
		o := Outcome{Err: why, End: now}
		if s.task != nil {
			s.task.End()
			o.Exchanges = s.task.Exchanges
		}
		if s.inquirer != nil {
			s.inquirer.Abort()
		}
		s.complete(o)
	}
}

// String returns the outcome as a line of a record: the command, the exchanges and the answer or the error.
func (o *Outcome) String() string {
	text := "uds " + o.Label
	for i, e := range o.Exchanges {
		if i == maxShownExchanges {
			text += fmt.Sprintf("; %d more requests", len(o.Exchanges)-i)
			break
		}
		text += "; " + e.String()
	}
	if o.Err != nil {
		return text + ": " + o.Err.Error()
	}
	for i, l := range o.Lines {
		text += map[bool]string{true: ": ", false: "; "}[i == 0] + l
	}
	return text
}

// maxShownExchanges bounds the exchanges in a line: a flash has thousands.
const maxShownExchanges = 4

// Quiet is the deadline of a station that waits for nothing.
const Quiet = isotp.Never
