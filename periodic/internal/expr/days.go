package expr

import (
	"math/bits"
	"time"
)

// days are what the two day fields say. Bits of days of the month begin with 1, those of the week with 0 for Sunday.
type days struct {
	dom         uint64 // days of the month
	last        uint64 // bit k: the k-th before the last
	nearest     uint64 // the weekdays nearest to these
	lastNearest uint64 // and to the k-th before the last
	dow         uint64 // days of the week
	lastDow     uint64 // the last ones of the month
	nth         uint64 // bit 5*day+n-1: the n-th ones of the month
	weekEnd     bool   // L as a day of the week: Saturday
	either      bool   // a day that one of the fields names is enough
}

// in returns the days of a month that are named, a bit each.
func (d *days) in(year int, month time.Month) uint64 {
	m := newMonth(year, month)
	whole := uint64(1)<<(m.length+1) - 2
	ofMonth, ofWeek := m.daysOfMonth(d)&whole, m.daysOfWeek(d)&whole
	if d.either {
		return ofMonth | ofWeek
	}
	return ofMonth & ofWeek
}

// A month is what the days of one depend on.
type month struct {
	first  int // the first day's day of the week
	length int
}

func newMonth(year int, m time.Month) month {
	first := time.Date(year, m, 1, 0, 0, 0, 0, time.UTC)
	length := 31
	switch m {
	case time.April, time.June, time.September, time.November:
		length = 30
	case time.February:
		length = 28
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			length = 29
		}
	default:
	}
	return month{first: int(first.Weekday()), length: length}
}

func (m month) daysOfMonth(d *days) uint64 {
	named := d.dom
	for rest := d.last; rest != 0; rest &= rest - 1 {
		if day := m.length - bits.TrailingZeros64(rest); day > 0 {
			named |= 1 << day
		}
	}
	for rest := d.nearest; rest != 0; rest &= rest - 1 {
		if day := bits.TrailingZeros64(rest); day <= m.length {
			named |= 1 << m.weekdayNear(day)
		}
	}
	for rest := d.lastNearest; rest != 0; rest &= rest - 1 {
		if day := m.length - bits.TrailingZeros64(rest); day > 0 {
			named |= 1 << m.weekdayNear(day)
		}
	}
	return named
}

func (m month) daysOfWeek(d *days) uint64 {
	const weeks = 1 | 1<<7 | 1<<14 | 1<<21 | 1<<28 | 1<<35
	dow := d.dow
	if d.weekEnd {
		dow |= 1 << time.Saturday
	}
	named := dow * weeks >> m.first << 1
	for rest := d.lastDow; rest != 0; rest &= rest - 1 {
		day := m.firstOf(bits.TrailingZeros64(rest)) + 4*7
		if day > m.length {
			day -= 7
		}
		named |= 1 << day
	}
	for rest := d.nth; rest != 0; rest &= rest - 1 {
		bit := bits.TrailingZeros64(rest)
		named |= 1 << (m.firstOf(bit/5) + bit%5*7)
	}
	return named
}

// firstOf returns the first day of the month that is this day of the week.
func (m month) firstOf(dow int) int { return 1 + (dow-m.first+7)%7 }

// weekdayNear returns the day from Monday to Friday nearest to a day, within the month.
func (m month) weekdayNear(day int) int {
	switch dow := (m.first + day - 1) % 7; {
	case dow == 6 && day == 1:
		return 3
	case dow == 6:
		return day - 1
	case dow == 0 && day == m.length:
		return day - 2
	case dow == 0:
		return day + 1
	default:
		return day
	}
}
