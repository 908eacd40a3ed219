package secrets

// Words returns the words of all rules.
func (f *Finder) Words() (words []string) {
	for _, w := range f.words {
		words = append(words, w.text)
	}
	return words
}
