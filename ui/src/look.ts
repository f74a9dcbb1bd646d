import { createContext, useCallback, useContext, useState } from 'react'

export type Mode = 'auto' | 'light' | 'dark'

// Look is whether the page is dark, and how to change it.
export const Look = createContext<{ mode: Mode; dark: boolean; setMode: (mode: Mode) => void }>({ mode: 'auto', dark: false, setMode: () => {} })

export const useLook = () => useContext(Look)

// What jobs and people are told by: neither red and orange, which are faults and
// what needs attention, nor bright green, which is what went well.
const hues = [58, 168, 188, 212, 236, 262, 288, 314]

// colorOf gives one of a few well-told colours to a name, always the same one.
export function colorOf(name: string, dark: boolean): string {
  let hash = 2166136261
  for (let i = 0; i < name.length; i++) hash = Math.imul(hash ^ name.charCodeAt(i), 16777619)
  const one = hues[(hash >>> 0) % hues.length]!
  const deep = ((hash >>> 16) & 1) === 1
  return `hsl(${one} ${dark ? (deep ? '45% 33%' : '42% 45%') : deep ? '48% 52%' : '58% 70%'})`
}

// useWidth is the width of an element, followed as it changes, and the ref
// that the element takes. Until the element is there it is as wide as guessed.
export function useWidth(least: number, guessed = 900): [number, (element: HTMLElement | null) => void | (() => void)] {
  const [width, setWidth] = useState(guessed)
  const ref = useCallback(
    (element: HTMLElement | null) => {
      if (!element) return
      const watch = new ResizeObserver(([entry]) => setWidth(Math.max(least, Math.floor(entry!.contentRect.width))))
      watch.observe(element)
      return () => watch.disconnect()
    },
    [least],
  )
  return [width, ref]
}
