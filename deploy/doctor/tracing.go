package doctor

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"lockstep/sched/hostinfo"
)

func (h *host) checkRTLA(c Check) Check {
	return h.checkTracers(c, "rtla", "rtla", "timerlat", "osnoise")
}

func (h *host) checkHwlatdetect(c Check) Check {
	return h.checkTracers(c, "hwlatdetect", "rt-tests", "hwlat")
}

// checkTracers checks a program that measures with tracers of the kernel; pkg is its Debian package.
func (h *host) checkTracers(c Check, program, pkg string, tracers ...string) Check {
	file := h.findProgram(program)
	state, err := h.ReadTracing()
	switch {
	case file == "":
		return c.wrong("not installed", h.installCommand(program, pkg), Now)
	case errors.Is(err, hostinfo.ErrTracingHidden):
		return c.unreadable(fmt.Sprintf("%s; %v", file, err))
	case err != nil:
		return c.unknown(fmt.Sprintf("%s; %v", file, err), "sudo mount -t tracefs tracefs /sys/kernel/tracing")
	}

	missing := slices.DeleteFunc(slices.Clone(tracers), func(t string) bool { return slices.Contains(state.Tracers, t) })
	if len(missing) > 0 {
		var options []string
		for _, t := range missing {
			options = append(options, "CONFIG_"+strings.ToUpper(t)+"_TRACER=y")
		}
		return c.wrong(fmt.Sprintf("%s; this kernel has no tracer %s", file, strings.Join(missing, " and ")),
			"boot a kernel with "+strings.Join(options, " and "), Kernel)
	}
	return c.ok(fmt.Sprintf("%s; tracer %s", file, strings.Join(tracers, " and ")))
}

// findProgram returns the path of a program of the host; "": none.
func (h *host) findProgram(name string) string {
	for _, dir := range []string{"usr/local/sbin", "usr/local/bin", "usr/sbin", "usr/bin"} {
		if file := path.Join(dir, name); h.Exists(file) {
			return "/" + file
		}
	}

	return ""
}

// installCommand returns the command that installs a program; pkg is its Debian package.
func (h *host) installCommand(program, pkg string) string {
	const debian = "sudo apt-get install "
	if release := h.osRelease(); release["ID"] == "debian" || strings.Contains(release["ID_LIKE"], "debian") {
		return debian + pkg
	}
	return fmt.Sprintf("install %s (Debian: %s%s)", program, debian, pkg)
}

// recording is the instance of the tracing in which osnoise records the causes of late ticks.
const recording = "lockstep"

// checkTracing checks for active tracers, and for the instance of a recording, which stays after the
// runs that it was made for.
func (h *host) checkTracing(c Check) Check {
	state, err := h.ReadTracing()
	if errors.Is(err, hostinfo.ErrTracingHidden) {
		return c.unreadable(err.Error())
	}
	if err != nil {
		return c.ok("not mounted: no tracer is active")
	}
	var found, commands []string
	for _, i := range state.Instances {
		off := fmt.Sprintf("echo %s | sudo tee %s", hostinfo.NoTracer, path.Join(state.Folder, i.Path("current_tracer")))
		remove := "sudo rmdir " + path.Join(state.Folder, i.Path(""))
		switch {
		case i.Name == recording && i.Active():
			cpus := h.Text(path.Join(state.Folder, "osnoise/cpus"))
			found = append(found, fmt.Sprintf("the instance %s is on: %s records on CPU %s", i.Name, i.Tracer, cpus))
			commands = append(commands, off, remove, fmt.Sprintf("echo DEFAULTS | sudo tee %s", path.Join(state.Folder, "osnoise/options")))
		case i.Name == recording:
			found = append(found, fmt.Sprintf("the instance %s is there, its tracer is off", i.Name))
			commands = append(commands, remove)
		case i.Active() && i.Name == "":
			found = append(found, i.Tracer+" is on")
			commands = append(commands, off)
		case i.Active():
			found = append(found, fmt.Sprintf("%s is on in the instance %s", i.Tracer, i.Name))
			commands = append(commands, off, remove)
		}
	}

	if len(found) == 0 {
		return c.ok("no tracer is active")
	}
	return c.wrong(strings.Join(found, "; "), strings.Join(commands, " && "), Now)
}
