// The data of a picture: its compact lists become plain ones, and names come when they are needed. The picture itself
// is in pictures.js.

// unpacked adds to the data of the server: x and y of each memory, edges as from, to and similarity, days, and lists of
// numbers that come as characters.
export function unpacked(data) {
  for (const name of ['project', 'type', 'collection', 'important', 'cluster'])
    data[name] = Array.from(data[name], (character) => character.charCodeAt(0) - 64)
  const bytes = Uint8Array.from(atob(data.places), (character) => character.charCodeAt(0))
  const [x, y] = [new Array(data.memories), new Array(data.memories)]
  for (let i = 0; i < data.memories; i++) {
    const [a, b, c] = bytes.subarray(3 * i, 3 * i + 3)
    x[i] = (a << 4) | (b >> 4)
    y[i] = ((b & 15) << 8) | c
  }
  let [from, day] = [0, 0]
  const edges = data.from.flatMap((more, i) => {
    from += more
    return [from, from + data.to[i], data.similar[i]]
  })
  return { ...data, x, y, edges, day: data.day.map((more) => (day += more)) }
}

const most = 100 // names that the server tells at once

// naming returns the names of memories: ids and labels are lists by number, in which unknown ones are missing. Its
// function of(numbers) resolves when those are known. fetched requests an address; failed gets the errors.
export function naming(data, address, fetched, failed) {
  const [ids, labels] = [data.ids.slice(), data.labels.slice()]
  const asked = new Map() // number: the promise of its name
  const request = async (some) => {
    try {
      const names = await fetched(address({ at: some.join(), version: data.version }))
      some.forEach((i, place) => {
        ids[i] = names.ids[place]
        labels[i] = names.labels[place] ?? '(no longer here)'
      })
    } catch (error) {
      failed(error)
    } finally {
      for (const i of some) asked.delete(i)
    }
  }
  return {
    ids, labels,
    async of(numbers) {
      const missing = [...new Set(numbers)].filter((i) => labels[i] === undefined && !asked.has(i))
      for (let start = 0; start < missing.length; start += most) {
        const some = missing.slice(start, start + most)
        const sent = request(some)
        for (const i of some) asked.set(i, sent)
      }
      await Promise.all(numbers.map((i) => asked.get(i)))
    },
    // knownIDs returns the ids of memories; null: one is not known.
    knownIDs: (numbers) => (numbers.every((i) => ids[i] !== undefined) ? numbers.map((i) => ids[i]) : null),
    // idsOf requests the ids of many memories.
    async idsOf(numbers) {
      return (await fetched(address({ at: numbers.join(), version: data.version, ids: 1 }))).ids
    },
  }
}
