// The pages of people and projects come together: few open them, and whoever opens one
// goes on to the next.
export { AuditPage } from './audit'
export { People } from './people'
export { ProjectPage } from './project'
export { ProjectsPage } from './projects'
export { UsePage } from './use'
