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

// Reference measures cyclictest on the CPU of a running loop, in turns. Cyclictest has the loop's
// period and priority and wakes up half a period after the loop's grid points. The two thus do
// not delay each other, and all other activity of the host delays both.
type Reference struct {
	CPU      int
	Priority int           // SCHED_FIFO priority, 1 to 99; 0 for none
	Period   time.Duration // period of the loop

	loop, cyclictest []*record // records by turn; cyclictest has nil for a failed turn
	alone            []*record // records of the loop between the turns

	program, folder string
}

// Prepare finds cyclictest. Without an error the caller must call Close.
func (b *Reference) Prepare() (err error) {
	if b.Period%time.Microsecond != 0 {
		return fmt.Errorf("cyclictest needs a period of whole us, not %v", b.Period)
	}
	if b.program, err = exec.LookPath(methodCyclictest); err != nil {
		return errors.New("no cyclictest to compare with: apt-get install rt-tests")
	}
	b.folder, err = os.MkdirTemp("", "lockstep-certify")
	return err
}

// Close removes the temporary folder.
func (b *Reference) Close() {
	if b.folder != "" {
		_ = os.RemoveAll(b.folder)
	}
}

// Turn runs cyclictest for one turn of at most length. The loop has a grid point at start, ns on
// CLOCK_MONOTONIC, and records its wake-up latencies in late. A turn that ctx ends is discarded.
func (b *Reference) Turn(ctx context.Context, length time.Duration, start int64, late *sched.Histogram) error {
	end, period := sched.Now()+int64(length), int64(b.Period)
	begin, err := waitForSecond(ctx)
	if err != nil {
		return err
	}
	t := &turn{Period: period, Points: (end - begin) / period, CPU: b.CPU, Priority: b.Priority}
	if t.Points < 1 {
		return fmt.Errorf("a turn of %v is too short for cyclictest, which starts at a full second", length)
	}
	phase := (start+period/2-begin)%period + period
	limited, cancel := context.WithTimeout(ctx, 10*length+20*time.Second) // allows for an overloaded host
	defer cancel()
	var cyclictest *record
	done := make(chan struct{})
	go func() {
		defer close(done)
		aligned := fmt.Sprintf("--secaligned=%d", phase%period/1000)
		cyclictest, err = runCyclictest(limited, b.program, b.folder, t, aligned)
	}()

	time.Sleep(time.Duration(begin - sched.Now()))
	before := late.Copy()
	if <-done; ctx.Err() != nil {
		return ctx.Err()
	}
	b.loop = append(b.loop, loopRecord(late.Copy().Since(before), period))
	b.cyclictest = append(b.cyclictest, cyclictest)
	return err
}

// waitForSecond waits until a second of the clock has just begun and returns the start of the next
// second, ns: cyclictest, called now, starts there. Called in the last 100 ms of a second, cyclictest
// would start one second later.
func waitForSecond(ctx context.Context) (int64, error) {
	const full, latest = int64(time.Second), int64(300 * time.Millisecond)
	now := sched.Now()
	if now%full > latest {
		select {
		case <-time.After(time.Duration(full - now%full)):
		case <-ctx.Done():
			return 0, ctx.Err()
		}

		now = sched.Now()
	}

	return (now/full + 1) * full, nil
}

// otherCPUs lists the CPUs that this thread may use, except cpu.
func otherCPUs(cpu int) []int { return hostinfo.CPUsWithout(sched.Allowed(), []int{cpu}) }

// loopRecord converts the histogram of a loop. The histogram counts every grid point; a missed grid
// point is at least a period late.
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

// AddAlone adds latencies that the loop recorded while cyclictest did not run.
func (b *Reference) AddAlone(late *sched.Histogram) {
	b.alone = append(b.alone, loopRecord(late, int64(b.Period)))
}

// Figures summarizes three records: the loop during the turns, with its ratio to cyclictest;
// cyclictest; and the loop between the turns. Turns in which cyclictest failed are left out. A result
// without samples is nil.
func (b *Reference) Figures() (loop, cyclictest, alone *Figures) {
	loop = figures(paired(b.loop, b.cyclictest), paired(b.cyclictest, b.cyclictest))
	cyclictest, alone = figures(b.cyclictest, nil), figures(b.alone, nil)
	if loop != nil && cyclictest != nil {
		loop.Against = methodCyclictest
	}
	return loop, cyclictest, alone
}
