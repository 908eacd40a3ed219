package web

import (
	"net/http"
	"time"
)

// zoneCookie is the cookie in which zone.js stores the reader's time zone, by its name in the tz database.
const zoneCookie = "souvenir_zone"

// maxZone is longer than any name of a zone.
const maxZone = 64

// Zone is the time zone in which a reader sees days.
type Zone struct {
	Sent     string // as the browser sent it; empty: not yet
	Location *time.Location
}

// ZoneOf returns the reader's zone: UTC, until the browser sends a zone that this machine knows, too.
func ZoneOf(r *http.Request) Zone {
	z := Zone{Location: time.UTC}
	c, err := r.Cookie(zoneCookie)
	if err != nil || len(c.Value) > maxZone {
		return z
	}
	z.Sent = c.Value
	if known, err := time.LoadLocation(c.Value); err == nil && c.Value != "Local" { // Local is the zone of this machine
		z.Location = known
	}
	return z
}

// Name is the name of the zone in use.
func (z Zone) Name() string { return z.Location.String() }
