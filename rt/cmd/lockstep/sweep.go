package main

import (
	"cmp"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"lockstep/rt/host"
	"lockstep/rt/sweep"
)

func defineSweep(a *args) func() error {
	out := a.output("o DIR|FILE.parquet|FILE.csv",
		"folder of the shard file SWEEP-HASH-shard-I-of-N.parquet (default: the current one); with -merge "+
			"the merged table, .parquet or .csv")
	workers := a.Int("j N", runtime.GOMAXPROCS(0), "number of cases run at once")
	text := a.String("shard I/N", "",
		"part of the sweep: I/N, I from 0 to N-1; N alone takes I from SLURM_ARRAY_TASK_ID or "+
			"JOB_COMPLETION_INDEX; default: SLURM_ARRAY_TASK_ID and _COUNT of a job array 0-N, else the whole sweep")
	from := a.String("merge DIR", "", "merge the shards in this folder into one table")
	si := a.Bool("si", false, "with -merge: the table in SI, not in the units of the sweep and of the plant")

	return func() error {
		switch {
		case *from != "" && (*out == "" || *text != ""):
			return usageError{"sweep: -merge DIR needs -o FILE.parquet or -o FILE.csv, and no -shard"}
		case *from == "" && *si:
			return usageError{"sweep: -si goes with -merge DIR: a shard keeps the units of the sweep"}
		case *from == "" && len(a.operands) == 0:
			return usageError{"sweep: SWEEP is missing; usage: lockstep " + a.usage()}
		case *workers < 1:
			return usageError{"sweep: -j must be at least 1"}
		}

		var s *sweep.Sweep
		var err error
		if len(a.operands) > 0 {
			if s, err = sweep.Load(a.operands[0]); err != nil {
				return err
			}
		}

		if *from != "" {
			return mergeShards(s, *from, *out, *si)
		}
		r := &sweep.Run{Sweep: s, Dir: cmp.Or(*out, "."), Workers: *workers, Notes: os.Stderr}
		r.Progress = progressLine("sweep " + s.Name)
		if r.Shard, err = sweep.ParseShard(*text, os.Getenv); err != nil {
			return err
		}
		return runShard(r)
	}
}

func runShard(r *sweep.Run) error {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGINT, syscall.SIGTERM)
	defer signal.Stop(stop)
	r.Stop = stop
	fmt.Fprint(host.Fold(os.Stderr), r.About())
	o, err := r.Do()
	if err != nil {
		return err
	}
	out := stdout
	if o.Already {
		fmt.Fprintf(out, "%s: %s is complete, %d cases, %d failed: nothing to do\n", r.Name, o.Path, o.Rows, o.Failed)
		return o.AllFailed()
	}

	fmt.Fprintf(out, "%s: %d cases in %v, %d failed; %s\n\n",
		r.Name, o.Rows-o.Resumed, o.Took.Round(10*time.Millisecond), o.Failed, o.Path)
	o.Text(out)
	return o.AllFailed()
}

func mergeShards(s *sweep.Sweep, dir, out string, si bool) error {
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return usageError{fmt.Sprintf("sweep: -merge %s is a file; name the folder of the shards", dir)}
	}
	hash := ""
	if s != nil {
		hash = s.Hash
	}
	o, err := sweep.Merge(dir, out, hash, si)
	if err != nil {
		return err
	}
	to := stdout
	fmt.Fprintf(to, "%s: %d cases, %d failed; %s\n\n", o.Head.Sweep, o.Rows, o.Failed, o.Path)
	o.Text(to)
	return o.AllFailed()
}
