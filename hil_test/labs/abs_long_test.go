//go:build long

package labs

import "testing"

// TestLabLongBrakesPreventLockedWheels runs the scenarios that TestLabBrakesPreventLockedWheels leaves
// out.
func TestLabLongBrakesPreventLockedWheels(t *testing.T) {
	t.Run("AbsStopsBeforeLockedWheelsOnADryRoad", func(t *testing.T) { antiLock.test(t, "abs-dry", 2) })
	t.Run("AbsStopsBeforeLockedWheelsOnAWetRoad", func(t *testing.T) { antiLock.test(t, "abs-wet", 2) })
	t.Run("WspStopsBeforeLockedWheelsOnDryRail", func(t *testing.T) { slideProtection.test(t, "wsp-dry", 1) })
	t.Run("WspKeepsWheelsFromLockingOnIce", func(t *testing.T) { slideProtection.test(t, "wsp-ice", 1) })
}
