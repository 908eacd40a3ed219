// Package kernel is the base of the API: the rules and the rows on which several of its concepts depend. It uses no
// type of the API.
//
//   - Visibility: [Viewer] makes the condition for the rows that a caller may see or write.
//   - Memories: [Memory] is one as it is read, with its rows; [Draft] is one that is checked, split and embedded
//     before the transaction that stores it. [Attributes] are its metadata. [Writer] writes its place, tags, links and
//     passages.
//   - Hashes of rows ([HashedTable], [RowHash]), which detect damage.
//   - Conversations: [KeepTurns] records which memories are turns of one.
//   - The trash: [TrashItem] and the JSON forms of deleted memories.
//   - The forms of vectors ([EncodeVector]), profiles ([Profile]) and settings ([Setting]) in the database.
package kernel
