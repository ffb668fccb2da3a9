package sigmap

import (
	"cmp"
	"math/bits"
	"slices"

	"lockstep/io/j1939"
	"lockstep/io/messages"
)

// Address is a J1939 address of a Sending or Reception. The zero Address is that of the database.
type Address struct {
	Given bool
	Value uint8 // 0 to 253; of a destination also j1939.Global; of a Reception also j1939.Null: any address
}

// or returns the address, or that of the database if it is not given.
func (a Address) or(database uint8) uint8 {
	if a.Given {
		return a.Value
	}
	return database
}

// sendID returns the identifier of a sent message with its addresses. A database may leave them open:
// its address is 254 then.
func (b *binder) sendID(msg *messages.Message, s *Sending) uint32 {
	if !msg.J1939 {
		refuseAddresses(s.Source, s.Destination)
		return msg.ID
	}

	id := j1939.ParseID(msg.ID)
	switch id.Source = s.Source.or(id.Source); {
	case id.Source < j1939.Null:
	case len(b.addresses) == 1:
		id.Source = b.addresses[0]
	default:
		refuse("the database gives it no source address (%s:%d: 0x%02X); name one: source: 0x00", b.db.File, msg.Line, id.Source)
	}

	if !j1939.Directed(id.PGN) {
		refuseDestination(id.PGN, s.Destination)
		return id.Bits()
	}
	if id.Destination = s.Destination.or(id.Destination); id.Destination == j1939.Null {
		refuse("the database gives it no destination address (%s:%d: 0x%02X); name one: destination: 0x03, or all",
			b.db.File, msg.Line, id.Destination)
	}
	return id.Bits()
}

// checkLong checks a sent message of several frames, of a number of bytes, with its identifier.
func checkLong(bytes int, s *Sending, id uint32) {
	switch {
	case bytes > 64 && len(s.Protect) > 0:
		refuse("it has %d bytes; a protection is possible up to 64", bytes)
	case bytes > 64 && s.Mux != nil:
		refuse("mux: it has %d bytes; pages in turn are possible up to 64: "+
			"give its multiplexors constant values (values)", bytes)
	}
	took := int64(j1939.Packets(bytes)) * j1939.PacketInterval
	if to := j1939.ParseID(id).Destination; to == j1939.Global && s.CycleNs > 0 && s.CycleNs < took {
		refuse("cycle %g ms: the packets of its %d bytes to all take %g ms", ms(s.CycleNs), bytes, ms(took))
	}
}

// refuseAddresses refuses the addresses of a message that is not one of J1939.
func refuseAddresses(list ...Address) {
	for _, a := range list {
		if a.Given {
			refuse("the database does not mark it as a J1939 message (VFrameFormat, ProtocolType): it has no addresses")
		}
	}
}

// refuseDestination refuses a destination of a group that goes to all nodes (PDU2).
func refuseDestination(pgn uint32, a Address) {
	if a.Given {
		refuse("parameter group %d goes to all nodes: it has no destination", pgn)
	}
}

// compilePatterns makes the patterns of all received messages. A message of J1939 is found by its
// parameter group, not by its priority. The more specific of two patterns comes first; two messages
// may not have the same one.
func (b *binder) compilePatterns(receptions []Reception) {
	for i := range b.m.Rx {
		name := b.m.Rx[i].Name
		s := Reception{Message: name}
		at := slices.IndexFunc(receptions, func(s Reception) bool { return s.Message == name })
		if at >= 0 {
			s = receptions[at]
		}
		err := try(func() { inContext(s.describe(), func() { b.addPatterns(i, &s) }) })
		if at >= 0 && err != nil {
			err = &SpecError{Place{List: InReceptions, Index: at}, err}
		}
		if err != nil {
			panic(refusal{err})
		}
	}

	b.linkReceivers()
	slices.SortFunc(b.m.Patterns, func(v, w Pattern) int {
		return cmp.Or(cmp.Compare(bits.OnesCount32(w.Mask), bits.OnesCount32(v.Mask)), cmp.Compare(v.Mask, w.Mask),
			cmp.Compare(v.ID, w.ID))
	})
	for at, p := range b.m.Patterns {
		if n := len(b.m.Groups); n == 0 || b.m.Groups[n-1].Mask != p.Mask {
			b.m.Groups = append(b.m.Groups, PatternGroup{Mask: p.Mask, First: at})
		}
		b.m.Groups[len(b.m.Groups)-1].End = at + 1
	}
}

// linkReceivers links the messages that differ in their destination only: a frame to all nodes is for each.
func (b *binder) linkReceivers() {
	const toAll = uint32(j1939.Global) << 8
	for _, first := range b.m.Patterns {
		if first.Mask&destinationBits == 0 || first.Mask&priorityBits != 0 || first.ID&destinationBits != toAll {
			continue
		}
		last := first.Rx
		for _, p := range b.m.Patterns {
			to := uint8(p.ID >> 8)
			if p.Mask&destinationBits == 0 {
				to = j1939.Null // no message has it for its own
			}
			same := p.ID&^destinationBits == first.ID&^destinationBits && p.Mask|destinationBits == first.Mask
			if same && p.Rx != first.Rx && p.Rx != last && to != j1939.Global && b.m.Rx[p.Rx].Also == 0 {
				b.m.Rx[last].Also, b.m.Rx[last].AlsoTo = 1+p.Rx, to
				last = p.Rx
			}
		}
	}
}

// addPatterns adds the patterns of message i, one for each destination.
func (b *binder) addPatterns(i int, s *Reception) {
	r := &b.m.Rx[i]
	if !b.findMessage(r.Name).J1939 {
		refuseAddresses(s.From, s.Destination)
		b.addPattern(Pattern{r.ID, ^uint32(0), i}, false)
		return
	}

	id, mask := j1939.ParseID(r.ID), ^priorityBits
	if id.Source = s.From.or(id.Source); id.Source >= j1939.Null {
		id.Source, mask = j1939.Null, mask&^sourceBits
	}
	if !j1939.Directed(id.PGN) {
		refuseDestination(id.PGN, s.Destination)
		r.ID = id.Bits()
		b.addPattern(Pattern{r.ID & mask, mask, i}, false)
		return
	}

	id.Destination = s.Destination.or(id.Destination)
	r.ID = id.Bits()
	own := []uint8{id.Destination}
	if id.Destination == j1939.Null {
		if own = b.addresses; s.Destination.Given || len(own) == 0 {
			mask &^= destinationBits
			b.addPattern(Pattern{r.ID & mask, mask, i}, false)
			return
		}
	}
	for _, id.Destination = range own {
		b.addPattern(Pattern{id.Bits() & mask, mask, i}, false)
	}
	id.Destination = j1939.Global // a frame to all nodes is one to this node
	b.addPattern(Pattern{id.Bits() & mask, mask, i}, true)
}

// addPattern adds a pattern. If another message has the same one, a spare pattern is left out and any
// other is refused.
func (b *binder) addPattern(p Pattern, spare bool) {
	at := slices.IndexFunc(b.m.Patterns, func(q Pattern) bool { return q.ID == p.ID && q.Mask == p.Mask })
	switch {
	case at < 0:
		b.m.Patterns = append(b.m.Patterns, p)
	case b.m.Patterns[at].Rx == p.Rx || spare:
	default:
		refuse("message %s is received by the same parameter group and addresses: name the senders (from: 0x03)",
			b.m.Rx[b.m.Patterns[at].Rx].Name)
	}
}
