package kernel

// How far laws agree with their motion.
const (
	settled   = iota
	halved    // settled, or the piece is halved until they are
	roughly   // to settledRough
	predicted // they go on as they did before the piece
)

// seek takes the state over the whole piece, to x1, and finds the first event in it,
// from laws that agree with their motion so far; on goes on with them where another call
// ended. What is found before they are settled is fit to cut the piece there.
//
//go:nosplit
func (k *Kernel) seek(local float64, look bool, agreed int, on bool) (theta float64, cause int, expanded bool) {
	k.slips.mul(k.slip, k.x)
	expanded = true
	switch {
	case k.t.FirstLaw < k.t.M:
		if !on {
			k.rough = agreed == roughly || agreed == predicted
			k.calls.couple(k)
		}
		if k.t.Net != nil && agreed != predicted {
			k.calls.agree(k, agreed == roughly)
		}
		if agreed == halved {
			k.halve(local)
		}
		k.horner(k.x1, 1)
	case k.length != k.t.Delta || k.t.Modes == nil:
		k.calls.expand(k, k.x)
		k.horner(k.x1, 1)
	default:
		k.whole(k.x1, k.x)
		expanded = false
	}
	if k.t.Net != nil {
		k.constrain(k.x1)
	}
	if !k.calls.suspect(k) {
		return 1, none, expanded
	}
	if !expanded {
		k.calls.expand(k, k.x)
	}
	if k.t.Net != nil && !look {
		return 0, 0, true // whatever it is, nobody asks where
	}
	theta, cause = k.first()
	return theta, cause, true
}

// near is the part of a piece in which an event is seen without a round of the laws: what
// they miss of it goes with its square, and so much longer than to there the piece is kept.
const near = 1. / 4

// hunt is seek of a plant that is stepped sparse. Each event begins a piece that is cut at
// the next one, so most of what is beyond it need not settle.
//
//go:nosplit
func (k *Kernel) hunt(local float64) (theta float64, cause int) {
	theta, cause, _ = k.calls.seek(k, local, true, predicted, false)
	if cause == none { // nor is there one, mostly
		theta, cause, _ = k.calls.seek(k, local, true, halved, true)
		return theta, cause
	}
	if k.atOnce(theta) {
		return theta, cause
	}
	part := theta * k.length * (1 + near)
	closer := theta < near && k.shorter(part)
	if closer {
		k.trim(local, part)
	}
	theta, cause, _ = k.calls.seek(k, local, true, roughly, !closer)
	if cause != none && k.atOnce(theta) {
		return theta, cause
	}
	if !(cause != none && theta >= k.stride(true) && k.shorter(k.cut(theta))) {
		theta, cause, _ = k.calls.seek(k, local, true, halved, true)
	}
	return theta, cause
}

// atOnce reports whether theta is the start of the piece: nothing moves until then, and laws
// that have yet to settle begin as they do.
//
//go:nosplit
func (k *Kernel) atOnce(theta float64) bool {
	return theta*k.length <= k.gap && theta >= k.stride(true)
}

// cut is the length of the piece up to just behind an event at theta: of what was found
// roughly a little more.
//
//go:nosplit
func (k *Kernel) cut(theta float64) float64 {
	behind := 1e-6
	if k.t.Net != nil {
		behind = 1e-5
	}
	return theta * k.length * (1 + behind)
}

// shorter reports whether a piece can be cut to length.
//
//go:nosplit
func (k *Kernel) shorter(length float64) bool { return length > k.gap && length < k.length }

// shorten walks the piece again up to just behind the event found at theta: the
// laws then do not see what lies behind it, where they may have a corner.
//
//go:nosplit
func (k *Kernel) shorten(local, theta float64, cause int) (float64, int) {
	length := k.cut(theta)
	if !k.shorter(length) {
		return theta, cause
	}
	k.trim(local, length)
	theta, cause, _ = k.calls.seek(k, local, true, settled, false)
	return theta, cause
}

// trim makes the piece one of length, which begins as it did.
//
//go:nosplit
func (k *Kernel) trim(local, length float64) {
	k.keep(0)
	x := k.x
	if k.t.Net != nil {
		x = nil
	}
	k.calls.sources(k, x, local, length)
}
