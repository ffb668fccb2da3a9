package doctor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestAnUntrustedUndoFileIsRefused(t *testing.T) {
	entry := func(file string) string {
		return fmt.Sprintf(`{"boot": "", "entries": [{"kind": "value", "file": %q, "before": "pwned", "after": "-1"}]}`, file)
	}
	good := entry("/proc/sys/kernel/sched_rt_runtime_us")
	for _, c := range []struct {
		what, text string
		spoil      func(path string) error
	}{
		{"anybody may write to it", good, func(path string) error { return os.Chmod(path, 0o666) }},
		{"a link", good, func(path string) error {
			return errors.Join(os.Rename(path, path+".real"), os.Symlink(path+".real", path))
		}},
		{"a folder", good, func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o755)) }},
		{"a pipe", good, func(path string) error { return errors.Join(os.Remove(path), syscall.Mkfifo(path, 0o600)) }},
		{"another user's", good, func(path string) error {
			if os.Geteuid() != 0 { // only root can change the owner
				return os.Chmod(path, 0o622)
			}
			return os.Chown(path, 65534, 65534)
		}},
		{"no JSON", "{", nil},
		{"another file", entry("/proc/sys/kernel/core_pattern"), nil},
	} {
		t.Run(c.what, func(t *testing.T) {
			b := newBox(t, "throttled")
			before := b.tree()
			if err := os.WriteFile(b.state, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			if c.spoil != nil {
				if err := c.spoil(b.state); err != nil {
					t.Fatal(err)
				}
			}
			var refused Refused
			if steps, err := b.host().undo(b.state); !errors.As(err, &refused) || !errors.Is(err, ErrUndoFile) || len(steps) > 0 {
				t.Errorf("undone: %v, %+v", err, steps)
			}
			if steps, err := b.plan().Apply(b.state); !errors.As(err, &refused) || !errors.Is(err, ErrUndoFile) || len(steps) > 0 {
				t.Errorf("applied: %v, %+v", err, steps)
			}
			differ(t, c.what, before, b.tree())
		})
	}
}

func TestAnUndoFileOfAnotherBootIsIgnored(t *testing.T) {
	b := newBox(t, "throttled")
	id := filepath.Join(b.root, "proc/sys/kernel/random")
	if err := os.Mkdir(id, 0o755); err != nil {
		t.Fatal(err)
	}
	b.set("proc/sys/kernel/random/boot_id", "one")
	b.apply()
	b.set("proc/sys/kernel/random/boot_id", "two")
	fixed := b.tree()
	if steps := b.undo(); len(steps) > 0 {
		t.Errorf("after a boot it restores %+v", steps)
	}
	differ(t, "after a boot", fixed, b.tree())
}

func TestWithoutAnUndoFileNothingIsChanged(t *testing.T) {
	b := newBox(t, "throttled")
	before := b.tree()
	b.state = filepath.Join(t.TempDir(), "no", "such", "undo.json")
	var refused Refused
	if _, err := b.plan().Apply(b.state); !errors.As(err, &refused) || !errors.Is(err, ErrUndoFile) || !strings.Contains(refused.Text, b.state) || !strings.Contains(refused.Text, "-state") {
		t.Errorf("%v", err)
	}
	differ(t, "not applied", before, b.tree())
}
