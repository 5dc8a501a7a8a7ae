//go:build !race

package kurrentdb

const raceDetector = false
