package doctor

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"lockstep/deploy/hostinfo"
)

// findInterrupts returns the interrupts of devices, with the CPUs that take them.
func (h *host) findInterrupts() []interrupt {
	list := parseInterrupts(h.Text("proc/interrupts"))
	for k := range list {
		i := &list[k]
		if actions, err := h.ReadFile("sys/kernel/irq/" + i.number + "/actions"); err == nil {
			i.actions = strings.ReplaceAll(actions, ",", ", ")
		}
		dir := "proc/irq/" + i.number
		i.mask, _ = hostinfo.ParseCPUs(h.Text(dir + "/smp_affinity_list"))
		i.cpus, _ = hostinfo.ParseCPUs(h.Text(dir + "/effective_affinity_list"))
		if len(i.cpus) == 0 { // not built in: the kernel may use the whole mask
			i.cpus = i.mask
		}
	}
	return slices.DeleteFunc(list, func(i interrupt) bool { return i.actions == "" })
}

// managed reports whether the kernel spreads the queues of a device over the
// CPUs itself; then nobody may move the interrupt. Known to root alone.
func (h *host) managed(i interrupt) bool {
	return strings.Contains(h.Text("sys/kernel/debug/irq/irqs/"+i.number), "IRQD_AFFINITY_MANAGED")
}

// disturbs reports whether an interrupt is one of the loop's CPU. That of a
// device's queue for this CPU alone is not, as long as it never came: it answers
// requests that were made on this CPU, and the loop makes none.
func (h *host) disturbs(i interrupt) bool {
	own := slices.Equal(i.mask, []int{h.CPU}) && i.counts[h.CPU] == 0 && h.keepsManaged()
	return slices.Contains(i.cpus, h.CPU) && len(h.canIRQs[i.number]) == 0 && !own
}

// keepsManaged reports whether the kernel was started to keep managed interrupts
// off the CPU of the loop: isolcpus=managed_irq,domain,3.
func (h *host) keepsManaged() bool {
	for option := range strings.FieldsSeq(h.Text("proc/cmdline")) {
		value, is := strings.CutPrefix(option, "isolcpus=")
		flags, list := isolation(value)
		cpus, err := hostinfo.ParseCPUs(list)
		if is && slices.Contains(flags, "managed_irq") && err == nil && slices.Contains(cpus, h.CPU) {
			return true
		}
	}
	return false
}

func (h *host) checkInterrupts() Check {
	c := Check{
		Name: "interrupts", Level: Should,
		Wanted: fmt.Sprintf("none of a device on CPU %d, new ones included", h.CPU),
		Why:    "each one stops the loop for its handler, on PREEMPT_RT for the part that wakes the thread",
	}
	if len(h.interrupts) == 0 {
		return c.hidden("/proc/interrupts cannot be read or is empty")
	}
	var found, movable []string
	for _, i := range h.interrupts {
		if !h.disturbs(i) {
			continue
		}
		text := fmt.Sprintf("%s %s (%d so far", i.number, i.actions, i.counts[h.CPU])
		if h.managed(i) {
			text += ", managed"
		} else {
			movable = append(movable, i.number)
			c = h.to(c, Setting{Kind: CPUList, File: "/proc/irq/" + i.number + "/smp_affinity_list"}, h.rest())
		}
		found = append(found, text+")")
	}
	preset, err := hostinfo.ParseMask(h.Text("proc/irq/default_smp_affinity"))
	const presetFile = "/proc/irq/default_smp_affinity"
	fresh := err == nil && slices.Contains(preset, h.CPU)
	if fresh && len(h.Online) > 1 {
		c = h.to(c, Setting{Kind: CPUMask, File: presetFile}, hostinfo.FormatMask(h.housekeeping()))
	}
	switch {
	case len(found) == 0 && !fresh:
		return c.ok(fmt.Sprintf("none of %d", len(h.interrupts)))
	case len(h.Online) < 2:
		return c.wrong(few(found), "a host with two CPUs", Hardware)
	case len(found) == 0:
		return c.wrong("none, but new ones may be (default_smp_affinity)",
			fmt.Sprintf("echo %s | sudo tee %s", hostinfo.FormatMask(h.housekeeping()), presetFile), Now)
	case len(movable) == 0:
		return c.wrong(few(found), h.bootCommand(fmt.Sprintf("isolcpus=managed_irq,domain,%d", h.CPU)), Boot)
	}
	command := fmt.Sprintf("for i in %s; do echo %s | sudo tee /proc/irq/$i/smp_affinity_list; done", strings.Join(movable, " "), h.rest())
	if h.irqbalance && !slices.Contains(h.Isolated, h.CPU) {
		command = fmt.Sprintf("IRQBALANCE_BANNED_CPULIST=%d in /etc/default/irqbalance, sudo systemctl restart irqbalance; ", h.CPU) + command
	}
	return c.wrong(few(found), command, Now)
}

// findCANIRQs returns the interrupts of the CAN cards. Drivers name them after
// the interface, the device or themselves, so the device tells: the first one
// with an interrupt from the interface's own upwards (a USB adapter's is the one
// of its host controller).
func (h *host) findCANIRQs() map[string][]string {
	irqs := map[string][]string{}
	top, err := filepath.EvalSymlinks(h.Path("sys/devices"))
	if err != nil {
		return irqs
	}
	for _, name := range h.CANInterfaces() {
		dir, err := filepath.EvalSymlinks(h.Path("sys/class/net/" + name + "/device"))
		if err != nil {
			continue // virtual
		}
		called := []string{name}
		for found := false; !found && strings.HasPrefix(dir, top+"/"); dir = filepath.Dir(dir) {
			called = append(called, filepath.Base(dir))
			device, _ := filepath.Rel(h.Path(""), dir)
			for _, number := range append(h.ReadDir(path.Join(device, "msi_irqs")), h.Text(path.Join(device, "irq"))) {
				if number != "" && number != "0" {
					irqs[number], found = append(irqs[number], name), true
				}
			}
		}
		for _, i := range h.interrupts {
			for action := range strings.SplitSeq(i.actions, ", ") {
				if slices.Contains(called, action) {
					irqs[i.number] = append(irqs[i.number], name)
				}
			}
		}
	}
	return irqs
}

// ofCAN reports whether a thread handles the interrupt of a CAN card.
func (h *host) ofCAN(t thread) bool {
	number, _, _ := strings.Cut(strings.TrimPrefix(t.name, "irq/"), "-")
	return strings.HasPrefix(t.name, "irq/") && len(h.canIRQs[number]) > 0
}

func (h *host) checkCANInterrupts() Check {
	c := Check{
		Name: "can interrupts", Level: Should,
		Wanted: fmt.Sprintf("their threads on other CPUs than %d, or above FIFO %d", h.CPU, h.ask.Priority),
		Why:    "a frame waits in the card until its thread has run: below the loop on its CPU, it misses the tick it came for",
	}
	var served, without []string
	for _, names := range h.canIRQs {
		served = append(served, names...)
	}
	for _, name := range h.CANInterfaces() {
		if h.Exists("sys/class/net/"+name+"/device") && !slices.Contains(served, name) {
			without = append(without, name)
		}
	}
	switch {
	case len(without) > 0:
		return c.unsure("no interrupt found for "+strings.Join(without, ", "), "cat /proc/interrupts")
	case len(h.canIRQs) == 0:
		return c.ok("no CAN card")
	case !h.Realtime:
		return c.ok("they have no threads in this kernel")
	case !h.KernelThreads:
		return c.hidden("the kernel's threads cannot be seen from here")
	}
	var low, fine []string
	var command string
	for _, t := range h.threads {
		if !h.ofCAN(t) {
			continue
		}
		text := fmt.Sprintf("%s %s on CPU %s", t.name, t.scheduling(), hostinfo.FormatCPUs(t.cpus))
		if t.rank() > h.ask.Priority || !slices.Contains(t.cpus, h.CPU) {
			fine = append(fine, text)
			continue
		}
		low, command, c = append(low, text), h.chrt(t.name), h.raise(c, t)
	}
	switch {
	case len(low) > 0:
		return c.wrong(few(low), command, Now)
	case len(fine) == 0:
		return c.ok("they have no threads, or the interface is down")
	}
	return c.ok(few(fine))
}
