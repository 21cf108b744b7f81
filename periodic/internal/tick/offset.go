package tick

import (
	"math/bits"
	"time"
)

// Spread returns how much later than its ticks a schedule fires: the same for all of its ticks, less than width, and for many schedules
// evenly distributed. It is the same in every process and release.
func Spread(schedule int64, width time.Duration) time.Duration {
	return within(mix(uint64(schedule)), width)
}

// Jitter returns how much later than one of its ticks a schedule fires: less than width, and different for each tick. It is the same in every
// process and release.
func Jitter(schedule int64, at time.Time, width time.Duration) time.Duration {
	return within(mix(mix(uint64(schedule))^uint64(at.UnixMicro())), width)
}

// within maps a hash to [0, width), in whole microseconds.
func within(hash uint64, width time.Duration) time.Duration {
	if width <= 0 {
		return 0
	}
	high, _ := bits.Mul64(hash, uint64(width))
	return time.Duration(high).Truncate(time.Microsecond)
}

// mix is the finisher of splitmix64: every bit of the input changes about half of the output's.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
