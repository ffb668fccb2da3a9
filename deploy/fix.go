package deploy

import (
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"lockstep/sched"
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
	file   string           // of the boot loader
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
	if len(h.online) > 0 && !slices.Contains(h.online, h.cpu) {
		return nil, Refused{fmt.Sprintf("no CPU %d among %s, for which nothing is changed: choose one of these with -cpu N", h.cpu, formatCPUs(h.online))}
	}
	d := h.diagnosis()
	p := &Plan{Host: d.Host, Changes: []Change{}, Kept: keep, Boot: h.commandLine(), host: h, checks: map[string]Check{}}
	_, p.file = h.loader()
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
			return nil, fmt.Errorf("deploy: no check %q; there are %s", name, strings.Join(d.names(), ", "))
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
type Refused struct{ Text string }

func (r Refused) Error() string { return "deploy: " + r.Text }

// targetName is what the process of a run that ticks is called, and its threads.
const targetName = "lockstep-target"

// busy names the bench that runs on the host; empty: there is none. What holds up a CPU for
// a moment or lowers the timer thread must not come in between its ticks. One that has
// claimed its CPU is about to tick.
func (h *host) busy() string {
	for _, pid := range h.names("proc") {
		if pid[0] >= '1' && pid[0] <= '9' && h.text(path.Join("proc", pid, "comm")) == targetName {
			return fmt.Sprintf("%s, process %s", targetName, pid)
		}
	}
	if by := h.claimed("cpu/"); by.Process != 0 {
		return fmt.Sprintf("%s, process %d", by.Owner, by.Process)
	}
	return ""
}

// rights refuses whom the kernel would refuse, setting by setting.
func (h *host) rights() error {
	if h.live() && os.Geteuid() != 0 {
		return Refused{"the settings of the host are root's to change: sudo " + executable() + " doctor ..."}
	}
	return nil
}

// alone makes the settings of the host this process's to change, until done is called: a run
// that starts meanwhile waits.
func (h *host) alone() (done func(), err error) {
	fd, err := sched.Claim(h.claim)
	if errors.Is(err, unix.EADDRINUSE) {
		who := ""
		if by := h.claimed(h.claim); by.Process != 0 {
			who = fmt.Sprintf(" (lockstep %s, process %d)", by.Owner, by.Process)
		}
		return nil, Refused{fmt.Sprintf("somebody else%s changes the settings of this host just now: try again when that has ended", who)}
	}
	if err != nil {
		return nil, fmt.Errorf("deploy: %w", err)
	}
	tag, err := sched.Claim(sched.Claimed{What: h.claim, Role: "supervisor", Process: os.Getpid(), Owner: "doctor"}.String())
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
	if bench := h.busy(); bench != "" {
		return Refused{fmt.Sprintf("a bench runs on this host (%s), and its ticks would be late: lockstep ps, lockstep stop NAME", bench)}
	}
	return nil
}

// claimed is the first claim that begins so and says whose it is.
func (h *host) claimed(begin string) sched.Claimed {
	for _, c := range sched.Claims(h.root) {
		if strings.HasPrefix(c.What, begin) {
			return c
		}
	}
	return sched.Claimed{}
}

// Step is what became of a setting.
type Step struct {
	Setting
	Now  string `json:"now"`            // before
	Then string `json:"then"`           // after, as intended
	Done bool   `json:"done"`           // it was written and reads as intended
	Left string `json:"left,omitempty"` // why it was not; empty: it failed or there was nothing to do
	Err  string `json:"error,omitempty"`
}

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
			steps = append(steps, Step{Setting: c.Setting, Now: now, Then: c.Then, Left: fmt.Sprintf("somebody has made it %s since it was shown", now)})
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
			s.Err = err.Error()
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
			list = append(list, fmt.Errorf("deploy: %s: %s stays, not %s: %s", s.Setting, s.Now, s.Then, s.Err))
		}
	}
	return errors.Join(list...)
}
