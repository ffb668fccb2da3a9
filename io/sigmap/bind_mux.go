package sigmap

import (
	"math"
	"slices"

	"lockstep/io/messages"
)

// maxPages limits the pages of a multiplexed message.
const maxPages = 256

// page is a frame of a sent message with certain raw values of its multiplexors.
type page struct {
	raw   map[string]uint64 // raw values of multiplexors and of constants in base
	base  [64]byte          // data before fields, counter and protection
	taken messages.Bits     // bits in use
}

// set stores raw bits of a signal in the page.
func (p *page) set(sig *messages.Signal, raw uint64) {
	at := rawField(sig)
	at.store(&p.base, raw&at.mask())
	p.raw[sig.Name] = raw & at.mask()
}

// setBase stores raw bits of a signal in the pages that have it. A multiplexor with a constant value
// has it already.
func (f *txLayout) setBase(sig *messages.Signal, raw uint64) {
	for i := range f.pages {
		p := &f.pages[i]
		if _, has := p.raw[sig.Name]; !has && f.excludedBy(p, sig) == nil {
			p.set(sig, raw)
		}
	}
}

// setPages sets the pages: one, with the constant values of multiplexors, or all that Sending.Mux
// selects.
func (f *txLayout) setPages(s *Sending) {
	fixed := map[string][]uint64{}
	eachItem("values", s.Values, func(c *Constant) {
		i := slices.IndexFunc(f.msg.Signals, func(sig messages.Signal) bool { return sig.Name == c.Signal })
		if i >= 0 && f.msg.Selects(&f.msg.Signals[i]) && c.Waveform == nil {
			inContext("signal "+c.Signal, func() {
				fixed[c.Signal] = []uint64{parseRaw(&f.msg.Signals[i], c.Text)}
			})
		}
	})
	if s.Mux == nil {
		p := page{raw: map[string]uint64{}}
		for name, raw := range fixed {
			p.set(f.msg.Signal(name), raw[0])
		}
		f.pages = []page{p}
		return
	}

	if s.Send != Cyclic {
		refuse("mux: the pages are sent in turn: the message must be cyclic (send: cyclic)")
	}
	root := f.rotated(s, fixed)
	for _, text := range s.Mux.Values {
		inContext("mux: signal "+root.Name, func() { fixed[root.Name] = append(fixed[root.Name], parseRaw(root, text)) })
	}
	f.addPages(map[string]uint64{}, fixed)
	if len(f.pages) < 2 {
		refuse("mux: the message has one page: give its multiplexors constant values instead (values)")
	}
}

// rotated returns the multiplexor whose values Sending.Mux lists: the one that is in every frame and
// has no constant value.
func (f *txLayout) rotated(s *Sending, fixed map[string][]uint64) (root *messages.Signal) {
	free, roots := 0, 0
	for i := range f.msg.Signals {
		sig := &f.msg.Signals[i]
		if !f.msg.Selects(sig) || len(fixed[sig.Name]) > 0 {
			continue
		}
		if free++; sig.MuxedBy == "" {
			root, roots = sig, roots+1
		}
	}

	switch {
	case free == 0:
		refuse("mux: the message has no multiplexor without a constant value")
	case roots != 1 && len(s.Mux.Values) > 0:
		refuse("mux: a list is for one multiplexor in every frame, the message has %d without a constant value: "+
			"give them constant values (values), or write mux: all", roots)
	}
	return root
}

// addPages adds the pages with the given raw values of multiplexors: one for each combination of the
// values of further multiplexors in such a frame. fixed has the values of some; another one takes
// each value that selects a signal.
func (f *txLayout) addPages(raw map[string]uint64, fixed map[string][]uint64) {
	p := page{raw: raw}
	for i := range f.msg.Signals {
		sig := &f.msg.Signals[i]
		if _, has := raw[sig.Name]; has || !f.msg.Selects(sig) || f.excludedBy(&p, sig) != nil {
			continue
		}
		values := fixed[sig.Name]
		if len(values) == 0 {
			values = f.selecting(sig)
		}
		for _, v := range values {
			next := map[string]uint64{sig.Name: v}
			for name, w := range raw {
				next[name] = w
			}
			f.addPages(next, fixed)
		}
		return
	}

	if len(f.pages) == maxPages {
		refuse("mux: more than %d pages; list the values to be sent (mux: [1, 2])", maxPages)
	}
	p = page{raw: map[string]uint64{}}
	for name, v := range raw {
		sig := f.msg.Signal(name)
		bits, _ := sig.Bits()
		if bits.Overlaps(&p.taken) {
			refuse("mux: multiplexor %s overlaps another one", name)
		}
		p.set(sig, v)
		p.taken.Add(&bits)
		if len(fixed[name]) != 1 { // the user of a constant is set with the constant
			f.used[sig] = "the page"
		}
	}
	f.pages = append(f.pages, p)
}

// selecting returns the raw values of a multiplexor that select a signal, in rising order.
func (f *txLayout) selecting(by *messages.Signal) (list []uint64) {
	at := rawField(by)
	for i := range f.msg.Signals {
		if f.msg.Signals[i].MuxedBy != by.Name {
			continue
		}
		for _, r := range f.msg.Signals[i].Ranges {
			last := min(r[1], at.mask()) // values beyond the bits of the multiplexor cannot be sent
			if last >= r[0] && last-r[0] >= maxPages {
				refuse("mux: %s selects with %d to %d, more than %d pages; list the values to be sent (mux: [1, 2])",
					by.Name, r[0], last, maxPages)
			}
			for v := r[0]; v <= last; v++ {
				if list = append(list, v); v == math.MaxUint64 {
					break
				}
			}
		}
	}

	if len(list) == 0 {
		return []uint64{0} // it selects no signal
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// excludedBy returns the signal in sig's chain of multiplexors that excludes sig from a page, nil if
// the page has sig.
func (f *txLayout) excludedBy(p *page, sig *messages.Signal) *messages.Signal {
	for _, s := range f.msg.Selectors(sig) {
		raw, given := p.raw[s.MuxedBy]
		if !given || !within(s.Ranges, raw) {
			return s
		}
	}

	return nil
}

// excludedFromAll is excludedBy for a signal that is on no page; nil if a page has it.
func (f *txLayout) excludedFromAll(sig *messages.Signal) (by *messages.Signal) {
	for i := range f.pages {
		if by = f.excludedBy(&f.pages[i], sig); by == nil {
			break
		}
	}
	return by
}

// haveCommonPage reports whether a page has both signals.
func (f *txLayout) haveCommonPage(a, b *messages.Signal) bool {
	return slices.ContainsFunc(f.pages, func(p page) bool {
		return f.excludedBy(&p, a) == nil && f.excludedBy(&p, b) == nil
	})
}

// selectors returns the conditions under which a frame of several pages has a signal.
func (f *txLayout) selectors(sig *messages.Signal) (list []Selector) {
	if len(f.pages) == 1 {
		return nil
	}
	return selectorsOf(f.msg, sig)
}

// selectorsOf returns the conditions under which a frame of msg has a signal.
func selectorsOf(msg *messages.Message, sig *messages.Signal) (list []Selector) {
	for _, s := range msg.Selectors(sig) {
		list = append(list, Selector{rawField(msg.Signal(s.MuxedBy)), s.Ranges})
	}
	return list
}
