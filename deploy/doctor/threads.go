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
	"lockstep/sched/journal"
)

// findThreads returns the threads with a real-time policy and the kernel threads ksoftirqd. It also
// sets h.irqbalance. A thread that ends meanwhile is left out.
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

// raiseThread adds to a check the change that gives a thread FIFO h.raisedPriority().
func (h *host) raiseThread(c Check, t hostinfo.Thread) Check {
	return h.addChange(c, threadSetting(t, journal.Scheduling), hostinfo.FormatPolicy(unix.SCHED_FIFO, h.raisedPriority()))
}

// threadNamed returns the thread with a name; nil if there is none.
func (h *host) threadNamed(name string) *hostinfo.Thread {
	i := slices.IndexFunc(h.threads, func(t hostinfo.Thread) bool { return t.Name == name })
	if i < 0 {
		return nil
	}
	return &h.threads[i]
}

// raisedPriority returns the priority for threads that must precede the loop.
func (h *host) raisedPriority() int { return sched.TimerPriority(h.req.Priority) }

// chrt returns the command that raises a thread. It names the thread because the kernel's threads
// have other numbers after each boot.
func (h *host) chrt(name string) string {
	return fmt.Sprintf("sudo chrt -f -p %d $(pgrep -x '%s')", h.raisedPriority(), name)
}

// checkKtimers checks the thread in which a timerfd expires on PREEMPT_RT. Real-time threads above
// it on the same CPU delay the loop, whatever the loop's priority. With nanosleep the interrupt
// itself wakes a FIFO thread.
func (h *host) checkKtimers(c Check) Check {
	name := fmt.Sprintf("ktimers/%d", h.CPU)
	t := h.threadNamed(name)
	nice, _ := h.capable(capSysNice)
	switch {
	case h.req.Timer != "timerfd":
		return c.ok("not needed by " + h.req.Timer)
	case !h.Realtime:
		return c.ok("not in this kernel: the interrupt wakes the loop up")
	case !h.KernelThreads:
		return c.unreadable("the kernel's threads cannot be seen from here")
	case t == nil:
		// PREEMPT_RT without this thread (5.x, mainline 6.12): timers expire in ksoftirqd, which also
		// does the network's work and must not be raised above a loop.
		return c.wrong("no "+name+": timers expire in ksoftirqd", "choose nanosleep as the timer of the bench", Restart)
	case t.Rank() > h.req.Priority:
		return c.ok(t.Scheduling())
	case nice: // -fix still raises it, for runs without this right
		return h.raiseThread(c.ok(t.Scheduling()+"; a run raises it, cap_sys_nice allows it"), *t)
	}

	return h.raiseThread(c, *t).wrong(t.Scheduling(), h.chrt(name), Now)
}

// checkTimer judges the timer of the loop by the measured comparison.
func (h *host) checkTimer() Check {
	c := Check{
		Name: "timer", Level: Should, Wanted: "timerfd or nanosleep, whichever wakes the loop up earlier",
		Why: "the way from the timer interrupt to the loop differs, and with the period: only a measurement shows it",
	}
	take, found := h.req.Timers.Verdict(h.req.Timer)
	switch reasons := h.req.Timers.Reasons; {
	case len(reasons) > 0 && take == "":
		return c.unknown("not measured: "+abbreviate(reasons), hostinfo.Executable()+" latency -for 10m")
	case len(reasons) > 0:
		return c.unreadable(found + "; not measured as in a run: " + abbreviate(reasons))
	case take == "":
		return c.unknown(found, hostinfo.Executable()+" latency -for 10m")
	case take != h.req.Timer:
		return c.wrong(found, "timer: "+take+" in the bench file", Restart)
	}

	return c.ok(found)
}

func (h *host) checkKsoftirqd(c Check) Check {
	name := fmt.Sprintf("ksoftirqd/%d", h.CPU)
	t := h.threadNamed(name)
	switch {
	case t == nil && !h.KernelThreads:
		return c.unreadable("the kernel's threads cannot be seen from here")
	case t == nil:
		return c.unknown("there is no "+name, "ps -eLo cls,rtprio,comm | grep ksoftirqd")
	case t.Rank() >= h.req.Priority:
		return h.addChange(c, threadSetting(*t, journal.Scheduling), hostinfo.FormatPolicy(0, 0)).wrong(t.Scheduling(),
			fmt.Sprintf("sudo chrt -o -p 0 $(pgrep -x '%s')", name), Now)
	}

	return c.ok(t.Scheduling())
}

// exempt reports whether a thread may have a higher priority than a loop: kernel threads that move
// threads or cool the CPU, and threads of other checks (sugov:3 disappears with its governor).
func (h *host) exempt(t hostinfo.Thread) bool {
	kind, _, _ := strings.Cut(strings.Replace(t.Name, ":", "/", 1), "/")
	above := []string{"migration", "watchdog", "idle_inject", "ktimers", "ksoftirqd", "sugov"}
	return slices.Contains(above, kind) || h.handlesCAN(t)
}

func (h *host) checkRivals(c Check) Check {
	var found, pids []string
	help := "give the bench a higher priority (this thread cannot leave its CPU), " +
		"or boot without rcutree.kthread_prio="
	for _, t := range h.threads {
		if t.Rank() >= h.req.Priority && slices.Contains(t.CPUs, h.CPU) && !h.exempt(t) && t.PID != h.req.Loop {
			found = append(found, fmt.Sprintf("%s %d %s", t.Name, t.PID, t.Scheduling()))
			switch {
			case t.Name == sched.TargetName: // the loop of another bench must not move
				help = "choose another CPU for one of the two benches: lockstep ps"
			case !t.Fixed:
				pids = append(pids, strconv.Itoa(t.PID))
				c = h.addChange(c, threadSetting(t, journal.Affinity), h.housekeepingList())
			}
		}
	}

	switch {
	case len(found) == 0 && !h.KernelThreads:
		return c.unreadable("the threads outside of the container cannot be seen from here")
	case len(found) == 0:
		return c.ok("none")
	case len(pids) == 0:
		return c.wrong(abbreviate(found), help, Restart)
	}

	command := fmt.Sprintf("for i in %s; do sudo taskset -p -c %s $i; done", strings.Join(pids, " "), h.housekeepingList())
	return c.wrong(abbreviate(found), command, Now)
}

// abbreviate joins a list and replaces entries after the fourth by their number.
func abbreviate(list []string) string {
	const most = 4
	if len(list) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(list[:most], ", "), len(list)-most)
	}
	return strings.Join(list, ", ")
}
