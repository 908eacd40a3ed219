package main

import "testing"

func TestNetworks(t *testing.T) {
	for text, want := range map[string]string{
		"10.0.0.2": "10.0.0.2/32", "172.16.5.4/12": "172.16.0.0/12", " 10.0.0.2 , fd00::/8": "10.0.0.2/32,fd00::/8",
		"::ffff:10.0.0.2": "10.0.0.2/32", "::1": "::1/128", "none": "",
	} {
		var n networks
		if err := n.Set(text); err != nil || n.String() != want || n == nil {
			t.Errorf("%q is %q, %v, want %q and no error", text, n.String(), err, want)
		}
	}
	var n networks
	for _, text := range []string{"", "somewhere", "10.0.0.0/33", "10.0.0.2,", "10.0.0.2:80", "all"} {
		if err := n.Set(text); err == nil {
			t.Errorf("%q is parsed as %s, want an error", text, n.String())
		}
	}
	n = nil
	for _, text := range []string{"10.0.0.1", "10.0.0.2"} {
		if err := n.Set(text); err != nil {
			t.Fatal(err)
		}
	}
	if n.String() != "10.0.0.1/32,10.0.0.2/32" {
		t.Errorf("given twice it is %s; want \"10.0.0.1/32,10.0.0.2/32\"", n.String())
	}
}
