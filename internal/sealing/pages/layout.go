package pages

import "github.com/souvenir-ai/souvenir/internal/sealing"

// Sizes of sealed blocks. SQLite does not use the last Reserved bytes of each page: they hold the tag and the nonce, so
// that a sealed page is as long as a plain one. In the write-ahead log, the head and the page of a frame grow, since
// SQLite's checksums there cover whole pages with the reserved part. The head of the log itself stays readable; it has
// sizes, random numbers and a checksum of itself.
const (
	Size     = 4096 // of a page
	Reserved = sealing.Overhead

	logHead   = 32
	frameHead = 24

	sealedHead = frameHead + Reserved
	sealedPage = Size + Reserved // in the log

	frame  = frameHead + Size
	onDisk = sealedHead + sealedPage

	// SQLite locks bytes from here on, which cannot be written on Windows then. No page is stored there.
	lockAt = 1 << 30
)

// The kinds of blocks.
const (
	page       sealing.Kind = 'p'
	head       sealing.Kind = 'h' // the head of a frame
	loggedPage sealing.Kind = 'f' // the page of a frame
)

// At returns the place of a page on disk; pages are numbered from 0 here.
func At(page int64) int64 {
	at := sealing.HeaderSize + page*Size
	if at >= lockAt {
		at += Size
	}
	return at
}

// PlainSize converts a file's size on disk to the size that SQLite sees.
func PlainSize(size int64) int64 {
	if size > lockAt {
		size -= Size
	}
	return max(0, size-sealing.HeaderSize)
}

// SizeOf converts a file's size that SQLite sees to its size on disk.
func SizeOf(plain int64) int64 {
	if plain <= 0 {
		return sealing.HeaderSize
	}
	return At((plain-1)/Size) + (plain-1)%Size + 1
}

// frameAt returns the frame at a place of the log as SQLite sees it, and the offset in the frame.
func frameAt(place int64) (number, within int64) {
	return (place - logHead) / frame, (place - logHead) % frame
}

// headAt returns the place of a frame's head on disk.
func headAt(number int64) int64 { return logHead + number*onDisk }

// loggedPageAt returns the place of a frame's page on disk.
func loggedPageAt(number int64) int64 { return headAt(number) + sealedHead }

// PlainLogSize converts a log's size on disk to the size that SQLite sees, in whole frames.
func PlainLogSize(size int64) int64 {
	if size <= logHead {
		return max(0, size)
	}
	return logHead + (size-logHead)/onDisk*frame
}

// LogSizeOf returns the size on disk of a log that is cut to a size by SQLite, in whole frames.
func LogSizeOf(plain int64) int64 {
	if plain <= logHead {
		return max(0, plain)
	}
	return logHead + (plain-logHead)/frame*onDisk
}
