// A directory of the browser as a tar archive: its files stay on the disk until they
// are sent.

export interface Carried {
  path: string // below the directory, parts apart by /
  file?: Blob // none of a directory
}

// What never goes along, as the servers leave it out: so it need not be sent. A test
// compares the list with theirs.
export const leavings = ['.git', '.hg', '.svn', '.venv', 'venv', '__pycache__', '.ipynb_checkpoints', '.mypy_cache', '.pytest_cache', '.ruff_cache', '.tox', 'node_modules', '.DS_Store']

// staysBehind reports whether a path is of what never goes along.
export const staysBehind = (path: string) => path.split('/').some((one) => leavings.includes(one))

const block = 512
const bytesOf = (text: string) => new TextEncoder().encode(text)

// header is the block before an entry. A name that is too long for it goes before it, as
// GNU's tar writes it.
function header(path: string, size: number, mode: number, type: string): Uint8Array<ArrayBuffer>[] {
  const name = bytesOf(path)
  const long = name.length > 100 ? [...header('././@LongLink', name.length + 1, 0, 'L'), padded(name)] : []
  const head = new Uint8Array(block)
  const put = (at: number, text: string) => head.set(bytesOf(text), at)
  const octal = (at: number, length: number, value: number) => put(at, value.toString(8).padStart(length - 1, '0') + '\0')
  head.set(name.slice(0, 100), 0)
  octal(100, 8, mode)
  octal(108, 8, 0)
  octal(116, 8, 0)
  octal(124, 12, size)
  octal(136, 12, 0)
  put(148, ' '.repeat(8))
  put(156, type)
  put(257, 'ustar  \0')
  octal(148, 7, head.reduce((sum, one) => sum + one, 0))
  return [...long, head]
}

function padded(data: Uint8Array): Uint8Array<ArrayBuffer> {
  const out = new Uint8Array(Math.ceil((data.length + 1) / block) * block)
  out.set(data)
  return out
}

// tarOf packs a directory. A script that says by what it is run may be run.
export async function tarOf(all: Carried[]): Promise<Blob> {
  const parts: BlobPart[] = []
  for (const { path, file } of all) {
    if (!file) {
      parts.push(...header(path + '/', 0, 0o755, '5'))
      continue
    }
    const begins = new Uint8Array(await file.slice(0, 2).arrayBuffer())
    parts.push(...header(path, file.size, begins[0] === 0x23 && begins[1] === 0x21 ? 0o755 : 0o644, '0'), file)
    const rest = file.size % block
    if (rest) parts.push(new Uint8Array(block - rest))
  }
  parts.push(new Uint8Array(2 * block))
  return new Blob(parts, { type: 'application/x-tar' })
}

// chosen is a directory that was chosen: its own name is left out.
export const chosen = (files: Iterable<File>): Carried[] =>
  [...files].map((file) => ({ path: file.webkitRelativePath.split('/').slice(1).join('/') || file.name, file })).filter((one) => !staysBehind(one.path))

// dropped is what was dropped: a directory alone is the one that is meant, several things
// lie beside each other. It has to be called while the drop is told.
export async function dropped(items: Iterable<DataTransferItem>): Promise<Carried[]> {
  const roots = [...items].map((item) => item.webkitGetAsEntry()).filter((one) => one !== null)
  const out: Carried[] = []
  const walk = async (entry: FileSystemEntry, path: string): Promise<void> => {
    if (path && staysBehind(path)) return
    if (entry.isFile) {
      out.push({ path, file: await new Promise<File>((done, fail) => (entry as FileSystemFileEntry).file(done, fail)) })
      return
    }
    if (path) out.push({ path })
    const reader = (entry as FileSystemDirectoryEntry).createReader()
    for (;;) {
      const some = await new Promise<FileSystemEntry[]>((done, fail) => reader.readEntries(done, fail))
      if (some.length === 0) return
      for (const one of some) await walk(one, path ? path + '/' + one.name : one.name)
    }
  }
  const alone = roots.length === 1 && roots[0]!.isDirectory
  for (const root of roots) await walk(root, alone ? '' : root.name)
  return out.sort((a, b) => (a.path < b.path ? -1 : 1))
}

// largestOf are the parts of a directory that have most bytes, with what they have.
export function largestOf(all: Carried[], count: number): [string, number][] {
  const sums = new Map<string, number>()
  for (const { path, file } of all) {
    const head = path.split('/').slice(0, path.includes('/') ? 1 : undefined).join('/') + (path.includes('/') ? '/' : '')
    sums.set(head, (sums.get(head) ?? 0) + (file?.size ?? 0))
  }
  return [...sums].sort(([, a], [, b]) => b - a).slice(0, count)
}

export const isArchive = (name: string) => /\.(tar|tar\.gz|tgz)$/i.test(name)
