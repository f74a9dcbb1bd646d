import { useEffect, useId, useRef, useState, type ReactNode } from 'react'

export interface Tab {
  key: string
  label: string
  children: ReactNode
}

// Tabs show one of several things in the same place. Arrows go from one name to
// the next, and Enter or the space bar opens it: what they hold is asked for.
export function Tabs({ label, tabs, active, change }: { label: string; tabs: Tab[]; active: string; change: (key: string) => void }) {
  const id = useId()
  const list = useRef<HTMLDivElement>(null)
  const [at, setAt] = useState('')
  const shown = tabs.find((tab) => tab.key === active)
  const reached = tabs.find((tab) => tab.key === at) ?? shown ?? tabs[0]
  useEffect(() => { // on a phone the open one may be beside the screen
    const name = list.current?.querySelector<HTMLElement>('[aria-selected=true]')
    if (list.current && name) list.current.scrollLeft = name.offsetLeft + name.offsetWidth - list.current.offsetLeft - list.current.clientWidth
  }, [active])
  const move = (event: React.KeyboardEvent) => {
    const here = tabs.findIndex((tab) => tab.key === reached?.key)
    const to = { ArrowRight: here + 1, ArrowLeft: here - 1, Home: 0, End: tabs.length - 1 }[event.key]
    if (to === undefined) return
    event.preventDefault()
    const place = (to + tabs.length) % tabs.length
    setAt(tabs[place]!.key)
    list.current?.querySelectorAll<HTMLElement>('[role=tab]')[place]?.focus()
  }
  return (
    <div className="tabs">
      <div className="tab-list" role="tablist" aria-label={label} ref={list} onKeyDown={move} onBlur={(event) => !event.currentTarget.contains(event.relatedTarget) && setAt('')}>
        {tabs.map((tab) => (
          <button key={tab.key} type="button" role="tab" id={`${id}-${tab.key}`} aria-selected={tab === shown} aria-controls={tab === shown ? id : undefined} tabIndex={tab === reached ? 0 : -1} onClick={() => change(tab.key)}>{tab.label}</button>
        ))}
      </div>
      {shown && <div key={shown.key} className="tab-panel" role="tabpanel" id={id} aria-labelledby={`${id}-${shown.key}`}>{shown.children}</div>}
    </div>
  )
}
