package doctor

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"lockstep/sched"
	"lockstep/sched/hostinfo"
)

// Plan is what can be changed on a host while it runs, and what cannot.
type Plan struct {
	Host    Host        `json:"host"`
	Changes []Change    `json:"changes"`        // in the order in which they are made
	Left    []Check     `json:"left,omitempty"` // not as wanted, and not to be changed by a setting
	Kept    []string    `json:"kept,omitempty"` // checks that were to be left alone
	Boot    CommandLine `json:"boot"`

	host   *host
	checks map[string]Check // by name
}

// NewPlan says what would make the checks of a host green; what keep names is left
// as it is. It changes nothing. A CPU that the host has not is Refused.
func NewPlan(root string, ask Ask, keep []string) (*Plan, error) {
	h, err := visit(root, ask)
	if err != nil {
		return nil, err
	}
	return h.plan(keep)
}

func (h *host) plan(keep []string) (*Plan, error) {
	if len(h.Online) > 0 && !slices.Contains(h.Online, h.CPU) {
		return nil, Refused{Text: fmt.Sprintf("no CPU %d among %s, for which nothing is changed: "+
			"choose one of these with -cpu N", h.CPU, hostinfo.FormatCPUs(h.Online))}
	}

	d := h.diagnosis()
	p := &Plan{Host: d.Host, Changes: []Change{}, Kept: keep, Boot: h.commandLine(), host: h, checks: map[string]Check{}}
	for _, c := range d.Checks {
		p.checks[c.Name] = c
		kept := slices.Contains(keep, c.Name)
		if !kept {
			p.Changes = append(p.Changes, c.Changes...)
		}
		if c.Verdict != OK && (kept || len(c.Changes) == 0 || c.Can != Now) {
			p.Left = append(p.Left, c)
		}
	}

	for _, name := range keep {
		if _, known := p.checks[name]; !known {
			return nil, fmt.Errorf("doctor: no check %q; there are %s", name, strings.Join(d.names(), ", "))
		}
	}

	return p, nil
}

func (d Diagnosis) names() (list []string) {
	for _, c := range d.Checks {
		list = append(list, c.Name)
	}
	return list
}

// Refused is why a host is not changed at all.
type Refused struct {
	Text string
	Err  error // one of the errors below; nil: another reason
	By   Holder
}

func (r Refused) Error() string { return "doctor: " + r.Text }

// Unwrap returns Err.
func (r Refused) Unwrap() error { return r.Err }

// Reasons to refuse, for errors.Is. Refused.By names the process of the first two.
var (
	ErrBenchRuns     = errors.New("a bench runs on this host")
	ErrSettingsTaken = errors.New("another process changes the settings of this host")
	ErrUndoFile      = errors.New("the file that says how to undo the changes cannot be used")
)

// Holder is a process that keeps the host from being changed.
type Holder struct {
	Owner   string // bench or command; "" there is no such process
	Process int
}

func (h Holder) String() string { return fmt.Sprintf("%s, process %d", h.Owner, h.Process) }

// busy returns the bench that runs on the host; Process 0: there is none. What holds up a CPU
// for a moment or lowers the timer thread must not come in between its ticks. One that has
// claimed its CPU is about to tick.
func (h *host) busy() Holder {
	if list := h.ProcessesNamed(sched.TargetName); len(list) > 0 {
		return Holder{sched.TargetName, list[0]}
	}
	by := h.claimed("cpu/")
	return Holder{by.Owner, by.Process}
}

// rights refuses whom the kernel would refuse, setting by setting.
func (h *host) rights() error {
	if h.Live() && os.Geteuid() != 0 {
		return Refused{Text: "the settings of the host are root's to change: sudo " + hostinfo.Executable() + " doctor ..."}
	}
	return nil
}

// alone makes the settings of the host this process's to change, until done is called: a run
// that starts meanwhile waits.
func (h *host) alone() (done func(), err error) {
	fd, err := sched.Reserve(h.claim)
	if errors.Is(err, unix.EADDRINUSE) {
		claimed, who := h.claimed(h.claim), ""
		by := Holder{claimed.Owner, claimed.Process}
		if by.Process != 0 {
			who = fmt.Sprintf(" (lockstep %s)", by)
		}
		return nil, Refused{
			Text: fmt.Sprintf("somebody else%s changes the settings of this host just now: try again when that has ended", who),
			Err:  ErrSettingsTaken, By: by,
		}
	}

	if err != nil {
		return nil, fmt.Errorf("doctor: %w", err)
	}
	by := sched.Reservation{What: h.claim, Role: "supervisor", Process: os.Getpid(), Owner: "doctor"}
	tag, err := sched.Reserve(by.String())
	return func() {
		if unix.Close(fd); err == nil { // else the name, which only informs, is missing
			unix.Close(tag)
		}
	}, nil
}

// mayChange refuses where settings of the host are not to be changed now. It is asked when
// this process is alone: a run claims its CPU before it looks whether somebody changes the
// host, so that one of the two sees the other.
func (h *host) mayChange() error {
	if err := h.rights(); err != nil {
		return err
	}
	if bench := h.busy(); bench.Process != 0 {
		return Refused{
			Text: fmt.Sprintf("a bench runs on this host (%s), and its ticks would be late: lockstep ps, lockstep stop NAME", bench),
			Err:  ErrBenchRuns, By: bench,
		}
	}

	return nil
}

// claimed is the first claim that begins so and says whose it is.
func (h *host) claimed(begin string) sched.Reservation {
	for _, c := range sched.Reservations(string(h.Files)) {
		if strings.HasPrefix(c.What, begin) {
			return c
		}
	}

	return sched.Reservation{}
}

// Step is what became of a setting.
type Step struct {
	Setting
	Now  string `json:"now"`            // before
	Then string `json:"then"`           // after, as intended
	Done bool   `json:"done"`           // it was written and reads as intended
	Left string `json:"left,omitempty"` // why it was not; empty: it failed or there was nothing to do
	Err  string `json:"error,omitempty"`

	cause error // of Left or Err, for errors.Is
}

// leave states why a setting is not written to.
func (s *Step) leave(cause error, text string) { s.Left, s.cause = text, cause }

// fail states why a setting could not be written.
func (s *Step) fail(err error) { s.Err, s.cause = err.Error(), err }

// Reasons to leave a setting alone, beside errGone and errUp.
var (
	errChanged  = errors.New("somebody else has changed it")
	errAsBefore = errors.New("it is as it was")
)

// Apply makes the changes, one after the other, each with a look whether it holds,
// and tells what became of each; a failure does not end it. The file of state says
// before the first of them how to undo all: an end in between leaves nothing that
// Undo does not know. Without a change there is nothing to write.
func (p *Plan) Apply(state string) (steps []Step, err error) {
	if len(p.Changes) == 0 {
		return nil, nil
	}
	h := p.host
	done, err := h.alone()
	if err != nil {
		return nil, err
	}
	defer done()
	if err := h.mayChange(); err != nil {
		return nil, err
	}
	u, err := h.readUndo(state)
	if err != nil {
		return nil, err
	}
	var changes []Change
	for _, c := range p.Changes {
		if now, err := h.now(c.Setting); err == nil && !c.same(now, c.Now) {
			s := Step{Setting: c.Setting, Now: now, Then: c.Then}
			s.leave(errChanged, fmt.Sprintf("somebody has made it %s since it was shown", now))
			steps = append(steps, s)
			continue
		}

		changes = append(changes, c)
		u.plan(c)
	}

	if err := u.save(state); err != nil {
		return nil, err
	}
	for _, c := range changes {
		s := Step{Setting: c.Setting, Now: c.Now, Then: c.Then}
		if err := h.put(c.Setting, c.Then); err != nil {
			s.fail(err)
		} else {
			s.Done = true
		}

		if now, err := h.now(c.Setting); err == nil {
			u.made(c.Setting, now)
		}
		steps = append(steps, s)
	}

	return steps, u.save(state)
}

// Failed are the steps that did not come true, as one error, a line each;
// nil: none.
func Failed(steps []Step) error {
	var list []error
	for _, s := range steps {
		if s.Err != "" {
			list = append(list, fmt.Errorf("doctor: %s: %s stays, not %s: %s", s.Setting, s.Now, s.Then, s.Err))
		}
	}

	return errors.Join(list...)
}
