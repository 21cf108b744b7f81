// Package expr reads the expressions of schedules and says what times they name.
//
// Times are wall-clock times: a time.Time in UTC stands for "the clock on the wall shows this". Which instants these are in a time zone,
// and what becomes of those that the zone's clock leaves out or shows twice, is for package tick.
//
// # Dialects
//
// Standard cron has five fields: minute, hour, day of month, month, day of week, as robfig/cron/v3 reads them. A field of seconds
// may stand before them. Days of the week are 0 (Sunday) to 6, and 7 is Sunday too. If both day fields are restricted, a day that either
// names counts; a field that begins with a step (*/2) is restricted. @yearly, @annually, @monthly, @weekly, @daily, @midnight and
// @hourly are such expressions.
//
// Quartz has six or seven fields: second, minute, hour, day of month, month, day of week, and a year from 1970 to 2199. Days of the week are
// 1 (Sunday) to 7. One of the day fields is ?, which says nothing; * there means the same. Ranges may pass the end: FRI-MON, 22-2.
// Day of month knows L (the last day), L-3 (the third before it), 15W (the weekday nearest to the 15th, in the same month), LW and
// L-3W. Day of week knows 6L (the last Friday), 6#3 (the third) and L (Saturday). These may stand in lists too, which Quartz itself
// does not allow. A month without the named day is left out.
//
// Names of months and days have three letters, in any case.
//
// Five fields are standard, seven are Quartz. Six are Quartz if a day field has ?, L, W or #, otherwise standard, with seconds.
// A prefix decides what the fields leave open: "quartz:0 0 12 * * 2" is Monday, "cron:0 0 12 * * 2" Tuesday.
//
// @every 10m names no times but a period, of whole seconds; Period has it.
//
// # What is refused
//
// Every fault is a FieldError that names its field; several are joined. Refused is also what could never come: February 30, or years
// that are over. The time zone belongs to the schedule, so the prefixes TZ= and CRON_TZ= are refused.
package expr
