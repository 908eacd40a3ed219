//go:build souvenir_cgo

package sealedvfs

import (
	"errors"

	"github.com/souvenir-ai/souvenir/internal/sealing"
)

var errDriver = errors.New("the driver in C cannot encrypt files; build without the tag souvenir_cgo")

func register() error { return errDriver }

// ReserveEnds needs the driver in pure Go.
func ReserveEnds(uintptr, int) error { return errDriver }

// Plain returns "": no file is encrypted.
func Plain() string { return "" }

// Take needs the driver in pure Go.
func (k *Keys) Take(uintptr, sealing.MasterKey) error { return errDriver }

// Rewrap needs the driver in pure Go.
func (k *Keys) Rewrap(uintptr, sealing.MasterKey) error { return errDriver }
