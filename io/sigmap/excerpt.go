package sigmap

import "slices"

// Excerpt is the part of a J1939 message of more than 64 bytes that the frame of the tick holds: the
// bytes of the bound signals and the last byte, chosen before the run. So a message of any length has the
// cost of one frame in the tick, in its queues and in the record. The zero Excerpt is that of a shorter
// message: the frame has all of it.
type Excerpt struct {
	At   []uint16 // place in the message of each byte of the frame, rising; 64 at most
	Rest []byte   // sent: the whole message; Whole replaces the bytes at At
}

// Size returns the length of the message whose frame has n bytes.
func (e *Excerpt) Size(n int) int {
	if len(e.At) == 0 {
		return n
	}
	return int(e.At[len(e.At)-1]) + 1
}

// Cut writes the data of the frame of a received message and returns its length: shorter than At if the
// message lacks a byte of it. Bytes beyond the message of the database follow, as far as there is room.
func (e *Excerpt) Cut(data *[64]byte, message []byte) (n int) {
	for ; n < len(e.At) && int(e.At[n]) < len(message); n++ {
		data[n] = message[e.At[n]]
	}
	if n == len(e.At) {
		n += copy(data[n:], message[e.Size(0):])
	}
	return n
}

// Whole returns the message that is sent with the data of its frame.
func (e *Excerpt) Whole(data []byte) []byte {
	if len(e.At) == 0 {
		return data
	}
	whole := slices.Clone(e.Rest)
	for i, v := range data[:min(len(data), len(e.At))] {
		whole[e.At[i]] = v
	}
	return whole
}
