import { createContext, useCallback, useContext, useState } from 'react'

export type Mode = 'auto' | 'light' | 'dark'

// Look is whether the page is dark, and how to change it.
export const Look = createContext<{ mode: Mode; dark: boolean; setMode: (mode: Mode) => void }>({ mode: 'auto', dark: false, setMode: () => {} })

export const useLook = () => useContext(Look)

// colorOf gives one of a few well-told colours to a name, always the same one.
export function colorOf(name: string, dark: boolean): string {
  let hash = 2166136261
  for (let i = 0; i < name.length; i++) hash = Math.imul(hash ^ name.charCodeAt(i), 16777619)
  const hue = (((hash >>> 0) % 24) * 15 + 7) % 360
  return `hsl(${hue} ${dark ? '45% 42%' : '55% 62%'})`
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
