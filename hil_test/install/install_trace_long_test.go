//go:build long

package install

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// ignored matches files that the package manager and the system themselves change. They show at
// most that some package was installed.
var ignored = regexp.MustCompile(`^(` + strings.Join([]string{
	`/var/lib/dpkg/(status|status-old|lock|lock-frontend|triggers/.*)`, // database of dpkg, without the files of a package in info/
	`/var/lib/apt/(extended_states|lists/(lock|auxfiles)|periodic/.*|daily_lock)`,
	`/var/log/.*`, // dpkg.log, the journal
	`/var/cache/(apt|debconf|ldconfig)/.*`,
	`/var/lib/systemd/(random-seed|timers/.*|catalog/database)`,
	`/var/backups/.*`, // daily copy of the database of dpkg
	`/etc/(passwd|group|shadow|gshadow|subuid|subgid)-`, `/etc/\.pwd\.lock`, // changed with any user
	`/etc/ld\.so\.cache`,
}, "|") + `)$`)

// snapshot returns the state that survives a reboot: type, rights and owner of each path of the
// root file system. Files in /etc and /var have a checksum, others size and time of modification.
func snapshot(t *testing.T) map[string]string {
	t.Helper()
	root, all := device(t, "/"), map[string]string{}
	err := filepath.WalkDir("/", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		s := info.Sys().(*syscall.Stat_t)
		if s.Dev != root {
			return fs.SkipDir // mount point
		}
		text := fmt.Sprintf("%v %d:%d", info.Mode(), s.Uid, s.Gid)
		switch {
		case ignored.MatchString(path):
			return nil
		case d.Type() == fs.ModeSymlink:
			to, err := os.Readlink(path)
			all[path] = text + " -> " + to
			return err
		case d.Type() != 0:
		case strings.HasPrefix(path, "/etc/") || strings.HasPrefix(path, "/var/"):
			data, err := os.ReadFile(path)
			all[path] = fmt.Sprintf("%s %d bytes, sha256 %.6x", text, len(data), sha256.Sum256(data))
			return err
		default:
			text += fmt.Sprintf(" %d bytes of %v", info.Size(), info.ModTime().UTC())
		}
		all[path] = text
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 5000 {
		t.Fatalf("%d paths, want at least 5000 of a whole system", len(all))
	}
	return all
}

func device(t *testing.T, path string) uint64 {
	t.Helper()
	var s syscall.Stat_t
	if err := syscall.Stat(path, &s); err != nil {
		t.Fatal(err)
	}
	return s.Dev
}

// state returns the state that does not survive a reboot: settings of the kernel, users, failed
// units.
func state(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for name, line := range map[string]string{
		"setting": "grep -rHs . /proc/sys/kernel/sched* /proc/sys/kernel/timer_migration /proc/sys/vm/{swappiness,stat_interval,compaction_proactiveness} /proc/sys/net/core/*mem_*",
		"irq":     "grep -H . /proc/irq/*/smp_affinity /proc/irq/default_smp_affinity",
		"thread":  "for c in /proc/[0-9]*/comm; do grep -qsE '^(ktimers|ksoftirqd|rcuc|irq)/' $c && chrt -p $(echo $c | cut -d / -f 3) | sed \"s|^pid [0-9]*|$(cat $c)|\"; done; true",
		"device":  "stat -c '%n %A %U:%G' /dev/cpu_dma_latency /dev/kmsg /dev/vda /sys/fs/cgroup",
		"failed":  "systemctl is-system-running || systemctl list-units --failed --no-legend",
		"user":    "getent passwd; getent group",
	} {
		out := output(t, line)
		if out == "" {
			t.Fatalf("no output of %s", line)
		}
		for line := range strings.Lines(out) {
			all[name+" "+strings.TrimSpace(line)] = "is there"
		}
	}
	return all
}

// traces returns the places that still contain a name: files, processes, units, packages, devices.
func traces(t *testing.T, name string) []string {
	t.Helper()
	var list []string
	for _, line := range []string{
		"find / -xdev -iname '*" + name + "*' -not -path '/var/log/*'",
		"find /run /run/lock /dev /dev/shm /dev/mqueue /sys/fs/cgroup -xdev -iname '*" + name + "*' -not -path '/run/log/*'",
		"grep -i " + name + " /proc/[0-9]*/comm",
		"systemctl list-units --all --no-legend '*" + name + "*'",
		"dpkg-query -W -f '${Package} ${Status}\\n' '*" + name + "*' 2>/dev/null",
		"udevadm info --export-db | grep -i " + name,
		"grep -ril " + name + " /etc /var/lib",
	} {
		out, _ := exec.Command("bash", "-c", line).Output()
		for found := range strings.Lines(string(out)) {
			if found = strings.TrimSpace(found); !ignored.MatchString(found) {
				list = append(list, found)
			}
		}
	}
	return list
}

// diff returns a line for each difference of two states.
func diff(before, after map[string]string) (lines []string) {
	for path, was := range before {
		switch is, ok := after[path]; {
		case !ok:
			lines = append(lines, fmt.Sprintf("%s is gone: %s", path, was))
		case is != was:
			lines = append(lines, fmt.Sprintf("%s was %s, is %s", path, was, is))
		}
	}
	for path, is := range after {
		if _, ok := before[path]; !ok {
			lines = append(lines, fmt.Sprintf("%s is new: %s", path, is))
		}
	}
	slices.Sort(lines)
	return lines
}
