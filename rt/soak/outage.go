package soak

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"lockstep/rt/host"
	"lockstep/rt/report"
)

// How long a soak goes on trying where no leg begins any more, as one of its interfaces is
// down, and how often.
const (
	stranded = 5 * time.Minute
	retry    = 2 * time.Second
)

// notBegun takes a leg that the host has refused. After one that has ticked, it is a broken
// leg, and the next one is tried for a while; nil: it goes on.
func (k *legs) notBegun(l *leg, err error) error {
	err = ofLeg(l, err)
	refused := &host.Exit{}
	if !k.ticked || !errors.As(err, &refused) || refused.Code != 3 {
		return err
	}
	now := time.Now()
	if k.outage.IsZero() {
		k.outage = now
		k.state.Tally.notBegun(l, err)
		k.say("leg %d, %s: BROKEN; it did not begin, and the next one is tried for %v: %s\n", l.number, l.kind, stranded, firstLine(err))
	}
	if now.Sub(k.outage) > stranded {
		return &host.Exit{Code: 3, Err: fmt.Errorf("soak: no leg has begun for %v: %w", stranded, errors.Unwrap(err))}
	}
	return nil
}

// pause waits until the next leg is to be tried, or somebody ends the soak.
func (k *legs) pause() {
	select {
	case <-time.After(retry):
	case s := <-k.signals:
		k.stopped = strings.ToLower(s.String())
	}
}

// notBegun adds a leg of which nothing can be judged.
func (t *tally) notBegun(l *leg, err error) {
	t.Legs++
	t.Broken++
	k := t.kind(l.kind)
	k.Legs, k.Broken = k.Legs+1, k.Broken+1
	if k.First == "" {
		k.First = fmt.Sprintf("leg %d: it did not begin: %s", l.number, firstLine(err))
	}
	t.demand(*l, report.Demand{What: "start", Want: "it begins", Seen: firstLine(err)})
}

// ofLeg says of what leg an error of its run is, in each line, and keeps its exit code.
func ofLeg(l *leg, err error) error {
	lines := strings.Split(err.Error(), "\n")
	for i, line := range lines {
		lines[i] = fmt.Sprintf("soak: leg %d: %s", l.number, strings.TrimPrefix(strings.TrimPrefix(line, "run: "), "soak: "))
	}
	text := errors.New(strings.Join(lines, "\n"))
	if e := (&host.Exit{}); errors.As(err, &e) {
		return &host.Exit{Code: e.Code, Err: text}
	}
	return text
}

// instant is a time that outlives this process: by the clock on the wall, which may be set,
// and by the one that begins with each boot.
type instant struct {
	Wall   int64  `json:"last_ns"` // ns since 1970
	Boot   string `json:"boot"`    // id
	Uptime int64  `json:"boot_ns"` // since it, ns
}

func thisInstant() instant {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &t) // there since 2.6.39
	return instant{time.Now().UnixNano(), host.BootID(), t.Nano()}
}

// since is how long before now an instant was, ns: exact within a boot, and otherwise by the
// clock on the wall, at least the time since the boot.
func (now instant) since(then instant) int64 {
	if then.Boot == now.Boot && now.Boot != "" {
		return max(0, now.Uptime-then.Uptime)
	}
	if then.Boot == "" { // the file is of an earlier version
		return max(0, now.Wall-then.Wall)
	}
	return max(now.Uptime, now.Wall-then.Wall)
}
