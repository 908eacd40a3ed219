//go:build !souvenir_cgo

package souvenir_test

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/souvenir-ai/souvenir"
)

// With SQLite in C, files cannot be encrypted.
func Example_encryption() {
	ctx := context.Background()
	defer inNewFolder()()
	_ = os.Setenv("MEMORY_KEY", strings.Repeat("5a", 32))
	defer os.Unsetenv("MEMORY_KEY")
	openEncrypted := func() error {
		key, err := souvenir.ParseMasterKey(os.Getenv("MEMORY_KEY"))
		if err != nil {
			return err
		}
		store, err := souvenir.Open(ctx, "memory.db", &souvenir.Options{MasterKey: key})
		if err != nil {
			return err
		}
		return store.Close()
	}
	fmt.Println(openEncrypted())
	// Output: <nil>
}
