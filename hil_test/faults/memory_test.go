package faults

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// memoryLimit is the memory of the run and the other process together, bytes. The target locks
// 140 MB.
const memoryLimit = 256 << 20

// memory is a control group with memoryLimit.
type memory struct {
	dir  string // path of the group; "": none, since making one needs root and a memory controller
	hits string // path of the file with the number of times that the limit was hit
}

// newGroup makes a group inside that of this process.
func newGroup(a *attempt) (m memory) {
	text, _ := os.ReadFile("/proc/self/cgroup")
	for _, line := range strings.Fields(string(text)) {
		f := strings.SplitN(line, ":", 3)
		if len(f) < 3 {
			continue
		}
		base, limit, hits := "/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.failcnt"
		if f[0] == "0" {
			base, limit, hits = "/sys/fs/cgroup", "memory.max", "memory.events"
		} else if !slices.Contains(strings.Split(f[1], ","), "memory") {
			continue
		}
		dir := filepath.Join(base, f[2], fmt.Sprintf("lockstep-faults-%d", os.Getpid()))
		if os.Mkdir(dir, 0o755) != nil {
			continue
		}
		a.Cleanup(func() { os.Remove(dir) })
		if os.WriteFile(filepath.Join(dir, limit), []byte(strconv.Itoa(memoryLimit)), 0) == nil {
			return memory{dir, filepath.Join(dir, hits)}
		}
	}
	a.Log("cannot make a control group with a memory limit: the other process takes the free memory")
	return memory{}
}

// enter returns the shell command that moves the shell into the group.
func (m memory) enter() string {
	if m.dir == "" {
		return "true"
	}
	return "echo $$ >" + m.dir + "/cgroup.procs"
}

// reached returns how often the limit was hit.
func (m memory) reached() (n int) {
	text, _ := os.ReadFile(m.hits)
	f := strings.Fields(string(text))
	if i := slices.Index(f, "max"); i >= 0 {
		f = f[i+1:]
	}
	if len(f) > 0 {
		n, _ = strconv.Atoi(f[0])
	}
	return n
}

// memoryPressure runs the command while another process of its group repeatedly writes a file of
// twice the group's memory. The command is a copy made inside the group, so that its code counts
// there and the kernel may evict it.
func memoryPressure(a *attempt) {
	m := newGroup(a)
	command, hog := filepath.Join(a.dir, "command"), filepath.Join(a.dir, "hog")
	s := a.run(plan{
		args:  []string{"-for", "3s"},
		shell: m.enter() + ` && cp "$1" ` + command + ` && shift && exec ` + command + ` "$@"`,
	})
	s.bus.ticking(50)
	write := m.enter() + "; for i in 1 2 3; do head -c 400000000 /dev/zero >" + hog + "; done; rm " + hog
	if out, err := exec.Command("bash", "-c", write).CombinedOutput(); err != nil {
		a.Fatalf("writing %s: %v\n%s", hog, err, out)
	}
	s.ends(0, "")
	all, r, hits := s.bus.end(), s.read(), m.reached()
	a.Logf("the limit was hit %d times; page faults of the target: %d minor, %d major; %d ticks missed", hits, r.MinorFaults, r.MajorFaults, r.Missed)
	a.must(r.Clean && r.Ticks == 600 && r.Allocs == 0, "%s after %d ticks, %d allocations", r.Ended, r.Ticks, r.Allocs)
	a.must(m.dir == "" || hits > 0, "the limit was never hit")
	locked := !slices.ContainsFunc(r.BestEffortWhy, func(s string) bool { return strings.Contains(s, "memory") })
	a.must(!locked || r.MajorFaults == 0 && r.MinorFaults == 0, "page faults of a target in locked memory: %d minor, %d major", r.MinorFaults, r.MajorFaults)
	s.bus.counted(all, r)
}
