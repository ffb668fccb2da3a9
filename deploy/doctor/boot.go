package doctor

import (
	"fmt"
	"slices"
	"strings"

	"lockstep/sched/hostinfo"
)

// CommandLine is the recommended command line of this host's kernel. The doctor never writes it.
type CommandLine struct {
	Wanted []string `json:"wanted"`          // recommended options
	Lacks  []string `json:"lacks,omitempty"` // recommended options that the running kernel lacks
	Drop   []string `json:"drop,omitempty"`  // options of the running kernel to remove
	Loader string   `json:"loader"`          // name of the boot loader

	loader loader
}

// loader describes a boot loader and its file with the kernel's command line.
type loader struct {
	name string
	mark string // file that identifies the loader, below the root
	file string // file with the command line
	add  string // instruction to add an option; %s is the option
	all  string // instruction to write all options: %[1]s are the options, %[2]s is the file
}

const grubAdd = "in /etc/default/grub, add to GRUB_CMDLINE_LINUX, then sudo update-grub: %s"

// loaders lists the boot loaders in the order of the search. Only Debian's grub reads a folder. The
// last entry stands for unknown loaders.
var loaders = []loader{
	{
		"Raspberry Pi", "boot/firmware/cmdline.txt", "/boot/firmware/cmdline.txt",
		"append to the line in /boot/firmware/cmdline.txt: %s",
		"# at the end of the one line in %[2]s, then: sudo reboot\n%[1]s",
	},
	{
		"Raspberry Pi", "boot/cmdline.txt", "/boot/cmdline.txt",
		"append to the line in /boot/cmdline.txt: %s",
		"# at the end of the one line in %[2]s, then: sudo reboot\n%[1]s",
	},
	{
		"u-boot", "boot/extlinux/extlinux.conf", "/boot/extlinux/extlinux.conf",
		"append to the line APPEND in /boot/extlinux/extlinux.conf: %s",
		"# at the end of the line APPEND in %[2]s, then: sudo reboot\n%[1]s\n" +
			"# or at the prompt of u-boot: setenv bootargs \"${bootargs} %[1]s\"; saveenv",
	},
	{
		"grub.d", "etc/default/grub", "/etc/default/grub.d/lockstep.cfg", grubAdd,
		"# %[2]s, then: sudo update-grub && sudo reboot\n" +
			"GRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX %[1]s\"",
	},
	{
		"grub", "etc/default/grub", "/etc/default/grub", grubAdd,
		"sudo grubby --update-kernel=ALL --args=\"%[1]s\"\n" +
			"# or in %[2]s: GRUB_CMDLINE_LINUX=\"... %[1]s\"\n" +
			"# then: sudo grub2-mkconfig -o /boot/grub2/grub.cfg && sudo reboot",
	},
	{
		"unknown", "", "", "add to the kernel's command line: %s",
		"# grub, in /etc/default/grub.d/lockstep.cfg, then sudo update-grub:\n" +
			"GRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX %[1]s\"\n" +
			"# u-boot, in the environment or at the end of APPEND in extlinux.conf:\n" +
			"setenv bootargs \"${bootargs} %[1]s\"; saveenv\n" +
			"# Raspberry Pi, at the end of the one line in cmdline.txt:\n%[1]s",
	},
}

// loader returns the boot loader of the host.
func (h *host) loader() loader {
	release := h.osRelease()
	debian := h.Exists("etc/debian_version") || h.Exists("etc/default/grub.d") ||
		strings.Contains(release["ID_LIKE"]+release["ID"], "debian") || release["ID"] == "ubuntu"
	i := slices.IndexFunc(loaders, func(l loader) bool {
		return l.mark == "" || h.Exists(l.mark) && (l.name != "grub.d" || debian)
	})
	return loaders[i]
}

// bootCommand returns the instruction to add options to the kernel's command line.
func (h *host) bootCommand(options string) string { return fmt.Sprintf(h.loader().add, options) }

// bootOptions returns the options that isolate the CPU of the loop and all CPUs that are isolated
// already; source: Documentation/admin-guide/kernel-parameters.
func (h *host) bootOptions() []string {
	cpus := append(slices.Clone(h.Isolated), h.CPU)
	slices.Sort(cpus)
	list := hostinfo.FormatCPUs(slices.Compact(cpus))
	kind := "managed_irq,domain,"
	if slices.Contains(h.Isolated, h.CPU) && !slices.Contains(h.CPUs("isolated"), h.CPU) {
		kind = "managed_irq," // a cpuset partition isolates the CPU from other work
	}
	return []string{"isolcpus=" + kind + list, "irqaffinity=" + h.housekeepingList(), "rcu_nocbs=" + list}
}

// commandLine compares the recommended command line with that of the running kernel.
func (h *host) commandLine() CommandLine {
	b := CommandLine{Wanted: h.bootOptions()}
	// nosmt disables all threads of a core except the first, which must be the loop's. Otherwise -fix
	// takes the sibling off line.
	if s := h.Siblings(); len(s) > 1 && s[0] == h.CPU {
		b.Wanted = append(b.Wanted, "nosmt")
	}
	// The timer ticks of the CPUs do not coincide, and no watchdogs run on the loop's CPU.
	b.Wanted = append(b.Wanted, "skew_tick=1", "nosoftlockup", "nmi_watchdog=0")
	b.loader = h.loader()
	b.Loader = b.loader.name
	given := strings.Fields(h.Text("proc/cmdline"))
	for _, option := range b.Wanted {
		name, value, _ := strings.Cut(option, "=")
		same := slices.IndexFunc(given, func(g string) bool { return g == name || strings.HasPrefix(g, name+"=") })
		switch {
		case same < 0:
			b.Lacks = append(b.Lacks, option)
		case !covers(name, strings.TrimPrefix(given[same], name+"="), value, h.CPU):
			b.Lacks = append(b.Lacks, option)
			b.Drop = append(b.Drop, given[same])
		}
	}

	return b
}

// covers reports whether the given value of an option has the effect of the wanted value for a CPU.
func covers(name, given, wanted string, cpu int) bool {
	flags, list := isolation(given)
	cpus, err := hostinfo.ParseCPUs(list)
	switch name {
	case "isolcpus":
		for flag := range strings.SplitSeq(wanted, ",") {
			if isFlag(flag) && !slices.Contains(flags, flag) {
				return false
			}
		}

		return err == nil && slices.Contains(cpus, cpu)
	case "rcu_nocbs":
		return given == "all" || err == nil && slices.Contains(cpus, cpu)
	case "irqaffinity":
		return err == nil && len(cpus) > 0 && !slices.Contains(cpus, cpu)
	}

	return given == wanted || wanted == ""
}

// isFlag reports whether a part of the value of isolcpus= is a flag, not a CPU.
func isFlag(part string) bool { return part != "" && (part[0] < '0' || part[0] > '9') }

// isolation splits the value of isolcpus= into flags and CPUs; the default flag is domain.
func isolation(value string) (flags []string, cpus string) {
	list := strings.Split(value, ",")
	flags = slices.DeleteFunc(slices.Clone(list), func(part string) bool { return !isFlag(part) })
	if len(flags) == 0 {
		flags = []string{"domain"}
	}
	return flags, strings.Join(slices.DeleteFunc(list, isFlag), ",")
}

// Lines returns the instructions to write the command line for the boot loader of this host; for an
// unknown loader, those of the usual loaders.
func (b CommandLine) Lines() []string {
	return strings.Split(fmt.Sprintf(b.loader.all, strings.Join(b.Wanted, " "), b.loader.file), "\n")
}
