package control

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"lockstep/rt"
	"lockstep/rt/bench"
	"lockstep/rt/host"
	"lockstep/rt/report"
	"lockstep/rt/target"
	"lockstep/sched"
	"lockstep/sched/hostinfo"
)

// ListedRun is a run of this host in the output of `lockstep ps`. The JSON keys are a contract: add
// to them, never rename one.
type ListedRun struct {
	Bench      string    `json:"bench"`
	File       string    `json:"file,omitempty"` // as given to lockstep run
	Supervisor int       `json:"supervisor"`     // process id; 0: there is none
	Target     int       `json:"target"`         // process id; 0: not started yet
	Since      time.Time `json:"since,omitzero"` // first tick
	CPU        int       `json:"cpu"`            // CPU of the loop; -1: not known
	Shared     bool      `json:"cpu_shared,omitempty"`
	Buses      []string  `json:"buses"` // "drive=can0"; of another user's run "can0"
	State      string    `json:"state"` // "running", or the fault
	Ticks      uint64    `json:"ticks"`
	Missed     uint64    `json:"missed"`
	LateP99    int64     `json:"late_p99_ns"`
	Hint       string    `json:"hint,omitempty"` // remedy

	unknown bool // only its processes are known
}

// newListedRun returns the row of a run; target is the process id of its target.
func newListedRun(r report.View, target int) *ListedRun {
	p := r.Status
	v := &ListedRun{
		Bench: r.Handover.Bench.Name, File: r.Handover.Bench.File, Supervisor: SupervisorOf(p), Target: target, CPU: r.Handover.Thread.CPU,
		State: r.State(), Ticks: p.Ticks.Load(), Missed: p.Missed.Load(), LateP99: p.Late.Quantile(0.99), Buses: []string{},
	}
	v.Shared = !slices.Contains(r.Handover.Reservations, host.CPUPrefix+strconv.Itoa(v.CPU))
	if start := int64(p.StartNs.Load()); start != 0 {
		v.Since = time.Now().Add(time.Duration(start - sched.Now())).Round(time.Millisecond)
	}
	for _, b := range r.Handover.Bench.Buses {
		v.Buses = append(v.Buses, b.Name.Text+"="+b.Interface.Text)
	}
	return v
}

// List lists the runs of this host: this user's, those without a supervisor and, as far as this
// user may see them, those of other users. Supervisors report their own runs; a run without a
// supervisor is read from its status block; other runs are known by their reservations.
func List() []ListedRun {
	list := []ListedRun{}
	for _, s := range sockets(controlDirs()...) {
		if s.err != nil {
			continue // its reservations show the run
		}
		a, err := s.ask(writeTimeout, "status")
		s.conn.Close()
		if err != nil || a.Run == nil {
			a = &Answer{Run: &ListedRun{Bench: s.name, Supervisor: s.pid, CPU: -1, State: noAnswer, unknown: true}}
		}
		list = append(list, *a.Run)
	}

	known := func(pid int) bool {
		return pid != 0 && slices.ContainsFunc(list, func(v ListedRun) bool { return pid == v.Supervisor || pid == v.Target })
	}
	for _, t := range findTargets() {
		if t.err != nil || known(t.pid) {
			continue
		}
		v := newListedRun(t.View, t.pid)
		if t.isOrphan() {
			v.Supervisor, v.Hint = 0, fmt.Sprintf("no supervisor: lockstep attach %d", t.pid)
		}
		list = append(list, *v)
	}

	list = append(list, foreignRuns(known)...)
	slices.SortStableFunc(list, func(a, b ListedRun) int {
		return cmp.Or(cmp.Compare(a.Bench, b.Bench), a.Since.Compare(b.Since), cmp.Compare(a.Target, b.Target))
	})
	return list
}

// foreignRuns returns the runs of which only the reservations are known.
func foreignRuns(known func(pid int) bool) (list []ListedRun) {
	for _, h := range host.Holders() {
		if known(h.Supervisor) || known(h.Target) || !strings.HasPrefix(h.What, host.CPUPrefix) && !strings.HasPrefix(h.What, host.BusPrefix) {
			continue
		}
		i := slices.IndexFunc(list, func(v ListedRun) bool { return v.Supervisor == h.Supervisor && v.Target == h.Target })
		if i < 0 {
			i = len(list)
			v := ListedRun{Bench: h.Bench, Supervisor: h.Supervisor, Target: h.Target, CPU: -1, Buses: []string{},
				State: "preparing", unknown: true}
			if h.Supervisor == 0 { // else its status block would be readable
				v.State = "ending"
			}
			if !readable(h.PID()) {
				v.State, v.Hint = "not known", "run sudo lockstep ps for details"
			}
			list = append(list, v)
		}

		if cpu, ok := strings.CutPrefix(h.What, host.CPUPrefix); ok {
			list[i].CPU, _ = strconv.Atoi(cpu)
		} else {
			list[i].Buses = append(list[i].Buses, strings.TrimPrefix(h.What, host.BusPrefix))
		}
	}

	return list
}

// readable reports whether this user may inspect a process: it is not another user's and has no
// file capabilities (setcap) that this user lacks.
func readable(pid int) bool {
	_, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	return !errors.Is(err, fs.ErrPermission)
}

// Table writes a list of runs as a table.
func Table(to io.Writer, list []ListedRun) error {
	if len(list) == 0 {
		_, err := fmt.Fprintln(to, "no bench runs on this host")
		return err
	}

	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "BENCH\tFILE\tSUPERVISOR\tTARGET\tSINCE\tCPU\tBUSES\tTICKS\tMISSED\tP99\tSTATE")
	for i := range list {
		v := &list[i]
		state := v.State
		if v.Hint != "" {
			state += "; " + v.Hint
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n",
			v.Bench, cmp.Or(v.File, "-"), orDash(v.Supervisor), orDash(v.Target),
			v.since(), v.cpu(), cmp.Or(strings.Join(v.Buses, ","), "-"), v.counts(), state)
	}

	_ = w.Flush() // to memory
	_, err := io.WriteString(to, host.Printable(text.String()))
	return err
}

func orDash(pid int) string {
	if pid == 0 {
		return "-"
	}
	return strconv.Itoa(pid)
}

func (v *ListedRun) since() string {
	switch {
	case v.Since.IsZero():
		return "-"
	case time.Since(v.Since) < 24*time.Hour:
		return v.Since.Format(time.TimeOnly)
	}

	return v.Since.Format("2006-01-02 15:04")
}

func (v *ListedRun) cpu() string {
	switch {
	case v.CPU < 0:
		return "-"
	case v.Shared:
		return strconv.Itoa(v.CPU) + ", shared"
	}

	return strconv.Itoa(v.CPU)
}

func (v *ListedRun) counts() string {
	if v.unknown {
		return "-\t-\t-"
	}
	return fmt.Sprintf("%d\t%d\t%.0fus", v.Ticks, v.Missed, float64(v.LateP99)/1e3)
}

// targetProcess is a target process on this host.
type targetProcess struct {
	report.View
	pid   int
	since uint32 // start time; 0: not known
	err   error  // why its status block cannot be read
}

// findTargets returns the target processes of this host that still run, as far as they are visible.
func findTargets() (list []targetProcess) {
	for _, pid := range hostinfo.Files("/").ProcessesNamed(sched.TargetName) {
		t := targetProcess{pid: pid, since: host.StartTime("/", pid)}
		if t.View, t.err = OpenTarget(pid); t.err == nil && rt.State(t.Status.State.Load()) == rt.Ended {
			continue
		}
		list = append(list, t)
	}

	return list
}

// isOrphan reports whether the target has no supervisor.
func (t *targetProcess) isOrphan() bool {
	return t.err == nil && !host.Alive(t.Status.Supervisor.Load())
}

// FindOrphan returns the target without a supervisor that which names, by its bench, its bench's file or
// its process id; "" if there is only one.
func FindOrphan(which string) (int, error) {
	which, err := benchName(which)
	if err != nil {
		return 0, err
	}
	found, names, supervised := 0, []string{}, []string{}
	for _, t := range findTargets() {
		pid := strconv.Itoa(t.pid)
		switch {
		case t.err != nil && which == pid:
			return 0, host.Exitf(3, "attach: process %s: %w", pid, t.err)
		case t.err != nil || which != "" && which != pid && which != t.Handover.Bench.Name:
		case t.isOrphan():
			found = t.pid
			names = append(names, fmt.Sprintf("%s (%s)", t.Handover.Bench.Name, pid))
		default:
			supervised = append(supervised, fmt.Sprintf("%s, process %s, has a supervisor, process %d",
				t.Handover.Bench.Name, pid, SupervisorOf(t.Status)))
		}
	}

	switch {
	case len(names) == 1:
		return found, nil
	case len(names) > 1:
		return 0, fmt.Errorf("attach: %d targets match: %s: name one by process id", len(names), strings.Join(names, ", "))
	case len(supervised) > 0:
		return 0, host.Exitf(3, "attach: %s", strings.Join(supervised, "; "))
	}

	return 0, &host.Exit{Code: 3, Err: errors.New("attach: there is no target without a supervisor")}
}

// SupervisorOf returns the process id of the supervisor; 0: there is none.
func SupervisorOf(p *rt.StatusBlock) int {
	pid, _ := rt.SplitIdentity(p.Supervisor.Load())
	return pid
}

// OpenTarget opens the hand-over and the status block of a target.
func OpenTarget(pid int) (v report.View, err error) {
	open := func(fd, mode int) (*os.File, error) {
		f, err := os.OpenFile(fmt.Sprintf("/proc/%d/fd/%d", pid, fd), mode, 0)
		if errors.Is(err, fs.ErrPermission) {
			err = fmt.Errorf("%w: use sudo", err)
		}
		return f, err
	}

	f, err := open(target.HandoverFD, os.O_RDONLY)
	if err != nil {
		return v, err
	}
	defer f.Close()
	if v.Handover, err = bench.LoadHandover(f); err != nil {
		return v, fmt.Errorf("%w: attach with the binary that started it", err)
	}
	g, err := open(target.StatusFD, os.O_RDWR)
	if err != nil {
		return v, err
	}
	defer g.Close()
	v.Status, err = rt.MapStatusBlock(g)
	return v, err
}
