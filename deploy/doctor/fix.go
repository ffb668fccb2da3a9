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
	"lockstep/sched/journal"
)

// Plan lists the changes to a running host, and the checks that need another remedy.
type Plan struct {
	Host      Host        `json:"host"`
	Changes   []Change    `json:"changes"`        // changes in the order in which Apply makes them
	Left      []Check     `json:"left,omitempty"` // checks that are not OK and that Changes does not correct
	Preserved []string    `json:"kept,omitempty"` // names of the checks that -keep excludes
	Boot      CommandLine `json:"boot"`

	host   *host
	checks map[string]Check // checks by name
}

// NewPlan lists the changes that correct the checks of a host, except the checks in keep. It changes
// nothing. The error is Refused if the host does not have the CPU.
func NewPlan(root string, req Requirements, keep []string) (*Plan, error) {
	h, err := openHost(root, req)
	if err != nil {
		return nil, err
	}
	return h.plan(keep)
}

func (h *host) plan(keep []string) (*Plan, error) {
	if len(h.Online) > 0 && !slices.Contains(h.Online, h.CPU) {
		return nil, Refused{Text: fmt.Sprintf("no CPU %d among %s: choose one of these with -cpu N",
			h.CPU, hostinfo.FormatCPUs(h.Online))}
	}

	d := h.diagnose()
	p := &Plan{Host: d.Host, Changes: []Change{}, Preserved: keep, Boot: h.commandLine(), host: h, checks: map[string]Check{}}
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
			return nil, fmt.Errorf("doctor: unknown check %q; use %s", name, strings.Join(d.names(), ", "))
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

// Refused is the error of a host that must not be changed.
type Refused struct {
	Text string
	Err  error  // one of the errors below; nil for another reason
	By   Holder // process that prevents the change, for ErrBenchRuns and ErrSettingsTaken
}

func (r Refused) Error() string { return "doctor: " + r.Text }

// Unwrap returns Err.
func (r Refused) Unwrap() error { return r.Err }

// The reasons of Refused, for errors.Is.
var (
	ErrBenchRuns     = errors.New("a bench runs on this host")
	ErrSettingsTaken = errors.New("another process changes the settings of this host")
	ErrUndoFile      = errors.New("the undo file cannot be used")
)

// Holder is a process that prevents changes to the host.
type Holder struct {
	Owner   string // bench or command; "" without such a process
	Process int    // process number; 0 without such a process
}

func (h Holder) String() string { return fmt.Sprintf("%s, process %d", h.Owner, h.Process) }

// runningBench returns the bench that runs on the host; Process is 0 if none runs. Changes could
// delay its ticks. A bench that has reserved its CPU is about to tick.
func (h *host) runningBench() Holder {
	if list := h.ProcessesNamed(sched.TargetName); len(list) > 0 {
		return Holder{sched.TargetName, list[0]}
	}
	by := h.findReservation("cpu/")
	return Holder{by.Owner, by.Process}
}

// checkRoot refuses changes of the running host by other users than root.
func (h *host) checkRoot() error {
	if h.Live() && os.Geteuid() != 0 {
		return Refused{Text: "only root may change the settings of the host: sudo " + hostinfo.Executable() + " doctor ..."}
	}
	return nil
}

// lockSettings locks the settings of the host for this process until unlock is called. A run that
// starts meanwhile waits.
func (h *host) lockSettings() (unlock func(), err error) {
	fd, err := sched.Reserve(h.reservation)
	if errors.Is(err, unix.EADDRINUSE) {
		taken, who := h.findReservation(h.reservation), ""
		by := Holder{taken.Owner, taken.Process}
		if by.Process != 0 {
			who = fmt.Sprintf(" (lockstep %s)", by)
		}
		if uid := sched.ReservationUser(h.reservation); uid > 0 { // not a doctor: only root changes settings
			who = fmt.Sprintf(" of user %d (sudo ss -xp | grep %s%s lists it)", uid, sched.ReservationRoot, h.reservation)
		}
		return nil, Refused{
			Text: fmt.Sprintf("another process%s holds the settings of this host: try again after it has ended", who),
			Err:  ErrSettingsTaken, By: by,
		}
	}

	if err != nil {
		return nil, fmt.Errorf("doctor: %w", err)
	}
	by := sched.Reservation{What: h.reservation, Role: "supervisor", Process: os.Getpid(), Owner: "doctor"}
	name, err := sched.Reserve(by.String())
	return func() {
		if unix.Close(fd); err == nil { // the second reservation only names this process
			unix.Close(name)
		}
	}, nil
}

// checkChangeable refuses changes by other users than root and while a bench runs. The caller has
// locked the settings. A run reserves its CPU before it checks this lock, so at least one of the
// two detects the other.
func (h *host) checkChangeable() error {
	if err := h.checkRoot(); err != nil {
		return err
	}
	if bench := h.runningBench(); bench.Process != 0 {
		return Refused{
			Text: fmt.Sprintf("a bench runs on this host (%s); changes would delay its ticks: lockstep ps, lockstep stop NAME", bench),
			Err:  ErrBenchRuns, By: bench,
		}
	}

	return nil
}

// findReservation returns the first reservation whose name starts with prefix.
func (h *host) findReservation(prefix string) sched.Reservation {
	for _, r := range sched.Reservations(string(h.Files)) {
		if strings.HasPrefix(r.What, prefix) {
			return r
		}
	}

	return sched.Reservation{}
}

// Step is the result of changing or restoring a setting.
type Step struct {
	Setting
	Now  string `json:"now"`            // value before
	Then string `json:"then"`           // intended value
	Done bool   `json:"done"`           // true if the setting was written and has the intended value
	Left string `json:"left,omitempty"` // reason why the setting was not written; "" if it was written or failed
	Err  string `json:"error,omitempty"`

	cause error // cause of Left or Err, for errors.Is
}

// skip sets the reason why the setting is not written.
func (s *Step) skip(cause error, text string) { s.Left, s.cause = text, cause }

// fail sets the error of writing the setting.
func (s *Step) fail(err error) { s.Err, s.cause = err.Error(), err }

// Reasons to skip a setting, in addition to errGone and errLinkUp.
var (
	errChanged  = errors.New("another process has changed the setting")
	errRestored = errors.New("the setting has its old value already")
)

// Apply makes the changes one after the other, reads each setting back, and returns the result of
// each. It continues after a failed change. The file state is complete before the first change, so
// Undo can restore all settings even if this process is killed. A plan without changes writes nothing.
func (p *Plan) Apply(state string) (steps []Step, err error) {
	if len(p.Changes) == 0 {
		return nil, nil
	}
	h := p.host
	done, err := h.lockSettings()
	if err != nil {
		return nil, err
	}
	defer done()
	if err := h.checkChangeable(); err != nil {
		return nil, err
	}
	u, err := h.readUndo(state)
	if err != nil {
		return nil, err
	}
	var changes []Change
	for _, c := range p.Changes {
		if now, err := h.current(c.Setting); err == nil && !c.Equal(now, c.Now) {
			s := Step{Setting: c.Setting, Now: now, Then: c.Then}
			s.skip(errChanged, fmt.Sprintf("another process has set it to %s since the plan was shown", now))
			steps = append(steps, s)
			continue
		}

		changes = append(changes, c)
		u.RecordPlanned(journal.Entry{Setting: c.Setting, Before: c.Now, After: c.Then})
	}

	if err := saveUndo(u, state); err != nil {
		return nil, err
	}
	for _, c := range changes {
		s := Step{Setting: c.Setting, Now: c.Now, Then: c.Then}
		if err := h.change(c.Setting, c.Then); err != nil {
			s.fail(err)
		} else {
			s.Done = true
		}

		if now, err := h.current(c.Setting); err == nil {
			u.RecordResult(c.Setting, now)
		}
		steps = append(steps, s)
	}

	return steps, saveUndo(u, state)
}

// Failed returns the failed steps as one error with a line for each; nil if none failed.
func Failed(steps []Step) error {
	var list []error
	for _, s := range steps {
		if s.Err != "" {
			list = append(list, fmt.Errorf("doctor: %s: cannot change %s to %s: %s", s.Setting, s.Now, s.Then, s.Err))
		}
	}

	return errors.Join(list...)
}
