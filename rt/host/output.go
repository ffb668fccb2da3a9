package host

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

// Output writes to the standard output and keeps the first error, for the exit code: most lines are
// printed by functions that ignore it.
type Output struct {
	to  io.Writer
	err *error // shared by the writers of one file
}

// NewOutput returns two writers to f: one that folds lines for a terminal, see Fold, and a plain one.
func NewOutput(f *os.File) (folded, plain *Output) {
	err := new(error)
	return &Output{Fold(f), err}, &Output{f, err}
}

// Write implements io.Writer. After an error it writes nothing more.
func (o *Output) Write(p []byte) (n int, err error) {
	if *o.err == nil {
		n, *o.err = o.to.Write(p)
	}
	return n, *o.err
}

// Width returns the width of the terminal that lines are folded for, columns; 0: they are not folded.
func (o *Output) Width() int {
	if f, ok := o.to.(*lineFolder); ok {
		return f.Width()
	}
	return 0
}

// Err returns the first error; nil for a reader that has ended, as of `| head`.
func (o *Output) Err() error {
	if *o.err == nil || errors.Is(*o.err, syscall.EPIPE) {
		return nil
	}
	return fmt.Errorf("the output is not complete: %w", *o.err)
}
