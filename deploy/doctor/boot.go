package doctor

import (
	"fmt"
	"slices"
	"strings"

	"lockstep/deploy/hostinfo"
)

// CommandLine is what only another start of this kernel changes, for this host. Nothing
// of it is ever written here.
type CommandLine struct {
	Wanted []string `json:"wanted"`          // options of the kernel's command line
	Lacks  []string `json:"lacks,omitempty"` // those it was not started with
	Drop   []string `json:"drop,omitempty"`  // what it was started with in their place
	Loader string   `json:"loader"`          // one of loaders
}

// Loaders, and where their lines are. Debian's grub alone reads a folder.
const (
	loaderGrubFolder = "grub.d"
	loaderGrub       = "grub"
	loaderPi         = "Raspberry Pi"
	loaderExtlinux   = "u-boot"
	loaderUnknown    = "unknown"
)

// loader finds what starts the host, and the file with the kernel's command line.
func (h *host) loader() (name, file string) {
	debian := h.Exists("etc/debian_version") || h.Exists("etc/default/grub.d") ||
		strings.Contains(h.osRelease()["ID_LIKE"]+h.osRelease()["ID"], "debian") || h.osRelease()["ID"] == "ubuntu"
	for _, l := range []struct{ name, file string }{
		{loaderPi, "boot/firmware/cmdline.txt"},
		{loaderPi, "boot/cmdline.txt"},
		{loaderExtlinux, "boot/extlinux/extlinux.conf"},
		{loaderGrub, "etc/default/grub"},
	} {
		if !h.Exists(l.file) {
			continue
		}
		if l.name == loaderGrub && debian {
			return loaderGrubFolder, "/etc/default/grub.d/lockstep.cfg"
		}
		return l.name, "/" + l.file
	}
	return loaderUnknown, ""
}

// bootCommand says where options go on the kernel's command line.
func (h *host) bootCommand(options string) string {
	switch name, file := h.loader(); name {
	case loaderPi:
		return "append to the line in " + file + ": " + options
	case loaderExtlinux:
		return "append to the line APPEND in " + file + ": " + options
	case loaderGrub, loaderGrubFolder:
		return "in /etc/default/grub, add to GRUB_CMDLINE_LINUX, then sudo update-grub: " + options
	}
	return "add to the kernel's command line: " + options
}

// bootOptions are those that isolate the CPU of the loop, and those that are
// isolated already: Documentation/admin-guide/kernel-parameters.
func (h *host) bootOptions() []string {
	cpus := append(slices.Clone(h.Isolated), h.CPU)
	slices.Sort(cpus)
	list := hostinfo.FormatCPUs(slices.Compact(cpus))
	kind := "managed_irq,domain,"
	if byOption, _ := hostinfo.ParseCPUs(h.Text("sys/devices/system/cpu/isolated")); slices.Contains(h.Isolated, h.CPU) && !slices.Contains(byOption, h.CPU) {
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
	b.Loader, _ = h.loader()
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

// Lines are what a user puts where, for the loader of this host; for one that is
// not known, the options alone.
func (b CommandLine) Lines(file string) []string {
	options := strings.Join(b.Wanted, " ")
	switch b.Loader {
	case loaderGrubFolder:
		return []string{
			"# " + file + ", then: sudo update-grub && sudo reboot",
			`GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX ` + options + `"`,
		}
	case loaderGrub:
		return []string{
			"sudo grubby --update-kernel=ALL --args=\"" + options + "\"",
			"# or in " + file + ": GRUB_CMDLINE_LINUX=\"... " + options + "\"",
			"# then: sudo grub2-mkconfig -o /boot/grub2/grub.cfg && sudo reboot",
		}
	case loaderPi:
		return []string{"# at the end of the one line in " + file + ", then: sudo reboot", options}
	case loaderExtlinux:
		return []string{
			"# at the end of the line APPEND in " + file + ", then: sudo reboot", options,
			"# or at the prompt of u-boot: setenv bootargs \"${bootargs} " + options + "\"; saveenv",
		}
	}
	return []string{
		"# grub, in /etc/default/grub.d/lockstep.cfg, then sudo update-grub:",
		`GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX ` + options + `"`,
		"# u-boot, in the environment or at the end of APPEND in extlinux.conf:",
		fmt.Sprintf("setenv bootargs \"${bootargs} %s\"; saveenv", options),
		"# Raspberry Pi, at the end of the one line in cmdline.txt:",
		options,
	}
}
