package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"lockstep/sched/journal"
)

// UndoFile is the default file for -undo. Only root can write to its folder. A boot empties the folder
// and reverts the changes.
const UndoFile = "/run/lockstep-doctor-undo.json"

// boot returns the id of the current boot; "" if unknown.
func (h *host) boot() string { return h.Text("proc/sys/kernel/random/boot_id") }

// readUndo reads the undo file; a missing file and a file of another boot count as empty.
func (h *host) readUndo(name string) (*journal.Journal, error) {
	u, err := journal.Read(name, h.boot(), os.Geteuid())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &journal.Journal{Boot: h.boot()}, nil
	case err == nil || h.checkRoot() != nil:
		return u, h.checkRoot()
	}

	return nil, badUndoFile("%v: check and remove it", err)
}

// saveUndo writes the undo file; without entries it removes the file.
func saveUndo(u *journal.Journal, name string) error {
	if err := u.Save(name); err != nil {
		return badUndoFile("the undo file %v: name another one with -state FILE", err)
	}
	return nil
}

// badUndoFile returns a refusal because of the undo file.
func badUndoFile(format string, args ...any) error {
	return Refused{Text: fmt.Sprintf(format, args...), Err: ErrUndoFile}
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
	var failed []journal.Entry
	for _, e := range slices.Backward(u.Entries) {
		s := h.restore(e)
		if s.Err != "" {
			failed = append(failed, e)
		}
		steps = append(steps, s)
	}

	slices.Reverse(failed)
	u.Entries = failed
	return steps, saveUndo(u, state)
}

func (h *host) restore(e journal.Entry) Step {
	s := Step{Setting: e.Setting, Now: e.After, Then: e.Before}
	now, err := h.current(e.Setting)
	switch {
	case errors.Is(err, errGone), errors.Is(err, fs.ErrNotExist):
		s.skip(errGone, errGone.Error())
	case err != nil:
		s.fail(reason(err))
	case e.Equal(now, e.Before):
		s.skip(errRestored, errRestored.Error())
	case !e.Holds(now):
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
