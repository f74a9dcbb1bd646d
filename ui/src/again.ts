// Parts of the program are fetched when they are needed. A browser gives a
// fetch up when an address of the machine comes or goes, or the agent starts
// anew; a moment later it works.

const waits = [200, 500, 1000, 2000, 4000] // milliseconds before each further try

// MissingPart is thrown when a part of the program cannot be had: the agent
// is away, or a newer one stands there and has other parts.
export class MissingPart extends Error {}

// again calls load until it succeeds, and a few times at most.
export async function again<T>(load: () => Promise<T>): Promise<T> {
  for (const wait of waits) {
    try {
      return await load()
    } catch {
      await new Promise((done) => setTimeout(done, wait))
    }
  }
  try {
    return await load()
  } catch (cause) {
    throw new MissingPart('a part of the program is missing', { cause })
  }
}
