import { keepPreviousData, useQuery, useQueryClient } from '@tanstack/react-query'
import { useEffect, useMemo, useRef, useState } from 'react'
import { useNavigate } from 'react-router'
import { ApiError, call } from '../../api'
import { fileOf } from '../../parts/actions'
import { dropDraft, keepDraft, readDraft } from '../../parts/draft'
import { variablesOf, type FileChange } from '../../parts/jobfile'
import type { Error as Failure, JobFormatted, JobOutlook, JobSubmitted, JobValidated } from '../../types'
import { problemsOf } from './file'

// useLater returns a value once it has not changed for so many milliseconds, or
// when it is told that nobody is typing.
function useLater<T>(value: T, wait: number): [T, (value: T) => void] {
  const [later, setLater] = useState(value)
  const newest = useRef(value) // a timer that began with an older one must not bring it back
  newest.current = value
  useEffect(() => {
    const timer = setTimeout(() => setLater(newest.current), wait)
    return () => clearTimeout(timer)
  }, [value, wait])
  const atOnce = (now: T) => {
    newest.current = now
    setLater(now)
  }
  return [later, atOnce]
}

// useGiven is the job file that the address asks for: that of a job to clone,
// or the usual example.
export function useGiven(id: string) {
  return useQuery({
    queryKey: ['given', id],
    enabled: id !== '',
    staleTime: Infinity,
    gcTime: 0,
    queryFn: ({ signal }) => fileOf(id, signal),
  })
}

// Resume says from which job, and which of its checkpoints, a new one goes on.
export interface Resume {
  job: string
  step?: number
}

// useDraft is a job file that somebody writes: its text, what the server says of it,
// and the ways to change and submit it. It is kept in the browser under place until
// it is submitted.
export function useDraft(place: string, first: string, options: { resume?: Resume; fresh?: boolean } = {}) {
  const { resume, fresh } = options
  const go = useNavigate()
  const [before, setBefore] = useState(() => (fresh ? undefined : readDraft(place)))
  const [text, setText] = useState(before?.text ?? first)
  useEffect(() => {
    if (text === first) dropDraft(place)
    else keepDraft(place, text)
  }, [place, text, first])
  const [given, setGiven] = useState<Record<string, string>>({})
  const [error, setError] = useState<unknown>()
  const [busy, setBusy] = useState(false)
  const key = useRef(crypto.randomUUID())
  const names = useMemo(() => variablesOf(text), [text])
  const variables = Object.fromEntries(names.filter((name) => given[name] !== undefined && given[name] !== '').map((name) => [name, given[name]!]))
  const [body, atOnce] = useLater(JSON.stringify({ hcl: text, variables }), 300)
  const client = useQueryClient()
  const asked = JSON.parse(body) as { hcl: string; variables: Record<string, string> }
  const later = asked.hcl
  const checked = useQuery({ queryKey: ['draft', 'check', body], retry: false, placeholderData: keepPreviousData, queryFn: ({ signal }) => call<JobValidated>('POST', '/v1/jobs/validate', asked, signal).catch((failure: unknown) => {
    if (failure instanceof ApiError && failure.status === 400) return { valid: false, problems: problemsOf(failure.failure) } as JobValidated
    throw failure
  }) })
  const read = useQuery({ queryKey: ['draft', 'read', body], retry: false, placeholderData: keepPreviousData, queryFn: ({ signal }) => call<JobFormatted>('POST', '/v1/jobs/format', asked, signal) })
  const valid = checked.data?.valid === true && !checked.isPlaceholderData
  const outlook = useQuery({ queryKey: ['draft', 'forecast', body], enabled: valid, retry: false, refetchInterval: 20_000, placeholderData: keepPreviousData, queryFn: ({ signal }) => call<JobOutlook>('POST', '/v1/jobs/forecast', asked, signal) })
  const problems = checked.data?.problems ?? []
  // wait has the next submission wait for something, such as code that is being sent.
  const waiting = useRef<Promise<unknown>>(Promise.resolve())
  const [held, hold] = useState(0)
  const wait = (on: Promise<unknown>) => {
    waiting.current = on
    hold((n) => n + 1)
    void on.catch(() => {}).finally(() => {
      if (waiting.current === on) waiting.current = Promise.resolve() // what failed holds up the submission that waited, and no later one
      hold((n) => n - 1)
    })
  }
  const submit = async () => {
    setBusy(true)
    setError(undefined)
    try {
      await waiting.current // what is on its way is part of the job
      const made = await call<JobSubmitted>('POST', '/v1/jobs', { hcl: newest.current, variables, resume: resume?.job, resume_step: resume?.step }, undefined, { 'Idempotency-Key': key.current })
      key.current = crypto.randomUUID()
      dropDraft(place)
      void go('/jobs/' + made.job_id)
    } catch (failure) {
      setError(failure)
      setBusy(false)
    }
  }
  // change edits the file on the server, which keeps its comments and what it
  // does not know about; changes are made one after the other. It ends when the
  // form shows what the file says then, and reports whether the file has it: a value
  // that no file may hold is refused, by its place, and the file stays as it is.
  const [refused, setRefused] = useState<Record<string, Failure>>({})
  const newest = useRef(text)
  newest.current = text
  const queue = useRef(Promise.resolve(true))
  const change = (set: FileChange[]): Promise<boolean> =>
    (queue.current = queue.current.then(async () => {
      const [at] = set
      if (!at) return true
      for (;;) {
        const before = newest.current
        try {
          const made = await call<JobFormatted>('POST', '/v1/jobs/format', { hcl: before, variables, set })
          if (newest.current !== before) continue // someone typed meanwhile
          newest.current = made.hcl
          const now = JSON.stringify({ hcl: made.hcl, variables })
          client.setQueryData(['draft', 'read', now], made)
          setText(made.hcl)
          atOnce(now)
          setError(undefined)
          forget(set.map((one) => one.at))
          return true
        } catch (failure) {
          if (failure instanceof ApiError && failure.status === 400) setRefused((all) => ({ ...all, [at.at]: problemsOf(failure.failure)[0]! }))
          else setError(failure)
          return false
        }
      }
    }))
  const forget = (places: string[]) => setRefused((all) => (places.some((at) => at in all) ? Object.fromEntries(Object.entries(all).filter(([at]) => !places.includes(at))) : all))
  const write = (now: string) => {
    setText(now)
    setRefused({})
  }
  const anew = () => {
    write(first)
    setBefore(undefined)
  }
  return { before: before && before.text !== first ? before : undefined, anew, text, setText: write, names, given, setGiven, asked, later, checked, read, valid, outlook, problems, job: read.isError ? undefined : read.data?.job, change, refused, forget, wait, held: held > 0, submit, busy, error }
}
