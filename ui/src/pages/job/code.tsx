import { useTranslation } from 'react-i18next'
import { size } from '../../format'
import type { Workdir } from '../../types'

// cameFrom is where code is from, in one word: ADDRESS#REF:DIRECTORY of a repository, and
// what its owner wrote of a directory. Of code that was sent before, only that is known.
export function cameFrom({ source, tree, repo }: Workdir): string {
  if (repo) return source + (repo.ref || repo.subdir ? '#' + (repo.ref ?? '') : '') + (repo.subdir ? ':' + repo.subdir : '')
  return source === tree ? '' : source
}

const digits = (text: string) => text.replace(/^sha256:/, '').slice(0, 12)

// Code says which code a job has: where it is from, how much it is, and the commit at
// which git stood.
export function Code({ workdir }: { workdir: Workdir }) {
  const { t } = useTranslation()
  const from = cameFrom(workdir)
  const { git, tree, files, bytes } = workdir
  const much = [files !== undefined && t('code.files', { count: files }), bytes !== undefined && size(bytes)].filter(Boolean).join(' · ')
  const at = [git?.branch, git?.commit && digits(git.commit)].filter(Boolean).join(' ')
  return (
    <>
      {from && <div><code>{from}</code></div>}
      {much && <div>{much}</div>}
      {tree && <div title={tree}>{t('code.tree', { tree: digits(tree) })}</div>}
      {at && <div title={git?.commit}>git {at}</div>}
      {git?.dirty && <div className="tone-busy">{t('code.dirty')}</div>}
    </>
  )
}
