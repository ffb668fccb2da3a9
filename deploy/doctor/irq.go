package doctor

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"lockstep/sched/hostinfo"
	"lockstep/sched/journal"
)

// findInterrupts returns the interrupts of devices, with the CPUs that handle them.
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
		if len(i.cpus) == 0 { // kernel without this file: it may use the whole mask
			i.cpus = i.mask
		}
	}

	return slices.DeleteFunc(list, func(i interrupt) bool { return i.actions == "" })
}

// managed reports whether the kernel itself assigns the interrupt of a device's queue to a CPU; such
// an interrupt cannot be moved. Only root can read this.
func (h *host) managed(i interrupt) bool {
	return strings.Contains(h.Text("sys/kernel/debug/irq/irqs/"+i.number), "IRQD_AFFINITY_MANAGED")
}

// disturbs reports whether an interrupt may stop the loop. An unused queue interrupt bound to this
// CPU alone does not: the device raises it for requests from this CPU only, and the loop makes none.
func (h *host) disturbs(i interrupt) bool {
	unused := slices.Equal(i.mask, []int{h.CPU}) && i.counts[h.CPU] == 0 && h.isolatesManaged()
	return slices.Contains(i.cpus, h.CPU) && len(h.canIRQs[i.number]) == 0 && !unused
}

// isolatesManaged reports whether a kernel option keeps managed interrupts off the CPU of the loop:
// isolcpus=managed_irq,domain,3.
func (h *host) isolatesManaged() bool {
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

func (h *host) checkInterrupts(c Check) Check {
	if len(h.interrupts) == 0 {
		return c.unreadable("/proc/interrupts cannot be read or is empty")
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
			c = h.addChange(c, Setting{Kind: journal.CPUList, File: "/proc/irq/" + i.number + "/smp_affinity_list"}, h.housekeepingList())
		}

		found = append(found, text+")")
	}

	preset, err := hostinfo.ParseMask(h.Text("proc/irq/default_smp_affinity"))
	const presetFile = "/proc/irq/default_smp_affinity"
	allowsNew := err == nil && slices.Contains(preset, h.CPU)
	if allowsNew && len(h.Online) > 1 {
		c = h.addChange(c, Setting{Kind: journal.CPUMask, File: presetFile}, hostinfo.FormatMask(h.housekeeping()))
	}
	switch {
	case len(found) == 0 && !allowsNew:
		return c.ok(fmt.Sprintf("none of %d", len(h.interrupts)))
	case len(h.Online) < 2:
		return c.wrong(abbreviate(found), "use a host with two CPUs", Hardware)
	case len(found) == 0:
		return c.wrong("none, but default_smp_affinity allows new ones",
			fmt.Sprintf("echo %s | sudo tee %s", hostinfo.FormatMask(h.housekeeping()), presetFile), Now)
	case len(movable) == 0:
		return c.wrong(abbreviate(found), h.bootCommand(fmt.Sprintf("isolcpus=managed_irq,domain,%d", h.CPU)), Boot)
	}

	command := fmt.Sprintf("for i in %s; do echo %s | sudo tee /proc/irq/$i/smp_affinity_list; done",
		strings.Join(movable, " "), h.housekeepingList())
	if h.irqbalance && !slices.Contains(h.Isolated, h.CPU) {
		command = fmt.Sprintf("IRQBALANCE_BANNED_CPULIST=%d in /etc/default/irqbalance, "+
			"sudo systemctl restart irqbalance; %s", h.CPU, command)
	}

	return c.wrong(abbreviate(found), command, Now)
}

// findCANIRQs returns the interrupts of the CAN cards with their interfaces. The name of an interrupt
// depends on the driver, so the device tree decides: the search goes from the interface upwards to
// the first device with an interrupt. For a USB adapter this device is its host controller.
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
		names := []string{name}
		for found := false; !found && strings.HasPrefix(dir, top+"/"); dir = filepath.Dir(dir) {
			names = append(names, filepath.Base(dir))
			device, _ := filepath.Rel(h.Path(""), dir)
			for _, number := range append(h.ReadDir(path.Join(device, "msi_irqs")), h.Text(path.Join(device, "irq"))) {
				if number != "" && number != "0" {
					irqs[number], found = append(irqs[number], name), true
				}
			}
		}

		for _, i := range h.interrupts {
			for action := range strings.SplitSeq(i.actions, ", ") {
				if slices.Contains(names, action) {
					irqs[i.number] = append(irqs[i.number], name)
				}
			}
		}
	}

	return irqs
}

// handlesCAN reports whether a thread handles the interrupt of a CAN card.
func (h *host) handlesCAN(t hostinfo.Thread) bool {
	number, _, _ := strings.Cut(strings.TrimPrefix(t.Name, "irq/"), "-")
	return strings.HasPrefix(t.Name, "irq/") && len(h.canIRQs[number]) > 0
}

func (h *host) checkCANInterrupts(c Check) Check {
	var withIRQ, withoutIRQ []string
	for _, names := range h.canIRQs {
		withIRQ = append(withIRQ, names...)
	}
	for _, name := range h.CANInterfaces() {
		if h.Exists("sys/class/net/"+name+"/device") && !slices.Contains(withIRQ, name) {
			withoutIRQ = append(withoutIRQ, name)
		}
	}

	switch {
	case len(withoutIRQ) > 0:
		return c.unknown("no interrupt found for "+strings.Join(withoutIRQ, ", "), "cat /proc/interrupts")
	case len(h.canIRQs) == 0:
		return c.ok("no CAN card")
	case !h.Realtime:
		return c.ok("they have no threads in this kernel")
	case !h.KernelThreads:
		return c.unreadable("the kernel's threads cannot be seen from here")
	}

	var low, fine []string
	var command string
	for _, t := range h.threads {
		if !h.handlesCAN(t) {
			continue
		}
		text := fmt.Sprintf("%s %s on CPU %s", t.Name, t.Scheduling(), hostinfo.FormatCPUs(t.CPUs))
		if t.Rank() > h.req.Priority || !slices.Contains(t.CPUs, h.CPU) {
			fine = append(fine, text)
			continue
		}

		low, command, c = append(low, text), h.chrt(t.Name), h.raiseThread(c, t)
	}

	switch {
	case len(low) > 0:
		return c.wrong(abbreviate(low), command, Now)
	case len(fine) == 0:
		return c.ok("they have no threads, or the interface is down")
	}

	return c.ok(abbreviate(fine))
}

// interrupt is a line of /proc/interrupts.
type interrupt struct {
	number  string         // "27"
	counts  map[int]uint64 // by CPU, since the boot
	actions string         // names of its handlers: "can0", "eth0-rx-0, eth0-tx-0"

	mask []int // CPUs that may handle it
	cpus []int // CPUs that handle it
}

// parseInterrupts parses the text of /proc/interrupts. It leaves out interrupts private to each CPU,
// like that of its timer.
func parseInterrupts(text string) (list []interrupt) {
	var cpus []int
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		if cpus == nil { // the first line lists the online CPUs
			for _, name := range f {
				cpu, err := strconv.ParseUint(strings.TrimPrefix(name, "CPU"), 10, 31)
				if err != nil {
					return nil
				}
				cpus = append(cpus, int(cpu))
			}

			continue
		}

		number, colon := strings.CutSuffix(f[0], ":")
		if _, err := strconv.ParseUint(number, 10, 31); err != nil || !colon || len(f) < 1+len(cpus) {
			continue
		}
		signal := f[1+len(cpus):]
		if perCPU(signal) {
			continue
		}
		i := interrupt{number: number, counts: map[int]uint64{}}
		for k, cpu := range cpus {
			i.counts[cpu], _ = strconv.ParseUint(f[1+k], 10, 64)
		}
		i.actions = actionsOf(signal)
		list = append(list, i)
	}

	return list
}

// perCPU reports whether an interrupt is private to a CPU, by its chip and hardware number: the first
// 32 on ARM, all on RISC-V. On x86 private interrupts have letters instead of a number.
func perCPU(f []string) bool {
	if len(f) < 2 {
		return false
	}
	number, err := strconv.ParseUint(f[1], 10, 31)
	return strings.HasPrefix(f[0], "GIC") && err == nil && number < 32 || f[0] == "RISC-V" && f[1] == "INTC"
}

// actionsOf returns the handlers from the text after the counts, without the chip, its hardware
// number and the kind of signal: "PCI-MSI 524288-edge eth0", "GICv2 30 Level arch_timer".
func actionsOf(f []string) string {
	if len(f) > 0 {
		f = f[1:]
	}
	for len(f) > 0 && (f[0][0] >= '0' && f[0][0] <= '9' || f[0] == "Level" || f[0] == "Edge") {
		f = f[1:]
	}
	return strings.Join(f, " ")
}
