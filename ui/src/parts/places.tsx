import { Link } from 'react-router'
import { useGuest } from '../guest'

// Links to the pages of nodes and jobs. Whoever looks through a share link may
// see none but the one that it shows: to them a name is a name.

function Place({ to, children }: { to: string; children: React.ReactNode }) {
  return useGuest() ? <>{children}</> : <Link to={to}>{children}</Link>
}

export function NodeLink({ id, name }: { id: string; name?: string }) {
  return <Place to={'/nodes/' + id}>{name || id.slice(0, 8)}</Place>
}

export function JobLink({ id, name }: { id: string; name?: string }) {
  return <Place to={'/jobs/' + id}>{name || id.slice(0, 8)}</Place>
}
