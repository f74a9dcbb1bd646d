import { render, screen } from '@testing-library/react'
import { useTranslation } from 'react-i18next'
import { expect, test } from 'vitest'
import first from '../src/catalogue.en'
import file from '../src/catalogue.en.file'
import rest from '../src/catalogue.en.rest'
import { causeText, chooseLanguage, reasonText, startLanguage } from '../src/i18n'

// Says draws what a server said by id, as the rows of lists do.
function Says({ id }: { id: string }) {
  useTranslation()
  return <p>{reasonText({ id, params: { event: '7', node: 'a1' } })}</p>
}

test('the first part of the catalogue is asked for alone, and the rest when it is to be read', async () => {
  expect(Object.keys(first).filter((id) => id in rest)).toEqual([])
  expect(Object.keys(file).filter((id) => id in first || id in rest || !/^job(spec)?\./.test(id))).toEqual([])
  expect(Object.keys({ ...first, ...rest, ...file }).filter((id) => id.endsWith('.hint'))).toEqual([])
  localStorage.setItem('nomadlike.language', 'en')
  await startLanguage()
  render(<><Says id="reason.node_lost" /><Says id="event.node.lost" /><Says id="nobody.knows" /></>)
  screen.getByText('node a1 was lost')
  expect(screen.getAllByText('…')).toHaveLength(2)
  await screen.findByText(rest['event.node.lost']!.replace('{node}', 'a1'), {}, { timeout: 20_000 })
  screen.getByText('nobody.knows event=7 node=a1')
  expect(causeText('jobspec.job_missing')).toBe('…')
  await expect.poll(() => causeText('jobspec.job_missing')).toBe(file['jobspec.job_missing'])
  expect(causeText('jobspec.nobody')).toBe('jobspec.nobody')

  await chooseLanguage('zh')
  expect(causeText('state.job_unknown')).toBe('…')
  await screen.findByText('nobody.knows event=7 node=a1')
  expect(causeText('state.job_unknown')).toMatch(/任务/)
})
