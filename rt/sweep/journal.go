package sweep

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"os"

	"golang.org/x/sys/unix"

	"lockstep/rt/host"
)

// journal holds the rows of a shard while it runs, in the order in which they were done. A
// kill leaves it readable up to its last whole row. Its lock is that of the shard.
//
// A row is its length and its checksum (crc32, IEEE), 4 bytes each, little-endian, and
// then: case, results as bits of floats, 8 bytes each; whether it was judged, 1; and the two
// texts, each after its length, 4.
type journal struct {
	*os.File
	results int
	end     int64 // of the last whole row
}

// openJournal opens the journal of a shard, or makes it, and locks it.
func openJournal(path string, results int) (*journal, error) {
	for range 100 {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
		if err != nil {
			return nil, refused(err)
		}
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if errors.Is(err, unix.EWOULDBLOCK) {
			f.Close()
			return nil, &host.Exit{Code: 3, Err: fmt.Errorf("sweep: another process works on this shard (%s is locked): let it end, or run another one (-shard)", path)}
		}
		if err != nil {
			f.Close()
			return nil, refused(fmt.Errorf("%s cannot be locked: %w", path, err))
		}
		there, errThere := os.Stat(path)
		own, errOwn := f.Stat()
		if errThere == nil && errOwn == nil && os.SameFile(there, own) {
			return &journal{File: f, results: results}, nil
		}
		f.Close() // who had it has ended, and removed it
	}
	return nil, &host.Exit{Code: 3, Err: fmt.Errorf("sweep: %s is made and removed again and again", path)}
}

// refused is an error of the disk.
func refused(err error) error {
	help := ""
	switch {
	case errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT):
		help = ": make room and run the same command again, cases that are done are kept"
	case errors.Is(err, unix.EACCES) || errors.Is(err, unix.EROFS) || errors.Is(err, unix.ENOENT):
		help = ": name a folder that can be written (-o DIR)"
	}
	return &host.Exit{Code: 3, Err: fmt.Errorf("sweep: %w%s", err, help)}
}

// rows reads what was done; what follows the last whole row is cut off.
func (j *journal) rows() ([]Row, error) {
	data, err := io.ReadAll(j.File)
	if err != nil {
		return nil, refused(err)
	}
	var list []Row
	for rest := data; len(rest) >= 8; {
		size, sum := int64(binary.LittleEndian.Uint32(rest)), binary.LittleEndian.Uint32(rest[4:])
		if int64(len(rest))-8 < size || crc32.ChecksumIEEE(rest[8:8+size]) != sum {
			break
		}
		row, ok := j.decode(rest[8 : 8+size])
		if !ok {
			break
		}
		list = append(list, row)
		rest = rest[8+size:]
		j.end += 8 + size
	}
	return list, j.cut()
}

// cut throws away what follows the last whole row.
func (j *journal) cut() error {
	err := j.Truncate(j.end)
	if err == nil {
		_, err = j.Seek(j.end, io.SeekStart)
	}
	if err != nil {
		return refused(err)
	}
	return nil
}

// put appends a row.
func (j *journal) put(r *Row) error {
	b := j.encode(r)
	head := binary.LittleEndian.AppendUint32(nil, uint32(len(b)))
	head = binary.LittleEndian.AppendUint32(head, crc32.ChecksumIEEE(b))
	if _, err := j.Write(append(head, b...)); err != nil {
		return refused(err)
	}
	j.end += int64(len(head) + len(b))
	return nil
}

func (j *journal) encode(r *Row) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(r.Case))
	for _, v := range r.Results {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
	}
	judged := byte(0)
	if r.Judged {
		judged = 1
	}
	b = append(b, judged)
	for _, text := range []string{r.Broken, r.Failed} {
		b = binary.LittleEndian.AppendUint32(b, uint32(len(text)))
		b = append(b, text...)
	}
	return b
}

func (j *journal) decode(b []byte) (r Row, ok bool) {
	in := bytes.NewReader(b)
	r.Results = make([]float64, j.results)
	err := errors.Join(binary.Read(in, binary.LittleEndian, &r.Case), binary.Read(in, binary.LittleEndian, r.Results),
		binary.Read(in, binary.LittleEndian, &r.Judged))
	for _, text := range []*string{&r.Broken, &r.Failed} {
		var size uint32
		err = errors.Join(err, binary.Read(in, binary.LittleEndian, &size))
		if err != nil || int(size) > in.Len() {
			return r, false
		}
		piece := make([]byte, size)
		_, err = io.ReadFull(in, piece)
		*text = string(piece)
	}
	return r, err == nil && in.Len() == 0
}
