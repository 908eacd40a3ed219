package main

import (
	"errors"
	"net/netip"
	"strings"
)

// networks is a flag of addresses and networks, separated by commas: 10.0.0.2,172.16.0.0/12. The word none is an
// empty list, which differs from a flag that was not given (nil).
type networks []netip.Prefix

// Set parses a list, and adds it to earlier ones.
func (n *networks) Set(text string) error {
	if strings.TrimSpace(text) == "none" {
		*n = networks{}
		return nil
	}
	for _, part := range strings.Split(text, ",") {
		part = strings.TrimSpace(part)
		prefix, err := netip.ParsePrefix(part)
		if address, bad := netip.ParseAddr(part); bad == nil {
			address = address.Unmap().WithZone("")
			prefix, err = netip.PrefixFrom(address, address.BitLen()), nil
		}
		if err != nil {
			return errors.New("not an address or network")
		}
		*n = append(*n, prefix.Masked())
	}
	return nil
}

// String formats the list.
func (n *networks) String() string {
	words := make([]string, len(*n))
	for i, prefix := range *n {
		words[i] = prefix.String()
	}
	return strings.Join(words, ",")
}

// Type names the kind of value.
func (n *networks) Type() string { return "networks" }
