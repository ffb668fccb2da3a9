package doctor

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"lockstep/deploy/hostinfo"
	"lockstep/sched"
)

// findThreads returns the threads with a real-time policy and the kernel's own
// ones that are judged by name. A thread that ends meanwhile is left out.
func (h *host) findThreads() (list []thread) {
	for _, pid := range h.ReadDir("proc") {
		if _, err := strconv.ParseUint(pid, 10, 31); err != nil {
			continue
		}
		for _, tid := range h.ReadDir(path.Join("proc", pid, "task")) {
			dir := path.Join("proc", pid, "task", tid)
			t, err := parseStat(h.Text(path.Join(dir, "stat")))
			h.irqbalance = h.irqbalance || t.name == "irqbalance"
			if err != nil || t.rank() == 0 && !strings.HasPrefix(t.name, "ksoftirqd/") {
				continue
			}
			if t, err = h.thread(dir); err == nil {
				list = append(list, t)
			}
		}
	}
	return list
}

// thread reads the thread of a folder below the root: "proc/412/task/412".
func (h *host) thread(dir string) (thread, error) {
	t, err := parseStat(h.Text(path.Join(dir, "stat")))
	if err == nil {
		t.dir = dir
		t.cpus, err = hostinfo.ParseCPUs(hostinfo.ParseFields(h.Text(path.Join(dir, "status")))["Cpus_allowed_list"])
	}
	return t, err
}

// raise adds to a check what gives a thread FIFO of h.raised().
func (h *host) raise(c Check, t thread) Check {
	return h.to(c, t.of(Scheduling), policyText(schedFIFO, h.raised()))
}

// named returns the thread of a name, nil if there is none.
func (h *host) named(name string) *thread {
	i := slices.IndexFunc(h.threads, func(t thread) bool { return t.name == name })
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
func (h *host) checkKtimers() Check {
	name := fmt.Sprintf("ktimers/%d", h.CPU)
	c := Check{
		Name: "ktimers", Level: Must,
		Wanted: fmt.Sprintf("%s above FIFO %d, or nanosleep as the timer", name, h.ask.Priority),
		Why:    "on PREEMPT_RT a timerfd expires in this thread: every real-time thread above it holds the loop up",
	}
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
	case t.rank() > h.ask.Priority:
		return c.ok(t.scheduling())
	case nice: // -fix raises it all the same: for runs that may not
		return h.raise(c.ok(t.scheduling()+"; a run raises it, cap_sys_nice allows it"), *t)
	}
	return h.raise(c, *t).wrong(t.scheduling(), h.chrt(name), Now)
}

func (h *host) checkKsoftirqd() Check {
	name := fmt.Sprintf("ksoftirqd/%d", h.CPU)
	c := Check{
		Name: "ksoftirqd", Level: Should,
		Wanted: fmt.Sprintf("%s below FIFO %d", name, h.ask.Priority),
		Why:    "it does the work that the network puts off, as much as there is: above the loop a flood of frames holds it up",
	}
	t := h.named(name)
	switch {
	case t == nil && !h.KernelThreads:
		return c.hidden("the kernel's threads cannot be seen from here")
	case t == nil:
		return c.unsure("there is no "+name, "ps -eLo cls,rtprio,comm | grep ksoftirqd")
	case t.rank() >= h.ask.Priority:
		return h.to(c, t.of(Scheduling), policyText(0, 0)).wrong(t.scheduling(), fmt.Sprintf("sudo chrt -o -p 0 $(pgrep -x '%s')", name), Now)
	}
	return c.ok(t.scheduling())
}

// ours are threads that belong above a loop: the kernel's own for moving threads
// and for cooling, and those that other checks judge (sugov:3 goes with its governor).
func (h *host) ours(t thread) bool {
	kind, _, _ := strings.Cut(strings.Replace(t.name, ":", "/", 1), "/")
	return slices.Contains([]string{"migration", "watchdog", "idle_inject", "ktimers", "ksoftirqd", "sugov"}, kind) || h.ofCAN(t)
}

func (h *host) checkRivals() Check {
	c := Check{
		Name: "rivals", Level: Should,
		Wanted: fmt.Sprintf("no thread of FIFO %d or more may run on CPU %d", h.ask.Priority, h.CPU),
		Why:    "it holds the loop up for as long as it runs",
	}
	var found, pids []string
	help := "a higher priority of the bench (the kernel keeps that thread there), or none of rcutree.kthread_prio= to boot with"
	for _, t := range h.threads {
		if t.rank() >= h.ask.Priority && slices.Contains(t.cpus, h.CPU) && !h.ours(t) && t.pid != h.ask.Loop {
			found = append(found, fmt.Sprintf("%s %d %s", t.name, t.pid, t.scheduling()))
			switch {
			case t.name == sched.TargetName: // the loop of another bench stays where it is
				help = "another CPU for one of the two benches: lockstep ps"
			case !t.fixed:
				pids = append(pids, strconv.Itoa(t.pid))
				c = h.to(c, t.of(Affinity), h.rest())
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
	return c.wrong(few(found), fmt.Sprintf("for i in %s; do sudo taskset -p -c %s $i; done", strings.Join(pids, " "), h.rest()), Now)
}

// few joins a list and cuts it where a reader would stop.
func few(list []string) string {
	const most = 4
	if len(list) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(list[:most], ", "), len(list)-most)
	}
	return strings.Join(list, ", ")
}
