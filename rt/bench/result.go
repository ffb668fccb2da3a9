package bench

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"lockstep/io/inputfile"
	"lockstep/rt/host"
)

// ResultError is the error of a file that a result must not replace.
type ResultError struct {
	File string
	Kind string // kind of the file, a key of kinds
	Read bool   // this command reads the file
}

func (e *ResultError) Error() string {
	is := kinds[e.Kind].is
	if end := strings.IndexAny(is, "(,:"); end > 0 {
		is = strings.TrimSpace(is[:end])
	}
	if e.Read {
		return fmt.Sprintf("%s is %s that this command reads: name another file for the result", e.File, is)
	}
	return fmt.Sprintf("%s is %s; a result replaces only an older one of its kind: name another file, or remove this one",
		e.File, is)
}

// CreateResult is host.CreateResult with the check of CheckResult.
func CreateResult(name string, space int64, kinds ...string) (*host.Result, error) {
	if err := CheckResult(name, kinds...); err != nil {
		return nil, err
	}
	return host.CreateResult(name, space)
}

// CheckResult refuses a name under which a result would destroy a file. A result replaces an empty file
// or a file of its kinds, unless this process has read the file, by any name. The same holds for
// NAME.part. A device and a pipe are never refused. The error is a *ResultError.
func CheckResult(name string, kinds ...string) error {
	if name == "" || host.IsDirect(name) {
		return nil
	}
	target, err := filepath.EvalSymlinks(name)
	if err != nil {
		target = name
	}
	if err := checkReplaced(name, kinds); err != nil {
		return err
	}
	return checkReplaced(target+".part", kinds)
}

func checkReplaced(name string, kinds []string) error {
	info, err := os.Stat(name)
	if err != nil || !info.Mode().IsRegular() {
		return nil // its writer says why it cannot open the file
	}
	head, _ := inputfile.ReadHead(name) // of an unreadable file: empty, as far as this user knows
	kind := Kind(name, head)
	if inputfile.WasRead(info) {
		return &ResultError{name, kind, true}
	}
	isBlank := kind == "empty" || len(bytes.Trim(head, "\x00")) == 0 // reserved, or left by a loss of power
	if isBlank || slices.Contains(kinds, kind) {
		return nil
	}
	return &ResultError{name, kind, false}
}
