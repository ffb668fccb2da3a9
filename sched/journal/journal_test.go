package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"
)

// throttling and irq are settings that lockstep changes.
var (
	throttling = Setting{Kind: Value, File: "/proc/sys/kernel/sched_rt_runtime_us"}
	irq        = Setting{Kind: CPUList, File: "/proc/irq/130/smp_affinity_list"}
	ktimers    = Setting{Kind: Scheduling, File: "/proc/42/task/42", Thread: "ktimers/3", Start: 7}
)

func full() *Journal {
	return &Journal{Boot: "b1", Entries: []Entry{
		{Setting: throttling, Before: "950000", After: "-1"},
		{Setting: irq, Before: "0-3", After: "0-2", Between: "0-1"},
		{Setting: ktimers, Before: "FIFO 1", After: "FIFO 81", Owner: "bench", Process: 4711, Since: 12345},
	}}
}

func TestJournalIsReadBackByItsOwnBootOnly(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "undo.json")
	if _, err := Read(file, "b1", os.Geteuid()); !errors.Is(err, fs.ErrNotExist) || !strings.HasPrefix(err.Error(), file+" cannot be read: ") {
		t.Errorf("no file: %v", err)
	}
	for range 2 { // new, and over an older one
		if err := full().Save(file); err != nil {
			t.Fatal(err)
		}
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode() != 0o644 {
		t.Errorf("mode %v, %v; want that others can read and only the owner can write", info.Mode(), err)
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) != 1 {
		t.Errorf("the folder holds %v, %v; want the journal alone", list, err)
	}
	got, err := Read(file, "b1", 1<<30, os.Geteuid())
	if err != nil || !reflect.DeepEqual(got, full()) {
		t.Errorf("%+v, %v; want %+v", got, err, full())
	}
	got, err = Read(file, "b2", os.Geteuid())
	if err != nil || !reflect.DeepEqual(got, &Journal{Boot: "b2"}) {
		t.Errorf("in another boot: %+v, %v; want no entries", got, err)
	}
	for range 2 { // the file, and no file
		if err := (&Journal{Boot: "b1"}).Save(file); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a journal without entries: %v, want no file", err)
		}
	}
}

// An undo writes the values of the file to the kernel.
func TestJournalThatOthersCouldHaveWrittenIsRefused(t *testing.T) {
	dir := t.TempDir()
	good := filepath.Join(dir, "good")
	if err := full().Save(good); err != nil {
		t.Fatal(err)
	}
	owners := []int{os.Geteuid()}
	read := func(file string) error {
		_, err := Read(file, "b1", owners...)
		return err
	}
	for mode, want := range map[fs.FileMode]bool{0o600: true, 0o644: true, 0o755: true, 0o664: false, 0o646: false, 0o620: false, 0o602: false} {
		if err := os.Chmod(good, mode); err != nil {
			t.Fatal(err)
		}
		if err := read(good); (err == nil) != want || err != nil && !strings.Contains(err.Error(), "other users can write to "+good) {
			t.Errorf("mode %o: %v, want read %t", mode, err, want)
		}
	}
	if err := os.Chmod(good, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, owners = range [][]int{nil, {os.Geteuid() + 1}} {
		if err := read(good); err == nil {
			t.Errorf("owners %d: a file of user %d is read", owners, os.Geteuid())
		}
	}
	owners = []int{os.Geteuid()}
	link, pipe := filepath.Join(dir, "link"), filepath.Join(dir, "pipe")
	if err := errors.Join(os.Symlink(good, link), syscall.Mkfifo(pipe, 0o600)); err != nil {
		t.Fatal(err)
	}
	ended := time.AfterFunc(time.Minute, func() { panic("a pipe without a writer blocks the reader") })
	for _, file := range []string{link, pipe, dir} {
		if err := read(file); err == nil || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", file, err)
		}
	}
	ended.Stop()
}

func TestFileThatIsNoJournalIsNamedWithTheCause(t *testing.T) {
	const size = 1 << 20 // the largest file
	file := filepath.Join(t.TempDir(), "undo.json")
	entry := func(s Setting) string {
		return fmt.Sprintf(`{"boot":"b1","entries":[{"kind":%q,"file":%q,"before":"1","after":"0"}]}`, s.Kind, s.File)
	}
	for text, want := range map[string]string{
		"":                "is not a list of changed settings",
		"x":               "is not a list of changed settings",
		`{"entries":3}`:   "is not a list of changed settings",
		entry(throttling): "",
		entry(Setting{Kind: Value, File: "/proc/sys/kernel/core_pattern"}):     `names "/proc/sys/kernel/core_pattern", which lockstep does not change`,
		entry(throttling) + strings.Repeat(" ", size-len(entry(throttling))):   "",
		strings.Repeat(" ", size-len(entry(throttling))+1) + entry(throttling): "is not a list of changed settings",
		`{"boot":"b1"}`: "is not a list of changed settings",
	} {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := Read(file, "b1", os.Geteuid())
		if (err == nil) != (want == "") || err != nil && (!strings.HasPrefix(err.Error(), file+" ") || !strings.Contains(err.Error(), want)) {
			t.Errorf("%.60q of %d bytes: %v; want %q", text, len(text), err, want)
		}
	}
	if err := full().Save(filepath.Join(file, "in a file")); err == nil || !strings.Contains(err.Error(), "cannot be written: not a directory") {
		t.Errorf("a folder that is none: %v", err)
	}
	if err := (&Journal{}).Save(filepath.Join(file, "in a file")); err == nil || !strings.Contains(err.Error(), "cannot be removed: not a directory") {
		t.Errorf("a folder that is none: %v", err)
	}
}

// A journal that cannot take the place of its file leaves the file and nothing else.
func TestFailedSaveLeavesTheFolderAsItIs(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "undo.json") // a folder: no file can take its place
	if err := os.MkdirAll(filepath.Join(file, "x"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := full().Save(file); err == nil || !strings.HasPrefix(err.Error(), file+" cannot be written: ") {
		t.Errorf("%v", err)
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) != 1 {
		t.Errorf("the folder holds %v, %v", list, err)
	}
}

// A limit on the size of files, setrlimit(2), fails a write in the middle as a full disk does.
func TestJournalThatFindsNoRoomLeavesTheOneBefore(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "undo.json")
	before := full()
	before.Entries = before.Entries[:1]
	if err := before.Save(file); err != nil {
		t.Fatal(err)
	}
	signal.Ignore(syscall.SIGXFSZ)
	defer signal.Reset(syscall.SIGXFSZ)
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 100, Max: limit.Max}); err != nil {
		t.Fatal(err)
	}
	saved := full().Save(file)
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
	if want := file + " cannot be written: file too large"; saved == nil || saved.Error() != want {
		t.Errorf("%v, want %s", saved, want)
	}
	if got, err := Read(file, "b1", os.Geteuid()); err != nil || !reflect.DeepEqual(got, before) {
		t.Errorf("%+v, %v; want the journal before, %+v", got, err, before)
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) != 1 {
		t.Errorf("the folder holds %v, %v", list, err)
	}
}

// record makes a change of a setting from its present value, as doctor and the runs do.
func (j *Journal) record(s Setting, now, then, result string) {
	j.RecordPlanned(Entry{Setting: s, Before: now, After: then})
	j.RecordResult(s, result)
}

func TestJournalKeepsTheValueBeforeTheFirstOfSeveralChanges(t *testing.T) {
	j := &Journal{Boot: "b1"}
	want := func(what string, entries ...Entry) {
		t.Helper()
		if len(entries) != len(j.Entries) || len(entries) > 0 && !reflect.DeepEqual(j.Entries, entries) {
			t.Errorf("%s: %+v, want %+v", what, j.Entries, entries)
		}
	}
	other := Entry{Setting: irq, Before: "0-3", After: "0-2"}
	j.record(irq, "0-3", "0-2", "0-2")
	j.record(throttling, "950000", "-1", "-1")
	want("changed", other, Entry{Setting: throttling, Before: "950000", After: "-1"})

	j.RecordPlanned(Entry{Setting: throttling, Before: "-1", After: "900000"})
	want("changed again, before the attempt", other, Entry{Setting: throttling, Before: "950000", After: "900000", Between: "-1"})
	for now, held := range map[string]bool{"-1": true, "900000": true, "950000": false, "1": false, "": false} {
		if e := j.Entries[1]; e.Holds(now) != held {
			t.Errorf("%+v holds %q: %t", e, now, !held)
		}
	}
	j.RecordPlanned(Entry{Setting: throttling, Before: "-1", After: "800000"}) // the attempt was killed
	want("a second attempt", other, Entry{Setting: throttling, Before: "950000", After: "800000", Between: "-1"})
	j.RecordResult(throttling, "700000") // the kernel took another value
	want("changed again", other, Entry{Setting: throttling, Before: "950000", After: "700000"})

	j.record(throttling, "1000", "2000", "2000") // another program has made it 1000
	want("changed after another program", other, Entry{Setting: throttling, Before: "1000", After: "2000"})
	j.record(throttling, "2000", "1000", "1000")
	want("back at the value before", other)

	if j.record(irq, "0-2", "0-3", "0,1-3"); j.Find(irq) != -1 { // the same CPUs
		t.Errorf("back at the CPUs before: %+v", j.Entries)
	}
	j.RecordPlanned(Entry{Setting: ktimers})
	later := ktimers
	later.Start++ // another thread of the same number
	if j.Find(ktimers) != 0 || j.Find(later) != -1 {
		t.Errorf("found at %d; another thread at %d", j.Find(ktimers), j.Find(later))
	}
}

func TestOnlyListedSettingsAreAllowed(t *testing.T) {
	for _, c := range []struct {
		kind Kind
		good []string
		bad  []string
	}{
		{Value, []string{
			"/proc/sys/kernel/sched_rt_runtime_us", "/proc/sys/kernel/numa_balancing", "/sys/fs/cgroup/cpu/cpu.rt_runtime_us",
			"/sys/fs/cgroup/cpu/a b/c/cpu.rt_runtime_us", "/sys/kernel/debug/sched/fair_server/cpu12/runtime", "/sys/devices/system/cpu/cpu3/online",
			"/sys/devices/system/cpu/cpu3/cpufreq/scaling_governor", "/sys/devices/system/cpu/cpu3/cpuidle/state4/disable",
			"/sys/devices/system/clocksource/clocksource0/current_clocksource", "/sys/class/net/can0.1_a-b/tx_queue_len",
		}, []string{
			"", "/proc/sys/kernel/sched_rt_runtime_us2", "x/proc/sys/kernel/numa_balancing", "/proc/sys/kernel/core_pattern", "/sys/fs/cgroup/cpu/../cpu/cpu.rt_runtime_us",
			"/sys/fs/cgroup/cpu//cpu.rt_runtime_us", "/sys/fs/cgroup/cpu/cpuXrt_runtime_us", "/sys/devices/system/cpu/cpu/online",
			"/sys/devices/system/cpu/cpu3/cpuidle/state4/name", "/sys/class/net/a/b/tx_queue_len", "/sys/class/net/can0",
		}},
		{Choice, []string{"/sys/kernel/mm/transparent_hugepage/enabled"}, []string{"/sys/kernel/mm/transparent_hugepage/defrag", "/proc/sys/kernel/numa_balancing"}},
		{CPUList, []string{"/proc/irq/130/smp_affinity_list"}, []string{"/proc/irq/default_smp_affinity", "/proc/irq/x/smp_affinity_list", "/proc/irq/130/smp_affinity"}},
		{CPUMask, []string{"/proc/irq/default_smp_affinity"}, []string{"/proc/irq/130/smp_affinity_list"}},
		{Scheduling, []string{"/proc/42/task/43"}, []string{"/proc/42", "/proc/42/task/43/comm", "/proc/self/task/43"}},
		{Affinity, []string{"/proc/42/task/43"}, []string{"/proc/42/task/"}},
		{RestartMs, []string{"/sys/class/net/can0"}, []string{"/sys/class/net/can0/tx_queue_len", "/sys/class/net/", "/sys/class/net/.."}},
		{"", nil, []string{"/proc/irq/130/smp_affinity_list"}},
	} {
		for want, files := range map[bool][]string{true: c.good, false: c.bad} {
			for _, file := range files {
				if got := (Setting{Kind: c.kind, File: file}).Allowed(); got != want {
					t.Errorf("kind %q, %q: allowed %t", c.kind, file, got)
				}
			}
		}
	}
}

func TestSettingHasANameAndACommand(t *testing.T) {
	for _, c := range []struct {
		s                    Setting
		value, name, command string
	}{
		{throttling, "-1", throttling.File, "sudo sysctl -w kernel.sched_rt_runtime_us=-1"},
		{irq, "0-2", irq.File, "echo 0-2 | sudo tee /proc/irq/130/smp_affinity_list"},
		{ktimers, "FIFO 81", "thread ktimers/3 (42), priority", "sudo chrt --fifo -p 81 42"},
		{ktimers, "OTHER", "thread ktimers/3 (42), priority", "sudo chrt --other -p 0 42"},
		{Setting{Kind: Affinity, File: "/proc/988/task/991", Thread: "jackd"}, "0,2", "thread jackd (991), CPUs", "sudo taskset -p -c 0,2 991"},
		{Setting{Kind: RestartMs, File: "/sys/class/net/can0"}, "100", "can0, restart-ms", "sudo ip link set can0 type can restart-ms 100"},
		{Setting{Kind: Choice, File: "/sys/kernel/mm/transparent_hugepage/enabled"}, "madvise", "/sys/kernel/mm/transparent_hugepage/enabled",
			"echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled"},
	} {
		if c.s.String() != c.name || c.s.Command(c.value) != c.command {
			t.Errorf("%q, %q; want %q, %q", c.s, c.s.Command(c.value), c.name, c.command)
		}
	}
}

func TestValuesAreEqualIfTheKernelTreatsThemAlike(t *testing.T) {
	for _, c := range []struct {
		kind Kind
		a, b string
		want bool
	}{
		{Value, "1", "1", true}, {Value, "1", "01", false}, {Value, "0-3", "0,1-3", false}, {Scheduling, "FIFO 1", "FIFO 1", true}, {Scheduling, "FIFO 1", "FIFO 2", false},
		{CPUList, "0-3", "0,1-3", true}, {CPUList, "0-3", "0-2", false}, {CPUList, "x", "x", false}, {CPUList, "0", "x", false}, {CPUList, "x", "0", false},
		{Affinity, "1", "1-1", true}, {Affinity, "1", "2", false},
		{CPUMask, "f", "0000000f", true}, {CPUMask, "f", "00000000,0000000f", true}, {CPUMask, "f", "7", false}, {CPUMask, "0-3", "0-3", false},
	} {
		if got := (Setting{Kind: c.kind}).Equal(c.a, c.b); got != c.want {
			t.Errorf("kind %s: %q and %q are equal: %t", c.kind, c.a, c.b, got)
		}
	}
}
