// The pages of people and projects come together: few open them, and whoever opens one
// goes on to the next.
export { AuditPage } from './audit'
export { LimitsPage } from './limits'
export { People } from './people'
export { ProjectPage } from './project'
export { ProjectsPage } from './projects'
export { SecretsPage } from './secrets'
export { UsePage } from './use'
