package sigmap

import (
	"bytes"
	"slices"

	"lockstep/io/messages"
)

// excerpt is a message of the database with its Excerpt.
type excerpt struct {
	Excerpt
	full *messages.Message
	msg  messages.Message // with the bytes at At and the signals within them
}

// excerptOf returns the excerpt of a message of more than 64 bytes, with the signals that the Spec names.
// A sent message gets further signals, in their order, as far as there is room: they can be stimuli.
func (b *binder) excerptOf(msg *messages.Message) *excerpt {
	if e := b.excerpts[msg.Name]; e != nil {
		return e
	}
	named, sent := b.spec.signalsOf(msg.Name)
	e := &excerpt{full: msg, msg: *msg}
	e.At = []uint16{uint16(msg.Len - 1)}
	for _, name := range named {
		if s := msg.Signal(name); s != nil { // else its entry is refused later
			e.At = appendBytes(e.At, msg, s)
		}
	}
	if len(e.At) > 64 {
		refuse("it has %d bytes; its bound signals and its last byte take %d, and 64 are possible", msg.Len, len(e.At))
	}
	for i := range msg.Signals {
		if more := appendBytes(e.At, msg, &msg.Signals[i]); sent && len(more) <= 64 {
			e.At = more
		}
	}

	slices.Sort(e.At)
	e.msg.Len, e.msg.Signals = len(e.At), nil
	for _, s := range msg.Signals {
		if len(appendBytes(e.At, msg, &s)) > len(e.At) {
			continue
		}
		first, _ := s.Span()
		at, _ := slices.BinarySearch(e.At, uint16(first))
		s.Start += 8 * (at - first)
		e.msg.Signals = append(e.msg.Signals, s)
	}
	b.excerpts[msg.Name] = e
	return e
}

// appendBytes appends to a list the bytes of a signal and of its multiplexors that it lacks.
func appendBytes(list []uint16, msg *messages.Message, s *messages.Signal) []uint16 {
	list = slices.Clone(list)
	needed := []*messages.Signal{s}
	for _, s := range msg.Selectors(s) {
		needed = append(needed, msg.Signal(s.MuxedBy))
	}
	for _, s := range needed {
		first, last := s.Span()
		for at := first; at <= last; at++ {
			if !slices.Contains(list, uint16(at)) {
				list = append(list, uint16(at))
			}
		}
	}
	return list
}

// signalsOf returns the signals of a message that the Spec names; sent reports whether it is sent.
func (s *Spec) signalsOf(message string) (list []string, sent bool) {
	for _, l := range slices.Concat(s.Receive, s.Send) {
		if l.Message == message {
			list = append(list, l.Signal)
		}
	}
	for i := range s.Sendings {
		if v := &s.Sendings[i]; v.Message == message {
			sent = true
			for _, c := range v.Values {
				list = append(list, c.Signal)
			}
			list = append(list, v.Counter)
		}
	}
	for i := range s.Receptions {
		if v := &s.Receptions[i]; v.Message == message {
			for _, c := range v.Invalid {
				list = append(list, c.Signal)
			}
		}
	}
	return list, sent
}

// rest returns the whole message with ones and the start values of the signals that a page has and the
// excerpt lacks.
func (e *excerpt) rest(p *page) []byte {
	rest := bytes.Repeat([]byte{0xFF}, e.full.Len)
	for i := range e.full.Signals {
		s := e.full.Signals[i]
		absent := func(s *messages.Signal) bool {
			raw, given := p.raw[s.MuxedBy]
			return !given || !within(s.Ranges, raw)
		}
		if !s.HasInitial || e.msg.Signal(s.Name) != nil || slices.ContainsFunc(e.full.Selectors(&s), absent) {
			continue
		}
		first, last := s.Span()
		s.Start -= 8 * first
		var data, mask [64]byte
		f := rawField(&s)
		f.store(&data, initialRaw(&s)&f.mask())
		f.store(&mask, f.mask())
		for at := first; at <= last; at++ {
			rest[at] = rest[at]&^mask[at-first] | data[at-first]
		}
	}
	return rest
}
