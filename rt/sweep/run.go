package sweep

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"lockstep/rt/host"
	"lockstep/rt/progress"
)

// Run runs one shard of a sweep.
type Run struct {
	*Sweep
	Shard    Shard
	Dir      string           // folder of the shard's file
	Workers  int              // concurrent simulations, >= 1
	Notes    io.Writer        // destination of notes for people
	Progress *progress.Line   // nil: none
	Stop     <-chan os.Signal // a signal ends the run; finished cases stay in the journal

	path    string // path of the file without its ending
	journal *journal
	rows    map[int64]Row // finished cases, by number
	resumed int           // of these, cases of an earlier run
	begun   time.Time
	failed  int // of these, failed cases
}

// Outcome is the result of a shard.
type Outcome struct {
	Path    string
	Already bool // the file was complete before this run
	Rows    int  // cases
	Resumed int  // of Rows, cases of an earlier run
	Failed  int  // of Rows, failed cases
	Took    time.Duration
	Head    head
	records []record
}

func newOutcome(path string, h head, rows []record) *Outcome {
	o := &Outcome{Path: path, Rows: len(rows), Head: h, records: rows}
	for _, row := range rows {
		if !row[len(row)-1].IsNull() {
			o.Failed++
		}
	}

	return o
}

// Do runs the unfinished cases of the shard and writes its file. It does nothing if the file is
// complete. The error is a *host.Exit with code 3 if the disk or another process prevents the run,
// and with code 1 if the run was stopped.
func (r *Run) Do() (*Outcome, error) {
	r.path = filepath.Join(r.Dir, r.file(r.Shard))
	if err := os.MkdirAll(r.Dir, 0o777); err != nil {
		return nil, refused(err)
	}
	if err := r.checkNumber(); err != nil {
		return nil, err
	}
	var err error
	if r.journal, err = openJournal(r.path+".partial", len(r.results)); err != nil {
		return nil, err
	}
	defer r.journal.Close()
	if done := r.readFinished(); done != nil {
		return done, r.remove()
	}
	if err := r.resume(); err != nil {
		return nil, err
	}
	if err := r.work(); err != nil {
		return nil, err
	}
	return r.finish()
}

// ErrChanged is the error of a file that has changed since the sweep was read.
var ErrChanged = errors.New("has changed since the sweep began")

// checkNumber refuses a folder with shards of the same sweep in another number of shards.
func (r *Run) checkNumber() error {
	files, err := shardFiles(r.Dir)
	for _, f := range files {
		if f.sweep == r.Name && f.hash == r.Hash[:12] && f.N != r.Shard.N {
			return fmt.Errorf("sweep: %s is one of %d shards, this run one of %d: use that number (-shard I/%d) "+
				"or another folder (-o DIR)", filepath.Join(r.Dir, f.name), f.N, r.Shard.N, f.N)
		}
	}

	return err
}

// readFinished returns the content of the shard's file if it is complete; otherwise nil.
func (r *Run) readFinished() *Outcome {
	h, rows, err := readParquet(r.path + ".parquet")
	own := h.Hash == r.Hash && h.Shard == r.Shard.I && h.Shards == r.Shard.N && h.Rows == r.Shard.cases(r.Cases)
	if err == nil && !own {
		err = fmt.Errorf("%s.parquet holds another shard than its name says", r.path)
	}
	if err != nil {
		if !errors.Is(err, os.ErrNotExist) {
			r.printf("%v: the shard is computed again\n", err)
		}
		return nil
	}

	o := newOutcome(r.path+".parquet", h, rows)
	o.Already = true
	return o
}

// printf prints a note.
func (r *Run) printf(format string, args ...any) {
	fmt.Fprintf(r.Notes, r.Name+": "+format, args...)
}

// resume reads the finished cases from the journal.
func (r *Run) resume() error {
	rows, err := r.journal.rows()
	if err != nil {
		return err
	}
	r.rows = make(map[int64]Row, r.Shard.cases(r.Cases))
	for _, row := range rows {
		_, twice := r.rows[row.Case]
		if !twice && row.Case >= 0 && row.Case < r.Cases && shardOf(row.Case, r.Shard.N) == r.Shard.I {
			r.addRow(row)
		}
	}

	if r.resumed = len(r.rows); r.resumed > 0 {
		r.printf("continues after %d of %d cases\n", r.resumed, r.Shard.cases(r.Cases))
	}
	return nil
}

func (r *Run) addRow(row Row) {
	r.rows[row.Case] = row
	if row.Failed != "" {
		r.failed++
	}
}

// work runs the unfinished cases.
func (r *Run) work() error {
	r.Progress.Begin(progress.Work{Total: r.Shard.cases(r.Cases), Done: int64(r.resumed), Unit: "cases"})
	defer r.Progress.End()
	var todo []int64
	for block := range r.Shard.cases(r.Cases) {
		number := r.Shard.number(block)
		if _, done := r.rows[number]; !done {
			todo = append(todo, number)
		}
	}

	workers := make([]*worker, min(r.Workers, len(todo)))
	var stop atomic.Bool
	for i := range workers {
		w, err := r.worker()
		if err != nil {
			return err
		}
		if r.hash(w.from.Files) != r.Hash {
			return fmt.Errorf("sweep: a file of %s %w: run the same command again", r.Name, ErrChanged)
		}
		w.stop, workers[i] = &stop, w
	}

	r.begun = time.Now()
	rows := make(chan Row, len(workers))
	var next atomic.Int64
	var all sync.WaitGroup
	for _, w := range workers {
		all.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(todo)) && !stop.Load(); i = next.Add(1) - 1 {
				if row, ok := w.run(todo[i]); ok {
					rows <- row
				}
			}
		})
	}

	go func() {
		all.Wait()
		close(rows)
	}()

	return r.collect(rows, &stop)
}

// collect writes rows into the journal until the channel is closed. A signal or a failed write
// stops the workers.
func (r *Run) collect(rows <-chan Row, stop *atomic.Bool) (err error) {
	for {
		select {
		case row, ok := <-rows:
			if !ok {
				return err
			}

			r.addRow(row)
			r.showRows()
			if err == nil {
				if err = r.journal.add(row); err != nil {
					stop.Store(true)
				}
			}
		case s := <-r.Stop:
			r.Stop = nil
			stop.Store(true)
			if err == nil {
				err = &host.Exit{Code: 1, Err: fmt.Errorf("sweep: stopped by %v; run the same command again to continue", s)}
			}
		}
	}
}

// showRows counts the finished cases in the progress line.
func (r *Run) showRows() {
	r.Progress.Set(int64(len(r.rows)))
	if r.failed > 0 {
		r.Progress.Note(fmt.Sprintf("%d failed", r.failed))
	}
}

// finish writes the file of the shard.
func (r *Run) finish() (*Outcome, error) {
	var rows []record
	for _, number := range slices.Sorted(maps.Keys(r.rows)) {
		rows = append(rows, r.record(r.rows[number]))
	}
	h := head{
		Sweep: r.Name, Hash: r.Hash, Shard: r.Shard.I, Shards: r.Shard.N,
		Cases: r.Cases, Columns: r.Columns, File: string(r.text),
	}
	o := newOutcome(r.path+".parquet", h, rows)
	o.Resumed, o.Took = r.resumed, time.Since(r.begun)
	draft := fmt.Sprintf("%s-shard-%d-of-%d", r.Name, r.Shard.I, r.Shard.N) // the same name for every version of the sweep
	if err := writeParquet(o.Path, draft, h, rows); err != nil {
		return nil, err
	}
	return o, r.remove()
}

// remove removes the journal, which stays locked.
func (r *Run) remove() error {
	if err := os.Remove(r.path + ".partial"); err != nil {
		return refused(err)
	}
	return nil
}

// About describes the run for people.
func (r *Run) About() string {
	part := "all of them"
	if r.Shard.N > 1 {
		part = fmt.Sprintf("shard %d of %d (%s), %d cases", r.Shard.I, r.Shard.N, r.Shard.From, r.Shard.cases(r.Cases))
	}
	return fmt.Sprintf("%s: %d cases of %s, %.6g s each in steps of %.6g ms; %s; %d at once\n", r.Name, r.Cases, r.Plant,
		float64(r.Ticks)*float64(r.StepNs)/1e9, float64(r.StepNs)/1e6, part, r.Workers)
}
