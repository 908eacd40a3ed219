// Package seal encrypts data that browsers keep for the servers of a store. No server has to remember it, and every
// server on the store can read it, even after a restart.
package seal

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"

	"github.com/souvenir-ai/souvenir"
)

// Sealer seals texts with the key of a store. It reads the key each time: another server may have replaced it.
type Sealer struct {
	Store *souvenir.Store // the operator's
}

// Seal encrypts a text for a purpose. The result has letters, digits, - and _.
func (s Sealer) Seal(ctx context.Context, purpose string, text []byte) (string, error) {
	seal, err := s.cipher(ctx)
	if err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(seal.Seal(nil, nil, text, []byte(purpose))), nil
}

// Open returns the text that Seal has sealed for the same purpose. ok is false for anything else.
func (s Sealer) Open(ctx context.Context, purpose, sealed string) (text []byte, ok bool, err error) {
	encrypted, err := base64.RawURLEncoding.DecodeString(sealed)
	if err != nil {
		return nil, false, nil //nolint:nilerr // not one of ours
	}
	seal, err := s.cipher(ctx)
	if err != nil {
		return nil, false, err
	}
	text, err = seal.Open(nil, nil, encrypted, []byte(purpose))
	return text, err == nil, nil
}

func (s Sealer) cipher(ctx context.Context) (cipher.AEAD, error) {
	key, err := s.Store.Accounts().GetSealingKey(ctx)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}
