package control

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"lockstep/rt"
	"lockstep/rt/host"
	"lockstep/rt/report"
	"lockstep/sched"
)

// Listed is a run of this host as `lockstep ps` lists it. The JSON keys are a contract:
// add to them, never rename one.
type Listed struct {
	Bench      string    `json:"bench"`
	File       string    `json:"file,omitempty"` // as it was named to lockstep run
	Supervisor int       `json:"supervisor"`     // process id; 0: there is none
	Target     int       `json:"target"`         // likewise; 0: it has not been started yet
	Since      time.Time `json:"since,omitzero"` // when it began to tick
	CPU        int       `json:"cpu"`            // of the loop; -1: not known
	Shared     bool      `json:"cpu_shared,omitempty"`
	Buses      []string  `json:"buses"` // "drive=can0"; of another user's run "can0"
	State      string    `json:"state"` // "running", or what is wrong
	Ticks      uint64    `json:"ticks"`
	Missed     uint64    `json:"missed"`
	LateP99    int64     `json:"late_p99_ns"`
	Hint       string    `json:"hint,omitempty"` // what to do about it

	blind bool // nothing is known but who it is
}

// listed returns the row of a run whose target is a process.
func listed(r report.View, target int) *Listed {
	p := r.Page
	v := &Listed{
		Bench: r.Handover.Bench.Name, File: r.Handover.Bench.File, Supervisor: SupervisorOf(p), Target: target, CPU: r.Handover.Thread.CPU,
		State: r.State(), Ticks: p.Ticks.Load(), Missed: p.Missed.Load(), LateP99: p.Late.Quantile(0.99), Buses: []string{},
	}
	v.Shared = !slices.Contains(r.Handover.Held, host.CPUPrefix+strconv.Itoa(v.CPU))
	if start := int64(p.StartNs.Load()); start != 0 {
		v.Since = time.Now().Add(time.Duration(start - sched.Now())).Round(time.Millisecond)
	}
	for _, b := range r.Handover.Bench.Buses {
		v.Buses = append(v.Buses, b.Name.Text+"="+b.Interface.Text)
	}
	return v
}

// List lists the runs of this host, those without a supervisor and, as far as this user
// may know of them, those of others. The supervisors tell of their own runs, the pages of
// what has lost its supervisor, and what a run holds that it is there.
func List() []Listed {
	list := []Listed{}
	for _, s := range sockets(controlDirs()...) {
		if s.err != nil {
			continue // what it holds tells that it is there
		}
		_ = s.conn.SetDeadline(time.Now().Add(answering))
		a, err := s.ask("status")
		s.conn.Close()
		switch {
		case err == nil && a.Run != nil:
			list = append(list, *a.Run)
		default:
			list = append(list, Listed{Bench: s.name, Supervisor: s.pid, CPU: -1, State: "gives no answer", blind: true})
		}
	}
	known := func(pid int) bool {
		return pid != 0 && slices.ContainsFunc(list, func(v Listed) bool { return pid == v.Supervisor || pid == v.Target })
	}
	for _, pid := range targets() {
		h, page, err := OpenTarget(pid)
		if err != nil || known(pid) || rt.State(page.State.Load()) == rt.Ended {
			continue
		}
		v := listed(report.View{Handover: h, Page: page}, pid)
		if !host.Alive(page.Supervisor.Load()) {
			v.Supervisor, v.Hint = 0, fmt.Sprintf("no supervisor: lockstep attach %d", pid)
		}
		list = append(list, *v)
	}
	list = append(list, foreign(known)...)
	slices.SortStableFunc(list, func(a, b Listed) int {
		return cmp.Or(cmp.Compare(a.Bench, b.Bench), a.Since.Compare(b.Since), cmp.Compare(a.Target, b.Target))
	})
	return list
}

// foreign are the runs of which nothing is known but what they hold.
func foreign(known func(pid int) bool) (list []Listed) {
	for _, h := range host.Holders() {
		if known(h.Supervisor) || known(h.Target) || !strings.HasPrefix(h.What, host.CPUPrefix) && !strings.HasPrefix(h.What, host.BusPrefix) {
			continue
		}
		i := slices.IndexFunc(list, func(v Listed) bool { return v.Supervisor == h.Supervisor && v.Target == h.Target })
		if i < 0 {
			i = len(list)
			v := Listed{Bench: h.Bench, Supervisor: h.Supervisor, Target: h.Target, CPU: -1, Buses: []string{}, State: "preparing", blind: true}
			if h.Supervisor == 0 { // its page would have told
				v.State = "ending"
			}
			if !readable(h.PID()) {
				v.State, v.Hint = "not known", "sudo lockstep ps says more"
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

// readable says that this user may look into a process: it is not another user's, and has no
// rights by its file (setcap) that he has not.
func readable(pid int) bool {
	_, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	return !errors.Is(err, fs.ErrPermission)
}

// targets are the processes of this host that tick, as far as they may be seen.
func targets() (list []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/comm")
	for _, file := range files {
		if name, _ := os.ReadFile(file); strings.TrimSpace(string(name)) == sched.TargetName {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			list = append(list, pid)
		}
	}
	return list
}

// Table writes a list of runs for people.
func Table(to io.Writer, list []Listed) error {
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
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", v.Bench, cmp.Or(v.File, "-"), orDash(v.Supervisor), orDash(v.Target),
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

func (v *Listed) since() string {
	switch {
	case v.Since.IsZero():
		return "-"
	case time.Since(v.Since) < 24*time.Hour:
		return v.Since.Format(time.TimeOnly)
	}
	return v.Since.Format("2006-01-02 15:04")
}

func (v *Listed) cpu() string {
	switch {
	case v.CPU < 0:
		return "-"
	case v.Shared:
		return strconv.Itoa(v.CPU) + ", shared"
	}
	return strconv.Itoa(v.CPU)
}

func (v *Listed) counts() string {
	if v.blind {
		return "-\t-\t-"
	}
	return fmt.Sprintf("%d\t%d\t%.0fus", v.Ticks, v.Missed, float64(v.LateP99)/1e3)
}
