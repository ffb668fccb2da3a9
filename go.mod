module lockstep

go 1.26.0

require (
	github.com/brutella/can v0.0.2
	github.com/goccy/go-yaml v1.19.2
	golang.org/x/sys v0.49.0
	golang.org/x/term v0.47.0
	gonum.org/v1/gonum v0.17.0
	pgregory.net/rapid v1.3.0
)
