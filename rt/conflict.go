package rt

import (
	"cmp"
	"slices"
	"sync/atomic"

	"lockstep/io/can"
	"lockstep/io/sigmap"
)

// TxConflict counts the frames of other nodes that have the identifier of a sent message.
type TxConflict struct {
	Frames atomic.Uint64 // frames
	First  atomic.Uint64 // tick that read the first one; valid if Frames > 0
	Last   atomic.Uint64 // tick that read the last one; valid if Frames > 0
}

// sentID is the identifier of a sent message, with its index in StatusBlock.TxConflicts.
type sentID struct {
	id uint32
	at int
}

// sentIDs lists the identifiers of the sent messages of a map, in rising order; first is the index of
// its first message. It leaves out claims of J1939 addresses, SAE J1939-81: the supervisor sends them
// on a socket of its own, and watches for contenders.
func sentIDs(m *sigmap.Map, first int) (list []sentID) {
	const claims, format = can.EFF | 0xEE<<16, can.EFF | 0xFF<<16 // PDU format of an address claim
	for i := range m.Tx {
		if m.Tx[i].ID&format != claims {
			list = append(list, sentID{m.Tx[i].ID, first + i})
		}
	}

	slices.SortFunc(list, func(a, b sentID) int { return cmp.Compare(a.id, b.id) })
	return list
}

// countConflict counts, before grid point k, a frame received on bus b that has the identifier of a
// sent message. It returns false for any other frame. A socket does not receive its own frames:
// another node, or another program of this host, has sent this one.
//
//go:nosplit
func (l *Loop) countConflict(b int, id uint32, k int64) bool {
	list := l.sentIDs[b]
	lo, hi := 0, len(list)
	for lo < hi {
		if mid := (lo + hi) / 2; list[mid].id < id {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo == len(list) || list[lo].id != id {
		return false
	}

	c := &l.status.TxConflicts[list[lo].at]
	if c.Frames.Load() == 0 {
		c.First.Store(uint64(k))
	}
	c.Last.Store(uint64(k))
	c.Frames.Store(c.Frames.Load() + 1)
	return true
}
