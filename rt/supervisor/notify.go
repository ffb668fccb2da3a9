package supervisor

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"time"

	"lockstep/rt"
)

// readyAfter is how many ticks in a row without a miss make a run ready.
const readyAfter = 100

// notifier tells a service manager how the run is doing, by the protocol of
// sd_notify(3): READY after some clean ticks, WATCHDOG as long as ticks come.
type notifier struct {
	to     *net.UnixConn // nil: there is no service manager
	every  time.Duration // of WATCHDOG; 0: it is not wanted
	status *rt.StatusBlock

	ready  bool
	missed uint64 // at the first of the clean ticks
	clean  uint64 // that tick
	gap    bool   // ticks were missed since the look before
	ticks  uint64 // at the last WATCHDOG
	last   time.Time
}

// newNotifier takes the socket from the environment, where the manager puts it.
func newNotifier(page *rt.StatusBlock) (*notifier, error) {
	n := &notifier{status: page}
	name := os.Getenv("NOTIFY_SOCKET")
	if name == "" {
		return n, nil
	}
	to, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		return nil, fmt.Errorf("run: NOTIFY_SOCKET: %w: unset it where no service manager is", err)
	}
	n.to = to
	if us, err := strconv.ParseInt(os.Getenv("WATCHDOG_USEC"), 10, 64); err == nil && us > 0 {
		n.every = time.Duration(us) * time.Microsecond / 3
	}
	return n, nil
}

// poll says what is to be said now; it is called several times per second.
func (n *notifier) poll(now time.Time) {
	if n.to == nil {
		return
	}
	ticks, missed := n.status.Ticks.Load(), n.status.Missed.Load()
	switch {
	case missed != n.missed:
		n.missed, n.gap = missed, true // the points of this gap may be ticks only after this look
	case n.gap:
		n.clean, n.gap = ticks, false
	}

	if !n.ready && !n.gap && ticks >= n.clean+readyAfter {
		n.ready = n.send(fmt.Sprintf("READY=1\nSTATUS=ticking, %d missed so far", missed))
	}
	over := rt.Reason(n.status.Reason.Load()) != rt.NotEnded // no tick follows, but the safe values may
	if n.every > 0 && (ticks != n.ticks || over) && now.Sub(n.last) >= n.every {
		n.ticks, n.last = ticks, now
		n.send("WATCHDOG=1")
	}
}

// sendStopping says that the run is over, and why.
func (n *notifier) sendStopping(why string) { n.send("STOPPING=1\nSTATUS=" + why) }

// send sends a message and tells whether it has gone. A manager that does not listen
// is no reason to end a run, nor to wait.
func (n *notifier) send(text string) bool {
	if n.to == nil {
		return false
	}
	_ = n.to.SetWriteDeadline(time.Now().Add(pollInterval / 10)) // cannot fail for an open socket
	_, err := n.to.Write([]byte(text))
	return err == nil
}

func (n *notifier) close() {
	if n.to != nil {
		n.to.Close()
	}
}
