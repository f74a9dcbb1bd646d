// What is wrong with a job file: read where one is written.
import texts from '../../internal/messages/en/jobspec.json'

export default texts as Record<string, string>
