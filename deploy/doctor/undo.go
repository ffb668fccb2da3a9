package doctor

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

// UndoFile is where -fix writes what -undo restores, in a folder that is root's alone
// and empty after a boot, as the changes are gone.
const UndoFile = "/run/lockstep-doctor-undo.json"

// undo is the file: every setting that was changed, in the order of the changes.
type undo struct {
	Boot    string  `json:"boot"` // id of the boot in which they were made
	Entries []entry `json:"entries"`
}

type entry struct {
	Setting
	Before string `json:"before"` // what is restored
	After  string `json:"after"`  // what -fix made of it; anything else is somebody else's

	// What an earlier -fix had made of it, until the later one is known to have been there.
	Between string `json:"between,omitempty"`
}

// boot is the id of this one; empty where the kernel does not tell.
func (h *host) boot() string { return h.Text("proc/sys/kernel/random/boot_id") }

// readUndo reads the file; an empty one where there is none, or one of another
// boot. It is trusted with writing to the kernel, so it must be ours alone.
func (h *host) readUndo(name string) (*undo, error) {
	u := &undo{Boot: h.boot()}
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return u, nil
	}
	if err != nil {
		return nil, badUndoFile("%s cannot be read: %v", name, reason(err))
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil {
		err = h.rights()
	}
	if err != nil {
		return nil, err
	}
	owner, known := info.Sys().(*syscall.Stat_t)
	if !info.Mode().IsRegular() || info.Mode().Perm()&0o022 != 0 || !known || int(owner.Uid) != os.Geteuid() {
		return nil, badUndoFile("%s is not a file that only this user can write to: look at it, and remove it", name)
	}
	const most = 1 << 20
	text, err := io.ReadAll(io.LimitReader(f, most))
	found := undo{}
	if err == nil {
		err = json.Unmarshal(text, &found)
	}
	if err != nil {
		return nil, badUndoFile("%s is not what -fix wrote: %v: look at it, and remove it", name, err)
	}
	if found.Boot != u.Boot {
		return u, nil
	}
	for _, e := range found.Entries {
		if !e.known() {
			return nil, badUndoFile("%s names %q, which -fix does not change: look at it, and remove it", name, e.File)
		}
	}

	return &found, nil
}

// badUndoFile is a refusal because of the file.
func badUndoFile(format string, args ...any) error {
	return Refused{Text: fmt.Sprintf(format, args...), Err: ErrUndoFile}
}

// find is the entry of a setting; -1: there is none.
func (u *undo) find(s Setting) int {
	return slices.IndexFunc(u.Entries, func(e entry) bool { return e.Setting == s })
}

// plan notes a change before it is made. What was changed before and is still as
// -fix left it goes back to what was there at first.
func (u *undo) plan(c Change) {
	e := entry{Setting: c.Setting, Before: c.Now, After: c.Then}
	if i := u.find(c.Setting); i >= 0 {
		if old := u.Entries[i]; c.same(old.After, c.Now) {
			e.Before, e.Between = old.Before, c.Now
		}
		u.Entries = slices.Delete(u.Entries, i, i+1)
	}

	u.Entries = append(u.Entries, e)
}

// made notes what a setting reads after the attempt; what reads as at first needs
// no undoing.
func (u *undo) made(s Setting, now string) {
	i := u.find(s)
	u.Entries[i].After, u.Entries[i].Between = now, ""
	if s.same(u.Entries[i].Before, now) {
		u.Entries = slices.Delete(u.Entries, i, i+1)
	}
}

// save writes the file whole or not at all, and removes it where nothing is left.
func (u *undo) save(name string) error {
	if len(u.Entries) == 0 {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return badUndoFile("%s cannot be removed: %v", name, reason(err))
		}
		return nil
	}

	if err := writeWhole(name, u); err != nil {
		return badUndoFile("%s, which says how to undo the changes, cannot be written (%v): "+
			"name another one with -state FILE", name, reason(err))
	}

	return nil
}

// writeWhole writes a value as JSON to a file, whole or not at all.
func writeWhole(name string, value any) error {
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*")
	if err != nil {
		return err
	}

	_, err = f.Write(append(text, '\n'))
	err = errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}

// Undo restores, the last change first, what is still as -fix made it; what
// somebody has changed since, and what is gone, is left and named. What fails stays
// in the file for another attempt.
func Undo(root, state string) ([]Step, error) {
	h, err := visit(root, Ask{CPU: -1, Priority: 80})
	if err != nil {
		return nil, err
	}
	return h.undo(state)
}

func (h *host) undo(state string) (steps []Step, err error) {
	done, err := h.alone()
	if err != nil {
		return nil, err
	}
	defer done()
	u, err := h.readUndo(state)
	if err != nil {
		return nil, err
	}
	if len(u.Entries) > 0 {
		err = h.mayChange()
	}
	if err != nil {
		return nil, err
	}
	var failed []entry
	for _, e := range slices.Backward(u.Entries) {
		s := h.restore(e)
		if s.Err != "" {
			failed = append(failed, e)
		}
		steps = append(steps, s)
	}

	slices.Reverse(failed)
	u.Entries = failed
	return steps, u.save(state)
}

func (h *host) restore(e entry) Step {
	s := Step{Setting: e.Setting, Now: e.After, Then: e.Before}
	now, err := h.now(e.Setting)
	switch {
	case errors.Is(err, errGone), errors.Is(err, fs.ErrNotExist):
		s.leave(errGone, errGone.Error())
	case err != nil:
		s.fail(reason(err))
	case e.same(now, e.Before):
		s.leave(errAsBefore, errAsBefore.Error())
	case !e.same(now, e.After) && (e.Between == "" || !e.same(now, e.Between)):
		s.leave(errChanged, fmt.Sprintf("somebody has made it %s since", now))
	default:
		switch err := h.put(e.Setting, e.Before); {
		case errors.Is(err, errUp): // a bus that is in use: no stop of the host's service fails for it
			s.leave(err, err.Error())
		case err != nil:
			s.fail(err)
		default:
			s.Done = true
		}
	}

	return s
}
