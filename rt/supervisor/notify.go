package supervisor

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"time"

	"lockstep/rt"
)

// readyAfter is the number of consecutive ticks without a miss after which a run is ready.
const readyAfter = 100

// notifier sends the state of the run to a service manager by the protocol of sd_notify(3): READY
// after readyAfter ticks without a miss, WATCHDOG while ticks come.
type notifier struct {
	to     *net.UnixConn // nil: no service manager
	every  time.Duration // interval of WATCHDOG; 0: not requested
	status *rt.StatusBlock

	ready  bool      // READY was sent
	missed uint64    // missed ticks at the last poll
	clean  uint64    // first tick since the last missed one
	gap    bool      // ticks were missed since the previous poll
	ticks  uint64    // ticks at the last WATCHDOG
	last   time.Time // time of the last WATCHDOG
}

// newNotifier connects to the socket that the service manager names in NOTIFY_SOCKET.
func newNotifier(page *rt.StatusBlock) (*notifier, error) {
	n := &notifier{status: page}
	name := os.Getenv("NOTIFY_SOCKET")
	if name == "" {
		return n, nil
	}
	to, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		return nil, fmt.Errorf("run: NOTIFY_SOCKET: %w: unset the variable if there is no service manager", err)
	}
	n.to = to
	if us, err := strconv.ParseInt(os.Getenv("WATCHDOG_USEC"), 10, 64); err == nil && us > 0 {
		n.every = time.Duration(us) * time.Microsecond / 3
	}
	return n, nil
}

// poll sends the due messages; the supervisor calls it several times per second.
func (n *notifier) poll(now time.Time) {
	if n.to == nil {
		return
	}
	ticks, missed := n.status.Ticks.Load(), n.status.Missed.Load()
	switch {
	case missed != n.missed:
		n.missed, n.gap = missed, true // ticks of this gap may be counted only after this poll
	case n.gap:
		n.clean, n.gap = ticks, false
	}

	if !n.ready && !n.gap && ticks >= n.clean+readyAfter {
		n.ready = n.send(fmt.Sprintf("READY=1\nSTATUS=ticking, %d missed so far", missed))
	}
	ended := rt.Reason(n.status.Reason.Load()) != rt.NotEnded // safe values may follow, without ticks
	if n.every > 0 && (ticks != n.ticks || ended) && now.Sub(n.last) >= n.every {
		n.ticks, n.last = ticks, now
		n.send("WATCHDOG=1")
	}
}

// sendStopping sends the end of the run and its reason.
func (n *notifier) sendStopping(why string) { n.send("STOPPING=1\nSTATUS=" + why) }

// send sends a message and reports whether the socket took it. It waits at most pollInterval/10 for
// a service manager that does not read.
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
