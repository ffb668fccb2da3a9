module lockstep

go 1.26.0

require (
	github.com/brutella/can v0.0.2
	github.com/goccy/go-yaml v1.19.2
	github.com/parquet-go/parquet-go v0.25.1
	golang.org/x/sys v0.49.0
	golang.org/x/term v0.47.0
	gonum.org/v1/gonum v0.17.0
	pgregory.net/rapid v1.3.0
)

require (
	github.com/andybalholm/brotli v1.1.1 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/klauspost/compress v1.17.9 // indirect
	github.com/pierrec/lz4/v4 v4.1.21 // indirect
)
