import { useQuery } from '@tanstack/react-query'
import { useTranslation } from 'react-i18next'
import { Link } from 'react-router'
import { get } from '../api'
import type { NotificationList } from '../types'

const every = 30_000 // milliseconds between looks: what is urgent goes to a channel, too

// Unread says beside the account how much there is that was not seen, and leads to it.
// Whoever is told nothing, such as a program's token, sees nothing.
export function Unread() {
  const { t, i18n } = useTranslation()
  const list = useQuery({
    queryKey: ['self', 'notifications', i18n.language], refetchInterval: every, retry: false, meta: { later: true },
    queryFn: ({ signal }) => get<NotificationList>('/v1/self/notifications', signal),
  })
  const count = list.data?.unseen ?? 0
  if (!count) return null
  return <Link className="button small" to="/notifications" aria-label={t('shell.unread', { count })} title={t('shell.unread', { count })}>{count > 99 ? '99+' : count}</Link>
}
