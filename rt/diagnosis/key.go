package diagnosis

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	"lockstep/io/uds"
)

// Limits of the user's program for keys.
const (
	keyTime    = 5 * time.Second
	longestKey = 1 << 12 // characters
	keyPoll    = 5e6     // ns, between two looks for its end
)

// limited keeps the beginning of what a program prints.
type limited struct{ bytes.Buffer }

func (l *limited) Write(b []byte) (int, error) {
	l.Buffer.Write(b[:min(len(b), max(0, longestKey-l.Len()))])
	return len(b), nil
}

// runKey runs the program of a level: PROGRAM ARGS... LEVEL SEED, both as hexadecimal bytes. It prints the key.
func runKey(command []string, level byte, seed []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), keyTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, command[0], append(slices.Clone(command[1:]), fmt.Sprintf("%02X", level), fmt.Sprintf("%X", seed))...)
	cmd.WaitDelay = time.Second
	var out, failed limited
	cmd.Stdout, cmd.Stderr = &out, &failed
	err := cmd.Run()
	if ctx.Err() != nil {
		err = fmt.Errorf("no key within %v", keyTime)
	}
	if err != nil {
		line, _, _ := strings.Cut(strings.TrimSpace(failed.String()), "\n")
		return nil, fmt.Errorf("security level 0x%02X: %s: %w%s", level, command[0], err, strings.TrimRight(": "+line, ": "))
	}
	key, err := ParseBytes(strings.TrimSpace(out.String()))
	if err != nil {
		return nil, fmt.Errorf("security level 0x%02X: %s: the key %w", level, command[0], err)
	}
	return key, nil
}

// unlock gets the access of a security level. In real time the program for the key runs beside the bus.
func (s *Spec) unlock(t *uds.Tester, level byte, virtual bool) error {
	i := slices.IndexFunc(s.Security, func(v Security) bool { return v.Level == level })
	return t.Unlock(level, func(level byte, seed []byte) ([]byte, error) {
		if i < 0 {
			return nil, fmt.Errorf("%s has no program for the keys of security level 0x%02X (security: {%d: {exec: [./key.py]}})", s.File, level, level)
		}
		if virtual {
			return runKey(s.Security[i].Exec, level, seed)
		}
		type result struct {
			key []byte
			err error
		}
		done := make(chan result, 1)
		go func() {
			key, err := runKey(s.Security[i].Exec, level, seed)
			done <- result{key, err}
		}()
		for {
			select {
			case r := <-done:
				return r.key, r.err
			default:
				if err := t.Pause(keyPoll); err != nil {
					return nil, errors.New("the unlocking was dropped")
				}
			}
		}
	})
}
