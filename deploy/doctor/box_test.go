package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"lockstep/io/can"
	"lockstep/sched/hostinfo"
)

// box is a copy of a host of testdata whose files react to writes like the kernel's.
type box struct {
	t           *testing.T
	root        string
	state       string
	reservation string
	req         Requirements
	links       map[string]can.Link
	beforeWrite func(path string) error // called before each write; may be nil
}

// boxes counts the boxes; it makes their reservations unique.
var boxes atomic.Int64

func newBox(t *testing.T, host string) *box {
	t.Helper()
	b := &box{t: t, root: filepath.Join(t.TempDir(), host), req: demo, links: map[string]can.Link{}}
	b.state = filepath.Join(t.TempDir(), "undo.json")
	b.reservation = fmt.Sprintf("host/%d-%d", os.Getpid(), boxes.Add(1))
	if err := os.CopyFS(b.root, os.DirFS(filepath.Join("..", "..", "sched", "hostinfo", "testdata", "hosts", host))); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *box) set(name, text string) {
	b.t.Helper()
	if err := os.WriteFile(filepath.Join(b.root, name), []byte(text+"\n"), 0o644); err != nil {
		b.t.Fatal(err)
	}
}

func (b *box) get(name string) string {
	b.t.Helper()
	text, err := os.ReadFile(filepath.Join(b.root, name))
	if err != nil {
		b.t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

// host returns the box with operations that edit the files of threads.
func (b *box) host() *host {
	h := newHost(b.root, b.req)
	h.reservation = b.reservation
	h.operations = operations{
		write: b.write,
		schedule: func(tid, policy, priority, _ int) error {
			return b.editThread(tid, "stat", func(text string) string {
				open := strings.LastIndexByte(text, ')') + 2
				f := strings.Fields(text[open:])
				f[40-3], f[41-3] = strconv.Itoa(priority), strconv.Itoa(policy)
				return text[:open] + strings.Join(f, " ") + "\n"
			})
		},
		setAffinity: func(tid int, cpus []int) error {
			return b.editThread(tid, "status", func(text string) string {
				before, _, _ := strings.Cut(text, "Cpus_allowed_list:")
				return before + "Cpus_allowed_list:\t" + hostinfo.FormatCPUs(cpus) + "\n"
			})
		},
		link: func(name string) (can.Link, error) {
			if l, ok := b.links[name]; ok {
				return l, nil
			}
			return can.Link{}, errGone
		},
		setRestart: func(name string, ms uint32) error {
			l := b.links[name]
			if l.Up {
				return errLinkUp
			}
			l.RestartMs = int(ms)
			b.links[name] = l
			return nil
		},
	}
	return h
}

func (b *box) editThread(tid int, file string, edit func(string) string) error {
	list, _ := filepath.Glob(filepath.Join(b.root, "proc/[0-9]*/task", strconv.Itoa(tid), file))
	if len(list) != 1 {
		return syscall.ESRCH
	}
	if b.beforeWrite != nil {
		if err := b.beforeWrite(list[0]); err != nil {
			return err
		}
	}
	text, err := os.ReadFile(list[0])
	if err != nil {
		return err
	}
	return os.WriteFile(list[0], []byte(edit(string(text))), 0o644)
}

// write writes a file like the product, and changes the files that the kernel would change with it.
func (b *box) write(path, text string) error {
	if b.beforeWrite != nil {
		if err := b.beforeWrite(path); err != nil {
			return err
		}
	}
	if err := write(path, text); err != nil {
		return err
	}
	const cpus = "sys/devices/system/cpu/"
	name, _ := filepath.Rel(b.root, path)
	switch dir, file := filepath.Split(name); {
	case file == "smp_affinity_list":
		list, _ := hostinfo.ParseCPUs(text)
		b.set(dir+"effective_affinity_list", strconv.Itoa(list[0]))
	case file == "online" && dir != cpus:
		cpu, _ := strconv.Atoi(strings.TrimPrefix(filepath.Base(dir), "cpu"))
		online, _ := hostinfo.ParseCPUs(b.get(cpus + "online"))
		online = hostinfo.CPUsWithout(online, []int{cpu})
		if text == "1" {
			online = append(online, cpu)
			slices.Sort(online)
		}
		b.set(cpus+"online", hostinfo.FormatCPUs(online))
	}
	return nil
}

func (b *box) plan(keep ...string) *Plan {
	b.t.Helper()
	p, err := b.host().plan(keep)
	if err != nil {
		b.t.Fatal(err)
	}
	return p
}

// apply makes all changes and fails the test if one fails.
func (b *box) apply() []Step {
	b.t.Helper()
	steps, err := b.plan().Apply(b.state)
	if err := errors.Join(err, Failed(steps)); err != nil {
		b.t.Fatal(err)
	}
	return steps
}

func (b *box) undo() []Step {
	b.t.Helper()
	steps, err := b.host().undo(b.state)
	if err := errors.Join(err, Failed(steps)); err != nil {
		b.t.Fatal(err)
	}
	return steps
}

// tree returns the text of every file of the box.
func (b *box) tree() map[string]string {
	b.t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(b.root, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			var text []byte
			text, err = os.ReadFile(path)
			name, _ := filepath.Rel(b.root, path)
			// The kernel chooses the effective CPUs of an interrupt from its mask each time.
			if filepath.Base(path) != "effective_affinity_list" {
				files[name] = choiceOf(strings.TrimSpace(string(text)))
			}
		}
		return err
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return files
}

// choiceOf returns the chosen word of a list. In a box, the file has only this word once it was
// written.
func choiceOf(text string) string {
	if _, rest, found := strings.Cut(text, "["); found && strings.HasPrefix(text, "[") {
		text, _, _ = strings.Cut(rest, "]")
	}
	return text
}

func differ(t *testing.T, what string, before, after map[string]string) {
	t.Helper()
	for name, text := range before {
		if after[name] != text {
			t.Errorf("%s: %s: %q, was %q", what, name, after[name], text)
		}
	}
	if len(before) != len(after) {
		t.Errorf("%s: %d files, were %d", what, len(after), len(before))
	}
}
