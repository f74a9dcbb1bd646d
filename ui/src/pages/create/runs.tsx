import { useTranslation } from 'react-i18next'
import { Button } from '../../parts/controls'
import type { FileChange } from '../../parts/jobfile'
import { JobCode } from './code'
import { One, Lines, Part, Text, useFilling } from './fields'
import { useImages, useSecretNames } from './offers'
import { Names } from './where'

// secretOf is a value that is a secret of the project's, by its name.
const secretOf = (name: string) => ({ secret: name })

// Runs is the third part: the image, the command, its environment and its code.
export function Runs() {
  const { t } = useTranslation()
  const { job, left, change } = useFilling()
  const [images, secrets] = [useImages(), useSecretNames()]
  const task = job?.task
  const files = (task?.secrets ?? []).filter((one) => !one.var && !one.image).map((one) => one.name)
  const registry = task?.secrets?.find((one) => one.image)?.name ?? ''
  const docker = task?.driver === 'docker'
  return (
    <Part title={t('create.part_runs')} heads={['task', 'workdir']}>
      <div className="form">
        <Text at="task.image" entry="job.image" label={t('create.image')} grow value={left('task.image') ? '' : (task?.image ?? '')} hint={docker ? (task?.image ?? '') : t('create.image_none')} options={images}
          write={(value) => [{ at: 'task.image', value: value || null }, { at: 'task.driver', value: value ? 'docker' : 'exec' }]} />
        {docker && <One at="task.pull" entry="job.pull" label={t('create.pull')} value={task.pull ?? 'missing'} usual="missing" options={['missing', 'always', 'never'].map((value) => ({ value, label: t('create.pull_' + value) }))} />}
        {docker && <Text at="task.image_credentials" entry="job.image_credentials" label={t('create.credentials')} value={registry} options={secrets} write={(value) => [{ at: 'task.image_credentials', value: value ? secretOf(value) : null }]} />}
      </div>
      <JobCode />
      <Lines at="task.command" entry="job.command" label={t('create.command')} value={task?.command ?? ''} hint="python3 train.py" />
      <div className="form">
        <Text at="task.arguments" entry="job.arguments" label={t('create.arguments')} grow value={left('task.arguments') ? '' : (task?.arguments ?? '')} hint="--lr 0.1" />
        <Text at="task.dir" entry="job.dir" label={t('create.dir')} width={150} value={task?.dir ?? ''} />
        <Text at="task.user" entry="job.user" label={t('create.account')} width={120} value={left('task.user') ? '' : (task?.user ?? '')} />
      </div>
      <Environment />
      <div className="form"><Names at="task.secrets" entry="job.secrets" label={t('create.secret_files')} value={files} options={secrets} set={(list) => change([{ at: 'task.secrets', value: list.length ? list : null }])} /></div>
    </Part>
  )
}

interface Variable {
  name: string
  value: string
  secret: boolean
}

const named = /^[A-Za-z_][A-Za-z0-9_]*$/

// Environment is a line for each variable, which is a text or a secret of the project's.
function Environment() {
  const { t } = useTranslation()
  const { job } = useFilling()
  const secrets = useSecretNames()
  const all: Variable[] = [
    ...Object.entries(job?.task.env ?? {}).map(([name, value]) => ({ name, value, secret: false })),
    ...(job?.task.secrets ?? []).filter((one) => one.var).map((one) => ({ name: one.var!, value: one.name, secret: true })),
  ].sort((a, b) => (a.name < b.name ? -1 : 1))
  return (
    <fieldset className="rows-of">
      <legend>{t('create.env')}</legend>
      {all.map((one) => <VariableRow key={one.name} of={one} secrets={secrets} />)}
      <div className="form">
        <Text at="task.env" entry="job.env" label={t('create.env_add')} grow value="" hint="NAME=value" write={(typed) => added(typed)} />
      </div>
    </fieldset>
  )
}

// added reads NAME=value; a name alone is a variable that is empty.
export function added(typed: string): FileChange[] {
  const at = typed.indexOf('=')
  const name = (at < 0 ? typed : typed.slice(0, at)).trim()
  return named.test(name) ? [{ at: `task.env["${name}"]`, value: at < 0 ? '' : typed.slice(at + 1) }] : []
}

function VariableRow({ of: { name, value, secret }, secrets }: { of: Variable; secrets: { value: string; label: string }[] }) {
  const { t } = useTranslation()
  const { change } = useFilling()
  const at = `task.env["${name}"]`
  return (
    <div className="form">
      <span className="mono variable">{name}</span>
      <One bare at={at} label={t('create.env_kind', { name })} width={100} value={secret ? 'secret' : 'text'} options={[{ value: 'text', label: t('create.env_text') }, { value: 'secret', label: t('create.env_secret'), off: !secret && secrets.length === 0 }]}
        write={(now) => [{ at, value: now === 'secret' ? secretOf(secrets[0]!.value) : '' }]} />
      <span className="control grow"><Text bare at={at} label={name} width="100%" value={value} options={secret ? secrets : undefined} write={(now) => [{ at, value: secret ? secretOf(now) : now }]} /></span>
      <Button small aria-label={t('create.remove', { name })} onClick={() => void change([{ at, value: null }])}>✕</Button>
    </div>
  )
}
