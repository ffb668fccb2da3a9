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

// UndoFile is the default file for -undo. Only root can write to its folder. A boot empties the folder
// and reverts the changes.
const UndoFile = "/run/lockstep-doctor-undo.json"

// undo is the content of the undo file: every changed setting, in the order of the changes.
type undo struct {
	Boot    string  `json:"boot"` // id of the boot in which the changes were made
	Entries []entry `json:"entries"`
}

type entry struct {
	Setting
	Before string `json:"before"` // value that Undo restores
	After  string `json:"after"`  // value that -fix has set; Undo leaves any other value

	// Between is the value set by an earlier -fix; it is set only while a later -fix changes the setting.
	Between string `json:"between,omitempty"`
}

// boot returns the id of the current boot; "" if unknown.
func (h *host) boot() string { return h.Text("proc/sys/kernel/random/boot_id") }

// readUndo reads the undo file; a missing file and a file of another boot count as empty. Undo writes
// the file's values to the kernel, so only this user may have write access to the file.
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
		err = h.checkRoot()
	}
	if err != nil {
		return nil, err
	}
	owner, known := info.Sys().(*syscall.Stat_t)
	if !info.Mode().IsRegular() || info.Mode().Perm()&0o022 != 0 || !known || int(owner.Uid) != os.Geteuid() {
		return nil, badUndoFile("other users can write to %s, or it is not a regular file: check and remove it", name)
	}
	const most = 1 << 20
	text, err := io.ReadAll(io.LimitReader(f, most))
	found := undo{}
	if err == nil {
		err = json.Unmarshal(text, &found)
	}
	if err != nil {
		return nil, badUndoFile("%s is not an undo file of -fix: %v: check and remove it", name, err)
	}
	if found.Boot != u.Boot {
		return u, nil
	}
	for _, e := range found.Entries {
		if !e.allowed() {
			return nil, badUndoFile("%s names %q, which -fix does not change: check and remove the file", name, e.File)
		}
	}

	return &found, nil
}

// badUndoFile returns a refusal because of the undo file.
func badUndoFile(format string, args ...any) error {
	return Refused{Text: fmt.Sprintf(format, args...), Err: ErrUndoFile}
}

// find returns the index of a setting's entry; -1 if there is none.
func (u *undo) find(s Setting) int {
	return slices.IndexFunc(u.Entries, func(e entry) bool { return e.Setting == s })
}

// recordPlanned records a change before it is made. A setting that still has the value of an earlier
// -fix keeps the original value to restore.
func (u *undo) recordPlanned(c Change) {
	e := entry{Setting: c.Setting, Before: c.Now, After: c.Then}
	if i := u.find(c.Setting); i >= 0 {
		if old := u.Entries[i]; c.equal(old.After, c.Now) {
			e.Before, e.Between = old.Before, c.Now
		}
		u.Entries = slices.Delete(u.Entries, i, i+1)
	}

	u.Entries = append(u.Entries, e)
}

// recordResult records the value of a setting after the attempt. A setting with its original value
// needs no entry.
func (u *undo) recordResult(s Setting, now string) {
	i := u.find(s)
	u.Entries[i].After, u.Entries[i].Between = now, ""
	if s.equal(u.Entries[i].Before, now) {
		u.Entries = slices.Delete(u.Entries, i, i+1)
	}
}

// save writes the undo file atomically; without entries it removes the file.
func (u *undo) save(name string) error {
	if len(u.Entries) == 0 {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return badUndoFile("%s cannot be removed: %v", name, reason(err))
		}
		return nil
	}

	if err := writeAtomically(name, u); err != nil {
		return badUndoFile("the undo file %s cannot be written (%v): name another one with -state FILE", name, reason(err))
	}

	return nil
}

// writeAtomically writes a value as JSON to a file, complete or not at all.
func writeAtomically(name string, value any) error {
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

// Undo restores the settings that still have the value set by -fix, the last change first. It skips
// settings that another process has changed since or that no longer exist. Failed settings stay in the file for another
// attempt.
func Undo(root, state string) ([]Step, error) {
	h, err := openHost(root, Requirements{CPU: -1, Priority: 80})
	if err != nil {
		return nil, err
	}
	return h.undo(state)
}

func (h *host) undo(state string) (steps []Step, err error) {
	done, err := h.lockSettings()
	if err != nil {
		return nil, err
	}
	defer done()
	u, err := h.readUndo(state)
	if err != nil {
		return nil, err
	}
	if len(u.Entries) > 0 {
		err = h.checkChangeable()
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
	now, err := h.current(e.Setting)
	switch {
	case errors.Is(err, errGone), errors.Is(err, fs.ErrNotExist):
		s.skip(errGone, errGone.Error())
	case err != nil:
		s.fail(reason(err))
	case e.equal(now, e.Before):
		s.skip(errRestored, errRestored.Error())
	case !e.equal(now, e.After) && (e.Between == "" || !e.equal(now, e.Between)):
		s.skip(errChanged, fmt.Sprintf("another process has set it to %s since", now))
	default:
		switch err := h.change(e.Setting, e.Before); {
		case errors.Is(err, errLinkUp): // a bus in use must not fail the stop of lockstep-host
			s.skip(err, err.Error())
		case err != nil:
			s.fail(err)
		default:
			s.Done = true
		}
	}

	return s
}
