import { useEffect } from 'react'

const boxes = '.ant-table-content, .wall'
const pause = 200 // milliseconds: pages change in bursts

// useReachable lets people scroll with their keys what is wider than their
// screen, as tables are on a phone: a box of which a part is hidden takes the
// focus.
export function useReachable() {
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined
    const look = () => {
      timer = undefined
      for (const box of document.querySelectorAll<HTMLElement>(boxes)) {
        const hides = box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight
        if (hides && !box.hasAttribute('tabindex')) {
          box.tabIndex = 0
          box.dataset.reachable = ''
        } else if (!hides && box.dataset.reachable !== undefined) {
          box.removeAttribute('tabindex')
          delete box.dataset.reachable
        }
      }
    }
    const soon = () => { timer ??= setTimeout(look, pause) }
    const watch = new MutationObserver(soon)
    watch.observe(document.body, { childList: true, subtree: true })
    window.addEventListener('resize', soon)
    soon()
    return () => {
      watch.disconnect()
      window.removeEventListener('resize', soon)
      clearTimeout(timer)
    }
  }, [])
}
