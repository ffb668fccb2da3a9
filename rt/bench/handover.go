package bench

import (
	"encoding/gob"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// seals keep a memory file as it is for all who hold it.
const seals = unix.F_SEAL_SEAL | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE

// Save writes the hand-over to a sealed file in memory, to be inherited by the
// target process; the caller closes it.
func (h *Handover) Save() (*os.File, error) {
	fd, err := unix.MemfdCreate("lockstep-handover", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("bench: hand-over: %w", os.NewSyscallError("memfd_create", err))
	}
	f := os.NewFile(uintptr(fd), "handover")
	if err := gob.NewEncoder(f).Encode(h); err != nil {
		f.Close()
		return nil, fmt.Errorf("bench: hand-over: %w", err)
	}
	if _, err := unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, seals); err != nil {
		f.Close()
		return nil, fmt.Errorf("bench: hand-over: %w", os.NewSyscallError("fcntl(F_ADD_SEALS)", err))
	}
	return f, nil
}

// loadHandover reads what Save wrote.
func loadHandover(f *os.File) (*Handover, error) {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, fmt.Errorf("bench: hand-over: %w", err)
	}
	h := &Handover{}
	if err := gob.NewDecoder(f).Decode(h); err != nil {
		return nil, fmt.Errorf("bench: hand-over: %w", err)
	}
	return h, nil
}
