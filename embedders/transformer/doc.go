// Package transformer embeds texts with a transformer model in a folder: models of the BERT family (all-MiniLM, bge,
// arctic-embed, e5) and of the XLM-R family (multilingual-e5). It is written in Go, needs no C compiler, no network and
// no other program, and computes the same vectors as the reference implementations.
//
// The folder has the files that such models are published with: config.json, tokenizer.json (or vocab.txt, or
// sentencepiece.bpe.model), and the weights as model.safetensors or model.onnx. Files of sentence-transformers beside
// them (modules.json, 1_Pooling/config.json, sentence_bert_config.json, config_sentence_transformers.json) define the
// pooling, the maximum length of texts, and their prefixes.
//
//	model, err := transformer.Open("models/multilingual-e5-small", nil)
//	if err != nil { ... }
//	defer model.Close()
//	store, err := souvenir.Open(ctx, "agent.db", &souvenir.Options{Embedder: model})
package transformer
