import { act, fireEvent } from '@testing-library/react'

// What a person does, as far as the tests need it.
export default {
  async type(target: Element, text: string) {
    await act(async () => {
      fireEvent.change(target, { target: { value: text } })
    })
  },
  async click(target: Element) {
    await act(async () => {
      fireEvent.click(target)
    })
  },
}
