// Bandwidth measures how fast this machine reads memory, and how close the parts of a search come to that which read
// some data of each memory: the upper halves of codes of 256 numbers, and the sketches of texts. It reports the
// shortest of many runs, which other work on the machine disturbed least.
//
//	go run ./bandwidth [-rounds 50]
package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"time"
	"unsafe"

	"github.com/souvenir-ai/souvenir/internal/retrieval/similarity"
	"github.com/souvenir-ai/souvenir/internal/simd"
)

// rowBytes is how many bytes the first pass reads of a vector of 256 numbers.
const rowBytes = 128

func main() {
	rounds := flag.Int("rounds", 50, "how often each is measured")
	flag.Parse()
	fmt.Printf("%-10s %-32s %10s %14s %14s\n", "memories", "what is read", "MB", "one, ms; GB/s", "all, ms; GB/s")
	for _, memories := range []int{10_000, 100_000, 1_000_000} {
		data := make([]byte, memories*rowBytes)
		random := rand.NewChaCha8([32]byte{})
		_, _ = random.Read(data) // never fails
		report(*rounds, memories, "bytes, added up", len(data), func(from, to int) {
			sink(add(data[from*rowBytes : to*rowBytes]))
		})
		question := make([]int8, 2*rowBytes)
		for i := range question {
			question[i] = int8(random.Uint64())
		}
		report(*rounds, memories, "upper halves of codes", len(data), func(from, to int) {
			var products [512]int32
			for ; from < to; from += len(products) {
				rows := min(len(products), to-from)
				simd.DotHalves(data[from*rowBytes:(from+rows)*rowBytes], question, products[:rows])
			}
			sink(uint64(products[0]))
		})
		sketches := make([]similarity.Sketch, memories)
		for i := range sketches {
			words := similarity.Words{sparse(random), sparse(random)}
			sketches[i] = similarity.Sketch{Words: words, Content: uint16(8 + random.Uint64()%20)}
		}
		text := similarity.Read("The deploy window of Falcon is Tuesday 14:00 UTC, " +
			"unless the queue worker was restarted before.")
		report(*rounds, memories, "sketches", memories*int(unsafe.Sizeof(similarity.Sketch{})), func(from, to int) {
			sink(uint64(len(similarity.NewProbe(text, similarity.Duplicate).Scan(sketches[from:to], nil))))
		})
	}
}

// sparse returns a number with an eighth of its bits set.
func sparse(random *rand.ChaCha8) uint64 { return random.Uint64() & random.Uint64() & random.Uint64() }

// add sums bytes, eight at a time.
func add(data []byte) (sum uint64) {
	words := unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(data))), len(data)/8)
	var a, b, c, d uint64
	for ; len(words) >= 8; words = words[8:] {
		a += words[0] + words[4]
		b += words[1] + words[5]
		c += words[2] + words[6]
		d += words[3] + words[7]
	}
	return a + b + c + d
}

var (
	mu   sync.Mutex
	kept uint64
)

// sink uses a result, so that the compiler keeps the work.
func sink(x uint64) {
	mu.Lock()
	kept += x
	mu.Unlock()
}

// report measures the reading of all memories, with one processor and with all.
func report(rounds, memories int, what string, size int, read func(from, to int)) {
	line := fmt.Sprintf("%-10d %-32s %10.1f", memories, what, float64(size)/1e6)
	for _, workers := range []int{1, runtime.GOMAXPROCS(0)} {
		least := time.Duration(1 << 62)
		for range rounds {
			began := time.Now()
			var group sync.WaitGroup
			for i := range workers {
				group.Go(func() { read(i*memories/workers, (i+1)*memories/workers) })
			}
			group.Wait()
			least = min(least, time.Since(began))
		}
		line += fmt.Sprintf(" %7.3f;%6.1f", float64(least.Nanoseconds())/1e6, float64(size)/float64(least.Nanoseconds()))
	}
	fmt.Println(line)
}
