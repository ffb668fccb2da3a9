package hostinfo

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Files is the root folder of a host's files: "/" for the running host.
type Files string

// Live reports whether this is the host that runs this process.
func (f Files) Live() bool { return filepath.Clean(string(f)) == "/" }

// Path returns the path of a host's file.
func (f Files) Path(name string) string {
	return filepath.Join(string(f), filepath.FromSlash(name))
}

// ReadFile returns the text of a file below the root, without surrounding space.
func (f Files) ReadFile(name string) (string, error) {
	text, err := os.ReadFile(f.Path(name))
	return strings.TrimSpace(string(text)), err
}

// Text returns the text of a file like ReadFile, or "" if it cannot be read.
func (f Files) Text(name string) string {
	text, _ := f.ReadFile(name)
	return text
}

// Exists reports whether a file or folder exists.
func (f Files) Exists(name string) bool {
	_, err := os.Stat(f.Path(name))
	return err == nil
}

// ReadDir lists the names in a folder; nil if there is no such folder.
func (f Files) ReadDir(name string) (list []string) {
	entries, _ := os.ReadDir(f.Path(name))
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

// Fields reads a file of lines "Name: value", such as /proc/PID/status and /proc/cpuinfo; the last
// line of a name counts.
func (f Files) Fields(name string) map[string]string {
	values := map[string]string{}
	for line := range strings.Lines(f.Text(name)) {
		name, value, _ := strings.Cut(line, ":")
		values[strings.TrimSpace(name)] = strings.TrimSpace(value)
	}

	return values
}

// Limits returns the soft limits of this process by name, "Max locked memory", in the units of
// /proc/PID/limits, whose columns have 26 and 21 characters; "unlimited" is the largest uint64.
func (f Files) Limits() map[string]uint64 {
	limits := map[string]uint64{}
	for line := range strings.Lines(f.Text("proc/self/limits")) {
		if len(line) < 47 {
			continue
		}
		soft := strings.TrimSpace(line[26:47])
		value, err := strconv.ParseUint(soft, 10, 64)
		if soft == "unlimited" {
			value, err = math.MaxUint64, nil
		}
		if err == nil {
			limits[strings.TrimSpace(line[:26])] = value
		}
	}

	return limits
}

// CPUs returns one of the kernel's lists of CPUs, "online" or "isolated"; nil if it is empty,
// missing or damaged.
func (f Files) CPUs(list string) []int {
	cpus, _ := ParseCPUs(f.Text("sys/devices/system/cpu/" + list))
	return cpus
}

// PreemptRT reports whether the kernel is PREEMPT_RT: by the file of the RT patches, or by the
// version text of a kernel since 6.12, which includes RT.
func (f Files) PreemptRT() bool {
	return f.Text("sys/kernel/realtime") == "1" ||
		slices.Contains(strings.Fields(strings.ReplaceAll(f.Text("proc/version"), "PREEMPT RT", "PREEMPT_RT")), "PREEMPT_RT")
}

// Executable returns the file of this program, for commands shown to users.
func Executable() string {
	path, err := os.Executable()
	if err != nil {
		return filepath.Base(os.Args[0])
	}
	return path
}
