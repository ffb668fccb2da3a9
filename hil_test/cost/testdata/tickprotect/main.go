// Command tickprotect protects and checks a frame as a tick does, for tick_protect_test.go.
package main

import (
	"os"

	"lockstep/io/sigmap"
)

//go:noinline
//go:nosplit
func protects(p *sigmap.Protection, data *[64]byte) {
	p.Protect(data, len(os.Args), 0x100)
}

//go:noinline
//go:nosplit
func checks(p *sigmap.Protection, data *[64]byte) sigmap.Status {
	p.CheckMissing()
	return p.Check(data, len(os.Args), 0x100)
}

func main() {
	var p sigmap.Protection
	var data [64]byte
	protects(&p, &data)
	os.Exit(int(checks(&p, &data).Frame))
}
