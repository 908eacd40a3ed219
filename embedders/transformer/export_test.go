package transformer

import (
	"log"
	"os"
	"path/filepath"
)

// InFolderOfModels makes a new folder the current one, in which models/multilingual-e5-small is a small model of the
// same family, until the returned function is called.
func InFolderOfModels() (leave func()) {
	before, err := os.Getwd()
	if err != nil {
		log.Fatal(err)
	}
	work, err := os.MkdirTemp("", "souvenir")
	if err != nil {
		log.Fatal(err)
	}
	if err := unpackModel(filepath.Join(work, "models", "multilingual-e5-small"), "xlmr"); err != nil {
		log.Fatal(err)
	}
	if err := os.Chdir(work); err != nil {
		log.Fatal(err)
	}
	return func() {
		if err := os.Chdir(before); err != nil {
			log.Fatal(err)
		}
		_ = os.RemoveAll(work)
	}
}
