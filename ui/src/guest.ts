import { createContext, useContext } from 'react'
import type { Token } from './types'

// isShare reports whether somebody looks through a share link: at one thing, and
// changes nothing.
export const isShare = (token?: Token | null) => token?.role === 'guest' || token?.role === 'board'

// Guest is true around what such a visitor sees. What leads elsewhere or does
// something is not shown there: names of nodes are names, not links.
export const Guest = createContext(false)

export const useGuest = () => useContext(Guest)
