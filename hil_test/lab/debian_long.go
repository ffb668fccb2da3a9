//go:build long

package lab

import "time"

// Debian is the lab with a separate Debian, on which lockstep comes from the package alone.
var Debian = Machine{Script: "install_lab", Limit: 40 * time.Minute, HostFiles: "/run/outside"}

func init() { All = append(All, PreemptRT, Debian) }
