package soak

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"lockstep/rt/bench"
	"lockstep/rt/host"
	"lockstep/rt/report"
)

// soakState is all that a soak has seen so far: what its state file holds.
type soakState struct {
	Bench   string           `json:"bench"`    // its name
	Made    string           `json:"made_of"`  // SHA-256 of the bench file and of all that it names
	Events  string           `json:"events"`   // of the scenarios
	Options string           `json:"options"`  // in words
	Starts  int              `json:"starts"`   // of the soak
	Missing int64            `json:"missing"`  // between the starts, ns
	Cut     int              `json:"cut"`      // legs that have not ended by themselves
	CutNs   int64            `json:"cut_ns"`   // simulated time of them, about
	Going   *going           `json:"going"`    // the leg that runs; nil: none does
	Load    string           `json:"load"`     // what it was
	Binary  []*report.Binary `json:"binaries"` // that have run it
	Tally   tally            `json:"tally"`
	instant                  // when it was last written
}

// going is a leg that runs.
type going struct {
	Number int    `json:"leg"`
	Kind   string `json:"kind"`
	Ticks  int64  `json:"ticks"` // about
	Target int    `json:"target"`
	Began  uint32 `json:"target_began"` // see rt.Identity
}

// stateVersion is that of the state file; one that is larger is of a newer program.
const stateVersion = 1

// stateFile is a state as its file holds it.
type stateFile struct {
	Version int             `json:"lockstep_soak"`
	Sum     string          `json:"sha256"` // of State
	State   json.RawMessage `json:"state"`
}

// store keeps a state in a file, which is replaced as a whole.
type store struct {
	path string   // "" it is kept nowhere
	lock *os.File // nobody else has it
	busy chan struct{}
	bad  int // how often it could not be written
	why  error
}

// openStore takes the state file for this process alone.
func openStore(path string) (*store, error) {
	s := &store{path: path, busy: make(chan struct{}, 1)}
	if path == "" {
		return s, nil
	}
	f, err := os.OpenFile(path+".lock", os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, fmt.Errorf("soak: state: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		pid, _ := io.ReadAll(io.LimitReader(f, 20))
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = fmt.Errorf("another soak has it, process %s", cmpText(string(pid), "unknown"))
		}
		return nil, &host.Exit{Code: 3, Err: fmt.Errorf("soak: state %s: %w", path, err)}
	}
	_ = f.Truncate(0) // it only helps who is refused
	_, _ = fmt.Fprintf(f, "%d", os.Getpid())
	s.lock = f
	return s, nil
}

func cmpText(text, otherwise string) string {
	if text = strings.TrimSpace(text); text == "" {
		return otherwise
	}
	return text
}

// close gives the file back.
func (s *store) close() {
	s.wait()
	if s.lock != nil {
		s.lock.Close()
	}
}

// read reads the state; nil: there is none.
func (s *store) read() (*soakState, error) {
	if s.path == "" {
		return nil, nil
	}
	data, err := os.ReadFile(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("soak: state: %w", err)
	}
	v, err := parseState(data)
	if err != nil {
		return nil, fmt.Errorf("soak: state %s: %w; -fresh starts anew", s.path, err)
	}
	return v, nil
}

// parseState reads what marshal has written.
func parseState(data []byte) (*soakState, error) {
	var f stateFile
	var v soakState
	if err := json.Unmarshal(data, &f); err != nil || f.Version == 0 {
		return nil, errors.New("it is damaged, or no state of a soak")
	}
	if f.Version > stateVersion {
		return nil, fmt.Errorf("it is of version %d, from a newer lockstep; this one reads %d", f.Version, stateVersion)
	}
	var plain bytes.Buffer
	if json.Compact(&plain, f.State) != nil || bench.DigestOfBytes(plain.Bytes()) != f.Sum || json.Unmarshal(f.State, &v) != nil {
		return nil, errors.New("it is damaged: its sum is not that of what it holds")
	}
	return &v, nil
}

// marshal is the state as a file.
func (v *soakState) marshal() ([]byte, error) {
	v.instant = thisInstant()
	state, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return json.Marshal(stateFile{stateVersion, bench.DigestOfBytes(state), state})
}

// write replaces the file, so that after a loss of power there is the one before or this
// one. What goes wrong is kept: the next one may succeed.
func (s *store) write(v *soakState) {
	if s.path == "" {
		return
	}
	data, err := v.marshal()
	s.wait()
	if err == nil {
		err = replace(s.path, data)
	}
	s.note(err)
}

// begin is write that nobody waits for; while one is under way it is none.
func (s *store) begin(v *soakState) {
	if s.path == "" {
		return
	}
	select {
	case s.busy <- struct{}{}:
	default:
		return
	}
	data, err := v.marshal()
	go func() {
		if err == nil {
			err = replace(s.path, data)
		}
		s.note(err)
		<-s.busy
	}()
}

// wait waits for what begin has begun.
func (s *store) wait() {
	if s.path == "" {
		return
	}
	s.busy <- struct{}{}
	<-s.busy
}

func (s *store) note(err error) {
	if err != nil {
		s.bad++
		s.why = err
	}
}

// replace writes a file beside path, and puts it in its place.
func replace(path string, data []byte) error {
	f, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		_ = os.Remove(path + ".new") // a full disk has room again
		return err
	}
	if err := os.Rename(path+".new", path); err != nil {
		return err
	}
	if dir, err := os.Open(filepath.Dir(path)); err == nil {
		_ = dir.Sync() // not every file system can
		dir.Close()
	}
	return nil
}

// fits says in what a state is of another soak; nil: in nothing.
func (v *soakState) fits(now *soakState) error {
	switch {
	case v.Bench != now.Bench:
		return fmt.Errorf("it is of bench %s, not of %s", v.Bench, now.Bench)
	case v.Made != now.Made:
		return fmt.Errorf("bench %s, its plant or its databases have changed since", v.Bench)
	case v.Events != now.Events:
		return errors.New("its scenarios have changed since")
	case v.Options != now.Options:
		return fmt.Errorf("it is of other options: %s; now %s", v.Options, now.Options)
	}
	return nil
}

// thisBinary is the version of this program, which is another one when its file is.
func thisBinary() string {
	sum, err := host.Executable()
	if err != nil {
		sum = "unreadable"
	}
	return fmt.Sprintf("lockstep %s, %.12s", host.Version(), sum)
}

// maxBinaries is how many versions are told apart; later ones count with the last.
const maxBinaries = 16

// binaryOf is the entry of a version.
func (v *soakState) binaryOf(version string) *report.Binary {
	for _, b := range v.Binary {
		if b.Version == version {
			return b
		}
	}
	if len(v.Binary) == maxBinaries {
		b := v.Binary[maxBinaries-1]
		b.Version = "other versions"
		return b
	}
	b := &report.Binary{Version: version}
	v.Binary = append(v.Binary, b)
	return b
}
