package transformer

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/souvenir-ai/souvenir"
	"github.com/souvenir-ai/souvenir/embedders/transformer/internal/kernel"
	"github.com/souvenir-ai/souvenir/embedders/transformer/internal/tokens"
	"github.com/souvenir-ai/souvenir/embedders/transformer/internal/weights"
)

// version is a part of every model's identity. It changes when the same files would give other vectors.
const version = 1

// Embedder is an open model. It is safe for concurrent use.
type Embedder struct {
	recipe
	name      string
	hidden    int
	mean      []float32 // subtracted from every vector; nil: none
	tokenizer *tokens.Tokenizer
	spaces    chan *workspace // one for each worker

	using   sync.RWMutex // held for reading by every Embed, and for writing by Close
	network *network     // nil: closed
}

var (
	_ souvenir.Embedder     = (*Embedder)(nil)
	_ souvenir.InputLimiter = (*Embedder)(nil)
)

// ErrClosed is the error of Embed after Close.
var ErrClosed = errors.New("transformer: the model is closed")

// Open reads the model in a folder. Its errors name the file, and the setting or tensor in it. The files are read
// here only: later changes to them have no effect.
func Open(dir string, options *Options) (*Embedder, error) {
	o, err := options.withDefaults()
	if err != nil {
		return nil, err
	}
	e, err := open(dir, o, kernel.Fastest())
	if err != nil {
		return nil, fmt.Errorf("transformer: %w", err)
	}
	return e, nil
}

func open(dir string, o Options, k *kernel.Kernels) (*Embedder, error) {
	c, err := readConfiguration(dir)
	if err != nil {
		return nil, err
	}
	r, err := readRecipe(dir, c, o)
	if err != nil {
		return nil, err
	}
	if o.Mean != nil && len(o.Mean) != c.Hidden {
		return nil, fmt.Errorf("Mean has %d numbers; the model's vectors have %d", len(o.Mean), c.Hidden)
	}
	e := &Embedder{recipe: r, hidden: c.Hidden, mean: o.Mean, spaces: make(chan *workspace, o.Workers)}
	for range o.Workers {
		e.spaces <- &workspace{}
	}
	var tokenizerFile string
	if e.tokenizer, tokenizerFile, err = openTokenizer(dir, r); err != nil {
		return nil, err
	}
	if e.tokenizer.Size() > c.Vocabulary {
		return nil, fmt.Errorf("%s has ids up to %d; config.json says that vocab_size is %d",
			filepath.Join(dir, tokenizerFile), e.tokenizer.Size()-1, c.Vocabulary)
	}
	if e.tokenizer.Overhead() >= r.maxTokens {
		return nil, fmt.Errorf("%s puts %d tokens around every text; the model takes %d in all",
			filepath.Join(dir, tokenizerFile), e.tokenizer.Overhead(), r.maxTokens)
	}
	source, err := openWeights(dir)
	if err != nil {
		return nil, err
	}
	defer source.Close()
	if e.network, err = loadNetwork(source, c, k, o.Precision); err != nil {
		return nil, err
	}
	e.name, err = identity(dir, c, r, o, source.Path(), filepath.Join(dir, tokenizerFile))
	return e, err
}

// openTokenizer reads the first existing tokenizer file.
func openTokenizer(dir string, r recipe) (*tokens.Tokenizer, string, error) {
	readers := []struct {
		name string
		read func([]byte) (*tokens.Tokenizer, error)
	}{
		{"tokenizer.json", tokens.ReadJSON},
		{"vocab.txt", func(data []byte) (*tokens.Tokenizer, error) {
			ids, err := tokens.ReadVocabulary(strings.NewReader(string(data)))
			if err != nil {
				return nil, err
			}
			return tokens.BERT(ids, r.lowerCase)
		}},
		{"sentencepiece.bpe.model", tokens.SentencePiece},
	}
	for _, reader := range readers {
		data, err := readFile(dir, reader.name, maxTokenizer)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, "", err
		}
		t, err := reader.read(data)
		if err != nil {
			return nil, "", fmt.Errorf("%s: %w", filepath.Join(dir, reader.name), err)
		}
		return t, reader.name, nil
	}
	return nil, "", fmt.Errorf("%s has no tokenizer; expected tokenizer.json, vocab.txt or sentencepiece.bpe.model",
		dir)
}

// openWeights opens the first existing file of weights.
func openWeights(dir string) (weights.Source, error) {
	names := []string{"model.safetensors", "model.onnx", "onnx/model.onnx", "model_quantized.onnx",
		"onnx/model_quantized.onnx"}
	for _, name := range names {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if strings.HasSuffix(name, ".onnx") {
			return weights.OpenONNX(path)
		}
		return weights.OpenSafetensors(path)
	}
	if _, err := os.Stat(filepath.Join(dir, "model.safetensors.index.json")); err == nil {
		return nil, fmt.Errorf("%s holds weights in several files; expected one model.safetensors", dir)
	}
	return nil, fmt.Errorf("%s has no weights; expected %s", dir, strings.Join(names, ", or "))
}

// identity names everything that the vectors depend on: the hash of the files, and the settings.
func identity(dir string, c configuration, r recipe, o Options, files ...string) (string, error) {
	sum := sha256.New()
	fmt.Fprintf(sum, "%d\x00%+v\x00%+v\x00%v\x00", version, c, r, o.Precision)
	if o.Mean != nil {
		fmt.Fprintf(sum, "%v\x00", o.Mean)
	}
	for _, path := range files {
		file, err := os.Open(path)
		if err != nil {
			return "", err
		}
		each := sha256.New()
		_, err = io.Copy(each, file)
		if err = errors.Join(err, file.Close()); err != nil {
			return "", fmt.Errorf("%s: %w", path, err)
		}
		sum.Write(each.Sum(nil))
	}
	folder, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	name := cmp.Or(o.Name, filepath.Base(c.Name), filepath.Base(folder))
	if c.Name == "" {
		name = cmp.Or(o.Name, filepath.Base(folder))
	}
	name = strings.ToValidUTF8(name, "")
	if len(name) > maxName {
		name = strings.ToValidUTF8(name[:maxName], "")
	}
	return fmt.Sprintf("transformer:%s:%s:%s", name, o.Precision, hex.EncodeToString(sum.Sum(nil)[:8])), nil
}

// Model identifies the model by its name, its precision, and a hash of its files and settings.
func (e *Embedder) Model() string { return e.name }

// Dimensions is the length of every vector.
func (e *Embedder) Dimensions() int { return e.hidden }

// MaxInput is a length in bytes that the model reads in full, for most languages. Longer memories are split into
// passages. A token of English has about 4 bytes, one of Chinese 3.
func (e *Embedder) MaxInput() int {
	return min(max(3*(e.maxTokens-e.tokenizer.Overhead()), 200), 1600)
}

// Close waits for running calls and releases the model's memory.
func (e *Embedder) Close() error {
	e.using.Lock()
	defer e.using.Unlock()
	e.network = nil
	return nil
}

// batchTokens is about how many tokens are computed together: enough to read the weights rarely, few enough for the
// results to stay in the processor's cache.
const batchTokens = 384

// Embed returns one unit vector for each text, in order. A text's vector does not depend on the other texts. The
// workers share the work; if the context ends, it stops between layers.
func (e *Embedder) Embed(ctx context.Context, purpose souvenir.Purpose, texts []string) ([][]float32, error) {
	e.using.RLock()
	defer e.using.RUnlock()
	if e.network == nil {
		return nil, ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	prefix := e.document
	if purpose == souvenir.ForQuery {
		prefix = e.query
	}
	ids, order := make([][]int32, len(texts)), make([]int, len(texts))
	for i, text := range texts {
		ids[i], order[i] = e.tokenizer.Encode(nil, prefix+text, e.maxTokens), i
		if len(ids[i]) == 0 {
			return nil, fmt.Errorf("transformer: text %d has no token at all; the tokenizer adds none of its own", i)
		}
	}
	// Batch texts of similar length, the longest first, so that the workers end at about the same time.
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(len(ids[b]), len(ids[a])) })
	vectors, room := make([][]float32, len(texts)), make([]float32, len(texts)*e.hidden)
	for i := range vectors {
		vectors[i] = room[i*e.hidden : (i+1)*e.hidden : (i+1)*e.hidden]
	}
	return vectors, e.embedBatches(ctx, ids, batches(order, ids, cap(e.spaces)), vectors)
}

// Mean returns the mean of the vectors of some texts as documents, for [Options.Mean]: open the model without one, take
// a few hundred texts like the memories of the store, and open it again with their mean.
func (e *Embedder) Mean(ctx context.Context, texts []string) ([]float32, error) {
	if len(texts) == 0 {
		return nil, errors.New("transformer: no text is given; the mean of a few hundred is of use")
	}
	vectors, err := e.Embed(ctx, souvenir.ForDocument, texts)
	if err != nil {
		return nil, err
	}
	sums, mean := make([]float64, e.hidden), make([]float32, e.hidden)
	for _, v := range vectors {
		for i, x := range v {
			sums[i] += float64(x)
		}
	}
	for i, sum := range sums {
		mean[i] = float32(sum / float64(len(texts)))
	}
	return mean, nil
}

// batches cuts the order into runs of about batchTokens, or shorter ones if there are several workers.
func batches(order []int, ids [][]int32, workers int) [][]int {
	total := 0
	for _, i := range order {
		total += len(ids[i])
	}
	most := min(batchTokens, max(total/workers, batchTokens/8))
	var all [][]int
	start, size := 0, 0
	for at, i := range order {
		if at > start && size+len(ids[i]) > most {
			all, start, size = append(all, order[start:at]), at, 0
		}
		size += len(ids[i])
	}
	if start < len(order) {
		all = append(all, order[start:])
	}
	return all
}

// embedBatches computes the batches, each in a goroutine as soon as a workspace is free. It returns when all have
// ended.
func (e *Embedder) embedBatches(ctx context.Context, ids [][]int32, all [][]int, vectors [][]float32) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var running sync.WaitGroup
	for _, batch := range all {
		var w *workspace
		select {
		case w = <-e.spaces:
		case <-ctx.Done():
		}
		if w == nil {
			break
		}
		running.Go(func() {
			defer func() { e.spaces <- w }()
			if err := e.embedBatch(ctx, w, ids, batch, vectors); err != nil {
				cancel(err)
			}
		})
	}
	running.Wait()
	return context.Cause(ctx)
}

// embedBatch computes one batch. A panic becomes an error here, as the caller cannot recover from one in a goroutine.
func (e *Embedder) embedBatch(ctx context.Context, w *workspace, ids [][]int32, batch []int,
	vectors [][]float32) (err error) {
	defer func() {
		if broken := recover(); broken != nil {
			err = fmt.Errorf("transformer: panic: %v", broken)
		}
	}()
	texts := make([][]int32, len(batch))
	for i, which := range batch {
		texts[i] = ids[which]
	}
	states, err := e.network.forward(ctx, w, texts)
	if err != nil {
		return err
	}
	for i, which := range batch {
		n := len(texts[i]) * e.hidden
		pool(vectors[which], states[:n], e.pooling)
		centre(vectors[which], e.mean)
		states = states[n:]
	}
	return nil
}
