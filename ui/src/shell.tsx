import { useQuery, useQueryClient, type QueryClient } from '@tanstack/react-query'
import { lazy, Suspense, useEffect, useLayoutEffect, useRef, useState, useSyncExternalStore } from 'react'
import { useTranslation } from 'react-i18next'
import { Link, Outlet, useLocation, useNavigation, useSearchParams } from 'react-router'
import { ApiError, call, get } from './api'
import { dateTime } from './format'
import { follow, type Contact } from './events'
import { Guest, isShare } from './guest'
import { chooseLanguage, withTexts, type Language } from './i18n'
import { useLook } from './look'
import { Button, Drop, Note, Segments } from './parts/controls'
import { again } from './again'
import { Acting } from './parts/acting'
import { Away } from './parts/away'
import { dropDrafts } from './parts/draft'
import { Keys } from './parts/keys'
import { Palette } from './parts/palette'
import { Rail } from './parts/rail'
import { Unread } from './parts/unread'
import { Failed, Loading, NoPage, failing } from './parts/states'
import { act, lostProject, onActing, seenLost } from './acting'
import { useRights, whoOf, type Who } from './rights'
import type { Self, Session, SessionEnded, Token } from './types'

const SignIn = lazy(() => again(() => Promise.all([import('./signin'), withTexts('signin')])).then(([m]) => ({ default: m.SignIn })))
const OwnPassword = lazy(() => again(() => Promise.all([import('./parts/password'), withTexts('people')])).then(([m]) => ({ default: m.OwnPassword })))

const sharedEvery = 10_000 // milliseconds

// takeCode takes a code that signs in once out of the address.
function takeCode(): string {
  const found = /^#code=([A-Z2-7]+)$/.exec(location.hash)
  if (!found) return ''
  history.replaceState(null, '', location.pathname + location.search)
  return found[1]!
}

// takeShare takes what signs in whoever has a share link out of the address.
function takeShare(): string {
  const found = /^#share=(nl_share_[a-z2-7]+)$/.exec(location.hash)
  if (!found) return ''
  history.replaceState(null, '', location.pathname + location.search)
  return found[1]!
}

// sessionQuery asks who is signed in; null when nobody is.
export const sessionQuery = {
  queryKey: ['session'],
  queryFn: async ({ signal }: { signal: AbortSignal }): Promise<Who | null> => {
    const code = takeCode()
    const share = takeShare()
    if (code) await call('POST', '/v1/session', { code }).catch(() => {}) // a code that is over: the page asks for a token
    try {
      return whoOf(await get<Self>('/v1/self', signal))
    } catch (error) {
      if (!(error instanceof ApiError && error.status === 401)) throw error
      // Somebody who is signed in sees the page with rights of their own.
      if (share) return await call<Session>('POST', '/v1/session', { token: share }).then(({ token }) => ({ ...token, acting: token.project ?? '', memberships: [] }), () => null)
      return null
    }
  },
  staleTime: 60_000,
  refetchInterval: ({ state }: { state: { status: string } }) => (state.status === 'error' ? 3000 : false) as number | false,
}

export const useSession = () => useQuery<Who | null>(sessionQuery)

// Shell is what stands around every page: sign-in first, then the menu.
export function Shell() {
  const { t, i18n } = useTranslation()
  const session = useSession()
  const [params] = useSearchParams()
  const [menu, setMenu] = useState(false)
  const client = useQueryClient()
  useEffect(() => {
    document.title = 'nomadlike'
  }, [i18n.language])
  if (session.isPending) return <Loading />
  if (failing(session)) return <main className="alone"><div className="stack"><Failed error={session.error} retry={() => void session.refetch()} /><Button onClick={() => void leave(client)}>{t('shell.sign_out')}</Button></div></main>
  if (!session.data) return <Suspense fallback={<Loading />}><SignIn /></Suspense>
  if (isShare(session.data)) return <Shared token={session.data} />
  // A wallboard shows a page and nothing around it, live as any other.
  const board = params.has('board')
  return (
    <div className={board ? 'shell board' : 'shell'}>
      <a className="skip" href="#content">{t('shell.skip')}</a>
      {!board && <Rail open={menu} close={() => setMenu(false)}><Preferences /></Rail>}
      <div className="body">
        <Header who={session.data} hidden={board} menu={() => setMenu(true)} />
        <Content><Outlet /></Content>
      </div>
      <Keys />
    </div>
  )
}

const wholeMax = 1500 // milliseconds after which a page is shown as far as it is there

// Content is the page that is open. A new one is laid out and not shown until its
// first answers are there, so that it does not move under who reads it; main.css says
// meanwhile that it loads. What stands in a page is the first two parts of its path:
// a tab or a filter changes what is shown at once.
export function Content({ children }: { children: React.ReactNode }) {
  const page = useLocation().pathname.split('/').slice(0, 3).join('/')
  const client = useQueryClient()
  const here = useRef<HTMLElement>(null)
  useLayoutEffect(() => {
    const main = here.current!
    main.ariaBusy = 'true'
    let frame = 0
    let still = 0 // frames without anything that is waited for: an answer may ask for more
    const show = () => {
      cancelAnimationFrame(frame)
      main.ariaBusy = null
    }
    const look = () => {
      // What failed once is tried again for seconds, and a page says so itself.
      const waits = client.isFetching({ predicate: ({ state, meta }) => state.status === 'pending' && !state.fetchFailureCount && !meta?.later })
        || main.querySelector(':scope > .loading, :scope > :not(.soon) .loading')
      still = waits ? 0 : still + 1
      if (still > 1) show()
      else frame = requestAnimationFrame(look)
    }
    frame = requestAnimationFrame(look)
    const late = setTimeout(show, wholeMax)
    return () => {
      clearTimeout(late)
      show()
    }
  }, [page, client])
  return (
    <main id="content" tabIndex={-1} ref={here}>
      <Suspense fallback={<Loading />}>{children}</Suspense>
      <div className="soon"><Loading /></div>
    </main>
  )
}

// Shared stands around the one thing that a share link shows; there is no way
// to anything else, but for signing in. It asks again every so often, since the
// stream of events is not a guest's.
function Shared({ token }: { token: Token }) {
  const { t } = useTranslation()
  const { pathname } = useLocation()
  const client = useQueryClient()
  const shown = token.role === 'board' ? pathname === '/cluster' : /^\/jobs\/(?!new$)./.test(pathname)
  useEffect(() => {
    const timer = setInterval(() => void client.invalidateQueries(undefined, { cancelRefetch: false }), sharedEvery)
    return () => clearInterval(timer)
  }, [client])
  return (
    <div className="shell guest">
      <div className="body">
      <header className="top">
        <span className="brand">nomadlike</span>
        <span className="quiet" role="note">{t('share.seen', { until: dateTime(token.expires_at) })}</span>
        <span className="grow" />
        <Button onClick={() => void leave(client)}>{t('signin.enter')}</Button>
        <Preferences />
      </header>
      <Content><Guest value={true}>{shown ? <Outlet /> : <NoPage />}</Guest></Content>
      </div>
    </div>
  )
}

// leave ends the session; what stands here then is the sign-in.
async function leave(client: QueryClient) {
  const ended = await call<SessionEnded>('DELETE', '/v1/session').catch(() => undefined) // the cookie may be over already
  dropDrafts()
  act('')
  // What is open may have been refused meanwhile, and have asked who is signed in.
  await client.cancelQueries({ queryKey: ['session'] })
  client.setQueryData(['session'], null)
  client.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== 'session' })
  if (ended?.address?.startsWith('https://')) location.assign(ended.address) // one signs out at the provider, too
}

function Header({ who, hidden, menu }: { who: Who; hidden: boolean; menu: () => void }) {
  const { t } = useTranslation()
  const moving = useNavigation().state !== 'idle'
  const client = useQueryClient()
  const may = useRights()
  const [contact, setContact] = useState<Contact>(() => ({ state: 'live', heard: Date.now() }))
  useEffect(() => {
    const end = new AbortController()
    follow(client, end.signal, setContact)
    return () => end.abort()
  }, [client])
  const { state } = contact
  const [asks, setAsks] = useState(false) // for another password
  const lost = useSyncExternalStore(onActing, lostProject)
  return (
    <>
    <header className="top" hidden={hidden}>
      <Button className="menu" aria-label={t('shell.menu')} onClick={menu}><span aria-hidden="true">☰</span></Button>
      <Acting who={who} />
      <Palette signOut={() => void leave(client)} />
      <span className="grow" />
      <span className={'live ' + state} role="status" title={t('shell.' + state + '_long')}>
        {moving ? '…' : t('shell.' + state)}
      </span>
      {(may('submit') || may('vip')) && (
        <Drop right className="new" name={t('shell.new')} label={t('shell.new')}>
          <ul className="menu-list">
            {may('submit') && <li><Link to="/jobs/new">{t('shell.new_job')}</Link><p className="quiet">{t('shell.new_job_about')}</p></li>}
            {may('submit') && <li><Link to="/jobs/new?kind=batch">{t('shell.new_batch')}</Link><p className="quiet">{t('shell.new_batch_about')}</p></li>}
            {may('vip') && <li><Link to="/vip">{t('vip.title')}</Link><p className="quiet">{t('shell.new_vip_about')}</p></li>}
          </ul>
        </Drop>
      )}
      <span className="preferences"><Preferences /></span>
      {who.user && !hidden && <Unread />}
      <Drop right className="bare" name={t('shell.account')} label={who.user || who.name || who.id}>
        <p className="quiet">{t('shell.who', { role: t('role.' + who.role, who.role), project: who.project || t('shell.all_projects') })}</p>
        <Link to="/notifications">{t('shell.told')}</Link>
        {who.method === 'password' && <Button onClick={() => setAsks(true)}>{t('shell.password')}</Button>}
        <Button onClick={() => void leave(client)}>{t('shell.sign_out')}</Button>
      </Drop>
      {asks && <Suspense><OwnPassword user={who.user!} close={() => setAsks(false)} /></Suspense>}
    </header>
    <Away contact={contact} />
    {lost && <Note tone="warning" title={t('acting.lost', { project: lost, own: who.acting })} action={<Button onClick={seenLost}>{t('controls.close')}</Button>} />}
    </>
  )
}

// Preferences are the language and the brightness.
export function Preferences() {
  const { t, i18n } = useTranslation()
  const { mode, setMode } = useLook()
  return (
    <>
      <Segments<Language> label={t('shell.language')} value={i18n.language} change={(value) => void chooseLanguage(value)} options={[{ label: '中文', value: 'zh' }, { label: 'EN', value: 'en' }]} />
      <Button
        tone="bare"
        aria-label={t('shell.mode', { mode: t('shell.mode_' + mode) })}
        title={t('shell.mode', { mode: t('shell.mode_' + mode) })}
        onClick={() => setMode(mode === 'auto' ? 'dark' : mode === 'dark' ? 'light' : 'auto')}
      >
        <span aria-hidden="true">{mode === 'auto' ? '◐' : mode === 'dark' ? '●' : '○'}</span>
      </Button>
    </>
  )
}
