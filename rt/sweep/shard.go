package sweep

import (
	"fmt"
	"strconv"
	"strings"
)

// Shard is one part of a sweep; see number.
type Shard struct {
	I, N int64
	From string // what said so, for people; "" nobody did, it is all of it
}

const maxShards = 100_000

// The variables of Slurm's job arrays and of Kubernetes' indexed jobs.
const (
	slurmTask  = "SLURM_ARRAY_TASK_ID"
	slurmMin   = "SLURM_ARRAY_TASK_MIN"
	slurmMax   = "SLURM_ARRAY_TASK_MAX"
	slurmCount = "SLURM_ARRAY_TASK_COUNT"
	indexedJob = "JOB_COMPLETION_INDEX"
)

// ParseShard reads "I/N", or "N" with I from the environment; "" takes both from there.
func ParseShard(text string, env func(string) string) (Shard, error) {
	first, second, both := strings.Cut(text, "/")
	switch {
	case both:
		return shard(first, second, "-shard "+text)
	case text != "":
		for _, name := range []string{slurmTask, indexedJob} {
			if env(name) != "" {
				return shard(env(name), text, name+", of -shard "+text)
			}
		}
		return Shard{}, fmt.Errorf("sweep: -shard %s: which one is missing: -shard 0/%s, or %s or %s in the environment", text, text, slurmTask, indexedJob)
	case env(slurmTask) != "":
		// A task that is submitted again alone counts itself only.
		if last, err := strconv.Atoi(env(slurmMax)); env(slurmMin) != "0" || err != nil || strconv.Itoa(last+1) != env(slurmCount) {
			return Shard{}, fmt.Errorf("sweep: the job array is not --array=0-N (%s=%s, %s=%s, %s=%s): say of how many shards this is one (-shard N)",
				slurmMin, env(slurmMin), slurmMax, env(slurmMax), slurmCount, env(slurmCount))
		}
		return shard(env(slurmTask), env(slurmCount), slurmTask+" of "+slurmCount)
	case env(indexedJob) != "":
		return Shard{}, fmt.Errorf("sweep: %s=%s: say of how many shards this is one (-shard N)", indexedJob, env(indexedJob))
	}
	return Shard{0, 1, ""}, nil
}

func shard(first, second, from string) (Shard, error) {
	i, errI := strconv.ParseInt(first, 10, 64)
	n, errN := strconv.ParseInt(second, 10, 64)
	if errI != nil || errN != nil || n < 1 || n > maxShards || i < 0 || i >= n {
		return Shard{}, fmt.Errorf("sweep: shard %s of %s: shards are counted from 0 to N-1, N at most %d (-shard 0/16)", first, second, maxShards)
	}
	return Shard{i, n, from}, nil
}

// number is the shard's case of a block: each N cases in a row are one block, and each shard
// has one of them. Blocks are turned against each other, so that no shard has the same value
// of the fastest parameter again and again.
func (p Shard) number(block int64) int64 {
	return block*p.N + (p.I+p.N-turn(block, p.N))%p.N
}

// shardOf is which of n shards has a case.
func shardOf(number, n int64) int64 { return (number%n + turn(number/n, n)) % n }

func turn(block, n int64) int64 { return int64(mix(0, uint64(block)) % uint64(n)) }

// cases is how many of all cases the shard has; one in each block, but perhaps in the last.
func (p Shard) cases(all int64) int64 {
	n := all / p.N
	if p.number(n) < all {
		n++
	}
	return n
}

// file is the name of the shard's file without its ending.
func (s *Sweep) file(p Shard) string {
	return fmt.Sprintf("%s-%s-shard-%d-of-%d", s.Name, s.Hash[:12], p.I, p.N)
}
