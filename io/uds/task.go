package uds

import (
	"errors"
	"iter"
	"slices"

	"lockstep/io/isotp"
)

// Task runs a procedure on a client. The procedure is ordinary code that stops in Tester.Ask until the answer is
// there; Step continues it. It runs as a coroutine of the caller of Step: never at the same time, and in the same
// order in every run. Use Begin, and End if the task is dropped before it is done.
type Task struct {
	Exchanges []Exchange // requests that have ended, in their order

	client  *Client
	tester  *Tester
	next    func() (wish, bool)
	stop    func()
	waiting bool  // for an answer
	until   int64 // end of a pause, ns
	pausing bool
	begun   bool
	done    bool
	err     error
}

// Tester is the procedure's view of its task.
type Tester struct {
	yield  func(wish) bool
	result Exchange
	now    int64
}

// wish is what a procedure waits for: the answer of a request, or the end of a pause.
type wish struct {
	request []byte
	pause   int64 // ns
}

var errDropped = errors.New("the procedure was dropped")

// Begin returns a task that runs a procedure on a client.
func Begin(c *Client, procedure func(*Tester) error) *Task {
	t := &Task{client: c, tester: &Tester{}}
	t.next, t.stop = iter.Pull(func(yield func(wish) bool) {
		t.tester.yield = yield
		t.err = procedure(t.tester)
	})
	return t
}

// Ask sends a request and returns its positive answer; nil: none is due.
func (t *Tester) Ask(request ...byte) ([]byte, error) {
	t.result = Exchange{Err: errDropped}
	if !t.yield(wish{request: slices.Clone(request)}) {
		return nil, errDropped
	}
	return t.result.Answer, t.result.Err
}

// Pause waits for a time, ns.
func (t *Tester) Pause(ns int64) error {
	if !t.yield(wish{pause: ns}) {
		return errDropped
	}
	return nil
}

// Now returns the instant of the last step, ns.
func (t *Tester) Now() int64 { return t.now }

// Step continues the procedure as far as it can go at an instant, ns; done: it has ended, with err.
func (t *Task) Step(now int64) (done bool, err error) {
	t.tester.now = now
	if t.pausing && now >= t.until {
		t.pausing = false
		t.advance(now)
	}
	if !t.begun {
		t.begun = true
		t.advance(now)
	}
	for _, e := range t.client.Take() {
		t.Exchanges = append(t.Exchanges, e)
		if t.waiting {
			t.waiting, t.tester.result = false, e
			t.advance(now)
		}
	}
	return t.done, t.err
}

// advance runs the procedure up to its next wish.
func (t *Task) advance(now int64) {
	for {
		w, more := t.next()
		switch {
		case !more:
			t.done = true
			return
		case w.request == nil:
			t.pausing, t.until = true, now+w.pause
			return
		}
		err := t.client.Request(w.request, now)
		if err == nil {
			t.waiting = true
			return
		}
		t.tester.result = Exchange{Request: w.request, Err: err}
	}
}

// Deadline returns the instant, ns, at which Step has work without an answer; isotp.Never: none.
func (t *Task) Deadline() int64 {
	if t.pausing {
		return t.until
	}
	return isotp.Never
}

// End drops the procedure and its open request.
func (t *Task) End() {
	if !t.done {
		t.client.Abort()
		t.done, t.waiting, t.pausing = true, false, false
	}
	t.stop()
}
