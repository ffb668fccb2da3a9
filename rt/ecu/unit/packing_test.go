package unit

import (
	"testing"

	"github.com/brutella/can"
)

// The example of AUTOSAR's E2E profile 1 specification: data identifier 0x123, data 0, counter 0.
func TestChecksumIsThatOfTheSpecification(t *testing.T) {
	if crc := CRC1A(&can.Frame{ID: 0x123, Length: 8}); crc != 0xCC {
		t.Errorf("checksum %#02x, want 0xCC", crc)
	}
}
