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

// setAttribute gives an attribute of the job block another value, or adds it.
export function setAttribute(file: string, name: string, value: string): string {
  const line = new RegExp(`^(\\s*${name}\\s*=\\s*)(?:"[^"\\n]*"|[^\\s#]+)`, 'm')
  if (line.test(file)) return file.replace(line, (_, head: string) => head + value)
  return file.replace(/^(\s*job\s+"[^"\n]*"\s*\{[^\n]*\n)/m, (head) => `${head}  ${name} = ${value}\n`)
}
