package tasklog

// TimeLayout is how Stamper spells times, in UTC. It is all of this package that
// is there on other systems than Linux: whoever reads logs from afar knows it.
const TimeLayout = "2006-01-02T15:04:05.000Z"
