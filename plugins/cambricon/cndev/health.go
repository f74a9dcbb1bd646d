package cndev

import (
	"strconv"

	"nomadlike/plugins/device/card"
	"nomadlike/plugins/device/clib"
)

// The report of cndevGetCardHealthStateV2: a head, and incidents behind it.
const (
	incidentsAt  = 20
	incidentLen  = 540
	incidentsMax = 64
	messageLen   = 512
)

// States of a card and its driver.
const (
	deviceGood    = 1
	driverRunning = 4
)

// readHealth asks what the library itself finds wrong with a card.
func (l *Library) readHealth(c *card.Card, handle int) {
	report := make(clib.Bytes, incidentsAt+incidentLen*incidentsMax+clib.BufferLen)
	if ret, there := l.Call("cndevGetCardHealthStateV2", report, handle); there && ret == success {
		judgeStates(c, report.I32(4), report.I32(8))
		for i := range min(report.I32(16), incidentsMax) {
			at := incidentsAt + incidentLen*i + 8 // behind the incident's system and verdict
			number := report.I32(at + messageLen + 8)
			c.Find(incident(number), report.Text(at, messageLen))
		}
		return
	}
	var b clib.Buffer
	if ret := l.call("cndevGetCardHealthState", &b, handle); ret == success {
		judgeStates(c, b.I32(8), b.I32(12))
	} else if ret != notSupported && c.Unreadable == "" {
		c.Unreadable = describe(ret)
	}
}

// judgeStates finds what is wrong by the states of a card and its driver.
func judgeStates(c *card.Card, state, driver int) {
	if driver != driverRunning {
		words := []string{"in early initialisation", "loading", "booting", "in late initialisation", "running", "boot error", "resetting", "reset error"}
		word := "state " + strconv.Itoa(driver)
		if driver >= 0 && driver < len(words) {
			word = words[driver]
		}
		c.Find("driver-error", word)
	}
	if state != deviceGood {
		c.Find("device-error", "")
	}
}

// incident names what the library's number of an incident means, as the table
// of faults has it.
func incident(number int) string {
	switch number {
	case 2:
		return "internal-error"
	case 3:
		return "xid"
	case 4:
		return "pcie-errors"
	case 5, 6, 7, 8: // generation, width, bandwidth, latency
		return "pcie-slow"
	case 9, 10, 11, 12, 13: // of MLU-Link, and between the dies of a card
		return "link-errors"
	case 14, 16:
		return "memory-errors"
	case 15, 17:
		return "memory-uncorrected"
	case 18, 20, 22: // of rows, addresses, pages
		return "repair-failed"
	case 19, 21, 23, 24:
		return "repair-pending"
	case 25:
		return "repair-exhausted"
	case 26, 27:
		return "thermal"
	case 28:
		return "count-mismatch"
	case 29:
		return "driver-error"
	case 30:
		return "device-error"
	}
	return "incident-" + strconv.Itoa(number)
}
