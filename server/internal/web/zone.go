package web

import (
	"net/http"
	"time"
)

// zoneCookie is where zone.js writes in which time zone the reader of the pages lives, by its name in the tz database.
const zoneCookie = "souvenir_zone"

// maxZone is longer than any name of a zone.
const maxZone = 64

// Zone is where days begin and end for a reader.
type Zone struct {
	Told     string // what the browser has told; empty: nothing yet
	Location *time.Location
}

// ZoneOf returns the zone of whoever reads the pages: UTC, until the browser tells a zone that this machine knows, too.
func ZoneOf(r *http.Request) Zone {
	z := Zone{Location: time.UTC}
	c, err := r.Cookie(zoneCookie)
	if err != nil || len(c.Value) > maxZone {
		return z
	}
	z.Told = c.Value
	if known, err := time.LoadLocation(c.Value); err == nil && c.Value != "Local" { // which is the zone of this machine
		z.Location = known
	}
	return z
}

// Name is the name of the zone whose days are shown.
func (z Zone) Name() string { return z.Location.String() }
