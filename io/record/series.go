package record

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// series is the files of a record.
type series struct {
	path string
	o    Options
	last int // number of the newest file, 0 if there is none
	file *os.File

	trouble error // why old files were not deleted, the last time
}

func newSeries(path string, o Options) (*series, error) {
	s := &series{path: path, o: o}
	if o.MaxBytes == 0 {
		return s, nil
	}
	numbers, err := parts(path)
	if err != nil {
		return nil, err
	}
	if len(numbers) > 0 {
		s.last = numbers[len(numbers)-1]
	}
	return s, nil
}

// next closes the file there is, creates the one after it and deletes the oldest.
func (s *series) next() (*os.File, error) {
	path := s.path
	if s.o.MaxBytes > 0 {
		path = part(s.path, s.last+1)
	}
	f, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	if err := s.close(true); err != nil {
		f.Close()
		os.Remove(path)
		return nil, err
	}
	enter(filepath.Dir(path))
	s.file = f
	s.last++
	s.trouble = s.prune()
	return f, nil
}

// enter makes a new name in a folder survive a loss of power. File systems that cannot
// do it on demand do it by themselves, so there is no error.
func enter(folder string) {
	if d, err := os.Open(folder); err == nil {
		_ = d.Sync()
		d.Close()
	}
}

// close closes the file; sync makes sure that it is on the disk before.
func (s *series) close(sync bool) error {
	if s.file == nil {
		return nil
	}
	var err error
	if sync && !device(s.file) {
		err = s.file.Sync()
	}
	err = errors.Join(err, s.file.Close())
	s.file = nil
	if err != nil {
		return fmt.Errorf("record: %w", err)
	}
	return nil
}

// device says that f is no file on a disk: such as a pipe, which cannot be synced.
func device(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && !info.Mode().IsRegular()
}

// abandon closes and deletes a file that has not even a header.
func (s *series) abandon() {
	if s.file != nil && !device(s.file) {
		os.Remove(s.file.Name())
	}
	_ = s.close(false)
}

// prune deletes the oldest files beyond Keep.
func (s *series) prune() error {
	if s.o.MaxBytes == 0 || s.o.Keep == 0 {
		return nil
	}
	numbers, err := parts(s.path)
	if err != nil {
		return err
	}
	for len(numbers) > s.o.Keep {
		if err := os.Remove(part(s.path, numbers[0])); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("record: %w", err)
		}
		numbers = numbers[1:]
	}
	return nil
}

// part is the name of file n of a series.
func part(path string, n int) string {
	extension := filepath.Ext(path)
	return fmt.Sprintf("%s.%06d%s", strings.TrimSuffix(path, extension), n, extension)
}

// parts are the numbers of the files of a series that are there, rising.
func parts(path string) (numbers []int, err error) {
	extension := filepath.Ext(path)
	stem := filepath.Base(strings.TrimSuffix(path, extension)) + "."
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	for _, e := range entries {
		text, ok := strings.CutPrefix(strings.TrimSuffix(e.Name(), extension), stem)
		n, err := strconv.Atoi(text)
		if ok && err == nil && n > 0 && filepath.Base(part(path, n)) == e.Name() {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	return numbers, nil
}
