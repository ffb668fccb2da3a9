package doctor

import (
	"fmt"
	"slices"
	"strings"

	"lockstep/sched/hostinfo"
)

// CommandLine is what only another start of this kernel changes, for this host. Nothing
// of it is ever written here.
type CommandLine struct {
	Wanted []string `json:"wanted"`          // options of the kernel's command line
	Lacks  []string `json:"lacks,omitempty"` // those it was not started with
	Drop   []string `json:"drop,omitempty"`  // what it was started with in their place
	Loader string   `json:"loader"`          // name of one of loaders

	loader loader
}

// loader is what starts a kernel, and where its command line stands.
type loader struct {
	name string
	mark string // the file that tells a host has it, below the root
	file string // with the command line
	add  string // how one option is added; %s the option
	all  string // how the whole line is written: %[1]s the options, %[2]s the file
}

const grubAdd = "in /etc/default/grub, add to GRUB_CMDLINE_LINUX, then sudo update-grub: %s"

// loaders, in the order in which they are looked for. Debian's grub alone reads a folder. The last
// one stands for those that are not known.
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

// loader finds what starts the host.
func (h *host) loader() loader {
	release := h.osRelease()
	debian := h.Exists("etc/debian_version") || h.Exists("etc/default/grub.d") ||
		strings.Contains(release["ID_LIKE"]+release["ID"], "debian") || release["ID"] == "ubuntu"
	i := slices.IndexFunc(loaders, func(l loader) bool {
		return l.mark == "" || h.Exists(l.mark) && (l.name != "grub.d" || debian)
	})
	return loaders[i]
}

// bootCommand says where options go on the kernel's command line.
func (h *host) bootCommand(options string) string { return fmt.Sprintf(h.loader().add, options) }

// bootOptions are those that isolate the CPU of the loop, and those that are
// isolated already: Documentation/admin-guide/kernel-parameters.
func (h *host) bootOptions() []string {
	cpus := append(slices.Clone(h.Isolated), h.CPU)
	slices.Sort(cpus)
	list := hostinfo.FormatCPUs(slices.Compact(cpus))
	kind := "managed_irq,domain,"
	if slices.Contains(h.Isolated, h.CPU) && !slices.Contains(h.CPUs("isolated"), h.CPU) {
		kind = "managed_irq," // a partition of the control groups keeps the rest off
	}
	return []string{"isolcpus=" + kind + list, "irqaffinity=" + h.rest(), "rcu_nocbs=" + list}
}

// commandLine compares the recommended command line with that of the running kernel.
func (h *host) commandLine() CommandLine {
	b := CommandLine{Wanted: h.bootOptions()}
	// nosmt takes every thread of a core but the first away: the loop's, if it is on
	// another one. Then the sibling is taken off line while the host runs.
	if s := h.Siblings(); len(s) > 1 && s[0] == h.CPU {
		b.Wanted = append(b.Wanted, "nosmt")
	}
	// Ticks of the CPUs one after the other, and no watchdogs on the loop's.
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

// covers reports whether a given value of an option does what the wanted one does
// for a CPU.
func covers(name, given, wanted string, cpu int) bool {
	flags, list := isolation(given)
	cpus, err := hostinfo.ParseCPUs(list)
	switch name {
	case "isolcpus":
		for flag := range strings.SplitSeq(wanted, ",") {
			if named(flag) && !slices.Contains(flags, flag) {
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

// named tells a flag of isolcpus= from a CPU.
func named(part string) bool { return part != "" && (part[0] < '0' || part[0] > '9') }

// isolation parts the value of isolcpus= in flags and CPUs; without a flag it
// means domain.
func isolation(value string) (flags []string, cpus string) {
	list := strings.Split(value, ",")
	flags = slices.DeleteFunc(slices.Clone(list), func(part string) bool { return !named(part) })
	if len(flags) == 0 {
		flags = []string{"domain"}
	}
	return flags, strings.Join(slices.DeleteFunc(list, named), ",")
}

// Lines are what a user puts where, for the loader of this host; for one that is not known, the
// options alone.
func (b CommandLine) Lines() []string {
	return strings.Split(fmt.Sprintf(b.loader.all, strings.Join(b.Wanted, " "), b.loader.file), "\n")
}
