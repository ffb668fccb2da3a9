package latency

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"lockstep/sched"
	"lockstep/sched/hostinfo"
)

// Reference runs cyclictest on the CPU of a loop while that ticks, in turns: with the
// loop's period and priority, and half a period after its grid points, so that the two
// are not in each other's way and all else on the host is in the way of both.
type Reference struct {
	CPU      int
	Priority int           // of SCHED_FIFO, 1 to 99; 0: none
	Period   time.Duration // of the loop

	loop, peer []*record // by turn; nil where it failed
	alone      []*record // of the loop, between turns

	program, folder string
}

// Prepare looks for cyclictest. Where there is no error Close is needed after it.
func (b *Reference) Prepare() (err error) {
	if b.Period%time.Microsecond != 0 {
		return fmt.Errorf("the period of %v is not of whole us, as cyclictest wants it", b.Period)
	}
	if b.program, err = exec.LookPath(peerCyclictest); err != nil {
		return errors.New("no cyclictest to compare with: apt-get install rt-tests")
	}
	b.folder, err = os.MkdirTemp("", "lockstep-certify")
	return err
}

// Close removes what Prepare made.
func (b *Reference) Close() {
	if b.folder != "" {
		_ = os.RemoveAll(b.folder)
	}
}

// Turn is one turn of at most length beside a loop with a grid point at start, ns on
// CLOCK_MONOTONIC; late is the loop's histogram. What a context ends does not count.
func (b *Reference) Turn(ctx context.Context, length time.Duration, start int64, late *sched.Histogram) error {
	end, period := sched.Now()+int64(length), int64(b.Period)
	begin, err := b.second(ctx)
	if err != nil {
		return err
	}
	t := &chore{Period: period, Points: (end - begin) / period, CPU: b.CPU, Priority: b.Priority}
	if t.Points < 1 {
		return fmt.Errorf("a turn of %v is too short for cyclictest, which begins with a full second", length)
	}
	phase := (start+period/2-begin)%period + period
	limited, cancel := context.WithTimeout(ctx, 10*length+20*time.Second) // an overloaded host is late, not stuck
	defer cancel()
	var peer *record
	done := make(chan struct{})
	go func() {
		defer close(done)
		aligned := fmt.Sprintf("--secaligned=%d", phase%period/1000)
		peer, err = runCyclictest(limited, b.program, b.folder, t, aligned)
	}()

	time.Sleep(time.Duration(begin - sched.Now()))
	before := late.Copy()
	if <-done; ctx.Err() != nil {
		return ctx.Err()
	}
	b.loop = append(b.loop, loopRecord(late.Copy().Since(before), period))
	b.peer = append(b.peer, peer) // nil where it failed
	return err
}

// second waits until a full second has just begun and returns the next one, ns, with
// which a cyclictest that is started now begins.
func (b *Reference) second(ctx context.Context) (int64, error) {
	const full, ready = int64(time.Second), int64(300 * time.Millisecond) // it begins with the one after where 900 ms have passed
	now := sched.Now()
	if now%full > ready {
		select {
		case <-time.After(time.Duration(full - now%full)):
		case <-ctx.Done():
			return 0, ctx.Err()
		}

		now = sched.Now()
	}

	return (now/full + 1) * full, nil
}

// otherCPUs are those of this thread but cpu.
func otherCPUs(cpu int) []int { return hostinfo.CPUsWithout(sched.Allowed(), []int{cpu}) }

// loopRecord makes a record of a loop's histogram, which has each grid point: those that
// were missed are those that were a period late.
func loopRecord(h *sched.Histogram, period int64) *record {
	r := newRecord(h)
	r.Missed = r.OffChart
	for us, n := range r.Histogram {
		if int64(us)*1000 >= period {
			r.Missed += n
		}
	}

	r.OverPeriod = r.Missed
	return r
}

// Without adds what the loop did while no cyclictest ran.
func (b *Reference) Without(late *sched.Histogram) {
	b.alone = append(b.alone, loopRecord(late, int64(b.Period)))
}

// Figures sums up: the loop in the turns, with its ratio to cyclictest, cyclictest, and
// the loop between them; turns in which cyclictest failed are left out. nil: there was none
// of it.
func (b *Reference) Figures() (loop, peer, alone *Figures) {
	loop, peer, alone = figures(with(b.loop, b.peer), with(b.peer, b.peer)), figures(b.peer, nil), figures(b.alone, nil)
	if loop != nil && peer != nil {
		loop.Against = peerCyclictest
	}
	return loop, peer, alone
}
