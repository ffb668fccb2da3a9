// Package hiltest holds the tests that span packages: the rules of who imports
// whom, and the command with a real CAN stack, real control units and witnesses
// that are not ours. It holds nothing that the product needs.
//
// The tests named TestLab... run in a lab. The script vcan is user-mode Linux,
// whose kernel has SocketCAN; the script preempt_rt is QEMU with a PREEMPT_RT
// kernel and two emulated CAN cards, for the tests named TestLabPreemptRT... Where
// a lab is missing they are skipped with a reason; hil_test/all installs it and
// takes a skip for a failure.
//
// The tests named TestLabInstall..., behind the tag long, have a Debian of their own in
// the second lab, by the script install_lab, for the package.
//
// The tests named TestProof... and TestLabProof... run one realistic network, that of
// the folder proof: in virtual time, and in both labs against two independent units.
package hiltest
