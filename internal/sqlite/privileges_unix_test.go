//go:build unix

package sqlite

import (
	"os"
	"syscall"
)

// dropPrivileges makes this process run as an ordinary user, since root may write everything.
func dropPrivileges() error {
	if os.Geteuid() != 0 {
		return nil
	}
	return syscall.Setuid(65534)
}
