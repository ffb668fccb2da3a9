package rt

import (
	"embed"
	"io/fs"
)

//go:embed calls.go config.go disturb.go doc.go ledger.go life.go loop.go mail.go page.go receive.go
//go:embed ring.go run.go safe.go send.go wire.go
var sourceText embed.FS

// Text is the source of this package, of which generated targets are built.
func Text() fs.FS { return sourceText }
