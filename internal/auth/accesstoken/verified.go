package accesstoken

import (
	"crypto/sha256"
	"sync"
)

// verifiedTokens caches access tokens whose signature was verified recently, since that is most of the work of a check.
// Their validity is still checked each time. The keys are hashes of the tokens.
type verifiedTokens struct {
	mu         sync.Mutex
	young, old map[[sha256.Size]byte]verifiedToken // old is the previous young, which was full
}

type verifiedToken struct {
	claims Claims
	key    string // id of the key that signed it
}

const maxVerified = 2_000 // in each of the two maps; a token takes about 0.5 kB

func (v *verifiedTokens) get(token string) (verifiedToken, bool) {
	hash := sha256.Sum256([]byte(token))
	v.mu.Lock()
	defer v.mu.Unlock()
	known, ok := v.young[hash]
	if !ok {
		if known, ok = v.old[hash]; ok {
			v.keep(hash, known)
		}
	}
	return known, ok
}

func (v *verifiedTokens) add(token string, verified verifiedToken) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.keep(sha256.Sum256([]byte(token)), verified)
}

func (v *verifiedTokens) keep(hash [sha256.Size]byte, verified verifiedToken) {
	if v.young == nil || len(v.young) >= maxVerified {
		v.young, v.old = map[[sha256.Size]byte]verifiedToken{}, v.young
	}
	v.young[hash] = verified
}
