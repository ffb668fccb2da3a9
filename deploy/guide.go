// Package deploy owns the guides to installing lockstep, judging a host and measuring a bench, and in its
// folder python the client for programs in Python. It does not judge or measure: the packages below it do.
package deploy

import _ "embed"

// Certificate is the guide to certificates, which `lockstep help` prints.
//
//go:embed CERTIFICATE.md
var Certificate []byte

// Install is the guide to packages, services and upgrades, which `lockstep help install` prints.
//
//go:embed INSTALL.md
var Install []byte

// Host is the guide to judging and preparing a host, which `lockstep help host` prints.
//
//go:embed HOST.md
var Host []byte

// Failures is the guide to what a run promises under each failure, which `lockstep help failures`
// prints.
//
//go:embed FAILURES.md
var Failures []byte

// Python is the guide to the client for Python, which `lockstep help python` prints.
//
//go:embed PYTHON.md
var Python []byte

// PowershiftUnit is the control unit of the powershift gearbox as a program in Python, which
// `lockstep plants powershift.py` prints.
//
//go:embed python/examples/powershift.py
var PowershiftUnit []byte
