import { useEffect, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { Button } from '../controls'

interface Message {
  key: number
  tone: 'good' | 'bad'
  text: string
}

const shortly = 4000 // milliseconds
const longer = 8000 // what went wrong is read, not only seen
let last = 0
const listeners = new Set<(message: Message) => void>()

// say tells what was done, or that it was not, in a corner of any page.
export function say(tone: Message['tone'], text: string) {
  const message = { key: ++last, tone, text }
  for (const listener of listeners) listener(message)
}

// Messages is where they are shown, and told to those who hear the page.
export function Messages() {
  const { t } = useTranslation()
  const [shown, setShown] = useState<Message[]>([])
  const drop = (key: number) => setShown((old) => old.filter((one) => one.key !== key))
  useEffect(() => {
    const timers = new Set<ReturnType<typeof setTimeout>>()
    const take = (message: Message) => {
      setShown((old) => [...old, message])
      timers.add(setTimeout(() => drop(message.key), message.tone === 'bad' ? longer : shortly))
    }
    listeners.add(take)
    return () => {
      listeners.delete(take)
      timers.forEach(clearTimeout)
    }
  }, [])
  return (
    <div className="messages" role="status" aria-live="polite">
      {shown.map((message) => (
        <div key={message.key} className={'message ' + message.tone}>
          <span className="message-mark" aria-hidden="true">{message.tone === 'bad' ? '✕' : '✓'}</span>
          <span>{message.text}</span>
          <Button tone="bare" small aria-label={t('controls.close')} onClick={() => drop(message.key)}><span aria-hidden="true">✕</span></Button>
        </div>
      ))}
    </div>
  )
}
