package sweep

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"lockstep/io/inputfile"
	"lockstep/rt/host"
)

// Shard is one part of a sweep; see number.
type Shard struct {
	I, N int64
	From string // source of I and N, for people; "": none, the only shard
}

const maxShards = 100_000

// Environment variables of Slurm job arrays and of Kubernetes indexed jobs.
const (
	slurmTask  = "SLURM_ARRAY_TASK_ID"
	slurmMin   = "SLURM_ARRAY_TASK_MIN"
	slurmMax   = "SLURM_ARRAY_TASK_MAX"
	slurmCount = "SLURM_ARRAY_TASK_COUNT"
	indexedJob = "JOB_COMPLETION_INDEX"
)

// ParseShard parses "I/N", or "N" with I from the environment; for "" both are from the
// environment.
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

		return Shard{}, fmt.Errorf("sweep: -shard %s: the number of the shard is missing: use -shard 0/%s, or set %s or %s",
			text, text, slurmTask, indexedJob)
	case env(slurmTask) != "":
		// A single task that is submitted again has a count of 1.
		last, err := strconv.Atoi(env(slurmMax))
		if env(slurmMin) != "0" || err != nil || strconv.Itoa(last+1) != env(slurmCount) {
			return Shard{}, fmt.Errorf("sweep: the job array is not --array=0-N (%s=%s, %s=%s, %s=%s): "+
				"give the number of shards (-shard N)",
				slurmMin, env(slurmMin), slurmMax, env(slurmMax), slurmCount, env(slurmCount))
		}

		return shard(env(slurmTask), env(slurmCount), slurmTask+" of "+slurmCount)
	case env(indexedJob) != "":
		return Shard{}, fmt.Errorf("sweep: %s=%s: give the number of shards (-shard N)", indexedJob, env(indexedJob))
	}

	return Shard{0, 1, ""}, nil
}

func shard(first, second, from string) (Shard, error) {
	i, errI := strconv.ParseInt(first, 10, 64)
	n, errN := strconv.ParseInt(second, 10, 64)
	if errI != nil || errN != nil || n < 1 || n > maxShards || i < 0 || i >= n {
		return Shard{}, fmt.Errorf("sweep: shard %s of %s: shards are numbered from 0 to N-1, with N at most %d (-shard 0/16)",
			first, second, maxShards)
	}

	return Shard{i, n, from}, nil
}

// number returns the shard's case in a block. A block is N consecutive cases, one per shard. Blocks
// are rotated by a pseudo-random number, so that no shard gets one value of the fastest parameter
// too often.
func (p Shard) number(block int64) int64 {
	return block*p.N + (p.I+p.N-rotationOf(block, p.N))%p.N
}

// shardOf returns which of n shards has a case.
func shardOf(number, n int64) int64 { return (number%n + rotationOf(number/n, n)) % n }

func rotationOf(block, n int64) int64 { return int64(mix(0, uint64(block)) % uint64(n)) }

// cases returns how many of all cases the shard has: one per block, except perhaps in the last.
func (p Shard) cases(all int64) int64 {
	n := all / p.N
	if p.number(n) < all {
		n++
	}
	return n
}

// file returns the name of the shard's file without its ending.
func (s *Sweep) file(p Shard) string {
	return fmt.Sprintf("%s-%s-shard-%d-of-%d", s.Name, s.Hash[:12], p.I, p.N)
}

// shardFile is the name of a shard's file and its parts.
type shardFile struct {
	name, sweep, hash string // hash: its first 12 digits
	Shard
	ending string // "parquet", or "partial" for a journal
}

var shardName = regexp.MustCompile(`^(.+)-([0-9a-f]{12})-shard-([0-9]{1,6})-of-([0-9]{1,6})\.(parquet|partial)$`)

// shardFiles returns the files of shards in a folder, sorted by name.
func shardFiles(dir string) (files []shardFile, err error) {
	list, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, e := range list {
		if m := shardName.FindStringSubmatch(e.Name()); m != nil {
			i, _ := strconv.ParseInt(m[3], 10, 64)
			n, _ := strconv.ParseInt(m[4], 10, 64)
			files = append(files, shardFile{m[0], m[1], m[2], Shard{I: i, N: n}, m[5]})
		}
	}

	return files, nil
}

// journal holds the finished rows of a running shard. After a kill it is readable up to its last
// complete row. Its lock is the lock of the shard.
//
// A row is a line: its checksum (crc32, IEEE, hexadecimal) and the Row as JSON.
type journal struct {
	*os.File
	results int
	end     int64 // end of the last complete row, bytes
}

// openJournal opens or creates the journal of a shard, and locks it.
func openJournal(path string, results int) (*journal, error) {
	f, err := openLocked(func() (*os.File, error) { return os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666) }, unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, &host.Exit{Code: 3, Err: fmt.Errorf("sweep: another process runs this shard (%s is locked): "+
			"wait for it, or run another shard (-shard)", path)}
	}

	if err != nil {
		return nil, refused(err)
	}
	if !host.IsRegular(f) {
		f.Close()
		return nil, fmt.Errorf("sweep: %s is %w: remove it", path, inputfile.ErrNotRegular)
	}
	return &journal{File: f, results: results}, nil
}

// openLocked opens and locks a file. It opens the file again if the former owner of the lock has
// removed or renamed it.
func openLocked(open func() (*os.File, error), how int) (*os.File, error) {
	for {
		f, err := open()
		if err != nil {
			return nil, err
		}
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|how); err != nil {
			f.Close()
			return nil, fmt.Errorf("%s cannot be locked: %w", f.Name(), err)
		}

		there, errThere := os.Stat(f.Name())
		own, errOwn := f.Stat()
		if errThere == nil && errOwn == nil && os.SameFile(there, own) {
			return f, nil
		}
		f.Close()
	}
}

// refused returns an error of the disk with a remedy.
func refused(err error) error {
	help := ""
	switch {
	case errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT):
		help = ": make room and run the same command again; finished cases are kept"
	case errors.Is(err, unix.EACCES) || errors.Is(err, unix.EROFS) || errors.Is(err, unix.ENOENT):
		help = ": use a folder that can be written (-o DIR)"
	}

	return &host.Exit{Code: 3, Err: fmt.Errorf("sweep: %w%s", err, help)}
}

// maxRow is the longest row of a journal, bytes.
const maxRow = 4 << 20

// rows reads the rows and truncates the file after the last complete row.
func (j *journal) rows() (list []Row, err error) {
	lines := bufio.NewReaderSize(j.File, maxRow)
	for {
		line, err := lines.ReadSlice('\n') // a longer line is no row
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull) {
			return nil, refused(err)
		}
		var row Row
		sum, text, _ := bytes.Cut(line, []byte(" "))
		text, whole := bytes.CutSuffix(text, []byte("\n"))
		if !whole || fmt.Sprintf("%08x", crc32.ChecksumIEEE(text)) != string(sum) ||
			json.Unmarshal(text, &row) != nil || len(row.Results) != j.results {
			break
		}

		list = append(list, row)
		j.end += int64(len(line))
	}

	if err = j.Truncate(j.end); err == nil {
		_, err = j.Seek(j.end, io.SeekStart)
	}
	if err != nil {
		return nil, refused(err)
	}
	return list, nil
}

// add appends a row.
func (j *journal) add(r Row) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	n, err := fmt.Fprintf(j, "%08x %s\n", crc32.ChecksumIEEE(text), text)
	if err != nil {
		return refused(err)
	}
	j.end += int64(n)
	return nil
}
