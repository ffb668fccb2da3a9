package bench

import (
	"encoding/gob"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"lockstep/model/kernel"
	"lockstep/rt/target"
	"lockstep/sched"
)

// seals keep a memory file as it is for all who hold it.
const seals = unix.F_SEAL_SEAL | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE

// NamedFault is a fault by its name and in the words of a command.
type NamedFault struct {
	Name string
	Spec string
}

// String is the fault as a record tells it.
func (f NamedFault) String() string { return f.Name + ": " + f.Spec }

// forSupervisors is what follows the tables: for a supervisor that takes over.
type forSupervisors struct {
	Bench   *Bench
	Missing []sched.Missing
	Named   []NamedFault
	Held    []string
}

// Save writes the hand-over to a sealed file in memory, to be inherited by the
// target process; the caller closes it. Its values follow one another, and each process
// reads as far as it needs: a generated target no tables, no target what is for
// supervisors.
func (h *Handover) Save() (*os.File, error) {
	fd, err := unix.MemfdCreate("lockstep-handover", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("bench: hand-over: %w", os.NewSyscallError("memfd_create", err))
	}
	f := os.NewFile(uintptr(fd), "handover")
	to := gob.NewEncoder(f)
	for _, part := range []any{&h.Handover, h.Tables, &forSupervisors{h.Bench, h.Missing, h.Named, h.Held}} {
		if err := to.Encode(part); err != nil {
			f.Close()
			return nil, fmt.Errorf("bench: hand-over: %w", err)
		}
	}
	if _, err := unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, seals); err != nil {
		f.Close()
		return nil, fmt.Errorf("bench: hand-over: %w", os.NewSyscallError("fcntl(F_ADD_SEALS)", err))
	}
	return f, nil
}

// LoadHandover reads what Save wrote.
func LoadHandover(f *os.File) (*Handover, error) {
	first, err := target.Open(f)
	if err != nil {
		return nil, err
	}
	tables, last := &kernel.Tables{}, &forSupervisors{}
	for _, part := range []any{tables, last} {
		if err := first.Next(part); err != nil {
			return nil, err
		}
	}
	return &Handover{Handover: *first, Tables: tables, Bench: last.Bench, Missing: last.Missing, Named: last.Named, Held: last.Held}, nil
}

// Chooser finds the executable that ticks for a hand-over, with a kernel that was
// generated for it: its absolute path, and its mark (see package target).
type Chooser func(h *Handover) (file, mark string, err error)
