package kernel

import "lockstep/model"

// Teeth touch on faces that end. A clearance between such faces exists while other switches are in some of
// their regions, and a switch whose level nothing reads there is not followed. METHOD.md has the geometry.

// inRegions reports whether all of a list hold in the present regions.
//
//go:nosplit
func (k *Kernel) inRegions(list []model.RegionSet) bool {
	for q := range list {
		if list[q].Set>>uint(k.region[list[q].Switch])&1 == 0 {
			return false
		}
	}
	return true
}

// updateExtents brings switches and clearances in line with the regions after these have changed. A switch
// that is followed again gets its region, and a clearance that begins to exist its opening. It reports
// whether a contact ended because its clearance no longer exists.
//
//go:nosplit
func (k *Kernel) updateExtents() (released bool) {
	for s := range k.region {
		followed := k.inRegions(k.t.Switches[s].While)
		if followed && !k.followed[s] {
			k.wrap(s, k.x)
			k.region[s] = k.t.Switches[s].regionOf(k.level(s, k.x))
		}
		k.followed[s] = followed
	}

	for _, i := range k.t.Clearances {
		exists := k.inRegions(k.t.Friction[i].Gap.While)
		switch {
		case exists && !k.present[i]:
			k.beginClearance(i)
		case !exists && k.mode[i] == Stuck:
			k.setMode(i, Free)
			released = true
		}
		k.present[i] = exists
	}
	return released
}

// beginClearance sets the opening of clearance i, which begins to exist. Sides that overlap, by rounding or
// after a minimum substep, are moved apart.
//
//go:nosplit
func (k *Kernel) beginClearance(i int) {
	g := k.t.Friction[i].Gap
	k.leavingZero[i] = false
	if len(g.While) == 0 {
		return
	}
	if len(g.Row) > 0 {
		k.x[g.State] = g.Const + dotRow(g.Row, 0, k.x)
	}
	if k.clearance(i, k.x) >= 0 {
		return
	}
	if len(g.Row) > 0 {
		k.x[g.Yields] -= (k.x[g.State] - g.Limit) / g.Row[g.Yields]
	}
	k.setClosed(i)
}

// wrap returns the level of switch s in state x into its period.
//
//go:nosplit
func (k *Kernel) wrap(s int, x []float64) {
	w := k.t.Switches[s].Wrap
	if w == nil {
		return
	}
	if turns := x[w.State]/w.Period + 0.5; turns < 0 || turns >= 1 {
		x[w.State] -= float64(w.Period * float64(floorTicks(turns)))
	}
}

// overlappedFace returns the first clearance between faces that end that exists in state x and whose sides overlap
// there; -1: none.
//
//go:nosplit
func (k *Kernel) overlappedFace(x []float64) int {
	copy(k.x1, x)
	for s := range k.contactRegion {
		k.wrap(s, k.x1)
	}
	for s := range k.contactRegion {
		k.contactRegion[s] = k.t.Switches[s].regionOf(k.level(s, k.x1))
	}
	for _, i := range k.t.Clearances {
		g := k.t.Friction[i].Gap
		if len(g.While) == 0 || !g.Exists(k.contactRegion) {
			continue
		}
		if len(g.Row) > 0 {
			k.x1[g.State] = g.Const + dotRow(g.Row, 0, k.x1)
		}
		if k.clearance(i, k.x1) < -overlapFace {
			return i
		}
	}
	return -1
}

// wrapUnfollowed returns the levels that no event does into their periods, so that they keep their accuracy.
//
//go:nosplit
func (k *Kernel) wrapUnfollowed() {
	for s := range k.followed {
		if !k.followed[s] {
			k.wrap(s, k.x)
		}
	}
}
