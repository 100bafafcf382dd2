//go:build race

package link

const raceDetector = true
