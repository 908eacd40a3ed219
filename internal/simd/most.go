package simd

// Most updates each column of most to the maximum of its value and those in some rows of a table. The rows are as long
// as most, whose length is a multiple of [Together]; places are the numbers of rows, from 0.
func Most(table []float32, places []uint32, most []float32) {
	if Fast() {
		mostFast(table, places, most)
		return
	}
	MostPlain(table, places, most)
}

// MostPlain is [Most] in plain Go, for rows of any length.
func MostPlain(table []float32, places []uint32, most []float32) {
	for _, place := range places {
		row := table[int(place)*len(most):][:len(most)]
		for i, x := range row {
			if x > most[i] {
				most[i] = x
			}
		}
	}
}
