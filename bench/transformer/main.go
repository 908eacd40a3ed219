// Command transformer is the Go side of compare.py: it opens a model, and embeds texts on request. Each line of
// standard input is a JSON list of texts. The answer is a line with the processor seconds of the embedding, and the
// first text's vector.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"runtime"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/embedders/transformer"
	"github.com/souvenir-ai/souvenir/internal/testing/usage"
)

func main() {
	quantised := flag.Bool("int8", false, "hold the weights as 8-bit integers")
	flag.Parse()
	runtime.GOMAXPROCS(1)
	options := &transformer.Options{Workers: 1}
	if *quantised {
		options.Precision = transformer.Int8
	}
	model, err := transformer.Open(flag.Arg(0), options)
	if err != nil {
		log.Fatal(err)
	}
	defer model.Close()
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var texts []string
		if err := json.Unmarshal(lines.Bytes(), &texts); err != nil {
			log.Fatal(err)
		}
		start := usage.Seconds()
		vectors, err := model.Embed(context.Background(), souvenir.ForDocument, texts)
		took := usage.Seconds() - start
		if err != nil {
			log.Fatal(err)
		}
		answer, err := json.Marshal(map[string]any{"seconds": took, "vector": vectors[0]})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(string(answer))
	}
}
