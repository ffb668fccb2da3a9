package virtual

import (
	"io"
	"os"
	"testing"
	"time"

	"lockstep/sched"
)

// After 1 s of real time, 2 s of 10 s are simulated: 4 s are left.
func TestProgressStatesTheTimeLeft(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	p := progress{to: w, length: 10 * time.Second, ticks: 63}
	p.begun = sched.Now() - 9e8 // up to 0.1 s more on a busy host
	p.show(2e9)
	p.end()
	w.Close()
	text, err := io.ReadAll(r)
	if want := "\r2.0 s of 10.0 s, 20 %, 4 s left\x1b[K\r\x1b[K"; err != nil || string(text) != want {
		t.Errorf("%q, %v; want %q", text, err, want)
	}
}
