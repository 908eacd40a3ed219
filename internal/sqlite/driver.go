package sqlite

import (
	"fmt"
	"runtime/debug"
	"sync"
)

// version returns SQLite's own version.
var version = sync.OnceValue(func() (version string) {
	if c, err := connect(memoryPath, nil); err == nil {
		defer c.close()
		_ = c.one("SELECT sqlite_version()", &version) // it stays "" on an error
	}
	return version
})

// Driver returns the driver of this build and its versions, for diagnostics.
func Driver() string { return describeDriver() }

var describeDriver = sync.OnceValue(func() string {
	version := "(unknown version)"
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Path == driverModule {
				version = m.Version
			}
		}
	}
	c, err := connect(memoryPath, nil)
	if err != nil {
		return fmt.Sprintf("%s %s: %v", driverModule, version, err)
	}
	defer c.close()
	var sqlite, vec string
	if err := c.one("SELECT sqlite_version(), vec_version()", &sqlite, &vec); err != nil {
		return fmt.Sprintf("%s %s: %v", driverModule, version, err)
	}
	return fmt.Sprintf("%s %s (SQLite %s, sqlite-vec %s)", driverModule, version, sqlite, vec)
})
