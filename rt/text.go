package rt

import "embed"

// Text is the source of this package, of which generated targets are built.
//
//go:embed calls.go config.go conflict.go disturb.go doc.go inputs.go ledger.go life.go loop.go mail.go port.go receive.go ring.go run.go safe.go send.go statusblock.go wire.go wirecounts.go
var Text embed.FS
