package report

import (
	"fmt"

	"lockstep/io/can"
	"lockstep/io/sigmap"
)

// IDConflict counts the frames of other nodes, or of other programs of this host, that have the
// identifier of a sent message. Frames of the run's own sockets do not count.
type IDConflict struct {
	Bus     string  `json:"bus"`
	Message string  `json:"message"`            // "Speeds"; "Speeds on drive" in a bench of several buses
	ID      uint32  `json:"id"`                 // identifier without the extended flag
	EFF     bool    `json:"extended,omitempty"` // 29-bit identifier
	Frames  uint64  `json:"frames"`
	First   float64 `json:"first_s"` // simulated time of the first frame, s
	Last    float64 `json:"last_s"`  // simulated time of the last frame, s
}

// String formats the conflict for the text report.
func (c *IDConflict) String() string {
	id := c.ID
	if c.EFF {
		id |= can.EFF
	}
	return fmt.Sprintf("another node sends %s (%s): %d frames from %.3f s to %.3f s; take it off the bus, or the message out of the bench",
		c.Message, can.FormatID(id), c.Frames, c.First, c.Last)
}

// Conflicts lists the sent messages that other nodes send, too.
func (v View) Conflicts() (list []IDConflict) {
	v.eachConflict(func(bus int, tx *sigmap.Tx, frames, first, last uint64) {
		seconds := func(tick uint64) float64 { return float64(int64(tick)*v.Handover.Tables.PeriodNs) / 1e9 }
		list = append(list, IDConflict{
			Bus: v.Handover.Bench.Buses[bus].Name.Text, Message: messageLabel(v.Handover, bus, tx.Name),
			ID: tx.ID & can.MaskEFF, EFF: tx.ID&can.EFF != 0, Frames: frames, First: seconds(first), Last: seconds(last),
		})
	})
	return list
}

// ConflictProblem describes a sent message that another node sends, too, in at most 60 columns; ""
// if there is none. With now, it describes only a message that came within silenceLimit.
func (v View) ConflictProblem(now bool) (text string) {
	tick := v.Status.Ticks.Load()
	v.eachConflict(func(_ int, tx *sigmap.Tx, _, _, last uint64) {
		recent := (int64(tick)-int64(last))*v.Handover.Tables.PeriodNs < int64(silenceLimit)
		if text == "" && (recent || !now) {
			text = fmt.Sprintf("another node sends %s", shortName(tx.Name))
		}
	})
	return text
}

// eachConflict calls do for each sent message that other nodes send, too, with its frames and the
// ticks of the first and the last one.
func (v View) eachConflict(do func(bus int, tx *sigmap.Tx, frames, first, last uint64)) {
	at := 0
	for b, m := range v.Handover.Maps {
		for i := range m.Tx {
			c := &v.Status.TxConflicts[at]
			at++
			if n := c.Frames.Load(); n > 0 {
				do(b, &m.Tx[i], n, c.First.Load(), c.Last.Load())
			}
		}
	}
}
