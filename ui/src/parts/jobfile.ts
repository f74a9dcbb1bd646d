import { quote } from '../format'
import type { JobChange, VIPMachine } from '../types'

// Simple is what the form asks for.
export interface Simple {
  name: string
  nodes: number
  mode: string
  cards: number
  cpu: number
  memory: string
  image: string
  command: string
}

export const simple: Simple = { name: 'digits', nodes: 1, mode: 'single', cards: 0, cpu: 1, memory: '256MiB', image: '', command: "bash -c 'for i in $(seq 1 60); do echo step $i; sleep 1; done'" }

// sweep is the job file that a batch begins with: each subjob runs the command with a
// value of its own, by its number.
export const sweep = `job "sweep" {
  type = "batch"
  tags = ["sweep"]

  batch {
    count = 4
  }
  resources {
    cpu    = 0.1
    memory = "32MiB"
  }
  task {
    command = <<-EOT
      bash -c 'rates=(0.0003 0.001 0.003 0.01); lr=$$\{rates[$NOMADLIKE_SUBJOB_INDEX]}; for step in 1 2 3 4 5; do awk -v lr=$lr -v s=$step "BEGIN { print \\"step=\\" s, \\"lr=\\" lr, \\"loss=\\" 1 / (1 + s * lr * 300) }"; done'
    EOT
  }
}
`

// starts are the job files that one may begin with.
export const starts = {
  ddp: `job "train" {
  nodes = 2

  resources {
    cpu    = 8
    memory = "64GiB"
    device "nvidia/gpu" {
      count = 8
    }
  }
  distributed "pytorch" {}
  task {
    command = "python3 train.py"
  }
  checkpoint {
    max_resumes = 3
  }
}
`,
  one: `job "train" {
  resources {
    cpu    = 4
    memory = "16GiB"
    device "nvidia/gpu" {
      count = 1
    }
  }
  task {
    command = "python3 train.py"
  }
}
`,
  sweep,
}

// text spells a string of a job file: quotes, and template marks that are none.
export const text = (value: string) => '"' + value.replace(/[\\"]/g, '\\$&').replaceAll('\n', '\\n').replace(/([$%])\{/g, '$1$1{') + '"'

// compose writes the job file of a form.
export function compose(values: Simple): string {
  const out = [`job ${text(values.name)} {`]
  if (values.nodes > 1) out.push(`  nodes = ${values.nodes}`)
  out.push('  resources {', `    cpu    = ${values.cpu}`, `    memory = ${text(values.memory)}`)
  if (values.cards > 0) out.push('    device "nvidia/gpu" {', `      count = ${values.cards}`, '    }')
  out.push('  }')
  if (values.mode !== 'single') out.push(`  distributed ${text(values.mode)} {}`)
  out.push('  task {', `    driver  = ${text(values.image ? 'docker' : 'exec')}`)
  if (values.image) out.push(`    image   = ${text(values.image)}`)
  out.push(`    command = ${text(values.command)}`, '  }', '}', '')
  return out.join('\n')
}

// FileChange is a change of a job file that the server makes, with the values that
// the pages write.
export interface FileChange extends JobChange {
  value: string | number | boolean | string[] | Record<string, string> | null
}

// variablesOf lists the variables that a job file declares.
export const variablesOf = (file: string): string[] => [...new Set([...file.matchAll(/^\s*variable\s+"([^"\n]+)"\s*\{/gm)].map((m) => m[1]!))]

// sizeText spells a number of bytes as job files do, exactly.
export function sizeText(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB']
  let i = 0
  while (bytes && bytes % 1024 === 0 && i < units.length - 1) {
    bytes /= 1024
    i++
  }
  return `${bytes}${units[i]}`
}

// bytesOf reads such a size; undefined: it is none.
export function bytesOf(text: string): number | undefined {
  const found = /^\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(i?)B?\s*$/i.exec(text)
  if (!found) return undefined
  const power = ['', 'K', 'M', 'G', 'T'].indexOf(found[2]!.toUpperCase())
  const bytes = Number(found[1]) * (found[3] ? 1024 : 1000) ** power
  return Number.isInteger(bytes) ? bytes : undefined
}

// envText and readEnv spell an environment on one line, as a shell would.
export const envText = (env: Record<string, string> = {}) => Object.entries(env).sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, value]) => `${name}=${quote(value)}`).join(' ')

export function readEnv(line: string): Record<string, string> {
  return Object.fromEntries(words(line).flatMap((word) => {
    const at = word.indexOf('=')
    return at > 0 ? [[word.slice(0, at), word.slice(at + 1)]] : []
  }))
}

// words parts a command line as a shell does: blanks, single and double quotes,
// backslashes; nothing is expanded.
export function words(line: string): string[] {
  const out: string[] = []
  let word: string | undefined
  for (let i = 0; i < line.length; i++) {
    const c = line[i]!
    if (c === "'" || c === '"') {
      word ??= ''
      for (i++; i < line.length && line[i] !== c; i++) {
        if (c === '"' && line[i] === '\\' && i + 1 < line.length) i++
        word += line[i]
      }
    } else if (c === '\\' && i + 1 < line.length) {
      i++
      if (line[i] !== '\n') word = (word ?? '') + line[i]
    } else if (/\s/.test(c)) {
      if (word !== undefined) out.push(word)
      word = undefined
    } else word = (word ?? '') + c
  }
  if (word !== undefined) out.push(word)
  return out
}

// runLine is the command line that submits a file with values of its variables,
// or resumes a job.
export function runLine(names: string[], given: Record<string, string>, resume?: { name: string; step?: number }): string {
  if (resume) return `nomadlike job resume -edit ${resume.step ? `-step ${resume.step} ` : ''}${quote(resume.name)}`
  const vars = names.filter((name) => given[name]).map((name) => `-var ${quote(`${name}=${given[name]}`)} `)
  return `nomadlike job run ${vars.join('')}job.hcl`
}

// readLine takes the values of variables out of a command line.
export function readLine(line: string, names: string[]): Record<string, string> {
  const out: Record<string, string> = {}
  const all = words(line)
  all.forEach((word, i) => {
    const pair = word === '-var' || word === '--var' ? all[i + 1] : /^--?var=(.*)$/s.exec(word)?.[1]
    const at = pair?.indexOf('=') ?? -1
    if (pair && at > 0 && names.includes(pair.slice(0, at))) out[pair.slice(0, at)] = pair.slice(at + 1)
  })
  return out
}

// heredoc is a shell's way to write the file.
export function heredoc(file: string): string {
  let mark = 'EOF'
  while (file.split('\n').includes(mark)) mark += '_'
  return `cat > job.hcl <<'${mark}'\n${file.endsWith('\n') ? file : file + '\n'}${mark}\n`
}

// vipFile is the job file that the page for VIP jobs begins with: a block for the
// machines that are to be chosen.
export const vipFile = (values: Simple): string => compose(values).replace(/\}\n$/, '  vip {\n  }\n}\n')

// noMachines reports whether a job file chooses no machine yet. Such a file is no good
// job, so the server does not read it; it can be changed to one that is.
export const noMachines = (file: string): boolean => !/^\s*machine\s+"/m.test(file)

// withoutMachines takes all machines out of a file as the server writes it.
export const withoutMachines = (file: string): string => file.replace(/^ {2}vip \{\n[^]*?^ {2}\}$/m, '  vip {\n  }')

// vipChanges write the chosen machines of a VIP job, where there were so many before.
export function vipChanges(machines: VIPMachine[], before: number): FileChange[] {
  return [
    ...machines.flatMap((m, i) => [{ at: `vip.machine[${i}]#`, value: m.node }, { at: `vip.machine[${i}].busy`, value: m.busy ?? 'wait' }]),
    ...Array.from({ length: Math.max(0, before - machines.length) }, (_, i) => ({ at: `vip.machine[${before - 1 - i}]#`, value: null })),
    ...(machines.length ? [{ at: 'nodes', value: machines.length }] : []),
  ]
}

// askChanges write how owners are asked; none takes it out.
export const askChanges = (ask?: { for: string; silence: string; message: string }): FileChange[] =>
  ask ? [{ at: 'vip.ask.for', value: ask.for }, { at: 'vip.ask.silence', value: ask.silence }, { at: 'vip.ask.message', value: ask.message || null }] : [{ at: 'vip.ask#', value: null }]
