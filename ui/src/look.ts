import { createContext, useContext } from 'react'

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
