// Package deploy owns what gets a box ready and proves it: what the host is
// fit for, and how late a loop is on it. It changes nothing on the host.
package deploy
