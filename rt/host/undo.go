package host

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"lockstep/rt"
	"lockstep/sched"
	"lockstep/sched/hostinfo"
	"lockstep/sched/journal"
)

// Left is a setting of the host that a killed run has left changed.
type Left struct {
	journal.Entry
	Now string // value found; "": not known
	Err error  // why the setting is not restored; nil: it is
}

// String describes the setting, its run and what became of it.
func (l Left) String() string {
	text := Printable(fmt.Sprintf("%s, process %d, was killed and left %s at %s",
		l.Owner, l.Process, l.Setting, cmp.Or(l.Now, "an unknown value")))
	switch {
	case l.Entry == journal.Entry{}:
		return Printable(l.Err.Error())
	case errors.Is(l.Err, unix.EPERM):
		return fmt.Sprintf("%s: not restored to %s: %v: sudo lockstep doctor", text, l.Before, l.Err)
	case l.Err != nil:
		return fmt.Sprintf("%s: not restored to %s: %v", text, l.Before, l.Err)
	}
	return fmt.Sprintf("%s: restored to %s", text, l.Before)
}

// Reasons why a setting is left as it is.
var (
	errNotOurs   = errors.New("another program has changed the setting since")
	errNoThread  = errors.New("the thread no longer exists")
	errNotOfARun = errors.New("a run does not make such a change")
)

// RestoreLeft restores what killed runs have left changed on this host, and lists it. A change is
// left if no loop needs it: the processes that hold its reservation have ended, and so has the run
// that made it, which its process id and start time identify. RestoreLeft leaves a setting that no
// longer has the value of that run.
func RestoreLeft() []Left {
	awaitKilled(timersPrefix)
	done, err := lockJournals()
	defer done()
	list := restoreJournals("/", journalDirs(os.Getuid(), ControlDir()), isNeeded)
	if err != nil {
		list = append(list, Left{Err: err})
	}
	return list
}

// isNeeded reports whether a run needs the timers of a CPU as they are.
func isNeeded(e journal.Entry, cpu int) bool {
	awaitExit(e.Process, time.Now().Add(exitTimeout)) // it holds no reservation any more
	return timersInUse(cpu, nil) || Alive(rt.Identity(e.Process, e.Since))
}

// timersInUse reports whether a loop waits for the timers of a CPU; except lists reservations that
// do not count.
func timersInUse(cpu int, except []string) bool {
	return slices.ContainsFunc(sched.Reservations("/"), func(c sched.Reservation) bool {
		return strings.HasPrefix(c.What, fmt.Sprintf("%s%d-", timersPrefix, cpu)) && !slices.Contains(except, c.What)
	})
}

// journalDirs returns the folders of journals that a user trusts; own is the user's.
func journalDirs(uid int, own string) []string {
	list := []string{own, ServicesDir}
	if uid != 0 {
		list = append(list, ServicesDir+"-0")
	}
	return slices.Compact(list)
}

// journalFile returns the path of a journal.
func journalFile(dir string) string { return filepath.Join(dir, "undo.json") }

// BootID returns the id of this boot of the kernel.
func BootID() string {
	text, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(text))
}

// journalLock is the reservation that excludes other processes from the journals.
const journalLock = timersPrefix + "journal"

// lockJournals excludes other processes until done is called. After a second it gives up waiting: the
// holder hangs or is not a run. The error then says so; the caller goes on without the lock, since any
// user can hold this name. RestoreLeft, which every run calls first, shows the error.
func lockJournals() (done func(), err error) {
	for range 100 {
		if fd, err := sched.Reserve(journalLock); err == nil {
			return func() { unix.Close(fd) }, nil
		}
		time.Sleep(10 * time.Millisecond)
	}

	return func() {}, fmt.Errorf("another process has held %s%s for 1 s: settings of killed runs are restored without it: sudo ss -xlp | grep %s",
		sched.ReservationRoot, journalLock, journalLock)
}

// readJournal reads the journal in a folder. It refuses a folder or a file that another user could
// have written; root trusts the owner of the folder, which is a service's.
func readJournal(dir string) (*journal.Journal, error) {
	f, err := openDir(dir, false)
	if err != nil {
		return nil, fs.ErrNotExist // another user's folder has no journal for this user
	}
	defer f.Close()
	var s unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &s); err != nil {
		return nil, os.NewSyscallError("fstat", err)
	}
	return journal.Read(journalFile(dir), BootID(), 0, os.Geteuid(), int(s.Uid))
}

// setting identifies the priority of the timers' thread.
func (t *timers) setting() (s journal.Setting, nice int) {
	pid := t.Thread()
	stat, _ := hostinfo.ParseStat(hostinfo.Files(t.Root).Text(fmt.Sprintf("proc/%d/stat", pid)))
	return journal.Setting{
		Kind: journal.Scheduling, File: fmt.Sprintf("/proc/%d/task/%d", pid, pid),
		Thread: fmt.Sprintf("ktimers/%d", t.CPU), Start: stat.Start,
	}, stat.Nice
}

// timersOfEntry returns the CPU whose timers an entry raised. A file may name any setting; a run only
// raises timers.
func timersOfEntry(e journal.Entry) (cpu int, ok bool) {
	name, ok := strings.CutPrefix(e.Thread, "ktimers/")
	cpu, err := strconv.Atoi(name)
	before, low, err1 := hostinfo.ParsePolicy(e.Before)
	_, high, err2 := hostinfo.ParsePolicy(e.After)
	ordinary := before == unix.SCHED_NORMAL || before == unix.SCHED_FIFO || before == unix.SCHED_RR
	return cpu, ok && e.Kind == journal.Scheduling && errors.Join(err, err1, err2) == nil && ordinary && low < high
}

// recordPlanned writes the journal before the timers are raised. If another loop has raised them
// already, the former priority is taken from its entry.
func (t *timers) recordPlanned(r *sched.Raised) {
	now := formatPolicy(r.Was)
	e := journal.Entry{
		Before: now, After: hostinfo.FormatPolicy(unix.SCHED_FIFO, r.Priority),
		Owner: FileName(t.reservations.Owner), Process: os.Getpid(), Since: StartTime("/", os.Getpid()),
	}
	e.Setting, _ = t.setting()
	for _, dir := range t.dirs {
		j, err := readJournal(dir)
		if err != nil {
			continue
		}
		if i := j.Find(e.Setting); i >= 0 && j.Entries[i].Holds(now) {
			e.Before, e.Between = j.Entries[i].Before, now
		}
	}

	own, err := OwnDir(t.dirs[0])
	if err != nil {
		return // only a killed run needs the journal
	}
	own.Close()
	j, err := readJournal(t.dirs[0])
	if err != nil {
		j = &journal.Journal{Boot: BootID()}
	}
	j.RecordPlanned(e)
	_ = j.Save(journalFile(t.dirs[0])) // only a killed run needs the journal
}

// disown notes that this run needs the timers no longer, while another one does.
func (t *timers) disown() {
	j, err := readJournal(t.dirs[0])
	if err != nil {
		return
	}
	s, _ := t.setting()
	if i := j.Find(s); i >= 0 && j.Entries[i].Process == os.Getpid() {
		j.Entries[i].Process, j.Entries[i].Since = 0, 0
		_ = j.Save(journalFile(t.dirs[0])) // only a killed run needs the journal
	}
}

// restoreJournals restores the entries of the journals in some folders, except those that needed
// selects, and lists what was left changed. Entries that failed stay in their journal for another
// attempt. The journal of another user stays; the settings no longer match it.
func restoreJournals(root string, dirs []string, needed func(e journal.Entry, cpu int) bool) (list []Left) {
	for _, dir := range dirs {
		j, err := readJournal(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			list = append(list, Left{Err: fmt.Errorf("what killed runs left is not known: %w: check and remove it", err)})
			continue
		}
		var preserved []journal.Entry
		for _, e := range j.Entries {
			cpu, ok := timersOfEntry(e)
			if ok && needed(e, cpu) {
				preserved = append(preserved, e)
				continue
			}
			l := Left{Entry: e, Err: errNotOfARun}
			if ok {
				l.Now, l.Err = restoreTimers(root, cpu, e)
			}
			if l.Now != e.Before || l.Err != nil {
				list = append(list, l)
			}
			if errors.Is(l.Err, unix.EPERM) {
				preserved = append(preserved, e)
			}
		}

		if len(preserved) < len(j.Entries) {
			j.Entries = preserved
			_ = j.Save(journalFile(dir)) // fails for another user's
		}
	}

	return list
}

// restoreTimers restores the timers of a CPU if they still have a value of the entry. It returns the
// value before.
func restoreTimers(root string, cpu int, e journal.Entry) (now string, err error) {
	t := &timers{Timers: sched.Timers{Root: root, CPU: cpu}}
	s, nice := t.setting()
	if s != e.Setting {
		return "", errNoThread
	}
	attr, err := unix.SchedGetAttr(t.Thread(), 0)
	if err != nil {
		return "", errNoThread
	}
	now = formatPolicy(attr)
	if now == e.Before {
		return now, nil
	}
	if !e.Holds(now) {
		return now, errNotOurs
	}
	policy, priority, err := hostinfo.ParsePolicy(e.Before)
	if err != nil {
		return now, err // timersOfEntry has parsed it
	}
	was := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: uint32(policy), Priority: uint32(priority), Nice: int32(nice)}
	return now, t.Timers.Restore(&sched.Raised{Was: &was, Priority: int(attr.Priority)})
}

func formatPolicy(a *unix.SchedAttr) string {
	return hostinfo.FormatPolicy(int(a.Policy), int(a.Priority))
}
