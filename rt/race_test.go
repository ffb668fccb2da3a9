//go:build race

package rt

const raceDetector = true
