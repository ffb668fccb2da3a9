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
	"sync"
	"text/tabwriter"
	"time"

	"lockstep/rt/host"
	"lockstep/rt/inspect"
	"lockstep/rt/report"
	"lockstep/sched"
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
	Page       string    `json:"page,omitempty"` // address of its live page, with its token

	unknown bool // only its processes are known
}

// newListedRun returns the row of a run; target is the process id of its target.
func newListedRun(r report.View, target int) *ListedRun {
	p := r.Status
	v := &ListedRun{
		Bench: r.Handover.Bench.Name, File: r.Handover.Bench.File, Supervisor: inspect.SupervisorOf(p), Target: target, CPU: r.Handover.Thread.CPU,
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
func List() []ListedRun { return listRuns(sockets(controlDirs()...)) }

// listRuns lists the runs of supervisors with these sockets, which it closes, and those without a socket.
func listRuns(sockets []socket) []ListedRun {
	list := askStatus(sockets)
	known := func(pid int) bool {
		return pid != 0 && slices.ContainsFunc(list, func(v ListedRun) bool { return pid == v.Supervisor || pid == v.Target })
	}
	holders := host.Holders()
	for _, t := range findTargets(holders, known) {
		if t.err == nil {
			list = addTarget(list, &t, holders)
		}
	}

	list = append(list, foreignRuns(holders, known)...)
	slices.SortStableFunc(list, func(a, b ListedRun) int {
		return cmp.Or(cmp.Compare(a.Bench, b.Bench), a.Since.Compare(b.Since), cmp.Compare(a.Target, b.Target))
	})
	return list
}

// addTarget adds the run of a target that no supervisor has named. A supervisor that gives no answer, as when its
// door is full, is listed already: then the run takes its row.
func addTarget(list []ListedRun, t *targetProcess, holders []host.Holder) []ListedRun {
	v := t.listedRun(holders)
	if t.isOrphan() {
		v.Supervisor, v.Hint = 0, fmt.Sprintf("no supervisor: lockstep attach %d", t.pid)
		return append(list, *v)
	}
	i := slices.IndexFunc(list, func(o ListedRun) bool {
		return o.unknown && o.Supervisor == v.Supervisor && host.OwnerOf(o.Supervisor) == t.uid
	})
	if i < 0 {
		return append(list, *v)
	}
	v.State += "; its supervisor " + list[i].State
	list[i] = *v
	return list
}

// askStatus asks all supervisors at once for their runs, and closes the sockets. One that does not
// answer delays the list by writeTimeout at most.
func askStatus(sockets []socket) []ListedRun {
	runs := make([]*ListedRun, len(sockets))
	var asked sync.WaitGroup
	for i, s := range sockets {
		if s.err == nil { // else its reservations show the run
			asked.Go(func() { runs[i] = s.listedRun() })
		}
	}

	asked.Wait()
	list := []ListedRun{}
	for _, v := range runs {
		if v != nil {
			list = append(list, *v)
		}
	}

	return list
}

// listedRun asks a supervisor for its run. The answer of another user cannot name processes that are
// not his.
func (s *socket) listedRun() *ListedRun {
	a := &Answer{}
	err := s.ask(writeTimeout, call{"GET", "/status", nil}, a)
	s.conn.Close()
	if err != nil || a.Run == nil {
		return &ListedRun{Bench: s.name, Supervisor: s.pid, CPU: -1, State: noAnswer, unknown: true}
	}
	if v := a.Run; s.uid != os.Getuid() {
		v.Supervisor, v.Hint = s.pid, ""
		if host.OwnerOf(v.Target) != s.uid {
			v.Target = 0
		}
	}

	return a.Run
}

// foreignRuns returns the runs of which only the reservations are known.
func foreignRuns(holders []host.Holder, known func(pid int) bool) (list []ListedRun) {
	for _, h := range holders {
		if h.PID() == 0 || known(h.Supervisor) || known(h.Target) || !isOfRun(h) {
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

		list[i].addReservation(h)
	}

	return list
}

// isOfRun reports whether a reservation is one that ps shows.
func isOfRun(h host.Holder) bool {
	return strings.HasPrefix(h.What, host.CPUPrefix) || strings.HasPrefix(h.What, host.BusPrefix)
}

// addReservation adds a reserved CPU or interface to the row.
func (v *ListedRun) addReservation(h host.Holder) {
	if cpu, ok := strings.CutPrefix(h.What, host.CPUPrefix); ok {
		v.CPU, _ = strconv.Atoi(cpu)
	} else {
		v.Buses = append(v.Buses, strings.TrimPrefix(h.What, host.BusPrefix))
	}
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
			host.PrintableLine(v.Bench), cmp.Or(host.PrintableLine(v.File), "-"), orDash(v.Supervisor), orDash(v.Target),
			v.since(), v.cpu(), cmp.Or(host.PrintableLine(strings.Join(v.Buses, ",")), "-"), v.counts(), host.PrintableLine(state))
	}

	_ = w.Flush() // to memory
	_, err := io.WriteString(to, text.String())
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
