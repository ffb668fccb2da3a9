// Package journal owns the list of the host settings that lockstep has changed, with the values that
// an undo restores: its format, its file, and the rules for trusting the file. Both `doctor -fix` and
// the runs keep such a journal; each has a file that only it and root write.
//
// The package changes no setting: deploy/doctor and rt/host do.
//
// Reading order: journal.go (Journal, Entry), setting.go (Setting).
package journal

import (
	"bytes"
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

// Journal lists every changed setting, in the order of the changes.
type Journal struct {
	Boot    string  `json:"boot"` // id of the boot in which the changes were made
	Entries []Entry `json:"entries"`
}

// Entry is a changed setting.
type Entry struct {
	Setting
	Before string `json:"before"` // value that an undo restores
	After  string `json:"after"`  // value that was set; an undo leaves any other value

	// Between is the value set by an earlier change; it is set only while a later change is made.
	Between string `json:"between,omitempty"`

	Owner   string `json:"owner,omitempty"`   // run that needs the change; "": it lasts until `doctor -undo`
	Process int    `json:"process,omitempty"` // process id of the owner
	Since   uint32 `json:"since,omitempty"`   // start of the process, clock ticks after the boot modulo 2^32
}

// maxFile is the largest journal file, bytes.
const maxFile = 1 << 20

// Read reads a journal. A journal of another boot counts as empty, because a boot reverts the
// changes. Read follows no link, and refuses a file that others than the given users own or can
// write: an undo writes its values to the kernel. A missing file is fs.ErrNotExist.
func Read(file, boot string, owners ...int) (*Journal, error) {
	f, err := os.OpenFile(file, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read: %w", file, withoutPath(err))
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	owner, known := info.Sys().(*syscall.Stat_t)
	if !info.Mode().IsRegular() || info.Mode().Perm()&0o022 != 0 || !known || !slices.Contains(owners, int(owner.Uid)) {
		return nil, fmt.Errorf("other users can write to %s, or it is not a regular file", file)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxFile))
	found := &Journal{}
	if err == nil {
		d := json.NewDecoder(bytes.NewReader(text))
		d.DisallowUnknownFields() // of another file in JSON, which Save would replace or remove
		err = d.Decode(found)
	}
	if err == nil && found.Entries == nil {
		err = errors.New("it has no entries")
	}
	if err != nil {
		return nil, fmt.Errorf("%s is not a list of changed settings: %w", file, err)
	}
	if found.Boot != boot {
		return &Journal{Boot: boot}, nil
	}
	for _, e := range found.Entries {
		if !e.Allowed() {
			return nil, fmt.Errorf("%s names %q, which lockstep does not change", file, e.File)
		}
	}

	return found, nil
}

// withoutPath returns the cause of a file error, for messages that name the file.
func withoutPath(err error) error {
	var file *fs.PathError
	if errors.As(err, &file) {
		return file.Err
	}
	return err
}

// Find returns the index of a setting's entry; -1 if there is none.
func (j *Journal) Find(s Setting) int {
	return slices.IndexFunc(j.Entries, func(e Entry) bool { return e.Setting == s })
}

// RecordPlanned records a change before it is made; e.Before is the present value. A setting that
// still has the value of an earlier change keeps the original value to restore.
func (j *Journal) RecordPlanned(e Entry) {
	if i := j.Find(e.Setting); i >= 0 {
		if old := j.Entries[i]; old.Holds(e.Before) {
			e.Before, e.Between = old.Before, e.Before
		}
		j.Entries = slices.Delete(j.Entries, i, i+1)
	}

	j.Entries = append(j.Entries, e)
}

// RecordResult records the value of a setting after the attempt. A setting with its original value
// needs no entry.
func (j *Journal) RecordResult(s Setting, now string) {
	i := j.Find(s)
	j.Entries[i].After, j.Entries[i].Between = now, ""
	if s.Equal(j.Entries[i].Before, now) {
		j.Entries = slices.Delete(j.Entries, i, i+1)
	}
}

// Holds reports whether the setting still has a value of the entry.
func (e Entry) Holds(now string) bool {
	return e.Equal(now, e.After) || e.Between != "" && e.Equal(now, e.Between)
}

// Save writes the file, complete or not at all; without entries it removes the file.
func (j *Journal) Save(file string) error {
	if len(j.Entries) == 0 {
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s cannot be removed: %w", file, withoutPath(err))
		}
		return nil
	}

	text, err := json.MarshalIndent(j, "", "  ")
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(file), filepath.Base(file)+".*")
	if err == nil {
		_, err = f.Write(append(text, '\n'))
		err = errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close())
		if err == nil {
			err = os.Rename(f.Name(), file)
		}
		if err != nil {
			os.Remove(f.Name())
		}
	}

	if err != nil {
		return fmt.Errorf("%s cannot be written: %w", file, withoutPath(err))
	}
	return nil
}
