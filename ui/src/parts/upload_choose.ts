import type { Chosen } from './upload_send'

// What a person has chosen or dropped, as paths below the version's directory. One folder
// alone gives what is in it; several things keep their names.

const below = (path: string) => path.slice(path.indexOf('/') + 1)

// fromInput reads what was chosen in a dialog of the browser.
export function fromInput(files: Iterable<File>): Chosen[] {
  const all = [...files]
  const tops = new Set(all.map((file) => file.webkitRelativePath.split('/')[0]))
  const folder = tops.size === 1 && !tops.has('')
  return all.map((file) => ({ path: folder ? below(file.webkitRelativePath) : file.webkitRelativePath || file.name, file }))
}

// fromDrop reads what was dropped, folders with all below them. Entries have to be taken
// in the event itself; the rest comes later.
export async function fromDrop(data: DataTransfer, tell: (count: number) => void): Promise<Chosen[]> {
  const entries = [...data.items].map((item) => item.webkitGetAsEntry()).filter((entry) => entry !== null)
  const found: Chosen[] = []
  const walk = async (entry: FileSystemEntry, path: string): Promise<void> => {
    if (entry.isFile) {
      found.push({ path, file: await new Promise<File>((is, fails) => (entry as FileSystemFileEntry).file(is, fails)) })
      if (found.length % 100 === 0) tell(found.length)
      return
    }
    const reader = (entry as FileSystemDirectoryEntry).createReader()
    let empty = true
    for (;;) {
      const some = await new Promise<FileSystemEntry[]>((is, fails) => reader.readEntries(is, fails))
      if (!some.length) break // a browser tells a hundred at a time
      empty = false
      for (const one of some) await walk(one, path ? `${path}/${one.name}` : one.name)
    }
    if (empty && path) found.push({ path: path + '/', file: undefined })
  }
  const only = entries.length === 1 && entries[0]!.isDirectory
  for (const entry of entries) await walk(entry, only ? '' : entry.name)
  return found
}
