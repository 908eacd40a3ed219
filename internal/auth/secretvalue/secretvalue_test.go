package secretvalue

import "testing"

func TestValuesAreSpreadOverAllDigits(t *testing.T) {
	seen, digits := map[string]bool{}, map[rune]int{}
	for range 2000 {
		value := WithStart("svt_")
		if len(value) != 47 || seen[value] {
			t.Fatalf("got %q, want 47 characters that no other token has", value)
		}
		seen[value] = true
		for _, digit := range value[10:] { // the first digit of a 256-bit number is not evenly distributed
			digits[digit]++
		}
	}
	for _, digit := range "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ" {
		if n, mean := digits[digit], 2000*37/62; n < mean*3/4 || n > mean*5/4 {
			t.Errorf("%c appears %d times; about %d are to be expected, want %v to %v", digit, n, mean,
				mean*3/4, mean*5/4)
		}
	}
}
