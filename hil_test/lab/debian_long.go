//go:build long

package lab

import "time"

// Debian is a machine with a Debian of its own, on which the package is all that is ours.
var Debian = Machine{Script: "install_lab", Limit: 40 * time.Minute, Outside: "/run/outside"}

func init() { All = append(All, Debian) }
