// Package kernel is the base of the API: the rules and the rows on which several of its concepts depend. It uses no
// type of the API.
//
//   - Visibility: [Viewer] makes the condition for the rows that a caller may see or write.
//   - Memories: [Memory] is one as it is read, with its rows; [Draft] is one that is checked, split and embedded
//     before the transaction that stores it. [Attributes] are its metadata. [RowWriter] writes its place, tags, links
//     and passages.
//   - Users, with their preferences, and the projects and collections of an owner ([InsertProject], [AddCollection]).
//   - Files: the rows of their content ([RemoveChunks]), and their change of owners ([GiveFiles]).
//   - What filters need of metadata: [Modules], and the index of own keys ([IndexMetadata]).
//   - Hashes of rows ([HashedTable], [RowHash]), which detect damage.
//   - Conversations: [KeepTurns] records which memories are turns of one.
//   - The trash: [TrashItem] and the JSON forms of deleted memories.
//   - The forms of vectors ([EncodeVector]), profiles ([Profile]) and settings ([Setting]) in the database.
package kernel
