// What is looked at stands in the address, so that it can be shared.
import { useSearchParams } from 'react-router'

// useAddress gives the parameters of the address, and a way to set one of them
// without a step in the history; an empty value takes it out.
export function useAddress(): [URLSearchParams, (name: string, value: string) => void] {
  const [params, setParams] = useSearchParams()
  const put = (name: string, value: string) => setParams((old) => {
    const next = new URLSearchParams(old)
    if (value) next.set(name, value)
    else next.delete(name)
    return next
  }, { replace: true })
  return [params, put]
}
