package doctor

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"lockstep/sched"
	"lockstep/sched/hostinfo"
)

// findThreads returns the threads with a real-time policy and the kernel's own
// ones that are judged by name. A thread that ends meanwhile is left out.
func (h *host) findThreads() (list []hostinfo.Thread) {
	for _, pid := range h.ReadDir("proc") {
		if _, err := strconv.ParseUint(pid, 10, 31); err != nil {
			continue
		}
		for _, tid := range h.ReadDir(path.Join("proc", pid, "task")) {
			dir := path.Join("proc", pid, "task", tid)
			t, err := hostinfo.ParseStat(h.Text(path.Join(dir, "stat")))
			h.irqbalance = h.irqbalance || t.Name == "irqbalance"
			if err != nil || t.Rank() == 0 && !strings.HasPrefix(t.Name, "ksoftirqd/") {
				continue
			}
			if t, err = h.Thread(dir); err == nil {
				list = append(list, t)
			}
		}
	}

	return list
}

// raise adds to a check what gives a thread FIFO of h.raised().
func (h *host) raise(c Check, t hostinfo.Thread) Check {
	return h.to(c, of(t, Scheduling), hostinfo.FormatPolicy(unix.SCHED_FIFO, h.raised()))
}

// named returns the thread of a name, nil if there is none.
func (h *host) named(name string) *hostinfo.Thread {
	i := slices.IndexFunc(h.threads, func(t hostinfo.Thread) bool { return t.Name == name })
	if i < 0 {
		return nil
	}
	return &h.threads[i]
}

// raised is the priority for what must come before the loop.
func (h *host) raised() int { return min(h.ask.Priority+1, 99) }

// chrt is the command that raises a thread. The kernel numbers its threads anew
// with each boot: the name goes into the command.
func (h *host) chrt(name string) string {
	return fmt.Sprintf("sudo chrt -f -p %d $(pgrep -x '%s')", h.raised(), name)
}

// checkKtimers looks at the thread in which a timerfd expires on PREEMPT_RT:
// everything real-time above it on that CPU delays the loop, whatever the loop's
// own priority. A sleeping FIFO thread is woken by the interrupt itself.
func (h *host) checkKtimers(c Check) Check {
	name := fmt.Sprintf("ktimers/%d", h.CPU)
	t := h.named(name)
	nice, _ := h.capable(capSysNice)
	switch {
	case h.ask.Timer != "timerfd":
		return c.ok("not needed by " + h.ask.Timer)
	case !h.Realtime:
		return c.ok("not in this kernel: the interrupt wakes the loop up")
	case !h.KernelThreads:
		return c.hidden("the kernel's threads cannot be seen from here")
	case t == nil:
		// PREEMPT_RT without the thread (5.x, mainline 6.12): ksoftirqd does it,
		// with all the network's work, and is not to be raised above a loop.
		return c.wrong("no "+name+": timers expire in ksoftirqd", "choose nanosleep as the timer of the bench", Restart)
	case t.Rank() > h.ask.Priority:
		return c.ok(t.Scheduling())
	case nice: // -fix raises it all the same: for runs that may not
		return h.raise(c.ok(t.Scheduling()+"; a run raises it, cap_sys_nice allows it"), *t)
	}

	return h.raise(c, *t).wrong(t.Scheduling(), h.chrt(name), Now)
}

func (h *host) checkKsoftirqd(c Check) Check {
	name := fmt.Sprintf("ksoftirqd/%d", h.CPU)
	t := h.named(name)
	switch {
	case t == nil && !h.KernelThreads:
		return c.hidden("the kernel's threads cannot be seen from here")
	case t == nil:
		return c.unsure("there is no "+name, "ps -eLo cls,rtprio,comm | grep ksoftirqd")
	case t.Rank() >= h.ask.Priority:
		return h.to(c, of(*t, Scheduling), hostinfo.FormatPolicy(0, 0)).wrong(t.Scheduling(),
			fmt.Sprintf("sudo chrt -o -p 0 $(pgrep -x '%s')", name), Now)
	}

	return c.ok(t.Scheduling())
}

// ours are threads that belong above a loop: the kernel's own for moving threads
// and for cooling, and those that other checks judge (sugov:3 goes with its governor).
func (h *host) ours(t hostinfo.Thread) bool {
	kind, _, _ := strings.Cut(strings.Replace(t.Name, ":", "/", 1), "/")
	above := []string{"migration", "watchdog", "idle_inject", "ktimers", "ksoftirqd", "sugov"}
	return slices.Contains(above, kind) || h.ofCAN(t)
}

func (h *host) checkRivals(c Check) Check {
	var found, pids []string
	help := "a higher priority of the bench (the kernel keeps that thread there), " +
		"or none of rcutree.kthread_prio= to boot with"
	for _, t := range h.threads {
		if t.Rank() >= h.ask.Priority && slices.Contains(t.CPUs, h.CPU) && !h.ours(t) && t.PID != h.ask.Loop {
			found = append(found, fmt.Sprintf("%s %d %s", t.Name, t.PID, t.Scheduling()))
			switch {
			case t.Name == sched.TargetName: // the loop of another bench stays where it is
				help = "another CPU for one of the two benches: lockstep ps"
			case !t.Fixed:
				pids = append(pids, strconv.Itoa(t.PID))
				c = h.to(c, of(t, Affinity), h.rest())
			}
		}
	}

	switch {
	case len(found) == 0 && !h.KernelThreads:
		return c.hidden("the threads outside of the container cannot be seen from here")
	case len(found) == 0:
		return c.ok("none")
	case len(pids) == 0:
		return c.wrong(few(found), help, Restart)
	}

	command := fmt.Sprintf("for i in %s; do sudo taskset -p -c %s $i; done", strings.Join(pids, " "), h.rest())
	return c.wrong(few(found), command, Now)
}

// few joins a list and cuts it where a reader would stop.
func few(list []string) string {
	const most = 4
	if len(list) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(list[:most], ", "), len(list)-most)
	}
	return strings.Join(list, ", ")
}
